#include "sampling/coins.hpp"

#include "base/rng.hpp"
#include "base/simd.hpp"

#include <algorithm>

namespace ohm {
namespace {

constexpr int kStrip = 16;   // edges whose coins are tossed together, in machine vectors
constexpr int kBlock = 512;  // edges that are filtered by the bound before the remaining ones are tossed
constexpr int kAhead = 24;   // edges between the prefetch of a record and its use

struct Floor {
  float then;
  float now;
};

// The sum of the largest shares of u and v; see clusters.hpp.
OHM_INLINE Floor find_floor(const Embedding& h, const NodeRecord& a, const NodeRecord& b) {
  Floor of_a{a.share, a.share_now};
  Floor of_b{b.share, b.share_now};
  const auto raise = [&](Floor& floor, std::int32_t k) {
    floor.then = std::max(floor.then, h.clusters[k].share);
    floor.now = std::max(floor.now, h.clusters[k].share_now);
  };
  climb(a.cluster, b.cluster, h.clusters, [&](std::int32_t k) { raise(of_a, k); },
        [&](std::int32_t k) { raise(of_b, k); });
  return {of_a.then + of_b.then, of_a.now + of_b.now};
}

template <class Weight>
OHM_INLINE float float_weight(std::span<const Weight> w, std::int64_t i) {
  return static_cast<float>(weight_at(w, i));
}

// Uniform in [0, 1), one for each of kBlock positions, truncated to 24 bits, which decides most edges. Two simple
// loops, so that compilers vectorise them.
OHM_INLINE void draw_coins(std::uint64_t key, std::uint64_t first, float* coin) {
  std::int32_t bits[kBlock];
  for (int k = 0; k < kBlock; ++k) bits[k] = static_cast<std::int32_t>(draw(key, first + k) >> 40);
  for (int k = 0; k < kBlock; ++k) coin[k] = static_cast<float>(bits[k]) * 0x1.0p-24f;
}

// Writes to `open` which of the edges begin..begin + count could be kept; returns how many.
template <class Index, class Weight>
OHM_INLINE int find_open(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                         std::int64_t begin, int count, const float* coin, float beta, std::span<const float> bound,
                         std::int32_t* open) {
  constexpr float kFactor = 2.0f * 1.0001f;  // candidates per kept edge, and a margin for rounding
  float most[kBlock];
  for (int k = 0; k < count; ++k) most[k] = bound[u[begin + k]] + bound[v[begin + k]];
  for (int k = 0; k < count; ++k) most[k] = kFactor * beta * float_weight(w, begin + k) * most[k];
  int found = 0;
  for (int k = 0; k < count; ++k) {
    open[found] = k;
    found += coin[k] < most[k];
  }
  return found;
}

// Tosses up to kStrip open edges, given by their place in the batch.
template <class Index, class Weight>
OHM_INLINE void toss_strip(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                           std::int64_t begin, const std::int32_t* open, int count, const float* coin,
                           std::uint64_t key, std::int64_t position, float beta, const Embedding& embedding,
                           std::vector<Candidate>& candidates) {
  float square[kStrip], floor[kStrip], floor_now[kStrip], weight[kStrip], p[kStrip];
  std::int32_t joined[kStrip], halved[kStrip];
  for (int k = 0; k < count; ++k) {
    const NodeRecord& a = embedding.nodes[u[begin + open[k]]];
    const NodeRecord& b = embedding.nodes[v[begin + open[k]]];
    const Floor shares = find_floor(embedding, a, b);
    square[k] = sketch(a, b);
    floor[k] = shares.then;
    floor_now[k] = shares.now;
    joined[k] = a.component == b.component ? a.component : -1;
    weight[k] = float_weight(w, begin + open[k]);
  }
  for (int k = count; k < kStrip; ++k) {
    square[k] = floor[k] = floor_now[k] = weight[k] = 1.0f;
    joined[k] = -1;
  }
  for (int k = 0; k < kStrip; ++k) {
    const float r = resistance(square[k], floor[k], floor_now[k]);
    const float chance = beta * (weight[k] * r / (weight[k] * r + 1.0f));
    const float once = joined[k] >= 0 ? std::min(1.0f, chance) : 1.0f;
    halved[k] = once <= 0.5f;
    p[k] = halved[k] != 0 ? 2.0f * once : once;
  }
  for (int k = 0; k < count; ++k) {
    if (coin[open[k]] >= p[k]) continue;
    const std::int64_t i = begin + open[k];
    // With all bits: otherwise edges of tiny probability would pass too often.
    const std::uint64_t bits = draw(key, static_cast<std::uint64_t>(position + i));
    if (uniform(bits) >= static_cast<double>(p[k])) continue;
    if (u[i] == v[i] || weight[k] < static_cast<float>(kSmallestWeight)) continue;
    candidates.push_back({position + i, static_cast<std::int32_t>(u[i]), static_cast<std::int32_t>(v[i]),
                          weight[k] / p[k], halved[k] != 0 ? 0.5f * p[k] : p[k], halved[k] == 0, (bits & 1u) != 0});
  }
}

}  // namespace

template <class Index, class Weight>
OHM_KERNEL void toss_edges(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                           std::int64_t begin, std::int64_t end, std::int64_t position, std::uint64_t key, float beta,
                           const Embedding& embedding, std::span<const float> bound,
                           std::vector<Candidate>& candidates) {
  std::int32_t open[kBlock];
  float coin[kBlock];
  for (std::int64_t i = begin; i < end; i += kBlock) {
    const int count = static_cast<int>(std::min<std::int64_t>(kBlock, end - i));
    draw_coins(key, static_cast<std::uint64_t>(position + i), coin);
    const int found = find_open(u, v, w, i, count, coin, beta, bound, open);
    for (int k = 0; k < found; k += kStrip) {
      for (int ahead = k + kAhead; ahead < std::min(found, k + kAhead + kStrip); ++ahead) {
        __builtin_prefetch(&embedding.nodes[u[i + open[ahead]]]);
        __builtin_prefetch(&embedding.nodes[v[i + open[ahead]]]);
      }
      toss_strip(u, v, w, i, open + k, std::min(kStrip, found - k), coin, key, position, beta, embedding, candidates);
    }
  }
}

#define OHM_INSTANTIATE(Index, Weight)                                                                             \
  template void toss_edges(std::span<const Index>, std::span<const Index>, std::span<const Weight>, std::int64_t,  \
                           std::int64_t, std::int64_t, std::uint64_t, float, const Embedding&,                     \
                           std::span<const float>, std::vector<Candidate>&);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
