// Threads live only as long as one call: nothing is left running that a fork could break.
#pragma once

#include <atomic>
#include <barrier>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace ohm {

// Joins its threads when it goes out of scope.
class Threads {
 public:
  Threads() = default;
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }
  template <class F>
  void start(F&& f) {
    threads_.emplace_back(std::forward<F>(f));
  }

 private:
  std::vector<std::thread> threads_;
};

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
    Threads helpers;
    try {
      for (int t = 1; t < threads; ++t) helpers.start(work);
    } catch (const std::system_error&) {
      // No more threads can be started; the existing ones do the work.
    }
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
  // Runs f(rank) once per member; f must not throw. No member begins before all have been started. If that fails, the
  // calling thread runs f alone, and the team has one member from then on.
  template <class F>
  void run(F&& f) {
    std::atomic<int> gate{0};
    Threads helpers;
    const auto open = [&](int verdict) {
      gate = verdict;
      gate.notify_all();
    };
    try {
      for (int rank = 1; rank < size_; ++rank) {
        helpers.start([&f, &gate, rank] {
          gate.wait(0);
          if (gate == 1) f(rank);
        });
      }
      open(1);
    } catch (...) {  // no more threads, or no memory for one
      size_ = 1;
      open(-1);
    }
    f(0);
  }

 private:
  int size_;
  std::barrier<> barrier_;
};

}  // namespace ohm
