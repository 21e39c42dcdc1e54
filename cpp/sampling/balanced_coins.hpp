// Coins that keep each edge with its own probability, and the weight at every node nearly as it was; see choose_rows.
#pragma once

#include "base/rng.hpp"
#include "base/simd.hpp"

#include <array>
#include <bit>
#include <cstdint>

namespace ohm {

constexpr int kBits = 3;  // of a probability, after rounding
constexpr int kWhole = 1 << kBits;

// Added to a balance so that a coin decides if it is 0. A balance is a sum of floats w / cut, up or down, so it is 0 or
// at least 2^-24 times the smallest of them: kTie decides nothing else for edges of more than 2^-75 of a cut.
constexpr float kTie = 1e-30f;

// For each bit the weight that a vertex of `Sides` has gained, relative to its cut; the last lane holds 1 / cut.
using Balance = Row<float, 4>;
static_assert(kBits == 3);

// The result for a probability of `units` eighths, given which of its bits would be rounded up.
struct Fate {
  Balance sign = {};  // of what the ends gain by each bit: 0 for a bit that is not set
  bool keep = false;
};

struct Tables {
  Fate fate[kWhole + 1][kWhole];  // by units, and by the set of bits that go up
  Balance tie[kWhole] = {};       // decides if the balance is 0; too small to matter otherwise

  static const Tables& get() {
    static const Tables tables;
    return tables;
  }

 private:
  Tables() {
    for (unsigned set = 0; set < kWhole; ++set) {
      for (int bit = 0; bit < kBits; ++bit) tie[set][bit] = (set >> bit & 1u) != 0 ? kTie : -kTie;
      for (unsigned units = 0; units <= kWhole; ++units) {
        unsigned rounded = units;
        for (int bit = 0; bit < kBits; ++bit) {
          const unsigned part = rounded & 1u << bit;
          const bool up = (set >> bit & 1u) != 0;
          if (part != 0) fate[units][set].sign[bit] = up ? 1.0f : -1.0f;
          rounded = up ? rounded + part : rounded - part;
        }
        fate[units][set].keep = rounded == kWhole;
      }
    }
  }
};

// The fate of an edge, given the sum of the balances of its ends; null if it is dropped because its probability is
// rounded to zero. The weight of such an edge over its probability may be infinite.
OHM_INLINE const Fate* decide(const Tables& tables, float probability, std::uint64_t random, Balance balance) {
  const auto units = static_cast<unsigned>(static_cast<double>(probability) * kWhole + uniform(random));
  if (units == 0) return nullptr;
  // A bit is rounded up if the two ends together have lost weight. The bits are read from signs, because half of the
  // branches would be predicted wrong.
  const Balance excess = balance + tables.tie[random % kWhole];
  const auto lanes = std::bit_cast<std::array<std::uint64_t, 2>>(excess);
  const std::uint64_t up = (lanes[0] >> 31 & 1u) | (lanes[0] >> 62 & 2u) | (lanes[1] >> 29 & 4u);
  return &tables.fate[units][up];
}

}  // namespace ohm
