// What the sampler counts of the edges that it takes in.
#pragma once

#include "base/parallel.hpp"
#include "graph/edges.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace ohm {

// The longest stream. Counters up to this limit can be added without overflow.
constexpr std::int64_t kMostEdges = std::int64_t{1} << 60;

// The largest node, or -1.
template <class Index>
std::int64_t find_last(std::span<const Index> u, std::span<const Index> v, Crew& crew = alone);

struct Counts {
  std::int64_t loops = 0;
  std::int64_t zeros = 0;  // edges of zero weight that are no loops
};

// Counts the edges of a batch whose first edge has number `position` in the stream, and adds the weights of the others
// to the sums that SamplerState::weight_seen describes.
template <class Index, class Weight>
Counts count_edges(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                   std::int64_t position, std::array<double, 8>& weight_seen, Crew& crew = alone);

}  // namespace ohm
