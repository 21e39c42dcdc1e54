#include "base/parallel.hpp"

#include <chrono>
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

// Runs follow one another at once, or after the helpers have fallen asleep.
TEST(a_crew_runs_one_job_after_the_other) {
  for (const int size : {1, 2, 5}) {
    ohm::Crew crew(size);
    std::vector<std::int64_t> sums(64);
    for (int round = 1; round <= 300; ++round) {
      if (round % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      crew.run(std::ssize(sums), [&](std::int64_t task) { sums[task] += round * task; });
      std::int64_t total = 0;
      for (const std::int64_t sum : sums) total += sum;
      CHECK(total == std::int64_t{round} * (round + 1) / 2 * (64 * 63 / 2));
    }
  }
}

TEST(a_crew_goes_on_after_an_exception) {
  ohm::Crew crew(3);
  for (int round = 0; round < 20; ++round) {
    bool is_caught = false;
    try {
      crew.run(100, [&](std::int64_t task) {
        if (task == 50) throw std::runtime_error("fifty");
      });
    } catch (const std::runtime_error&) {
      is_caught = true;
    }
    CHECK(is_caught);
    std::atomic<int> runs{0};
    crew.run(100, [&](std::int64_t) { ++runs; });
    CHECK(runs == 100);
  }
}
