#include "coins.hpp"

#include "parallel.hpp"
#include "rng.hpp"
#include "simd.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace ohm {
namespace {

constexpr int kStrip = 16;   // edges whose coins are tossed together, in machine vectors
constexpr int kBlock = 512;  // edges looked at before those still open are tossed
constexpr int kAhead = 24;   // edges between asking for a record and using it
// The larger of a noisy sketch and the floor is too large on average where both are about the same; taking away a
// part of the floor sets that right and leaves what is far above the floor as it is.
constexpr float kTaken = 0.5f;

// |z_a - z_b|^2, in an order of additions that all machines share.
OHM_INLINE float sketch(const NodeRecord& a, const NodeRecord& b) {
  using Vector = Row<float, NodeRecord::kColumns>;
  const Vector d = *reinterpret_cast<const Vector*>(a.z) - *reinterpret_cast<const Vector*>(b.z);
  const Vector s = d * d;
  const Row<float, 4> q = __builtin_shufflevector(s, s, 0, 1, 2, 3) + __builtin_shufflevector(s, s, 4, 5, 6, 7);
  const Row<float, 4> h = q + __builtin_shufflevector(q, q, 2, 3, 0, 1);
  return h[0] + h[1];
}

// `floor` is that of the embedding which the sketch is from, `floor_now` that of the present degrees.
OHM_INLINE float resistance(float sketch, float floor, float floor_now) {
  return floor_now + std::max(0.0f, sketch - (1.0f + kTaken) * floor);
}

template <class Weight>
OHM_INLINE float weight_at(std::span<const Weight> w, std::int64_t i) {
  if constexpr (std::is_same_v<Weight, Unit>) return 1.0f;
  else return static_cast<float>(w[i]);
}

// Uniform in [0, 1), one for each of kBlock positions, cut off after 24 bits: enough to see which edges are out.
// Loops of one kind each, so that compilers vectorise them.
OHM_INLINE void draw_coins(std::uint64_t key, std::uint64_t first, float* coin) {
  std::int32_t bits[kBlock];
  for (int k = 0; k < kBlock; ++k) bits[k] = static_cast<std::int32_t>(draw(key, first + k) >> 40);
  for (int k = 0; k < kBlock; ++k) coin[k] = static_cast<float>(bits[k]) * 0x1.0p-24f;
}

// Writes to `open` which of the edges begin..begin + count could be kept; returns how many.
template <class Index, class Weight>
OHM_INLINE int find_open(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                         std::int64_t begin, int count, const float* coin, float beta, const float* share,
                         std::int32_t* open) {
  constexpr float kRounding = 1.0001f;
  float bound[kBlock];
  for (int k = 0; k < count; ++k) bound[k] = share[u[begin + k]] + share[v[begin + k]];
  for (int k = 0; k < count; ++k) bound[k] = kRounding * beta * weight_at(w, begin + k) * bound[k];
  int found = 0;
  for (int k = 0; k < count; ++k) {
    open[found] = k;
    found += coin[k] < bound[k];
  }
  return found;
}

// Tosses up to kStrip open edges, given by their place in the batch.
template <class Index, class Weight>
OHM_INLINE void toss_strip(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                           std::int64_t begin, const std::int32_t* open, int count, const float* coin,
                           std::uint64_t key, std::int64_t position, float beta, const NodeRecord* nodes,
                           std::vector<KeptEdge>& kept) {
  float square[kStrip], floor[kStrip], floor_now[kStrip], weight[kStrip], p[kStrip];
  std::int32_t joined[kStrip];
  for (int k = 0; k < count; ++k) {
    const NodeRecord& a = nodes[u[begin + open[k]]];
    const NodeRecord& b = nodes[v[begin + open[k]]];
    square[k] = sketch(a, b);
    floor[k] = a.share + b.share;
    floor_now[k] = a.share_now + b.share_now;
    joined[k] = a.component == b.component ? a.component : -1;
    weight[k] = weight_at(w, begin + open[k]);
  }
  for (int k = count; k < kStrip; ++k) {
    square[k] = floor[k] = floor_now[k] = weight[k] = 1.0f;
    joined[k] = -1;
  }
  for (int k = 0; k < kStrip; ++k) {
    const float r = resistance(square[k], floor[k], floor_now[k]);
    const float chance = beta * (weight[k] * r / (weight[k] * r + 1.0f));
    p[k] = joined[k] >= 0 ? std::min(1.0f, chance) : 1.0f;
  }
  for (int k = 0; k < count; ++k) {
    if (coin[open[k]] >= p[k]) continue;
    const std::int64_t i = begin + open[k];
    // With all bits, or edges of tiny chances would be kept too often.
    if (uniform(draw(key, static_cast<std::uint64_t>(position + i))) >= static_cast<double>(p[k])) continue;
    if (u[i] == v[i] || weight[k] < static_cast<float>(kSmallestWeight)) continue;
    kept.push_back({i, static_cast<std::int32_t>(u[i]), static_cast<std::int32_t>(v[i]), weight[k] / p[k]});
  }
}

// To which end an edge belongs: one random bit of a multiplicative hash.
OHM_INLINE bool belongs_to_smaller(std::uint64_t key, std::int32_t u, std::int32_t v) {
  const std::uint64_t edge = static_cast<std::uint64_t>(u) << 32 | static_cast<std::uint32_t>(v);
  return ((edge ^ key) * 0x9e3779b97f4a7c15u >> 63) != 0;
}

// How often each is to be multiplied by four to reach a quarter, at most kBands - 1 times: from its exponent.
constexpr int kBands = 11;
OHM_KERNEL void find_bands(std::span<const float> leverage, unsigned char* band) {
  const std::int64_t size = std::ssize(leverage);
  for (std::int64_t e = 0; e < size; ++e) {
    const int exponent = std::bit_cast<std::int32_t>(leverage[e]) >> 23;  // 125: from a quarter to a half
    band[e] = static_cast<unsigned char>(std::clamp((126 - exponent) / 2, 0, kBands - 1));
  }
}

// Branch-free, so that it runs at the speed of memory.
template <class Index, class Weight>
OHM_KERNEL bool all_fine(const Index* u, const Index* v, const Weight* w, std::int64_t count, std::int64_t limit) {
  using Unsigned = std::make_unsigned_t<Index>;
  const auto bound = static_cast<Unsigned>(std::min<std::int64_t>(limit, std::numeric_limits<Index>::max()));
  bool bad = false;
  for (std::int64_t i = 0; i < count; ++i) {
    bad |= static_cast<Unsigned>(u[i]) >= bound;
    bad |= static_cast<Unsigned>(v[i]) >= bound;
  }
  if constexpr (!std::is_same_v<Weight, Unit>) {
    for (std::int64_t i = 0; i < count; ++i) {
      bad |= !(w[i] >= Weight{0} && w[i] <= static_cast<Weight>(kLargestWeight));
    }
  }
  return !bad;
}

}  // namespace

template <class Index, class Weight>
std::optional<EdgeFault> find_fault(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                                    std::int64_t limit, int threads) {
  using Kind = EdgeFault::Kind;
  constexpr std::int64_t kPart = 1 << 16;
  const std::int64_t size = std::ssize(u);
  std::atomic<std::int64_t> first = size;  // beginning of the first part with a fault
  parallel_for(threads, (size + kPart - 1) / kPart, [&](std::int64_t part) {
    const std::int64_t begin = part * kPart;
    const Weight* weights = w.empty() ? nullptr : w.data() + begin;
    if (all_fine(u.data() + begin, v.data() + begin, weights, std::min(kPart, size - begin), limit)) return;
    for (std::int64_t known = first; begin < known && !first.compare_exchange_weak(known, begin);) {}
  });
  for (std::int64_t i = first; i < size; ++i) {
    if (u[i] < 0 || u[i] >= limit) return EdgeFault{Kind::node_u, i, static_cast<std::int64_t>(u[i])};
    if (v[i] < 0 || v[i] >= limit) return EdgeFault{Kind::node_v, i, static_cast<std::int64_t>(v[i])};
    if constexpr (!std::is_same_v<Weight, Unit>) {
      if (!(w[i] >= Weight{0} && w[i] <= static_cast<Weight>(kLargestWeight))) {
        return EdgeFault{Kind::weight, i, 0, static_cast<double>(w[i])};
      }
    }
  }
  return std::nullopt;
}

template <class Index, class Weight>
OHM_KERNEL void toss_edges(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                           std::int64_t begin, std::int64_t end, std::int64_t position, std::uint64_t key, float beta,
                           const NodeRecord* nodes, const float* share, std::vector<KeptEdge>& kept) {
  std::int32_t open[kBlock];
  float coin[kBlock];
  for (std::int64_t i = begin; i < end; i += kBlock) {
    const int count = static_cast<int>(std::min<std::int64_t>(kBlock, end - i));
    draw_coins(key, static_cast<std::uint64_t>(position + i), coin);
    const int found = find_open(u, v, w, i, count, coin, beta, share, open);
    for (int k = 0; k < found; k += kStrip) {
      for (int ahead = k + kAhead; ahead < std::min(found, k + kAhead + kStrip); ++ahead) {
        __builtin_prefetch(nodes + u[i + open[ahead]]);
        __builtin_prefetch(nodes + v[i + open[ahead]]);
      }
      toss_strip(u, v, w, i, open + k, std::min(kStrip, found - k), coin, key, position, beta, nodes, kept);
    }
  }
}

void measure_distances(std::span<NodeRecord> nodes) {
  constexpr int kColumns = NodeRecord::kColumns;
  std::vector<std::int64_t> size;
  for (const NodeRecord& node : nodes) {
    if (node.component < 0) continue;
    if (node.component >= std::ssize(size)) size.resize(node.component + 1);
    ++size[node.component];
  }
  const auto largest = static_cast<std::int32_t>(std::max_element(size.begin(), size.end()) - size.begin());
  double centre[kColumns] = {};
  for (const NodeRecord& node : nodes) {
    if (node.component != largest) continue;
    for (int c = 0; c < kColumns; ++c) centre[c] += static_cast<double>(node.z[c]);
  }
  NodeRecord middle;
  for (int c = 0; c < kColumns && !size.empty(); ++c) {
    middle.z[c] = static_cast<float>(centre[c] / static_cast<double>(size[largest]));
  }
  for (NodeRecord& node : nodes) {
    node.distance = node.component == largest ? sketch(node, middle) : std::numeric_limits<float>::infinity();
  }
}

std::vector<float> bound_shares(std::span<const NodeRecord> nodes) {
  std::vector<float> share(nodes.size(), std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (std::isinf(nodes[i].distance)) continue;
    share[i] = resistance(2.0f * nodes[i].distance, nodes[i].share, nodes[i].share_now);
  }
  return share;
}

OHM_KERNEL void row_leverages(const Triangle& h, const NodeRecord* nodes, float* leverage) {
  for (std::int32_t u = 0; u < h.n(); ++u) {
    const NodeRecord& a = nodes[u];
    for (std::int64_t e = h.start[u]; e < h.start[u + 1]; ++e) {
      if (e + kAhead < h.edges()) __builtin_prefetch(nodes + h.other[e + kAhead]);
      const NodeRecord& b = nodes[h.other[e]];
      const float w = h.weight[e];
      const float du = std::max(0.0f, a.degree - w);
      const float dv = std::max(0.0f, b.degree - w);
      const float around = du > 0.0f && dv > 0.0f ? du * dv / (du + dv) : 0.0f;
      const float floor = 1.0f / (w + around);
      leverage[e] = std::min(1.0f, w * resistance(sketch(a, b), floor, floor));
    }
  }
}

void keep_forest(const Triangle& h, std::int32_t n_components, std::span<float> leverage) {
  // By powers of four: sorting them all would gain little.
  std::vector<unsigned char> band(leverage.size());
  find_bands(leverage, band.data());
  std::vector<std::int32_t> parent = lone_nodes(h.n());
  std::int32_t missing = h.n() - n_components;
  for (unsigned char wanted = 0; wanted < kBands && missing > 0; ++wanted) {
    std::int32_t u = 0;
    for (auto at = band.begin(); missing > 0; ++at) {
      at = std::find(at, band.end(), wanted);
      if (at == band.end()) break;
      const std::int64_t e = at - band.begin();
      while (h.start[u + 1] <= e) ++u;
      if (!join_sets(parent, u, h.other[e])) continue;
      leverage[e] = kCertain;
      --missing;
    }
  }
}

std::vector<char> choose_rows(const Triangle& h, const float* chance, std::uint64_t key) {
  std::vector<char> keep(h.edges());
  std::vector<double> sum(h.n());
  for (std::int32_t i = 0; i < h.n(); ++i) sum[i] = uniform(draw(key, static_cast<std::uint64_t>(i)));
  for (std::int32_t u = 0; u < h.n(); ++u) {
    for (std::int64_t e = h.start[u]; e < h.start[u + 1]; ++e) {
      double& owner = sum[belongs_to_smaller(key, u, h.other[e]) ? u : h.other[e]];
      const double next = owner + static_cast<double>(chance[e]);
      keep[e] = next >= 1.0;
      owner = next - static_cast<double>(keep[e]);
    }
  }
  return keep;
}

#define OHM_INSTANTIATE(Index, Weight)                                                                             \
  template std::optional<EdgeFault> find_fault(std::span<const Index>, std::span<const Index>,                     \
                                               std::span<const Weight>, std::int64_t, int);                        \
  template void toss_edges(std::span<const Index>, std::span<const Index>, std::span<const Weight>, std::int64_t,  \
                           std::int64_t, std::int64_t, std::uint64_t, float, const NodeRecord*, const float*, \
                           std::vector<KeptEdge>&);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
