// Checks of a state before a sampler continues from it. Files and messages can hold anything, and update, merge and
// snapshot index with what a state holds.
#pragma once

#include "sampling/rows.hpp"

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace ohm {

// Throws std::invalid_argument with a message of texts and numbers. Conditions are written so that NaN fails them.
template <class... Parts>
void refuse_unless(bool is_sound, const Parts&... parts) {
  if (is_sound) return;
  const auto text = []<class Part>(const Part& part) -> std::string {
    if constexpr (std::is_integral_v<Part>) {
      return std::to_string(part);
    } else if constexpr (std::is_floating_point_v<Part>) {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%g", static_cast<double>(part));
      return digits;
    } else {
      return part;
    }
  };
  throw std::invalid_argument((text(parts) + ...));
}

// The counters and rows that all samplers have. A capacity is between two limits.
void check_common(const SamplerState& state, std::int64_t least_capacity, std::int64_t most_capacity);

}  // namespace ohm
