#include "check.hpp"
#include "coins.hpp"
#include "rng.hpp"
#include "sampler.hpp"

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
  std::vector<ohm::NodeRecord> nodes = clusters().state().nodes;
  nodes[7] = {};  // one without an embedding, of which edges have been kept
  nodes[7].degree_now = 1000.0f;
  std::vector<std::int32_t> u, v;
  std::vector<double> w;
  for (std::uint64_t i = 0; i < 50000; ++i) {
    u.push_back(static_cast<std::int32_t>(ohm::hash(4, i) % 300));
    v.push_back(static_cast<std::int32_t>(ohm::hash(5, i) % 300));
    w.push_back(std::exp2(static_cast<double>(ohm::hash(6, i) % 20) - 15.0));
  }
  std::vector<float> unknown(nodes.size(), std::numeric_limits<float>::infinity());
  std::vector<ohm::KeptEdge> all, bounded;
  const auto toss = [&](const std::vector<float>& share, std::vector<ohm::KeptEdge>& kept) {
    ohm::toss_edges<std::int32_t, double>(u, v, w, 3, 49999, 70, ohm::mix(9), 3.0f, nodes.data(), share.data(), kept);
  };
  toss(unknown, all);
  const std::vector<float> share = ohm::bound_shares(nodes);
  CHECK(std::count_if(share.begin(), share.end(), [](float r) { return std::isfinite(r); }) == 199);
  toss(share, bounded);
  CHECK(all.size() > 1000 && all.size() < 49000);
  CHECK(std::equal(all.begin(), all.end(), bounded.begin(), bounded.end(), [](const auto& a, const auto& b) {
    return a.at == b.at && a.u == b.u && a.v == b.v && a.w == b.w;
  }));
}

TEST(chances_below_the_first_bits_of_a_coin_count) {
  const std::vector<ohm::NodeRecord> nodes = clusters().state().nodes;
  const std::vector<float> share = ohm::bound_shares(nodes);
  const std::uint64_t key = ohm::mix(9);
  std::uint64_t position = 0;
  while (ohm::draw(key, position) >> 40 != 0) ++position;  // a coin whose first 24 bits are 0
  const std::vector<std::int32_t> u{1}, v{2};
  const auto kept_with = [&](double weight) {
    const std::vector<double> w{weight};
    std::vector<ohm::KeptEdge> kept;
    ohm::toss_edges<std::int32_t, double>(u, v, w, 0, 1, static_cast<std::int64_t>(position), key, 3.0f, nodes.data(),
                                          share.data(), kept);
    return kept.size();
  };
  CHECK(kept_with(1e-3) == 1);
  CHECK(kept_with(1e-30) == 0);
}

// The edges of a snapshot.
ohm::Triangle edges_of(const ohm::Csr& h) {
  std::vector<std::int32_t> u, v;
  std::vector<float> w;
  for (std::int32_t i = 0; i + 1 < std::ssize(h.indptr); ++i) {
    for (std::int64_t e = h.indptr[i]; e < h.indptr[i + 1]; ++e) {
      if (h.indices[e] < i) continue;
      u.push_back(i);
      v.push_back(h.indices[e]);
      w.push_back(static_cast<float>(h.weights[e]));
    }
  }
  return ohm::sort_edges(static_cast<std::int32_t>(h.indptr.size()) - 1, u, v, w);
}

TEST(rows_are_chosen_with_their_chance_and_nodes_get_their_share) {
  const ohm::Triangle h = edges_of(clusters().snapshot());
  const auto rows = static_cast<std::size_t>(h.edges());
  std::vector<float> chance(rows);
  for (std::size_t e = 0; e < rows; ++e) chance[e] = e % 7 == 0 ? 1.0f : static_cast<float>(ohm::uniform(ohm::hash(7, e)));
  constexpr int kRuns = 2000;
  std::vector<double> kept(rows, 0.0);
  double spread = 0.0, independent = 0.0;  // of the number of edges at a node
  for (int run = 0; run < kRuns; ++run) {
    const std::vector<char> keep = ohm::choose_rows(h, chance.data(), ohm::mix(run));
    std::vector<double> excess(300, 0.0), variance(300, 0.0);
    for (std::int32_t u = 0; u < 300; ++u) {
      for (std::int64_t e = h.start[u]; e < h.start[u + 1]; ++e) {
        const double p = static_cast<double>(chance[e]);
        for (const std::int32_t node : {u, h.other[e]}) {
          excess[node] += keep[e] - p;
          variance[node] += p * (1 - p);
        }
        kept[e] += keep[e];
      }
    }
    for (int i = 0; i < 300; ++i) {
      spread += excess[i] * excess[i];
      independent += variance[i];
    }
  }
  // Seven standard deviations: a right program fails with probability below 1e-7.
  for (std::size_t e = 0; e < rows; ++e) {
    const double p = static_cast<double>(chance[e]);
    CHECK(std::abs(kept[e] / kRuns - p) <= 7.0 * std::sqrt(p * (1 - p) / kRuns) + 1e-12);
  }
  CHECK(spread < 0.65 * independent);
}

TEST(a_forest_has_one_edge_less_than_nodes_in_each_component) {
  const ohm::Triangle h = edges_of(clusters().snapshot());
  std::vector<float> leverage;
  for (std::int64_t e = 0; e < h.edges(); ++e) {
    leverage.push_back(static_cast<float>(std::pow(ohm::uniform(ohm::hash(8, e)), 9.0)));
  }
  const std::vector<float> before = leverage;
  CHECK(ohm::components(h).count == 2);
  ohm::keep_forest(h, 2, leverage);
  std::vector<std::int32_t> a, b;
  std::vector<float> w;
  for (std::int32_t u = 0; u < 300; ++u) {
    for (std::int64_t e = h.start[u]; e < h.start[u + 1]; ++e) {
      if (leverage[e] == before[e]) continue;
      CHECK(leverage[e] == ohm::kCertain);
      a.push_back(u);
      b.push_back(h.other[e]);
      w.push_back(1.0f);
    }
  }
  CHECK(a.size() == 298);
  CHECK(ohm::components(ohm::sort_edges(300, a, b, w)).count == 2);
}

}  // namespace
