// What the sampler knows of H between two resamples, and the estimates of resistances from it.
//
// The resistance between u and v is estimated by floor + max(0, sketch - 1.5 floor). The sketch is |z_u - z_v|^2, from
// a random projection with only eight columns. The floor is a lower bound from cuts (clusters.hpp). It prevents large
// underestimates, which are likely with eight columns. The maximum of a noisy sketch and a floor of about the same size
// would be too large on average; subtracting 1.5 floors corrects that and hardly changes a sketch far above the floor.
// Cuts are updated between embeddings, so floors fall as edges arrive and fewer of them are kept; only the part of the
// sketch above its floor can be stale.
#pragma once

#include "base/simd.hpp"
#include "graph/clusters.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ohm {

// One node, in one cache line.
struct alignas(64) NodeRecord {
  static constexpr int kColumns = 8;
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float z[kColumns] = {};              // R_uv is about |z_u - z_v|^2
  float inverse_degree = kInfinity;      // weighted, in H as it was embedded
  float inverse_degree_now = kInfinity;  // the same at the last refresh
  float degree_now = 0.0f;             // with the edges seen since the embedding
  float distance = kInfinity;          // |z - centre|^2, see measure_distances
  std::int32_t component = -1;         // -1: the node has no embedding yet
  std::int32_t cluster = 0;            // the smallest around it; the number of clusters if there is none
  float balance = 0.0f;                // see Sampler::add_candidates
  std::uint32_t unused = 0;            // records are saved as bytes, so none is left without a value
};
static_assert(sizeof(NodeRecord) == 64);

struct Embedding {
  std::span<const NodeRecord> nodes;
  std::span<const Cluster> clusters;
};

// |z_a - z_b|^2, in an order of additions that all machines share.
OHM_INLINE float sketch(const NodeRecord& a, const NodeRecord& b) {
  using Vector = Row<float, NodeRecord::kColumns>;
  const Vector d = *reinterpret_cast<const Vector*>(a.z) - *reinterpret_cast<const Vector*>(b.z);
  const Vector s = d * d;
  const Row<float, 4> q = __builtin_shufflevector(s, s, 0, 1, 2, 3) + __builtin_shufflevector(s, s, 4, 5, 6, 7);
  const Row<float, 4> h = q + __builtin_shufflevector(q, q, 2, 3, 0, 1);
  return h[0] + h[1];
}

// `floor` dates from the embedding, `floor_now` from the last refresh.
OHM_INLINE float resistance(float sketch, float floor, float floor_now) {
  return floor_now + std::max(0.0f, sketch - 1.5f * floor);
}

// For u, the node or cluster with the smallest cut that contains u but not v; likewise for v. Vertex i is node i,
// vertex n + k is cluster k.
struct Sides {
  std::int32_t vertex_u, vertex_v;
  float inverse_cut_u, inverse_cut_v;
};

OHM_INLINE Sides find_sides(const Embedding& h, std::int32_t u, std::int32_t v) {
  Sides best{u, v, h.nodes[u].inverse_degree, h.nodes[v].inverse_degree};
  const auto n = static_cast<std::int32_t>(h.nodes.size());
  const auto raise = [&](std::int32_t k, std::int32_t& vertex, float& inverse_cut) {
    if (h.clusters[k].inverse_cut <= inverse_cut) return;
    inverse_cut = h.clusters[k].inverse_cut;
    vertex = n + k;
  };
  climb(h.nodes[u].cluster, h.nodes[v].cluster, h.clusters,
        [&](std::int32_t k) { raise(k, best.vertex_u, best.inverse_cut_u); },
        [&](std::int32_t k) { raise(k, best.vertex_v, best.inverse_cut_v); });
  return best;
}

// Sets `distance`. The centre is that of the largest component; in other components distances are infinite.
void measure_distances(std::span<NodeRecord> nodes);

// Numbers b with estimate(u, v) <= b_u + b_v. They exist because |z_u - z_v|^2 <= 2 |z_u - centre|^2 + 2 |z_v -
// centre|^2. They are infinite outside the largest component, so two nodes with finite bounds are connected in H.
std::vector<float> bound_resistances(const Embedding& h);

}  // namespace ohm
