// Threads live only as long as one call: nothing is left running that a fork could break.
#pragma once

#include <atomic>
#include <barrier>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace ohm {

// Runs f(task) for task = 0..tasks-1 on up to `threads` threads, in no particular order.
template <class F>
void parallel_for(int threads, std::int64_t tasks, F&& f) {
  if (threads > tasks) threads = static_cast<int>(tasks);
  if (threads <= 1) {
    for (std::int64_t task = 0; task < tasks; ++task) f(task);
    return;
  }
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_guard;
  const auto work = [&] {
    try {
      for (std::int64_t task; (task = next.fetch_add(1)) < tasks;) f(task);
    } catch (...) {
      const std::lock_guard lock(failure_guard);
      failure = std::current_exception();
      next = tasks;
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int t = 1; t < threads; ++t) helpers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

// A fixed group of threads that walk through the same code and meet at barriers.
class Team {
 public:
  explicit Team(int size) : size_(size), barrier_(size) {}
  int size() const { return size_; }
  void meet() {
    if (size_ > 1) barrier_.arrive_and_wait();
  }
  // Runs f(rank) once per member; f must not throw.
  template <class F>
  void run(F&& f) {
    std::vector<std::jthread> helpers;
    for (int rank = 1; rank < size_; ++rank) helpers.emplace_back([&f, rank] { f(rank); });
    f(0);
  }

 private:
  int size_;
  std::barrier<> barrier_;
};

}  // namespace ohm
