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

// The sum of the largest inverse cuts of u and v; see clusters.hpp.
OHM_INLINE Floor find_floor(const Embedding& h, const NodeRecord& a, const NodeRecord& b) {
  Floor of_a{a.inverse_degree, a.inverse_degree_now};
  Floor of_b{b.inverse_degree, b.inverse_degree_now};
  const auto raise = [&](Floor& floor, std::int32_t k) {
    floor.then = std::max(floor.then, h.clusters[k].inverse_cut);
    floor.now = std::max(floor.now, h.clusters[k].inverse_cut_now);
  };
  climb(a.cluster, b.cluster, h.clusters, [&](std::int32_t k) { raise(of_a, k); },
        [&](std::int32_t k) { raise(of_b, k); });
  return {of_a.then + of_b.then, of_a.now + of_b.now};
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
OHM_INLINE int find_open(const EdgeBatch<Index, Weight>& batch, std::int64_t begin, int count, const Coins& coins,
                         const float* coin, std::int32_t* open) {
  constexpr float kFactor = 2.0f * 1.0001f;  // candidates per kept edge, and a margin for rounding
  float most[kBlock];
  for (int k = 0; k < count; ++k) most[k] = coins.bound[batch.u[begin + k]] + coins.bound[batch.v[begin + k]];
  for (int k = 0; k < count; ++k) most[k] = kFactor * coins.beta * batch.weight(begin + k) * most[k];
  int found = 0;
  for (int k = 0; k < count; ++k) {
    open[found] = k;
    found += coin[k] < most[k];
  }
  return found;
}

// Tosses up to kStrip open edges, given by their place in the batch.
template <class Index, class Weight>
OHM_INLINE void toss_strip(const EdgeBatch<Index, Weight>& batch, std::int64_t begin, const std::int32_t* open,
                           int count, const Coins& coins, const float* coin, std::vector<Candidate>& candidates) {
  float square[kStrip], floor[kStrip], floor_now[kStrip], weight[kStrip], p[kStrip];
  std::int32_t joined[kStrip], halved[kStrip];
  for (int k = 0; k < count; ++k) {
    const NodeRecord& a = coins.embedding.nodes[batch.u[begin + open[k]]];
    const NodeRecord& b = coins.embedding.nodes[batch.v[begin + open[k]]];
    const Floor bound = find_floor(coins.embedding, a, b);
    square[k] = sketch(a, b);
    floor[k] = bound.then;
    floor_now[k] = bound.now;
    joined[k] = a.component == b.component ? a.component : -1;
    weight[k] = batch.weight(begin + open[k]);
  }
  for (int k = count; k < kStrip; ++k) {
    square[k] = floor[k] = floor_now[k] = weight[k] = 1.0f;
    joined[k] = -1;
  }
  for (int k = 0; k < kStrip; ++k) {
    const float r = resistance(square[k], floor[k], floor_now[k]);
    const float probability = coins.beta * (weight[k] * r / (weight[k] * r + 1.0f));
    const float once = joined[k] >= 0 ? std::min(1.0f, probability) : 1.0f;
    halved[k] = once <= 0.5f;
    p[k] = halved[k] != 0 ? 2.0f * once : once;
  }
  for (int k = 0; k < count; ++k) {
    if (coin[open[k]] >= p[k]) continue;
    const std::int64_t i = begin + open[k], position = coins.position + i;
    // With all bits: otherwise edges of tiny probability would pass too often.
    const std::uint64_t bits = draw(coins.key, static_cast<std::uint64_t>(position));
    if (uniform(bits) >= static_cast<double>(p[k])) continue;
    const auto u = static_cast<std::int32_t>(batch.u[i]), v = static_cast<std::int32_t>(batch.v[i]);
    if (u == v || weight[k] < static_cast<float>(kSmallestWeight)) continue;
    candidates.push_back({position, u, v, weight[k] / p[k], halved[k] != 0 ? 0.5f * p[k] : p[k], halved[k] == 0,
                          (bits & 1u) != 0});
  }
}

}  // namespace

template <class Index, class Weight>
OHM_KERNEL void toss_edges(const EdgeBatch<Index, Weight> batch, std::int64_t begin, std::int64_t end,
                           const Coins coins, std::vector<Candidate>& candidates) {
  std::int32_t open[kBlock];
  float coin[kBlock];
  for (std::int64_t i = begin; i < end; i += kBlock) {
    const int count = static_cast<int>(std::min<std::int64_t>(kBlock, end - i));
    draw_coins(coins.key, static_cast<std::uint64_t>(coins.position + i), coin);
    const int found = find_open(batch, i, count, coins, coin, open);
    for (int k = 0; k < found; k += kStrip) {
      for (int ahead = k + kAhead; ahead < std::min(found, k + kAhead + kStrip); ++ahead) {
        __builtin_prefetch(&coins.embedding.nodes[batch.u[i + open[ahead]]]);
        __builtin_prefetch(&coins.embedding.nodes[batch.v[i + open[ahead]]]);
      }
      toss_strip(batch, i, open + k, std::min(kStrip, found - k), coins, coin, candidates);
    }
  }
}

#define OHM_INSTANTIATE(Index, Weight) \
  template void toss_edges(EdgeBatch<Index, Weight>, std::int64_t, std::int64_t, Coins, std::vector<Candidate>&);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
