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
  CHECK(parts.state().rows.u == whole.state().rows.u);
  CHECK(parts.state().rows.w == whole.state().rows.w);
  CHECK(parts.snapshot().h.weight == whole.snapshot().h.weight);
}

// Large enough that every step of a resample is shared among threads; weights are so different that there are clusters.
TEST(threads_that_share_a_resample_do_not_change_a_bit) {
  for (const bool in_order : {false, true}) {
    Stream s = random_stream(1500, 1200000);
    for (std::size_t i = 0; i < s.u.size(); ++i) {
      if (in_order) s.u[i] = static_cast<std::int32_t>(i * 1500 / s.u.size());
      if (s.u[i] / 3 == s.v[i] / 3) s.w[i] *= 1e6f;
    }
    ohm::Sampler one(0, {.seed = 5, .epsilon = 0.3});
    feed(one, s, 0, s.u.size());
    CHECK(one.state().n_resamples > 0 && !one.state().clusters.empty());
    const ohm::Snapshot expected = one.snapshot();
    CHECK(expected.h.edges() > 50000);
    for (const int threads : {2, 5}) {
      ohm::Sampler several(0, {.seed = 5, .epsilon = 0.3, .threads = threads});
      for (std::size_t at = 0; at < s.u.size(); at += 300001) feed(several, s, at, std::min(at + 300001, s.u.size()));
      CHECK(several.state().rows.u == one.state().rows.u && several.state().rows.v == one.state().rows.v);
      CHECK(several.state().rows.w == one.state().rows.w);
      CHECK(several.state().rows.probability == one.state().rows.probability);
      const ohm::Snapshot found = several.snapshot();
      CHECK(found.h.start == expected.h.start && found.h.other == expected.h.other);
      CHECK(found.h.weight == expected.h.weight);
    }
  }
}

TEST(several_samplers_are_merged_by_one_resample) {
  const Stream s = random_stream(150, 60000);
  std::vector<ohm::Sampler> samplers;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    samplers.emplace_back(150, ohm::SamplerOptions{.seed = seed, .epsilon = 0.9});
    feed(samplers.back(), s, 20000 * seed, 20000 * (seed + 1));
  }
  const std::int64_t before = samplers[0].state().n_resamples;
  samplers[0].merge(std::array{&samplers[1].state(), &samplers[2].state()});
  CHECK(samplers[0].state().n_resamples == before + 1);
  CHECK(samplers[0].state().position == 60000);
  double kept = 0.0;
  for (const float w : samplers[0].snapshot().h.weight) kept += static_cast<double>(w);
  double seen = 0.0;
  for (const double lane : samplers[0].state().weight_seen) seen += lane;
  CHECK(std::abs(kept / seen - 1.0) < 0.1);
}

TEST(first_fault_is_found) {
  using Reason = ohm::EdgeFault::Reason;
  const auto fault = [](std::vector<std::int64_t> u, std::vector<std::int64_t> v, std::vector<double> w) {
    return ohm::find_fault<std::int64_t, double>(u, v, w, 10);
  };
  CHECK(!fault({0, 9}, {1, 2}, {1.0, 0.0}));
  CHECK(fault({0, 10}, {1, -1}, {1.0, 1.0})->reason == Reason::node_u);
  CHECK(fault({0, 1}, {1, -1}, {1.0, 1.0})->node == -1);
  CHECK(fault({0, 1}, {1, 2}, {1.0, std::numeric_limits<double>::quiet_NaN()})->position == 1);
  CHECK(fault({0}, {1}, {1e300})->reason == Reason::weight);
  const std::vector<std::int64_t> u{0, 1, 2}, v{1, 2, 3};
  const std::vector<float> w{0.0f, 0x1.0p-126f, 0x1.0p-149f};
  CHECK((ohm::find_fault<std::int64_t, float>(u, v, w, 10, 1, ohm::kSmallestWeight)->position == 2));
  CHECK((!ohm::find_fault<std::int64_t, float>(u, v, w, 10)));
}

TEST(epochs_have_their_ends) {
  for (const double half_life : {1.0, 0.1, 3.7e-5, 86400.0}) {
    for (const double time : {0.0, -1e-9, 39.99, 40.0, -40.0, 1e7, -1e7}) {
      const double t = time * half_life;
      const std::int64_t epoch = ohm::find_epoch(t, half_life);
      CHECK(t < ohm::end_of_epoch(epoch, half_life) && t >= ohm::end_of_epoch(epoch - 1, half_life));
    }
  }
  CHECK(ohm::fading_factor(1) == 0x1.0p-40 && ohm::fading_factor(std::int64_t{1} << 40) == 0.0);
}

TEST(weights_fade_as_powers_of_two) {
  std::vector<double> t;
  std::vector<float> w;
  for (int i = 0; i < 1000; ++i) {
    t.push_back(-0.05 * i);
    w.push_back(static_cast<float>(0.5 + ohm::uniform(ohm::hash(3, i))));
  }
  t.push_back(0.1);  // later
  w.push_back(1.0f);
  t.push_back(-1.0);
  w.push_back(1e-21f);  // too small
  std::vector<float> faded(t.size());
  const ohm::Faded found = ohm::fade_weights<float>(w, t, 0.0, -40.0, 1.0, faded.data());
  CHECK(found.newest == 0.1);
  CHECK(found.count == 200);
  CHECK(faded[1000] == 0.0f && faded[1001] == 0.0f);
  for (int i = 0; i < 1000; ++i) {
    const double right = t[i] < -40.0 ? 0.0 : static_cast<double>(w[i]) * std::exp2(t[i]);
    CHECK(std::abs(static_cast<double>(faded[i]) - right) <= 3e-7 * right);
  }
}

TEST(fading_depends_neither_on_batches_nor_on_threads) {
  const Stream s = random_stream(150, 200000);
  std::vector<double> t;
  for (std::size_t i = 0; i < s.u.size(); ++i) {
    t.push_back(static_cast<double>(i) + 4000.0 * ohm::uniform(ohm::hash(4, i)));
  }
  const auto feed_timed = [&](ohm::Sampler& sampler, std::size_t begin, std::size_t end) {
    const auto part = [&](const auto& values) { return std::span(values).subspan(begin, end - begin); };
    sampler.update<std::int32_t, float>(part(s.u), part(s.v), part(s.w), std::span<const double>(part(t)));
  };
  for (const double half_life : {200.0, 1e5}) {
    ohm::Sampler whole(0, {.seed = 5, .max_rows = 1000, .half_life = half_life});
    feed_timed(whole, 0, s.u.size());
    CHECK(whole.state().n_resamples > 2);
    ohm::Sampler parts(0, {.seed = 5, .max_rows = 1000, .threads = 3, .half_life = half_life});
    for (std::size_t at = 0; at < s.u.size(); at += 7001) feed_timed(parts, at, std::min(at + 7001, s.u.size()));
    CHECK(parts.state().rows.u == whole.state().rows.u && parts.state().rows.w == whole.state().rows.w);
    CHECK(parts.state().rows.time == whole.state().rows.time && parts.state().latest == whole.state().latest);
    CHECK(parts.state().weight_seen == whole.state().weight_seen);
  }
}

}  // namespace
