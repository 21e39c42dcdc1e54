#include "graph/clusters.hpp"

#include "base/simd.hpp"
#include "graph/components.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>

namespace ohm {
namespace {

// A cluster stays in the tree if, for at least one of its nodes, its inverse cut exceeds kWorthwhile times the largest
// of a smaller set around that node.
constexpr float kWorthwhile = 1.25f;
constexpr std::int64_t kPiece = 1 << 16;  // edges that a thread takes at a time
constexpr std::int64_t kParts = 16;       // of the edges, for sums of cuts
constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

// Edges are grouped by the exponent of their weight.
OHM_KERNEL void find_exponents(std::span<const float> weight, unsigned char* exponent) {
  const std::int64_t size = std::ssize(weight);
  for (std::int64_t e = 0; e < size; ++e) {
    exponent[e] = static_cast<unsigned char>(std::bit_cast<std::uint32_t>(weight[e]) >> 23);
  }
}

// The tree of all clusters, by Kruskal's algorithm on one group of edges after the other. Vertices 0..n-1 are the
// nodes, the following ones are clusters; the result holds the parent of each. Whole components are not counted as
// clusters.
std::vector<std::int32_t> join_heaviest_first(const Triangle& edges, std::int32_t n_components, Crew& crew) {
  const std::int32_t n = edges.n();
  Buffer<unsigned char> exponent(edges.weight.size());
  std::atomic<bool> is_there[256] = {};
  for_blocks(crew, edges.edges(), [&](std::int64_t begin, std::int64_t end) {
    find_exponents(std::span(edges.weight).subspan(begin, end - begin), exponent.data() + begin);
    bool found[256] = {};
    for (std::int64_t e = begin; e < end; ++e) found[exponent[e]] = true;
    for (int group = 0; group < 256; ++group) {
      if (found[group]) is_there[group] = true;
    }
  }, kPiece);

  std::vector<std::int32_t> set = lone_nodes(n);
  std::vector<std::int32_t> vertex = set;  // of the tree, for each root of `set`
  std::vector<std::int32_t> parent(n, kNone);
  std::vector<char> is_joined(n);
  std::vector<std::int32_t> joined;  // roots that the present group of edges has joined to others
  std::int32_t missing = n - n_components;
  for (int group = 255; group >= 0 && missing > 0; --group) {
    if (!is_there[group]) continue;
    visit_joining(edges, exponent, static_cast<unsigned char>(group), set, crew,
                  [&](std::int32_t u, std::int32_t v, std::int64_t) {
                    const std::int32_t a = find_root(set, u);
                    const std::int32_t b = find_root(set, v);
                    if (a == b) return true;
                    for (const std::int32_t root : {a, b}) {
                      if (!is_joined[root]) joined.push_back(root);
                      is_joined[root] = 1;
                    }
                    set[std::max(a, b)] = std::min(a, b);
                    return --missing > 0;
                  });
    if (missing == 0) return parent;  // what remains are whole components
    for (const std::int32_t root : joined) {
      if (find_root(set, root) != root) continue;
      parent[vertex[root]] = static_cast<std::int32_t>(parent.size());
      vertex[root] = static_cast<std::int32_t>(parent.size());
      parent.push_back(kNone);
    }
    for (const std::int32_t root : joined) {
      const std::int32_t whole = find_root(set, root);
      if (whole != root) parent[vertex[root]] = vertex[whole];
      is_joined[root] = 0;
    }
    joined.clear();
  }
  return parent;
}

}  // namespace

// 1. Build the tree of all clusters, heaviest edges first. A parent has a larger number than its children.
// 2. Add up the cut of each cluster, edge by edge: an edge is in the cuts of all clusters around one of its ends only,
//    which are found by climbing from both ends to the first common one. As degrees minus inner weights, cuts would be
//    lost to rounding. Each part of the edges has its own sums; the number of parts does not depend on that of threads.
// 3. Upwards: decide which clusters stay. least[k] is the minimum over the nodes in cluster k of the largest 1 / cut
//    among the node and the smaller clusters around it that stay. Cluster k stays if its 1 / cut is well above that.
// 4. Downwards: find for each cluster the smallest one around it that stays, and so the parents of clusters and the
//    smallest clusters of nodes in the tree that is left.
ClusterTree find_clusters(const Triangle& edges, std::span<const double> degree, std::int32_t n_components,
                          Crew& crew) {
  const std::int32_t n = edges.n();
  // 1
  const std::vector<std::int32_t> parent = join_heaviest_first(edges, n_components, crew);
  const std::int64_t count = std::ssize(parent) - n;
  ClusterTree tree;
  tree.smallest.assign(n, 0);
  if (count == 0) return tree;

  // 2
  const std::int64_t parts = std::clamp<std::int64_t>(edges.edges() / kPiece, 1, kParts);
  std::vector<std::vector<double>> cuts(parts);
  crew.run(parts, [&](std::int64_t part) {
    std::vector<double>& cut = cuts[part];
    cut.resize(count);
    const auto row_at = [&](std::int64_t e) {
      return std::lower_bound(edges.start.begin(), edges.start.end(), e) - edges.start.begin();
    };
    const std::int64_t end = row_at(edges.edges() * (part + 1) / parts);
    for (std::int64_t u = row_at(edges.edges() * part / parts); u < end && u < n; ++u) {
      for (std::int64_t e = edges.start[u]; e < edges.start[u + 1]; ++e) {
        std::int32_t a = parent[u];
        std::int32_t b = parent[edges.other[e]];
        while (a != b) {
          std::int32_t& smaller = a < b ? a : b;
          cut[smaller - n] += static_cast<double>(edges.weight[e]);
          smaller = parent[smaller];
        }
      }
    }
  });
  std::vector<double>& cut = cuts[0];
  for (std::int64_t part = 1; part < parts; ++part) {
    for (std::int64_t k = 0; k < count; ++k) cut[k] += cuts[part][k];
  }

  // 3
  std::vector<float> least(count, std::numeric_limits<float>::infinity());
  std::vector<std::int32_t> number(count, -1);  // among the clusters that stay
  const auto lower_least = [&](std::int32_t vertex, float inverse_cut) {
    if (vertex != kNone) least[vertex - n] = std::min(least[vertex - n], inverse_cut);
  };
  for (std::int32_t i = 0; i < n; ++i) lower_least(parent[i], static_cast<float>(1.0 / degree[i]));
  for (std::int64_t k = 0; k < count; ++k) {
    const auto inverse_cut = static_cast<float>(1.0 / cut[k]);
    const bool stays = cut[k] > 0.0 && inverse_cut > kWorthwhile * least[k];
    if (stays) {
      number[k] = static_cast<std::int32_t>(tree.clusters.size());
      tree.clusters.push_back({parent[n + k], inverse_cut, inverse_cut, static_cast<float>(cut[k])});
    }
    lower_least(parent[n + k], stays ? std::max(inverse_cut, least[k]) : least[k]);
  }

  // 4. `above` is the number of the smallest remaining cluster that contains a cluster.
  const auto n_kept = static_cast<std::int32_t>(tree.clusters.size());
  std::vector<std::int32_t> above(count);
  const auto find_kept = [&](std::int32_t vertex) { return vertex == kNone ? n_kept : above[vertex - n]; };
  for (std::int64_t k = count - 1; k >= 0; --k) above[k] = number[k] >= 0 ? number[k] : find_kept(parent[n + k]);
  for (Cluster& cluster : tree.clusters) cluster.parent = find_kept(cluster.parent);
  for (std::int32_t i = 0; i < n; ++i) tree.smallest[i] = find_kept(parent[i]);
  return tree;
}

}  // namespace ohm
