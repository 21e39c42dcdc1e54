// How much weight recent edges have put on the same pair of nodes.
//
// A table of fixed size, in which pairs that share a slot take a majority vote (Boyer and Moore, with weights): an edge
// of the pair that holds the slot adds its weight, one of another pair takes it away, and a pair whose weight is used up
// gives way. So a pair is found if its weight exceeds that of all others in its slot.
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

// Adds an edge; returns the weight of its pair before, as far as it is known. The size of the table is a power of two.
inline float add_to_pair(std::vector<PairWeight>& table, std::int32_t u, std::int32_t v, float w) {
  const auto low = static_cast<std::uint64_t>(std::min(u, v)), high = static_cast<std::uint64_t>(std::max(u, v));
  const std::uint64_t bits = mix(low << 32 | high);
  PairWeight& slot = table[bits & (table.size() - 1)];
  const auto tag = static_cast<std::uint32_t>(bits >> 32);
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
