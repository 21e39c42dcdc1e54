// Exact nearest-neighbour graphs for any k, in two sweeps over all distances that store neither them nor edges.
//
// j is among the k nearest of i when (d(i, j), j) is not past the k-th smallest such pair of i: ties go to the
// smaller index. The first sweep finds that k-th pair for every point, the Reach. The second compares every
// pair i < j with the reach of both. The sweeps must see the same bits of d(i, j) = d(j, i): see points.hpp.
#pragma once

#include "points/points.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace ohm {

// The k-th neighbours of some points: squared distance, index.
template <class Value>
struct Reach {
  std::vector<Value> distance;
  std::vector<std::int32_t> index;
};

// Of points begin..end-1; 1 <= k <= n - 1.
template <class Value>
Reach<Value> find_reach(const Points<Value>& points, std::int64_t k, std::int64_t begin, std::int64_t end, int threads);

struct EdgeBlock {
  std::vector<std::int32_t> u, v;
  std::vector<float> w;
};

// The edges {i, j}, i < j, of the union of neighbourhoods with begin <= i < end, ordered by i, then j. With
// `scale`, one positive number per point, they weigh exp(-d^2 / (scale_i scale_j)).
template <class Value>
EdgeBlock neighbour_edges(const Points<Value>& points, std::span<const Value> distance,
                          std::span<const std::int32_t> index, std::span<const Value> scale, std::int64_t begin,
                          std::int64_t end, int threads);

}  // namespace ohm
