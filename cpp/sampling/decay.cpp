#include "sampling/decay.hpp"

#include "base/exponential.hpp"
#include "base/simd.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace ohm {
namespace {

constexpr int kLanes = 8;
constexpr std::int64_t kStrip = 256;  // edges whose weights are computed together

OHM_INLINE TimeRange find_range_of(const double* t, std::int64_t size) {
  using Lanes = Row<double, kLanes>;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Lanes low = Lanes{} + kInfinity, high = Lanes{} - kInfinity, sum = {};
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Lanes here;
    __builtin_memcpy(&here, t + i, sizeof here);
    low = here < low ? here : low;
    high = here > high ? here : high;
    sum += here - here;  // NaN if one is NaN or infinite
  }
  TimeRange range{kInfinity, -kInfinity};
  double rest = 0.0;
  for (int lane = 0; lane < kLanes; ++lane) {
    range.lowest = std::min(range.lowest, low[lane]);
    range.highest = std::max(range.highest, high[lane]);
    rest += sum[lane];
  }
  for (; i < size; ++i) {
    range.lowest = std::min(range.lowest, t[i]);
    range.highest = std::max(range.highest, t[i]);
    rest += t[i] - t[i];
  }
  if (std::isnan(rest)) return {rest, rest};
  return range;
}

OHM_INLINE float zero_if(bool condition, float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & (static_cast<std::uint32_t>(condition) - 1u));
}

template <class Weight>
OHM_INLINE std::int64_t fade_strip(const Weight* w, const double* t, std::int64_t size, double at, double earliest,
                                   double rate, float* faded) {
  // Simple loops without branches, so that compilers vectorise them.
  float whole[kStrip], rest[kStrip];
  std::int64_t outside[kStrip];
  for (std::int64_t i = 0; i < size; ++i) {
    const double x = (t[i] - at) * rate;
    const double nearest = split_whole(x);
    whole[i] = static_cast<float>(nearest);
    rest[i] = static_cast<float>(x - nearest);
    outside[i] = (t[i] < earliest) | (t[i] > at);
  }
  for (std::int64_t i = 0; i < size; ++i) {
    faded[i] = zero_if(outside[i] != 0, power_of_two(whole[i], rest[i]));
  }
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < size; ++i) count += outside[i];
  if constexpr (!std::is_same_v<Weight, Unit>) {
    for (std::int64_t i = 0; i < size; ++i) {
      const float weight = static_cast<float>(w[i]), product = weight * faded[i];
      const bool is_small = (weight < static_cast<float>(kSmallestFading)) |
                            (product < static_cast<float>(kSmallestWeight));
      faded[i] = zero_if(is_small, product);  // NaN stays
    }
  }
  return count;
}

}  // namespace

std::int64_t find_epoch(double time, double half_life) {
  auto epoch = static_cast<std::int64_t>(std::floor(time / (kFaded * half_life)));
  // Rounding may have moved the time across an end.
  while (time >= end_of_epoch(epoch, half_life)) ++epoch;
  while (time < end_of_epoch(epoch - 1, half_life)) --epoch;
  return epoch;
}

double end_of_epoch(std::int64_t epoch, double half_life) {
  return static_cast<double>(epoch + 1) * (kFaded * half_life);
}

double fading_factor(std::int64_t epochs) {
  constexpr std::int64_t kMost = 64;  // 2^-2560 is 0
  return std::ldexp(1.0, -static_cast<int>(kFaded) * static_cast<int>(std::min(epochs, kMost)));
}

template <class Weight>
OHM_KERNEL Faded fade_weights(std::span<const Weight> w, std::span<const double> t, double at, double earliest,
                              double half_life, float* faded) {
  const double rate = 1.0 / half_life;
  const std::int64_t size = std::ssize(t);
  Faded found;
  for (std::int64_t i = 0; i < size; i += kStrip) {
    const Weight* weights = w.empty() ? nullptr : w.data() + i;
    found.count += fade_strip(weights, t.data() + i, std::min(kStrip, size - i), at, earliest, rate, faded + i);
  }
  found.newest = find_range_of(t.data(), size).highest;
  return found;
}

OHM_KERNEL TimeRange find_range(std::span<const double> t) { return find_range_of(t.data(), std::ssize(t)); }

template Faded fade_weights(std::span<const Unit>, std::span<const double>, double, double, double, float*);
template Faded fade_weights(std::span<const float>, std::span<const double>, double, double, double, float*);
template Faded fade_weights(std::span<const double>, std::span<const double>, double, double, double, float*);

}  // namespace ohm
