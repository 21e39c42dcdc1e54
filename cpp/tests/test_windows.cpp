#include "sampling/windows.hpp"

#include "base/rng.hpp"
#include "check.hpp"
#include "graph/components.hpp"
#include "sampling/window_thinning.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Stream {
  std::vector<std::int32_t> u, v;
  std::vector<float> w;
  std::vector<double> t;
};

// Edges of a random graph; every `late`-th edge has a time from the past.
Stream random_stream(std::int32_t n, std::int64_t edges, std::int64_t late = 0) {
  Stream s;
  for (std::int64_t i = 0; i < edges; ++i) {
    s.u.push_back(static_cast<std::int32_t>(ohm::hash(1, i) % n));
    s.v.push_back(static_cast<std::int32_t>(ohm::hash(2, i) % n));
    s.w.push_back(static_cast<float>(0.5 + ohm::uniform(ohm::hash(3, i))));
    const bool is_late = late > 0 && i % late == 0;
    s.t.push_back(static_cast<double>(is_late ? ohm::hash(4, i) % static_cast<std::uint64_t>(i + 1) : i));
  }
  return s;
}

void feed(ohm::WindowSampler& sampler, const Stream& s, std::size_t begin, std::size_t end) {
  const auto part = [&](const auto& values) { return std::span(values).subspan(begin, end - begin); };
  sampler.update<std::int32_t, float>(part(s.u), part(s.v), part(s.w), part(s.t));
}

TEST(windows_do_not_depend_on_batches_or_threads) {
  Stream s = random_stream(150, 200000, 7);
  for (std::size_t i = 150000; i < s.u.size(); ++i) s.v[i] = (s.u[i] + 1 + s.v[i] % 3) % 150;  // a ring at last
  ohm::WindowSampler whole(0, {.seed = 5, .epsilon = 0.9});
  feed(whole, s, 0, s.u.size());
  CHECK(whole.state().n_resamples > 8);
  ohm::WindowSampler parts(0, {.seed = 5, .epsilon = 0.9, .threads = 3});
  for (std::size_t at = 0; at < s.u.size(); at += 7001) feed(parts, s, at, std::min(at + 7001, s.u.size()));
  CHECK(parts.state().rows.u == whole.state().rows.u);
  CHECK(parts.state().rows.w == whole.state().rows.w);
  for (const double since : {0.0, 150000.0, 199000.0}) {
    CHECK(parts.snapshot(since).h.weight == whole.snapshot(since).h.weight);
  }
}

TEST(every_window_is_as_connected_as_its_edges) {
  // Groups of 10 nodes that are linked to each other at times only.
  Stream s = random_stream(200, 60000);
  for (std::size_t i = 0; i < s.u.size(); ++i) {
    if (i % 997 != 0) s.v[i] = s.u[i] / 10 * 10 + s.v[i] % 10;
  }
  ohm::WindowSampler sampler(200, {.seed = 1, .epsilon = 0.9, .grows = false});
  feed(sampler, s, 0, s.u.size());
  CHECK(sampler.state().thinned > 0.0);
  for (std::int64_t since = 0; since < 60000; since += 1234) {
    std::vector<std::int32_t> parent = ohm::lone_nodes(200);
    for (std::size_t i = since; i < s.u.size(); ++i) ohm::join_sets(parent, s.u[i], s.v[i]);
    std::int32_t roots = 0;
    for (std::int32_t i = 0; i < 200; ++i) roots += ohm::find_root(parent, i) == i;
    CHECK(ohm::components(sampler.snapshot(static_cast<double>(since)).h).count == roots);
  }
}

TEST(older_rows_do_not_lower_the_resistance_of_newer_ones) {
  // A cycle of n nodes, 20 times, after many random edges. The oldest edge of the cycle's time is a chord, between
  // opposite nodes: there the resistance of the cycle is n / (4 * 20) = 0.8, and of all edges together about 0.01.
  constexpr std::int32_t n = 64;
  Stream s = random_stream(n, 6000);
  s.u.push_back(0);
  s.v.push_back(n / 2);
  for (std::int32_t i = 0; i < 20 * n; ++i) {
    s.u.push_back(i % n);
    s.v.push_back((i + 1) % n);
  }
  s.w.resize(s.u.size(), 1.0f);
  for (std::uint64_t key = 0; key < 8; ++key) {
    ohm::EdgeRows rows{.has_times = true};
    for (std::size_t i = 0; i < s.u.size(); ++i) {
      if (s.u[i] == s.v[i]) continue;
      rows.u.push_back(s.u[i]);
      rows.v.push_back(s.v[i]);
      rows.w.push_back(s.w[i]);
      rows.probability.push_back(1.0f);
      rows.time.push_back(static_cast<double>(i));
    }
    const std::int64_t before = rows.size();
    ohm::thin_rows(rows, 0, n, 4.0, n / 2, key, 1);  // fewer certain rows than the cycle has edges
    CHECK(rows.size() < before / 2);
    const auto chord = std::find(rows.time.begin(), rows.time.end(), 6000.0);
    CHECK(chord != rows.time.end());
    if (chord != rows.time.end()) CHECK(rows.w[chord - rows.time.begin()] == 1.0f);
  }
}

TEST(windows_keep_the_weight_and_new_edges_are_whole) {
  const Stream s = random_stream(150, 100000);
  ohm::WindowSampler sampler(150, {.seed = 1, .epsilon = 0.9, .grows = false});
  feed(sampler, s, 0, s.u.size());
  for (const std::int64_t since : {0, 50000, 90000, 99900}) {
    double seen = 0.0;
    for (std::size_t i = since; i < s.u.size(); ++i) {
      if (s.u[i] == s.v[i]) continue;
      seen += static_cast<double>(s.w[i]);
    }
    const ohm::Snapshot window = sampler.snapshot(static_cast<double>(since));
    double kept = 0.0;
    for (const float w : window.h.weight) kept += static_cast<double>(w);
    CHECK(std::abs(kept / seen - 1.0) < 0.03);
    CHECK(window.is_whole == (since == 99900));
    if (window.is_whole) CHECK(std::abs(kept / seen - 1.0) < 1e-6);
  }
}

TEST(rows_beyond_the_horizon_are_dropped) {
  const Stream s = random_stream(150, 200000);
  ohm::WindowSampler sampler(150, {.seed = 1, .epsilon = 0.9, .grows = false, .horizon = 10000.0});
  feed(sampler, s, 0, s.u.size());
  const ohm::Triangle all = sampler.snapshot(-kInfinity).h;
  CHECK(all.weight == sampler.snapshot(189999.0).h.weight);
  double kept = 0.0;
  for (const float w : all.weight) kept += static_cast<double>(w);
  CHECK(std::abs(kept / 9933.0 - 1.0) < 0.03);
  ohm::WindowSampler unlimited(150, {.seed = 1, .epsilon = 0.9, .grows = false});
  feed(unlimited, s, 0, s.u.size());
  CHECK(sampler.n_rows() < unlimited.n_rows());
}

TEST(windows_merge_and_keep_a_budget) {
  const Stream s = random_stream(150, 60000, 5);
  ohm::WindowSampler first(150, {.seed = 1, .max_rows = 1500});
  ohm::WindowSampler second(150, {.seed = 2, .max_rows = 1500});
  feed(first, s, 0, 30000);
  feed(second, s, 30000, 60000);
  first.merge(second.state());
  CHECK(first.state().position == 60000);
  CHECK(first.n_rows() <= 1500);
  CHECK(first.state().latest == 59999.0);
  feed(first, s, 0, 30000);
  CHECK(first.snapshot(0.0).h.edges() <= 1500);
  for (const std::int64_t budget : {300, 100}) {  // two rows for each node, and fewer than a forest
    ohm::WindowSampler small(150, {.seed = 1, .max_rows = budget});
    feed(small, s, 0, 60000);
    CHECK(small.snapshot(0.0).h.edges() <= std::max<std::int64_t>(budget, 149));
    CHECK(ohm::components(small.snapshot(0.0).h).count == 1);
  }
}

TEST(windows_continue_from_a_state_and_refuse_a_wrong_one) {
  const Stream s = random_stream(100, 50000, 11);
  const ohm::SamplerOptions options{.seed = 3, .epsilon = 0.9};
  ohm::WindowSampler sampler(0, options);
  feed(sampler, s, 0, 23456);
  using State = ohm::WindowSampler::State;
  const State good = sampler.state();
  ohm::WindowSampler restored = ohm::WindowSampler::from_state(good, 0, options);
  feed(sampler, s, 23456, 50000);
  feed(restored, s, 23456, 50000);
  CHECK(restored.state().rows.w == sampler.state().rows.w);
  CHECK(restored.snapshot(0.0).h.weight == sampler.snapshot(0.0).h.weight);
  const auto refused = [&](auto&& spoil) {
    State bad = good;
    spoil(bad);
    try {
      ohm::WindowSampler::from_state(bad, 0, options);
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  CHECK(!refused([](State&) {}));
  CHECK(refused([](State& b) { b.rows.u[5] = 100; }));  // test_state_faults.cpp tries what all samplers check
  CHECK(refused([](State& b) { b.rows.w[5] = b.rows.w[6] = std::numeric_limits<float>::max(); }));
  CHECK(refused([](State& b) { b.rows.time[5] = std::nan(""); }));
  CHECK(refused([](State& b) { b.rows.time[5] = 1e9; }));
  CHECK(refused([](State& b) { std::swap(b.rows.time[0], b.rows.time[b.n_sorted - 1]); }));
  CHECK(refused([](State& b) { b.rows.time.pop_back(); }));
  CHECK(refused([](State& b) { b.capacity = 7; }));
  CHECK(refused([](State& b) { b.latest = std::nan(""); }));
  CHECK(refused([](State& b) { b.thinned = kInfinity; }));
  CHECK(!refused([](State& b) { b.n_nodes = 1 << 30; }));  // no memory is taken for them
  CHECK(refused([](State& b) { b.n_nodes = (1 << 30) + 1; }));
}

}  // namespace
