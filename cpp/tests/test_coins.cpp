#include "sampling/coins.hpp"

#include "base/rng.hpp"
#include "sampling/balanced_coins.hpp"
#include "sampling/sampler.hpp"
#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace {

// Two clusters of 100 nodes joined by a few edges, and a third component.
ohm::Sampler clusters() {
  std::vector<std::int32_t> u, v;
  for (std::uint64_t i = 0; i < 60000; ++i) {
    const auto cluster = static_cast<std::int32_t>(ohm::hash(1, i) % 3);
    u.push_back(100 * cluster + static_cast<std::int32_t>(ohm::hash(2, i) % 100));
    v.push_back(100 * cluster + static_cast<std::int32_t>(ohm::hash(3, i) % 100));
    if (i % 20000 == 5) v.back() = cluster < 2 ? 150 - 100 * cluster : v.back();
  }
  ohm::Sampler sampler(0, {.seed = 5, .epsilon = 0.9});
  sampler.update<std::int32_t, ohm::Unit>(u, v, {});
  return sampler;
}

TEST(the_bound_of_a_coin_changes_nothing) {
  const ohm::Sampler sampler = clusters();
  std::vector<ohm::NodeRecord> nodes = sampler.state().nodes;
  const ohm::Embedding embedding{nodes, sampler.state().clusters};
  nodes[7] = {};  // a node without an embedding, although edges of it have been kept
  nodes[7].degree_now = 1000.0f;
  nodes[7].cluster = static_cast<std::int32_t>(sampler.state().clusters.size());
  std::vector<std::int32_t> u, v;
  std::vector<double> w;
  for (std::uint64_t i = 0; i < 50000; ++i) {
    u.push_back(static_cast<std::int32_t>(ohm::hash(4, i) % 300));
    v.push_back(static_cast<std::int32_t>(ohm::hash(5, i) % 300));
    w.push_back(std::exp2(static_cast<double>(ohm::hash(6, i) % 20) - 15.0));
  }
  std::vector<float> unknown(nodes.size(), std::numeric_limits<float>::infinity());
  std::vector<ohm::Candidate> all, bounded;
  const auto toss = [&](const std::vector<float>& bound, std::vector<ohm::Candidate>& passed) {
    ohm::toss_edges<std::int32_t, double>({u, v, w, {}}, 3, 49999, {ohm::mix(9), 70, 3.0f, embedding, bound}, passed);
  };
  toss(unknown, all);
  const std::vector<float> bound = ohm::bound_resistances(embedding);
  CHECK(std::count_if(bound.begin(), bound.end(), [](float r) { return std::isfinite(r); }) == 199);
  toss(bound, bounded);
  CHECK(all.size() > 1000 && all.size() < 49000);
  CHECK(std::equal(all.begin(), all.end(), bounded.begin(), bounded.end(), [](const auto& a, const auto& b) {
    return a.position == b.position && a.u == b.u && a.v == b.v && a.w == b.w && a.certain == b.certain;
  }));
}

TEST(probabilities_below_the_first_bits_of_a_coin_count) {
  const ohm::Sampler sampler = clusters();
  const ohm::Embedding embedding{sampler.state().nodes, sampler.state().clusters};
  const std::vector<float> bound = ohm::bound_resistances(embedding);
  const std::uint64_t key = ohm::mix(9);
  std::uint64_t position = 0;
  while (ohm::draw(key, position) >> 40 != 0) ++position;  // a coin whose first 24 bits are 0
  const std::vector<std::int32_t> u{1}, v{2};
  const auto passes_with = [&](double weight) {
    const std::vector<double> w{weight};
    std::vector<ohm::Candidate> passed;
    const ohm::Coins coins{key, static_cast<std::int64_t>(position), 3.0f, embedding, bound};
    ohm::toss_edges<std::int32_t, double>({u, v, w, {}}, 0, 1, coins, passed);
    return passed.size();
  };
  CHECK(passes_with(1e-3) == 1);
  CHECK(passes_with(1e-30) == 0);
}

// Balances are sums of w / cut, up or down. Where they are not 0, kTie does not change their sign.
TEST(ties_are_broken_only_where_balances_are_zero) {
  int n_zero = 0;
  for (std::uint64_t run = 0; run < 2000; ++run) {
    float balance = 0.0f;
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::uint64_t bits = ohm::hash(run, i);
      const float gain = std::ldexp(1.0f + static_cast<float>(bits % 8) / 8.0f, -static_cast<int>(bits / 8 % 3 * 37));
      balance += ohm::hash(run, i + 100) % 2 == 0 ? gain : -gain;
      n_zero += balance == 0.0f;
      const float up = balance + ohm::kTie, down = balance - ohm::kTie;
      const bool is_positive = balance > 0.0f;
      CHECK((up > 0.0f) == (is_positive || balance == 0.0f) && (down > 0.0f) == is_positive);
    }
  }
  CHECK(n_zero > 100);
}

}  // namespace
