// Graphs of nearest neighbours: each point is joined to those that are among its k nearest, or have it among theirs.
//
// join_neighbours makes the graph of neighbours that are known (nearest.hpp). If there are too many to be kept,
// find_reach and neighbour_edges compute the edges in two sweeps over all distances, and store neither.
//
// j is among the k nearest of i when (d(i, j), j) is at most the k-th smallest such pair of i, so ties go to the
// smaller index. The first sweep finds that k-th pair for every point, the Reach. The second compares every pair i < j
// with the reach of both. Both sweeps must compute the same bits of d(i, j) = d(j, i); see points.hpp.
#pragma once

#include "points/points.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace ohm {

// The k-th neighbour of each of some points: squared distance and index.
template <class Value>
struct Reach {
  std::vector<Value> distance;
  std::vector<std::int32_t> index;
};

// The reach of points begin..end-1, for 1 <= k <= n - 1.
template <class Value>
Reach<Value> find_reach(const Points<Value>& points, std::int64_t k, std::int64_t begin, std::int64_t end, int threads);

struct EdgeBlock {
  std::vector<std::int32_t> u, v;
  std::vector<float> w;
};

// The edges {i, j}, i < j, of the union of neighbourhoods with begin <= i < end, ordered by i, then j. With `scale`,
// one positive number per point, their weights are exp(-d^2 / (scale_i scale_j)).
template <class Value>
EdgeBlock neighbour_edges(const Points<Value>& points, std::span<const Value> distance,
                          std::span<const std::int32_t> index, std::span<const Value> scale, std::int64_t begin,
                          std::int64_t end, int threads);

// All edges {i, j}, i < j: those of i are v[e] and w[e], offset[i] <= e < offset[i + 1], in the order of v.
struct NeighbourGraph {
  std::vector<std::int64_t> offset;
  std::vector<std::int32_t> v;
  std::vector<float> w;  // empty without scales
};

// `index` and `square` have k entries per point, a negative index for none; weights as above.
NeighbourGraph join_neighbours(std::span<const std::int32_t> index, std::span<const double> square,
                               std::span<const double> scale, std::int64_t n, std::int64_t k);

}  // namespace ohm
