// Threads live only as long as one call: nothing is left running that a fork could break.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace ohm {

// Threads that share the work of one call.
//
// They are started at the first `run` that has work for more than one, and joined when the crew goes out of scope.
// Between two runs they spin for a moment and then sleep. A run never waits for a sleeper: whoever is awake does the
// work, so a crew of more threads than free cores loses little.
class Crew {
 public:
  explicit Crew(int size) : size_(size) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    if (threads_.empty()) return;
    ends_ = true;
    call_all();
    for (std::thread& thread : threads_) thread.join();
  }
  int size() const { return std::max(1, size_); }

  // Runs f(task) for task = 0..tasks-1, in no particular order. Not to be called from a task of the same crew.
  template <class F>
  void run(std::int64_t tasks, F&& f) {
    if (size_ <= 1 || tasks <= 1) {
      for (std::int64_t task = 0; task < tasks; ++task) f(task);
      return;
    }
    start_threads(static_cast<int>(std::min<std::int64_t>(size_, tasks)));
    using Function = std::remove_reference_t<F>;
    call_ = [](const void* object, std::int64_t task) { (*static_cast<Function*>(const_cast<void*>(object)))(task); };
    object_ = &f;
    tasks_ = tasks;
    next_ = 0;
    is_open_ = true;
    call_all();
    work();
    is_open_ = false;
    for (int spins = 0; inside_ > 0 && spins < kSpins; ++spins) pause();
    for (int inside; (inside = inside_) > 0;) inside_.wait(inside);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  // Some 150 microseconds, about what it takes to wake a thread.
  static constexpr int kSpins = 6000;

  static void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  void start_threads(int wanted) {
    try {
      while (static_cast<int>(threads_.size()) + 1 < wanted) threads_.emplace_back([this] { help(); });
    } catch (...) {
      // No more threads can be started, or there is no memory for them; the existing ones do the work.
    }
  }

  void call_all() {
    ++calls_;
    calls_.notify_all();
  }

  void help() {
    for (std::uint32_t seen = 0;;) {
      for (int spins = 0; calls_ == seen && spins < kSpins; ++spins) pause();
      calls_.wait(seen);
      seen = calls_;
      if (ends_) return;
      // Either the caller sees this thread inside, or this thread sees that the run is closed.
      ++inside_;
      if (is_open_) work();
      if (--inside_ == 0) inside_.notify_one();
    }
  }

  void work() {
    try {
      for (std::int64_t task; (task = next_.fetch_add(1)) < tasks_;) call_(object_, task);
    } catch (...) {
      const std::lock_guard lock(failure_guard_);
      failure_ = std::current_exception();
      next_ = tasks_;
    }
  }

  int size_;
  std::vector<std::thread> threads_;
  // The present run. Written while it is closed and no thread is inside.
  void (*call_)(const void*, std::int64_t) = nullptr;
  const void* object_ = nullptr;
  std::int64_t tasks_ = 0;
  std::exception_ptr failure_;
  std::mutex failure_guard_;
  alignas(64) std::atomic<std::int64_t> next_{0};
  alignas(64) std::atomic<bool> is_open_{false};
  std::atomic<bool> ends_{false};
  std::atomic<int> inside_{0};
  std::atomic<std::uint32_t> calls_{0};
};

// Runs f(begin, end) for blocks of 0..count-1 whose borders do not depend on the number of threads.
template <class F>
void for_blocks(Crew& crew, std::int64_t count, F&& f, std::int64_t block = 1 << 14) {
  crew.run((count + block - 1) / block,
           [&](std::int64_t k) { f(k * block, std::min<std::int64_t>(count, (k + 1) * block)); });
}

// A crew without helpers, which any number of threads may use.
inline Crew alone(1);

// Runs f(task) for task = 0..tasks-1 on up to `threads` threads, in no particular order.
template <class F>
void parallel_for(int threads, std::int64_t tasks, F&& f) {
  Crew(threads).run(tasks, f);
}

}  // namespace ohm
