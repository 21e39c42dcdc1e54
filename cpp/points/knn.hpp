// Exact nearest-neighbour graphs for any k, in two sweeps over all distances that store neither distances nor edges.
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

}  // namespace ohm
