// Checks of a state before a sampler continues from it. Files and messages can hold anything, and update, merge and
// snapshot index with what a state holds.
#pragma once

#include "sampling/rows.hpp"

#include <cstdint>
#include <sstream>
#include <stdexcept>

namespace ohm {

// Throws std::invalid_argument with a message of texts and numbers. Conditions are written so that NaN fails them.
template <class... Parts>
void refuse_unless(bool is_sound, const Parts&... parts) {
  if (is_sound) return;
  std::ostringstream text;
  (text << ... << parts);
  throw std::invalid_argument(text.str());
}

// The counters and rows that all samplers have. A capacity is between two limits.
void check_common(const SamplerState& state, std::int64_t least_capacity, std::int64_t most_capacity);

}  // namespace ohm
