// exp of many floats at once, with the same bits on every machine.
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

// x[i] = exp(x[i])
void exponentials(float* x, std::int64_t count);

}  // namespace ohm
