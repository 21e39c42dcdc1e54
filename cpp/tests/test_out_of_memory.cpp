// What is left when memory runs out halfway: something whole, if not all that was asked for.
#include "check.hpp"
#include "nodes.hpp"
#include "sampler.hpp"

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

thread_local std::int64_t allocations_left = -1;  // of at least kWorthFailing bytes, before one fails
constexpr std::size_t kWorthFailing = 2048;

void* allocate(std::size_t size) {
  if (allocations_left >= 0 && size >= kWorthFailing && allocations_left-- == 0) throw std::bad_alloc();
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Runs f with the first, second, ... allocation failing, until none does; calls look after each failure.
template <class Make, class F, class Look>
int fail_each(const Make& make, const F& f, const Look& look) {
  for (int failures = 0;; ++failures) {
    auto object = make();
    allocations_left = failures;
    try {
      f(object);
      allocations_left = -1;
      return failures;
    } catch (const std::bad_alloc&) {
      allocations_left = -1;
      look(object);
    }
  }
}

TEST(a_sampler_is_whole_after_memory_ran_out) {
  constexpr std::int32_t n = 200;
  std::vector<std::int32_t> u, v;
  for (std::int32_t i = 0; i < n; ++i) {
    for (std::int32_t j = i + 1; j < n; ++j) {
      u.push_back(i);
      v.push_back(j);
    }
  }
  const int failures = fail_each(
      [&] { return ohm::Sampler(n, {.epsilon = 0.9}); },
      [&](ohm::Sampler& sampler) { sampler.update<std::int32_t, ohm::Unit>(u, v, {}); },
      [&](ohm::Sampler& sampler) {
        const ohm::Sampler::State& state = sampler.state();
        CHECK(state.u.size() == state.v.size() && state.u.size() == state.w.size());
        CHECK(state.n_sorted <= std::ssize(state.u));
        CHECK(state.position == 0 || !state.u.empty());
        sampler.update<std::int32_t, ohm::Unit>(u, v, {});  // and goes on
        CHECK(sampler.snapshot().indices.size() > 0);
      });
  CHECK(failures > 10);
}

TEST(tables_of_ids_are_whole_after_memory_ran_out) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 5000; ++i) ids.push_back(1000000007 * (i + 1));
  std::vector<std::int32_t> numbers(ids.size());
  const auto in_order = [&] {
    for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(numbers[i] == static_cast<std::int32_t>(i));
  };
  CHECK(fail_each([] { return ohm::IntegerNodes(); },
                  [&](ohm::IntegerNodes& nodes) { nodes.add(ids, numbers.data()); },
                  [&](ohm::IntegerNodes& nodes) {
                    nodes.add(ids, numbers.data());
                    in_order();
                  }) > 5);
  std::string text;
  std::vector<std::int64_t> offset{0};
  for (const std::int64_t id : ids) {
    text += "a long name that needs room, " + std::to_string(id);
    offset.push_back(std::ssize(text));
  }
  const ohm::Strings<std::int64_t> names{offset, text.data()};
  CHECK(fail_each([] { return ohm::StringNodes(); },
                  [&](ohm::StringNodes& nodes) { nodes.add(names, numbers.data()); },
                  [&](ohm::StringNodes& nodes) {
                    nodes.add(names, numbers.data());
                    in_order();
                  }) > 5);
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
