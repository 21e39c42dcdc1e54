// How much weight recent edges have put on the same pair of nodes.
//
// A table of fixed size. Each slot stores one pair and a weight (the majority vote of Boyer and Moore, with weights).
// An edge of the stored pair adds its weight; an edge of another pair subtracts it. When the weight falls below zero,
// the other pair is stored. A pair is found if it has more than half of the weight in its slot.
#pragma once

#include "base/rng.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace ohm {

struct PairWeight {
  std::uint32_t tag = 0;  // of the pair that holds the slot
  float weight = 0.0f;
};

// A table for a graph with so many nodes.
inline std::vector<PairWeight> make_pair_table(std::int32_t n_nodes) {
  return std::vector<PairWeight>(std::bit_ceil(static_cast<std::size_t>(std::max(1, n_nodes))));
}

// The lowest bits are the slot, in a table whose size is a power of two; the upper half is the tag.
inline std::uint64_t hash_pair(std::int32_t u, std::int32_t v) {
  const auto low = static_cast<std::uint64_t>(std::min(u, v)), high = static_cast<std::uint64_t>(std::max(u, v));
  return mix(low << 32 | high);
}

// Adds an edge to the slot of its pair; returns the weight of the pair before, as far as it is known.
inline float add_to_pair(PairWeight& slot, std::uint32_t tag, float w) {
  if (slot.tag == tag) {
    const float before = slot.weight;
    slot.weight = std::min(before + w, 1e38f);
    return before;
  }
  slot.weight -= w;
  if (slot.weight < 0.0f) slot = {tag, -slot.weight};
  return 0.0f;
}

}  // namespace ohm
