#include "base/parallel.hpp"

#include <numeric>
#include <stdexcept>
#include <string>

#include "check.hpp"

TEST(parallel_for_runs_every_task_once) {
  for (const int threads : {-1, 0, 1, 2, 7, 100}) {
    for (const int tasks : {0, 1, 2, 50, 1000}) {
      std::vector<std::atomic<int>> runs(tasks);
      ohm::parallel_for(threads, tasks, [&](std::int64_t task) { ++runs[task]; });
      for (const auto& count : runs) CHECK(count == 1);
    }
  }
}

TEST(parallel_for_hands_on_an_exception_and_stops) {
  for (const int threads : {1, 2, 4}) {
    std::atomic<int> runs{0};
    std::string caught;
    try {
      ohm::parallel_for(threads, 1000000, [&](std::int64_t task) {
        ++runs;
        if (task == 3) throw std::runtime_error("task three");
      });
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    CHECK(caught == "task three");
    CHECK(runs < 1000000);
  }
}

// Each member writes its entry, and all read the entries of the others after the barrier.
TEST(team_members_meet) {
  for (const int size : {1, 2, 5}) {
    ohm::Team team(size);
    std::vector<int> places(size, 0);
    std::vector<int> wrong(size, 0);
    team.run([&](int rank) {
      for (int round = 1; round <= 200; ++round) {
        places[rank] += rank + 1;
        team.meet();
        const int sum = std::accumulate(places.begin(), places.end(), 0);
        wrong[rank] += sum != round * size * (size + 1) / 2;
        team.meet();
      }
    });
    for (const int count : wrong) CHECK(count == 0);
  }
}
