#include "sampling/counts.hpp"

#include "base/simd.hpp"

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <vector>

namespace ohm {
namespace {

constexpr std::int64_t kPiece = 1 << 16;  // edges that a thread takes at a time

template <class Index>
OHM_KERNEL std::int64_t find_last_of(const Index* u, const Index* v, std::int64_t count) {
  Index last = -1;
  for (std::int64_t i = 0; i < count; ++i) last = std::max(last, std::max(u[i], v[i]));
  return last;
}

template <class Index>
OHM_KERNEL std::int64_t count_loops(const Index* u, const Index* v, std::int64_t count) {
  std::int64_t loops = 0;
  for (std::int64_t i = 0; i < count; ++i) loops += u[i] == v[i];
  return loops;
}

// In strips and lanes, so that compilers vectorise the loops.
template <class Index, class Weight>
OHM_KERNEL std::int64_t add_weights(const Index* u, const Index* v, const Weight* w, std::int64_t count,
                                    std::int64_t position, std::array<double, 8>& weight_seen) {
  constexpr int kLanes = 8;
  constexpr std::int64_t kStrip = 32 * kLanes;
  std::int64_t n_zeros = 0;
  double lanes[kLanes];  // starting with that of the first edge
  for (int k = 0; k < kLanes; ++k) lanes[k] = weight_seen[(position + k) % kLanes];
  for (std::int64_t begin = 0; begin < count; begin += kStrip) {
    const std::int64_t size = std::min(kStrip, count - begin);
    Weight counted[kStrip] = {};
    std::int32_t zeros = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const Weight weight = w[begin + i];
      const bool is_zero = static_cast<float>(weight) < static_cast<float>(kSmallestWeight);  // as coins see it
      const bool is_loop = u[begin + i] == v[begin + i];
      zeros += !is_loop & is_zero;
      counted[i] = (is_loop | is_zero) ? Weight{0} : weight;
    }
    n_zeros += zeros;
    for (std::int64_t i = 0; i < kStrip; i += kLanes) {
      for (int k = 0; k < kLanes; ++k) lanes[k] += static_cast<double>(counted[i + k]);
    }
  }
  for (int k = 0; k < kLanes; ++k) weight_seen[(position + k) % kLanes] = lanes[k];
  return n_zeros;
}

}  // namespace

template <class Index>
std::int64_t find_last(std::span<const Index> u, std::span<const Index> v, Crew& crew) {
  std::vector<std::int64_t> last((std::ssize(u) + kPiece - 1) / kPiece, -1);
  for_blocks(crew, std::ssize(u), [&](std::int64_t begin, std::int64_t end) {
    last[begin / kPiece] = find_last_of(u.data() + begin, v.data() + begin, end - begin);
  }, kPiece);
  return last.empty() ? -1 : *std::max_element(last.begin(), last.end());
}

template <class Index, class Weight>
Counts count_edges(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                   std::int64_t position, std::array<double, 8>& weight_seen, Crew& crew) {
  const std::int64_t size = std::ssize(u);
  std::atomic<std::int64_t> loops = 0;
  for_blocks(crew, size, [&](std::int64_t begin, std::int64_t end) {
    loops += count_loops(u.data() + begin, v.data() + begin, end - begin);
  }, kPiece);
  Counts counts{.loops = loops};
  if constexpr (std::is_same_v<Weight, Unit>) {
    weight_seen[0] += static_cast<double>(size - counts.loops);
  } else {
    counts.zeros = add_weights(u.data(), v.data(), w.data(), size, position, weight_seen);
  }
  return counts;
}

template std::int64_t find_last(std::span<const std::int32_t>, std::span<const std::int32_t>, Crew&);
template std::int64_t find_last(std::span<const std::int64_t>, std::span<const std::int64_t>, Crew&);
#define OHM_INSTANTIATE(Index, Weight)                                                                             \
  template Counts count_edges(std::span<const Index>, std::span<const Index>, std::span<const Weight>, std::int64_t, \
                              std::array<double, 8>&, Crew&);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
