// Lower bounds of effective resistances that hold under any contrast of weights.
//
// Take two disjoint sets of nodes, A with u and B with v, and short everything outside them. That cannot raise the
// resistance, so (Nash-Williams)
//
//   R_uv >= 1 / (w + (cut(A) - w) (cut(B) - w) / (cut(A) + cut(B) - 2 w)),
//
// where w is the weight between A and B. It is about 1 / cut(A) + 1 / cut(B) when w is small. If A and B are single
// nodes, cuts are degrees, and the bound is close wherever weights are similar. But a node with one very heavy edge has
// a large degree even if that edge leads nowhere. So larger sets are tried as well: the clusters that are held together
// by edges heavier than a threshold, for thresholds that fall by factors of two. Clusters are nested, so they form a
// tree. The bound for u and v uses the largest 1 / cut among u and the clusters that contain u but not v, and likewise
// for v.
//
// A cluster whose 1 / cut does not exceed those of its parts is never used and is left out of the tree. Hardly any
// remain in a graph whose weights are similar.
#pragma once

#include "base/simd.hpp"
#include "graph/csr.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace ohm {

// The bound above, from w, cut(A) - w and cut(B) - w.
template <class Real>
OHM_INLINE Real resistance_floor(Real rest_a, Real rest_b, Real w) {
  Real around = 0;
  if (rest_a > 0 && rest_b > 0) {
    const Real sum = rest_a + rest_b;
    // The product of two floats could overflow, so they are divided first.
    around = sizeof(Real) == sizeof(float) ? rest_a * (rest_b / sum) : rest_a * rest_b / sum;
  }
  return 1 / (w + around);
}

struct Cluster {
  std::int32_t parent;    // the next larger cluster, which has a larger number, or clusters.size() if there is none
  float inverse_cut;      // when the tree was built
  float inverse_cut_now;  // the same at the last Sampler::refresh
  float cut_now;          // with the edges seen since
  float balance = 0.0f;   // see Sampler::add_candidates
};

struct ClusterTree {
  std::vector<Cluster> clusters;
  std::vector<std::int32_t> smallest;  // the smallest cluster around each node, or clusters.size() if there is none
};

// `degree` holds the weighted degrees of the nodes.
ClusterTree find_clusters(const Triangle& edges, std::span<const double> degree, std::int32_t n_components,
                          Crew& crew = alone);

// Calls of_u(k) for each cluster k that contains u but not v, and of_v(k) for each that contains v but not u, smaller
// clusters first. `a` and `b` are the smallest clusters around u and v.
template <class OfU, class OfV>
inline void climb(std::int32_t a, std::int32_t b, std::span<const Cluster> clusters, OfU&& of_u, OfV&& of_v) {
  while (a != b) {
    if (a < b) {
      of_u(a);
      a = clusters[a].parent;
    } else {
      of_v(b);
      b = clusters[b].parent;
    }
  }
}

}  // namespace ohm
