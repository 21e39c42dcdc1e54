// When memory runs out, objects stay consistent, even if an operation is incomplete.
#include "sampling/sampler.hpp"
#include "sampling/windows.hpp"
#include "text/nodes.hpp"
#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

thread_local std::int64_t allocations_left = -1;  // of at least kWorthFailing bytes, before one fails
thread_local bool memory_returns = true;          // false: all those after it fail, too
constexpr std::size_t kWorthFailing = 2048;

void* allocate(std::size_t size, std::size_t align = alignof(std::max_align_t)) {
  if (allocations_left >= 0 && size >= kWorthFailing) {
    if (allocations_left == 0) {
      if (memory_returns) allocations_left = -1;
      throw std::bad_alloc();
    }
    --allocations_left;
  }
  void* memory = std::aligned_alloc(align, (size + align - 1) / align * align);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Runs f with the first, second, ... allocation failing, until none fails; calls look after each failure.
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

struct Edges {
  std::vector<std::int32_t> u, v;
  std::vector<float> w;
};

Edges complete(std::int32_t n) {
  Edges edges;
  for (std::int32_t i = 0; i < n; ++i) {
    for (std::int32_t j = i + 1; j < n; ++j) {
      edges.u.push_back(i);
      edges.v.push_back(j);
      edges.w.push_back(1.0f);
    }
  }
  return edges;
}

// The same with a number of clusters that changes: pairs and later groups of four with heavy edges.
Edges clustered(std::int32_t n) {
  Edges edges;
  const Edges light = complete(n);
  for (const std::int32_t size : {2, 4, 2, 4}) {
    for (std::int32_t i = 0; i + 1 < n; ++i) {
      if ((i + 1) % size == 0) continue;
      edges.u.push_back(i);
      edges.v.push_back(i + 1);
      edges.w.push_back(static_cast<float>(1e4 * size));
    }
    edges.u.insert(edges.u.end(), light.u.begin(), light.u.end());
    edges.v.insert(edges.v.end(), light.v.begin(), light.v.end());
    edges.w.insert(edges.w.end(), light.w.begin(), light.w.end());
  }
  return edges;
}

void feed(ohm::Sampler& sampler, const Edges& edges) {
  sampler.update<std::int32_t, float>(edges.u, edges.v, edges.w);
}

double total(const ohm::Sampler::State& state) {
  double sum = 0.0;
  for (const float w : state.rows.w) sum += static_cast<double>(w);
  return sum;
}

TEST(a_sampler_is_whole_after_memory_ran_out) {
  const Edges edges = complete(200);
  for (const bool returns : {true, false}) {
    memory_returns = returns;
    for (const std::int32_t n : {200, 0}) {  // known, and as they come
      const int failures = fail_each(
          [&] { return ohm::Sampler(n, {.epsilon = 0.9}); }, [&](ohm::Sampler& sampler) { feed(sampler, edges); },
          [&](ohm::Sampler& sampler) {
            const ohm::Sampler::State& state = sampler.state();
            CHECK(state.rows.u.size() == state.rows.v.size() && state.rows.u.size() == state.rows.w.size());
            CHECK(state.n_sorted <= state.rows.size());
            // The weight that was counted is there, up to the sampling error of a few percent with this seed.
            const auto seen = static_cast<double>(state.position);
            CHECK(std::abs(total(state) - seen) <= 0.2 * seen);
            feed(sampler, edges);  // it can continue
            CHECK(sampler.snapshot().h.other.size() > 0);
          });
      CHECK(failures > 10);
    }
  }
  memory_returns = true;
}

TEST(a_sampler_with_a_half_life_is_whole_after_memory_ran_out) {
  const Edges edges = complete(120);
  const ohm::SamplerOptions options{.max_rows = 600, .half_life = 50.0};
  const auto feed_timed = [&](ohm::Sampler& sampler, double start) {
    std::vector<double> t;
    for (std::size_t i = 0; i < edges.u.size(); ++i) t.push_back(start + static_cast<double>(i));
    sampler.update<std::int32_t, float>(edges.u, edges.v, edges.w, t);
  };
  for (const bool returns : {true, false}) {
    memory_returns = returns;
    const int failures = fail_each(
        [&] { return ohm::Sampler(0, options); }, [&](ohm::Sampler& sampler) { feed_timed(sampler, 0.0); },
        [&](ohm::Sampler& sampler) {
          ohm::Sampler::State state = sampler.state();
          state.nodes.resize(state.n_nodes);  // without room for more
          ohm::Sampler::from_state(std::move(state), 0, options);  // refuses states that are not sound
          feed_timed(sampler, 1e4);  // it can continue
          CHECK(sampler.snapshot(sampler.state().latest).h.other.size() > 0);
        });
    CHECK(failures > 10);
  }
  memory_returns = true;
}

TEST(records_of_nodes_match_the_clusters_after_memory_ran_out) {
  const Edges edges = clustered(300);
  Edges even = complete(300);  // so heavy that hardly any cluster is left
  std::fill(even.w.begin(), even.w.end(), 1e8f);
  for (const bool returns : {true, false}) {
    memory_returns = returns;
    const auto make = [&] {
      ohm::Sampler sampler(300, {.epsilon = 0.9});
      feed(sampler, edges);
      return sampler;
    };
    CHECK(make().state().clusters.size() > 2);
    const int failures = fail_each(make, [&](ohm::Sampler& sampler) { feed(sampler, even); },
                                   [&](ohm::Sampler& sampler) {
                                     const ohm::Sampler::State& state = sampler.state();
                                     for (const ohm::NodeRecord& node : state.nodes) {
                                       CHECK(node.cluster <= std::ssize(state.clusters));
                                     }
                                     feed(sampler, edges);
                                   });
    CHECK(failures > 10);
  }
  memory_returns = true;
}

TEST(a_merge_that_ran_out_of_memory_has_changed_nothing) {
  const Edges edges = complete(200), more = complete(260);
  ohm::Sampler first(0, {.seed = 1, .epsilon = 0.9}), second(0, {.seed = 2, .epsilon = 0.9});
  feed(first, edges);
  feed(second, more);
  ohm::Sampler merged = first;
  merged.merge(second.state());
  for (const bool returns : {true, false}) {
    memory_returns = returns;
    const int failures = fail_each(
        [&] { return first; }, [&](ohm::Sampler& sampler) { sampler.merge(second.state()); },
        [&](ohm::Sampler& sampler) {
          const ohm::Sampler::State &now = sampler.state(), &before = first.state();
          CHECK(now.n_nodes == before.n_nodes && now.nodes.size() == before.nodes.size());
          CHECK(now.rows.u == before.rows.u && now.rows.v == before.rows.v && now.rows.w == before.rows.w);
          CHECK(now.n_sorted == before.n_sorted);
          CHECK(now.position == before.position && now.n_resamples == before.n_resamples);
          CHECK(now.beta == before.beta && now.capacity == before.capacity);
          CHECK(now.weight_seen == before.weight_seen);
          sampler.merge(second.state());  // again, with the bits of a merge that did not fail
          CHECK(sampler.state().rows.w == merged.state().rows.w);
          CHECK(sampler.snapshot().h.weight == merged.snapshot().h.weight);
        });
    CHECK(failures > 10);
  }
  memory_returns = true;
}

TEST(a_copy_that_ran_out_of_memory_has_changed_nothing) {
  const Edges edges = clustered(200);
  ohm::Sampler whole(0, {.epsilon = 0.9});
  feed(whole, edges);
  ohm::WindowSampler windows(0, {.epsilon = 0.9});
  const std::vector<double> t(edges.u.size());
  windows.update<std::int32_t, float>(edges.u, edges.v, edges.w, t);
  CHECK(fail_each([&] { return whole; }, [](ohm::Sampler& sampler) { sampler.copy(2); },
                  [&](ohm::Sampler& sampler) {
                    CHECK(sampler.copy(2).snapshot().h.weight == whole.snapshot().h.weight);
                  }) > 5);
  CHECK(fail_each([&] { return windows; }, [](ohm::WindowSampler& sampler) { sampler.copy(2); },
                  [&](ohm::WindowSampler& sampler) {
                    CHECK(sampler.copy(2).snapshot(0.0).h.weight == windows.snapshot(0.0).h.weight);
                  }) > 3);
}

TEST(tables_of_ids_are_whole_after_memory_ran_out) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 5000; ++i) ids.push_back(1000000007 * (i + 1));
  std::vector<std::int32_t> numbers(ids.size());
  const auto check_table = [&]<class Table>(const auto& keys) {
    const auto add = [&](Table& nodes) { nodes.add(keys, numbers.data()); };
    const auto look = [&](Table& nodes) {
      add(nodes);
      for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(numbers[i] == static_cast<std::int32_t>(i));
    };
    CHECK(fail_each([] { return Table(); }, add, look) > 5);
  };
  check_table.template operator()<ohm::IntegerNodes>(std::span<const std::int64_t>(ids));
  std::string text;
  std::vector<std::int64_t> offset{0};
  for (const std::int64_t id : ids) {
    text += "a long name that needs room, " + std::to_string(id);
    offset.push_back(std::ssize(text));
  }
  const ohm::Strings names{offset, text.data()};
  check_table.template operator()<ohm::StringNodes>(names);
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {  // that of std::stable_sort
  try {
    return allocate(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(std::size_t size, std::align_val_t align) { return allocate(size, static_cast<std::size_t>(align)); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
