#include "sampling/decay.hpp"

#include "base/exponential.hpp"
#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "sampling/sampler.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace ohm {
namespace {

constexpr int kLanes = 8;
constexpr std::int64_t kStrip = 256;      // edges whose weights are computed together
constexpr std::int64_t kPiece = 1 << 14;  // edges whose weights a thread computes at a time
constexpr std::int64_t kMostPieces = 32;  // pieces per thread before the edges are taken in

OHM_INLINE double newest_of(const double* t, std::int64_t size) {
  using Lanes = Row<double, kLanes>;
  Lanes high = Lanes{} - std::numeric_limits<double>::infinity();
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Lanes here;
    __builtin_memcpy(&here, t + i, sizeof here);
    high = here > high ? here : high;
  }
  double newest = -std::numeric_limits<double>::infinity();
  for (int lane = 0; lane < kLanes; ++lane) newest = std::max(newest, high[lane]);
  for (; i < size; ++i) newest = std::max(newest, t[i]);
  return newest;
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
  found.newest = newest_of(t.data(), size);
  return found;
}

// What a sampler with a half-life does in addition.

// Edges are taken in by chunks, and no chunk has edges of two epochs.
template <class Index, class Weight>
void Sampler::update(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                     std::span<const double> t) {
  if (!has_half_life()) throw std::invalid_argument("a sampler without a half-life takes no times");
  const double half_life = options_.half_life;
  const std::int64_t size = std::ssize(u);
  const std::int64_t most = kPiece * (options_.threads > 1 ? kMostPieces * options_.threads : 1);
  std::vector<float> weight(std::min(size, most));
  std::vector<Faded> found((std::ssize(weight) + kPiece - 1) / kPiece);
  for (std::int64_t begin = 0; begin < size;) {
    if (state_.latest == -std::numeric_limits<double>::infinity() ||
        t[begin] >= end_of_epoch(state_.epoch, half_life)) {
      enter_epoch(t[begin]);
    }
    const double at = end_of_epoch(state_.epoch, half_life);
    const double earliest = at - 2.0 * kFaded * half_life;  // 40 half-lives before the epoch
    std::int64_t count = std::min(size - begin, most);
    const auto fade = [&](std::int64_t from, std::int64_t to) {
      const auto weights = w.empty() ? w : w.subspan(begin + from, to - from);
      return fade_weights(weights, t.subspan(begin + from, to - from), at, earliest, half_life, weight.data() + from);
    };
    parallel_for(options_.threads, (count + kPiece - 1) / kPiece, [&](std::int64_t piece) {
      found[piece] = fade(piece * kPiece, std::min(count, (piece + 1) * kPiece));
    });
    double newest = state_.latest;
    std::int64_t n_faded = 0;
    for (std::int64_t piece = 0; piece * kPiece < count; ++piece) {
      if (found[piece].newest >= at) {  // the chunk ends inside this piece
        const auto* first = t.data() + begin + piece * kPiece;
        count = std::find_if(first, t.data() + begin + count, [&](double time) { return time >= at; }) -
                (t.data() + begin);
        found[piece] = fade(piece * kPiece, count);
      }
      newest = std::max(newest, found[piece].newest);
      n_faded += found[piece].count;
    }
    state_.latest = newest + 0.0;  // not -0, whose bits differ from those of 0
    take_in(u.subspan(begin, count), v.subspan(begin, count), std::span<const float>(weight).first(count),
            t.subspan(begin, count));
    state_.n_faded += n_faded;
    begin += count;
  }
}

// Moves to the epoch of a time that is later than all before.
void Sampler::enter_epoch(double time) {
  fade_rows(find_epoch(time, options_.half_life));
  state_.latest = time + 0.0;
  drop_faded_rows();
  if (state_.n_resamples == 0) return;
  // If the resample fails, no old estimate is left, and edges are kept for certain.
  forget_estimates();
  Crew crew(options_.threads);
  resample(crew);
}

void Sampler::fade_rows(std::int64_t epoch) {
  if (state_.latest > -std::numeric_limits<double>::infinity()) {
    const double factor = fading_factor(epoch - state_.epoch);
    for (float& w : state_.rows.w) w = static_cast<float>(factor * static_cast<double>(w));
    for (double& lane : state_.weight_seen) lane *= factor;
  }
  state_.epoch = epoch;
}

// Drops rows that have faded at the latest time.
void Sampler::drop_faded_rows() {
  const double earliest = state_.latest - kFaded * options_.half_life;
  EdgeRows& rows = state_.rows;
  std::int64_t left = 0, n_sorted = 0;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    rows.move(i, left);
    left += rows.time[i] >= earliest && rows.w[i] >= static_cast<float>(kSmallestWeight);
    if (i + 1 == state_.n_sorted) n_sorted = left;
  }
  rows.resize(left);
  state_.n_sorted = n_sorted;
  if (state_.n_resamples == 0) state_.n_expected = static_cast<double>(left - n_sorted);  // no coin has dropped any
}

// Makes all nodes as if they were new.
void Sampler::forget_estimates() {
  state_.clusters.clear();
  state_.pairs.clear();
  std::fill(state_.nodes.begin(), state_.nodes.end(), NodeRecord());
  std::fill(bound_.begin(), bound_.end(), NodeRecord::kInfinity);
}

double Sampler::scale_at(double at) const {
  if (!std::isfinite(state_.latest)) return 1.0;
  return std::exp2((end_of_epoch(state_.epoch, options_.half_life) - at) / options_.half_life);
}

Snapshot Sampler::snapshot(double at) const {
  const double earliest = at - kFaded * options_.half_life, scale = scale_at(at);
  Crew crew(options_.threads);
  Triangle h = gather(crew);
  std::int64_t left = 0, e = 0;
  for (std::int32_t u = 0; u < h.n(); ++u) {
    for (; e < h.start[u + 1]; ++e) {
      h.other[left] = h.other[e];
      h.weight[left] = h.weight[e];
      h.probability[left] = h.probability[e];
      h.time[left] = h.time[e];
      left += h.time[e] >= earliest && scale * static_cast<double>(h.weight[e]) >= kSmallestWeight;
    }
    h.start[u + 1] = left;
  }
  h.other.resize(left);
  h.weight.resize(left);
  h.probability.resize(left);
  h.time.resize(left);
  return thin_copy(crew, std::move(h));
}

template Faded fade_weights(std::span<const Unit>, std::span<const double>, double, double, double, float*);
template Faded fade_weights(std::span<const float>, std::span<const double>, double, double, double, float*);
template Faded fade_weights(std::span<const double>, std::span<const double>, double, double, double, float*);
#define OHM_INSTANTIATE(Index, Weight)                                                                    \
  template void Sampler::update(std::span<const Index>, std::span<const Index>, std::span<const Weight>, \
                                std::span<const double>);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
