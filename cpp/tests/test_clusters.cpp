#include "graph/clusters.hpp"

#include "graph/components.hpp"
#include "solver/direct.hpp"
#include "check.hpp"
#include "graphs.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace {

constexpr int kNodes = 24;

// Random weights over many decades, heavy ones within groups, sometimes in two components.
ohm::Triangle contrasted(unsigned seed) {
  std::mt19937 random(seed);
  const int group = 2 + static_cast<int>(random() % 4);
  const double decades = static_cast<double>(random() % 16);
  const bool split = random() % 4 == 0;
  std::vector<std::int32_t> u, v;
  std::vector<float> w;
  for (int i = 0; i < kNodes; ++i) {
    for (int j = i + 1; j < kNodes; ++j) {
      if (random() % 3 == 0 || (split && (i < kNodes / 2) != (j < kNodes / 2))) continue;
      u.push_back(i);
      v.push_back(j);
      const double heavy = i / group == j / group ? 1.0 : std::pow(10.0, -decades);
      w.push_back(static_cast<float>(heavy * graphs::weight(random, 1.0)));
    }
  }
  return ohm::sort_edges(kNodes, u, v, w);
}

std::int32_t count_components(const ohm::Triangle& edges) { return ohm::components(edges).count; }

// The largest 1 / cut of a set around u that does not contain v, over the clusters of all thresholds.
double best_inverse_cut(const ohm::Triangle& edges, int u, int v) {
  double best = 0.0;
  for (int exponent = -60; exponent < 4; ++exponent) {
    std::vector<std::int32_t> set = ohm::lone_nodes(kNodes);
    for (int i = 0; i < kNodes; ++i) {
      for (auto e = edges.start[i]; e < edges.start[i + 1]; ++e) {
        if (edges.weight[e] >= std::ldexp(1.0f, exponent)) ohm::join_sets(set, i, edges.other[e]);
      }
    }
    const std::int32_t mine = ohm::find_root(set, u);
    if (mine == ohm::find_root(set, v)) continue;
    double cut = 0.0;
    for (int i = 0; i < kNodes; ++i) {
      for (auto e = edges.start[i]; e < edges.start[i + 1]; ++e) {
        const bool inside = ohm::find_root(set, i) == mine;
        if (inside != (ohm::find_root(set, edges.other[e]) == mine)) cut += static_cast<double>(edges.weight[e]);
      }
    }
    if (cut > 0.0) best = std::max(best, 1.0 / cut);
  }
  return best;
}

TEST(inverse_cuts_are_within_a_quarter_of_the_best_cluster_of_any_threshold) {
  int n_clusters = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const ohm::Triangle edges = contrasted(seed);
    const std::vector<double> degree = ohm::degrees(edges);
    const ohm::ClusterTree tree = ohm::find_clusters(edges, degree, count_components(edges));
    n_clusters += static_cast<int>(tree.clusters.size());
    for (std::size_t k = 0; k < tree.clusters.size(); ++k) CHECK(tree.clusters[k].parent > static_cast<int>(k));
    const std::vector<std::int32_t> component = ohm::components(edges).labels;
    for (int u = 0; u < kNodes; ++u) {
      for (int v = u + 1; v < kNodes; ++v) {
        if (component[u] != component[v]) continue;
        double found_u = 1.0 / degree[u], found_v = 1.0 / degree[v];
        ohm::climb(
            tree.smallest[u], tree.smallest[v], tree.clusters,
            [&](std::int32_t k) { found_u = std::max(found_u, double{tree.clusters[k].inverse_cut}); },
            [&](std::int32_t k) { found_v = std::max(found_v, double{tree.clusters[k].inverse_cut}); });
        const double best_u = best_inverse_cut(edges, u, v), best_v = best_inverse_cut(edges, v, u);
        CHECK(found_u <= best_u * 1.00001 && found_u >= best_u / 1.2501);
        CHECK(found_v <= best_v * 1.00001 && found_v >= best_v / 1.2501);
      }
    }
  }
  CHECK(n_clusters > 100);
}

TEST(resistances_are_no_smaller_than_either_inverse_cut) {
  for (unsigned seed = 100; seed < 140; ++seed) {
    const ohm::Triangle edges = contrasted(seed);
    ohm::Triangle copy = edges;
    ohm::Csr both;
    ohm::mirror(copy, 1.0, both.indptr, both.indices, both.weights);
    const ohm::CsrView view{kNodes, both.indptr.data(), both.indices.data(), both.weights.data()};
    const ohm::DenseFactor factor(view, nullptr);
    const std::vector<double> degree = ohm::degrees(edges);
    const ohm::Components found = ohm::components(edges);
    const ohm::ClusterTree tree = ohm::find_clusters(edges, degree, found.count);
    for (int u = 0; u < kNodes; ++u) {
      for (int v = u + 1; v < kNodes; ++v) {
        if (found.labels[u] != found.labels[v]) continue;
        std::vector<double> x(kNodes);
        x[u] = 1.0;
        x[v] = -1.0;
        factor.solve(x.data(), 1);
        const double resistance = (x[u] - x[v]) * 1.00001;
        CHECK(1.0 / degree[u] <= resistance && 1.0 / degree[v] <= resistance);
        const auto check = [&](std::int32_t k) { CHECK(double{tree.clusters[k].inverse_cut} <= resistance); };
        ohm::climb(tree.smallest[u], tree.smallest[v], tree.clusters, check, check);
      }
    }
  }
}

TEST(equal_weights_have_no_clusters) {
  std::vector<std::int32_t> u, v;
  for (int i = 0; i < kNodes; ++i) {
    for (int j = i + 1; j < kNodes; ++j) {
      u.push_back(i);
      v.push_back(j);
    }
  }
  const std::vector<float> w(u.size(), 3.0f);
  const ohm::Triangle edges = ohm::sort_edges(kNodes, u, v, w);
  const ohm::ClusterTree tree = ohm::find_clusters(edges, ohm::degrees(edges), 1);
  CHECK(tree.clusters.empty());
  CHECK(tree.smallest == std::vector<std::int32_t>(kNodes, 0));
}

}  // namespace
