#include "sampling/sampler.hpp"

#include "base/rng.hpp"
#include "check.hpp"

#include <cmath>
#include <limits>

namespace {

struct Stream {
  std::vector<std::int32_t> u, v;
  std::vector<float> w;
};

Stream random_stream(std::int32_t n, std::int64_t edges) {
  Stream s;
  for (std::int64_t i = 0; i < edges; ++i) {
    s.u.push_back(static_cast<std::int32_t>(ohm::hash(1, i) % n));
    s.v.push_back(static_cast<std::int32_t>(ohm::hash(2, i) % n));
    s.w.push_back(static_cast<float>(0.5 + ohm::uniform(ohm::hash(3, i))));
  }
  return s;
}

void feed(ohm::Sampler& sampler, const Stream& s, std::size_t begin, std::size_t end) {
  const auto part = [&](const auto& values) { return std::span(values).subspan(begin, end - begin); };
  sampler.update<std::int32_t, float>(part(s.u), part(s.v), part(s.w));
}

TEST(neither_batches_nor_threads_change_a_bit) {
  const Stream s = random_stream(150, 200000);
  ohm::Sampler whole(0, {.seed = 5, .epsilon = 0.9});
  feed(whole, s, 0, s.u.size());
  CHECK(whole.state().n_resamples > 2);
  ohm::Sampler parts(0, {.seed = 5, .epsilon = 0.9, .threads = 3});
  for (std::size_t at = 0; at < s.u.size(); at += 7001) feed(parts, s, at, std::min(at + 7001, s.u.size()));
  CHECK(parts.state().u == whole.state().u);
  CHECK(parts.state().w == whole.state().w);
  CHECK(parts.snapshot().weight == whole.snapshot().weight);
}

TEST(total_weight_is_about_kept_and_merging_adds) {
  const Stream s = random_stream(150, 60000);
  ohm::Sampler first(150, {.seed = 1, .epsilon = 0.9});
  ohm::Sampler second(150, {.seed = 2, .epsilon = 0.9});
  feed(first, s, 0, 30000);
  feed(second, s, 30000, 60000);
  first.merge(second.state());
  CHECK(first.state().position == 60000);
  double seen = 0.0;
  for (const double lane : first.state().weight_seen) seen += lane;
  double kept = 0.0;
  for (const float w : first.snapshot().weight) kept += static_cast<double>(w);
  CHECK(std::abs(kept / seen - 1.0) < 0.1);
}

TEST(first_fault_is_found) {
  using Kind = ohm::EdgeFault::Kind;
  const auto fault = [](std::vector<std::int64_t> u, std::vector<std::int64_t> v, std::vector<double> w) {
    return ohm::find_fault<std::int64_t, double>(u, v, w, 10);
  };
  CHECK(!fault({0, 9}, {1, 2}, {1.0, 0.0}));
  CHECK(fault({0, 10}, {1, -1}, {1.0, 1.0})->kind == Kind::node_u);
  CHECK(fault({0, 1}, {1, -1}, {1.0, 1.0})->node == -1);
  CHECK(fault({0, 1}, {1, 2}, {1.0, std::numeric_limits<double>::quiet_NaN()})->position == 1);
  CHECK(fault({0}, {1}, {1e300})->kind == Kind::weight);
}

}  // namespace
