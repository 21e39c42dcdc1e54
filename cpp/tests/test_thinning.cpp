#include "sampling/thinning.hpp"

#include "base/rng.hpp"
#include "graph/components.hpp"
#include "check.hpp"

#include <cmath>

namespace {

constexpr std::int32_t kNodes = 200;

// Random edges among nodes of one component, and their estimates without a sketch.
struct Case {
  ohm::Triangle h;
  std::vector<ohm::NodeRecord> nodes;
  std::vector<ohm::Cluster> clusters;
  ohm::Embedding embedding() const { return {nodes, clusters}; }
};

// Edges within pairs of nodes are `contrast` times as heavy as the others.
Case make_case(double contrast) {
  std::vector<std::int32_t> u, v;
  std::vector<float> w;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const auto a = static_cast<std::int32_t>(ohm::hash(1, i) % kNodes);
    const auto b = static_cast<std::int32_t>(i % 20 == 0 ? (a ^ 1) : static_cast<int>(ohm::hash(2, i) % kNodes));
    u.push_back(a);
    v.push_back(b);
    w.push_back(static_cast<float>((a / 2 == b / 2 ? contrast : 1.0) * (0.5 + ohm::uniform(ohm::hash(3, i)))));
  }
  Case c;
  c.h = ohm::sort_edges(kNodes, u, v, w);
  const std::vector<double> degree = ohm::degrees(c.h);
  const ohm::ClusterTree tree = ohm::find_clusters(c.h, degree, ohm::components(c.h).count);
  c.clusters = tree.clusters;
  c.nodes.resize(kNodes);
  for (std::int32_t i = 0; i < kNodes; ++i) {
    c.nodes[i].inverse_degree = c.nodes[i].inverse_degree_now = static_cast<float>(1.0 / degree[i]);
    c.nodes[i].component = 0;
    c.nodes[i].cluster = tree.smallest[i];
  }
  return c;
}

template <class Visit>
void each_edge(const ohm::Triangle& h, Visit visit) {
  for (std::int32_t u = 0; u < h.n(); ++u) {
    for (std::int64_t e = h.start[u]; e < h.start[u + 1]; ++e) visit(u, h.other[e], e);
  }
}

// Each edge is kept with its probability, and the weight that leaves each set hardly changes: the first set is the
// nodes i with set[i] = 0, and so on.
void check_choice(const Case& c, const std::vector<std::int32_t>& set, double most_spread) {
  const auto rows = static_cast<std::size_t>(c.h.edges());
  std::vector<float> probability(rows);
  for (std::size_t e = 0; e < rows; ++e) {
    probability[e] = e % 7 == 0 ? 1.0f : static_cast<float>(0.1 + 0.9 * ohm::uniform(ohm::hash(7, e)));
    if (e % 50 == 5) probability[e] = 0.0f;  // leverages can underflow
  }
  constexpr int kRuns = 3000;
  std::vector<double> kept(rows, 0.0);
  double spread = 0.0, independent = 0.0;  // of the weight that leaves a set
  for (int run = 0; run < kRuns; ++run) {
    const ohm::Buffer<char> keep = ohm::choose_rows(c.h, c.embedding(), probability, ohm::mix(run));
    std::vector<double> excess(kNodes, 0.0);
    each_edge(c.h, [&](std::int32_t u, std::int32_t v, std::int64_t e) {
      kept[e] += keep[e];
      if (set[u] == set[v] || probability[e] == 0.0f) return;
      const double p = static_cast<double>(probability[e]), w = static_cast<double>(c.h.weight[e]) / p;
      for (const std::int32_t s : {set[u], set[v]}) {
        excess[s] += w * (keep[e] - p);
        independent += w * w * p * (1 - p);
      }
    });
    for (const double x : excess) spread += x * x;
  }
  CHECK(spread < most_spread * independent);
  // Seven standard deviations: a correct program fails with probability below 1e-7.
  for (std::size_t e = 0; e < rows; ++e) {
    const double p = static_cast<double>(probability[e]);
    CHECK(std::abs(kept[e] / kRuns - p) <= 7.0 * std::sqrt(p * (1 - p) / kRuns) + 1e-12);
  }
}

TEST(edges_are_chosen_with_their_chance_and_degrees_stay) {
  const Case c = make_case(1.0);
  CHECK(c.clusters.empty());
  std::vector<std::int32_t> own(kNodes);
  for (std::int32_t i = 0; i < kNodes; ++i) own[i] = i;
  check_choice(c, own, 0.25);
}

TEST(where_pairs_are_heavy_the_weight_that_leaves_a_pair_stays) {
  const Case c = make_case(1e6);
  CHECK(c.clusters.size() > kNodes / 4);
  std::vector<std::int32_t> pair(kNodes);
  for (std::int32_t i = 0; i < kNodes; ++i) pair[i] = i / 2;
  check_choice(c, pair, 0.25);
}

TEST(a_forest_has_one_edge_less_than_nodes_in_each_component) {
  const ohm::Triangle h = make_case(1.0).h;
  const std::int32_t n_components = ohm::components(h).count;
  std::vector<float> leverage;
  for (std::int64_t e = 0; e < h.edges(); ++e) {
    leverage.push_back(static_cast<float>(std::pow(ohm::uniform(ohm::hash(8, e)), 9.0)));
  }
  const std::vector<float> before = leverage;
  ohm::keep_forest(h, n_components, leverage);
  std::vector<std::int32_t> a, b;
  std::vector<float> w;
  each_edge(h, [&](std::int32_t u, std::int32_t v, std::int64_t e) {
    if (leverage[e] == before[e]) return;
    CHECK(leverage[e] == ohm::kCertain);
    a.push_back(u);
    b.push_back(v);
    w.push_back(1.0f);
  });
  CHECK(std::ssize(a) == kNodes - n_components);
  CHECK(ohm::components(ohm::sort_edges(kNodes, a, b, w)).count == n_components);
}

TEST(leverages_add_up_to_nearly_the_rank_under_any_contrast) {
  for (const double contrast : {1.0, 1e4, 1e8, 1e12, 1e20}) {
    const Case c = make_case(contrast);
    std::vector<float> leverage(c.h.edges());
    const ohm::LeverageSums sums = ohm::row_leverages(c.h, c.embedding(), {}, 1.0f, leverage);
    CHECK(std::abs(sums.estimates / (kNodes - 1) - 1.0) < 0.1);
    CHECK(sums.sketch == 0.0);
  }
}

TEST(sums_of_leverages_at_a_hub_are_exact_to_double_precision) {
  constexpr std::int32_t kLeaves = 100'000;
  std::vector<std::int32_t> u(kLeaves, 0), v(kLeaves);
  std::vector<float> w(kLeaves);
  Case c;
  c.nodes.resize(kLeaves + 1);
  for (std::int32_t i = 0; i < kLeaves; ++i) {
    v[i] = i + 1;
    w[i] = static_cast<float>(0.5 + ohm::uniform(ohm::hash(4, static_cast<std::uint64_t>(i))));
    c.nodes[v[i]].inverse_degree = 0.1f;
    c.nodes[v[i]].z[0] = 2.0f * w[i];
  }
  c.nodes[0].inverse_degree = 1e-6f;
  c.h = ohm::sort_edges(kLeaves + 1, u, v, w);
  std::vector<float> leverage(kLeaves);
  const ohm::LeverageSums sums = ohm::row_leverages(c.h, c.embedding(), {}, 1.0f, leverage);
  double estimates = 0.0, sketches = 0.0;
  for (std::int32_t i = 0; i < kLeaves; ++i) {
    estimates += static_cast<double>(leverage[i]);
    sketches += static_cast<double>(w[i] * (4.0f * w[i] * w[i]));
  }
  CHECK(std::abs(sums.estimates / estimates - 1.0) < 1e-12);
  CHECK(std::abs(sums.sketch / sketches - 1.0) < 1e-12);
  CHECK(std::abs(sums.unexplained / sketches - 1.0) < 1e-12);
}

}  // namespace
