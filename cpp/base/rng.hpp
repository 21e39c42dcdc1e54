// Counter-based randomness: a value is a pure function of (seed, counter), never of thread state.
#pragma once

#include <cstdint>

namespace ohm {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection that is a good 64-bit hash.
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline std::uint64_t hash(std::uint64_t seed, std::uint64_t counter) {
  return mix(mix(counter) ^ seed);
}

// One mix instead of two, for keys that are hashes already: output number `counter` of SplitMix64 with this key.
inline std::uint64_t draw(std::uint64_t key, std::uint64_t counter) {
  return mix(key + counter * 0x9e3779b97f4a7c15u);
}

// Uniform in [0, 1) with 53 random bits.
inline double uniform(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace ohm
