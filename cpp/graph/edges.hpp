// Arrays of edges: their types, the limits of their weights, and the first edge that breaks a rule.
#pragma once

#include "base/simd.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

namespace ohm {

// The weight of every edge of an unweighted graph; takes no memory.
struct Unit {
  operator double() const { return 1.0; }
};

// All types of arrays of edges, for explicit instantiations: Of(Index, Weight) for each pair.
#define OHM_FOR_EDGE_TYPES(Of)  \
  Of(std::int32_t, Unit)        \
  Of(std::int32_t, float)       \
  Of(std::int32_t, double)      \
  Of(std::int64_t, Unit)        \
  Of(std::int64_t, float)       \
  Of(std::int64_t, double)

template <class Weight>
OHM_INLINE Weight weight_at(std::span<const Weight> w, std::int64_t i) {
  if constexpr (std::is_same_v<Weight, Unit>) {
    return {};
  } else {
    return w[i];
  }
}

// The sampler stores weights as floats, so positive ones lie between these limits; the sum of 10^11 of the largest
// still fits a float. It treats weights below the first limit as zero.
constexpr double kSmallestWeight = 0x1.0p-126;
constexpr double kLargestWeight = 1e27;

// Whether a weight is zero, or between `smallest` and kLargestWeight.
template <class Weight>
OHM_INLINE bool is_weight(Weight w, Weight smallest) {
  return (w == Weight{0}) | ((w >= smallest) & (w <= static_cast<Weight>(kLargestWeight)));
}

// The first invalid edge. `node` is set for bad ids, `weight` for bad weights.
struct EdgeFault {
  enum class Reason { node_u, node_v, weight, overflow };
  Reason reason;
  std::int64_t position;
  std::int64_t node = 0;
  double weight = 0.0;
};

// The first edge that the sampler rejects: a node id is negative or at least `limit`, or a weight is none.
template <class Index, class Weight>
std::optional<EdgeFault> find_fault(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                                    std::int64_t limit, int threads = 1, double smallest = 0.0);

}  // namespace ohm
