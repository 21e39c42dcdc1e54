// exp and powers of two of many numbers at once, with the same bits on every machine.
#pragma once

#include "base/simd.hpp"

#include <bit>
#include <cstdint>

namespace ohm {

// Within 2 units in the last place for -87.3 <= x <= 88; 0 below (there are no subnormal results), clipped above.
OHM_INLINE float exponential(float x) {
  constexpr float kLowest = -87.33654f;  // ln of the smallest normal float
  const bool tiny = x < kLowest;
  x = x < kLowest ? kLowest : x;
  x = x > 88.0f ? 88.0f : x;
  // x = whole ln 2 + rest; adding 1.5 * 2^23 rounds, and leaves the integer in the low bits.
  const float shifted = x * 1.44269504f + 12582912.0f;
  const float whole = shifted - 12582912.0f;
  const float rest = (x - whole * 0.693359375f) - whole * -2.12194440e-4f;
  // Cephes' minimax polynomial for (e^r - 1 - r) / r^2 on |r| <= ln(2) / 2.
  float p = 1.9875691500e-4f;
  p = p * rest + 1.3981999507e-3f;
  p = p * rest + 8.3334519073e-3f;
  p = p * rest + 4.1665795894e-2f;
  p = p * rest + 1.6666665459e-1f;
  p = p * rest + 5.0000001201e-1f;
  p = p * rest * rest + rest + 1.0f;
  const auto power = static_cast<std::uint32_t>(std::bit_cast<std::uint32_t>(shifted) - 0x4b400000u + 127u) << 23;
  const float result = p * std::bit_cast<float>(power);
  return tiny ? 0.0f : result;
}

// 2^(whole + rest) within 2 units in the last place, for an integer -126 <= whole <= 127 and |rest| <= 1/2. It takes two
// floats so that a double can be split without losing digits: see split_whole.
OHM_INLINE float power_of_two(float whole, float rest) {
  // Cephes' minimax polynomial for (2^r - 1) / r on |r| <= 1/2.
  float p = 1.535336188319500e-4f;
  p = p * rest + 1.339887440266574e-3f;
  p = p * rest + 9.618437357674640e-3f;
  p = p * rest + 5.550332471162809e-2f;
  p = p * rest + 2.402264791363012e-1f;
  p = p * rest + 6.931472028550421e-1f;
  p = p * rest + 1.0f;
  const float shifted = whole + 12582912.0f;
  const auto power = static_cast<std::uint32_t>(std::bit_cast<std::uint32_t>(shifted) - 0x4b400000u + 127u) << 23;
  return p * std::bit_cast<float>(power);
}

// The integer next to x, for |x| < 2^51.
OHM_INLINE double split_whole(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

}  // namespace ohm
