// Solves L x = b to low accuracy, for the embeddings of the sampler.
//
// Conjugate gradients with the diagonal and the clusters are enough for most graphs; the clusters make the number of
// iterations independent of the contrast of the weights. Floats cannot hold the differences of potentials across very
// heavy edges, so doubles take over there. Where convergence is slow for another reason, as on a mesh, a factor is built.
#pragma once

#include "graph/clusters.hpp"
#include "solver/matrix.hpp"
#include "solver/right_hand_sides.hpp"

#include <cstdint>
#include <span>

namespace ohm {

struct ClusteredGraph {
  const Triangle& edges;
  const NullSpace& null_space;
  std::span<const double> degree;
  const ClusterTree& tree;
};

// Columns for which no method works are left at any values.
void solve_with_clusters(const ClusteredGraph& graph, std::uint64_t seed, int threads, const Columns& columns);

}  // namespace ohm
