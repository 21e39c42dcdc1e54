#include "graph/edges.hpp"

#include "base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>

namespace ohm {
namespace {

// Branch-free, so that it runs at the speed of memory.
template <class Index, class Weight>
OHM_KERNEL bool are_valid(const Index* u, const Index* v, const Weight* w, std::int64_t count, std::int64_t limit,
                          double smallest) {
  using Unsigned = std::make_unsigned_t<Index>;
  const auto bound = static_cast<Unsigned>(std::min<std::int64_t>(limit, std::numeric_limits<Index>::max()));
  bool bad = false;
  for (std::int64_t i = 0; i < count; ++i) {
    bad |= static_cast<Unsigned>(u[i]) >= bound;
    bad |= static_cast<Unsigned>(v[i]) >= bound;
  }
  if constexpr (!std::is_same_v<Weight, Unit>) {
    // Positive floats have the order of their bits, so one comparison of integers tests both limits.
    using Bits = std::conditional_t<sizeof(Weight) == 4, std::uint32_t, std::uint64_t>;
    const auto low = std::bit_cast<Bits>(static_cast<Weight>(smallest));
    const Bits span = std::bit_cast<Bits>(static_cast<Weight>(kLargestWeight)) - low;
    Bits outside = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto bits = std::bit_cast<Bits>(w[i]);
      outside |= Bits{bits - low > span} & Bits{static_cast<Bits>(bits << 1) != 0};
    }
    bad |= outside != 0;
  }
  return !bad;
}

}  // namespace

template <class Index, class Weight>
std::optional<EdgeFault> find_fault(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                                    std::int64_t limit, int threads, double smallest) {
  using Reason = EdgeFault::Reason;
  constexpr std::int64_t kPart = 1 << 16;
  constexpr std::int64_t kThreadEdges = 1 << 18;  // fewer edges than this per thread are not worthwhile
  const std::int64_t size = std::ssize(u);
  const auto useful = static_cast<int>(std::min<std::int64_t>(threads, 1 + size / kThreadEdges));
  std::atomic<std::int64_t> first = size;  // beginning of the first part with a fault
  Crew crew(useful);
  for_blocks(crew, size, [&](std::int64_t begin, std::int64_t end) {
    const Weight* weights = w.empty() ? nullptr : w.data() + begin;
    if (are_valid(u.data() + begin, v.data() + begin, weights, end - begin, limit, smallest)) return;
    for (std::int64_t known = first; begin < known && !first.compare_exchange_weak(known, begin);) {}
  }, kPart);
  for (std::int64_t i = first; i < size; ++i) {
    if (u[i] < 0 || u[i] >= limit) return EdgeFault{Reason::node_u, i, static_cast<std::int64_t>(u[i])};
    if (v[i] < 0 || v[i] >= limit) return EdgeFault{Reason::node_v, i, static_cast<std::int64_t>(v[i])};
    if constexpr (!std::is_same_v<Weight, Unit>) {
      if (!is_weight(w[i], static_cast<Weight>(smallest))) {
        return EdgeFault{Reason::weight, i, 0, static_cast<double>(w[i])};
      }
    }
  }
  return std::nullopt;
}

#define OHM_INSTANTIATE(Index, Weight)                                                          \
  template std::optional<EdgeFault> find_fault(std::span<const Index>, std::span<const Index>,  \
                                               std::span<const Weight>, std::int64_t, int, double);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
