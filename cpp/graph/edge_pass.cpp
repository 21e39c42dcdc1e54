#include "graph/edge_pass.hpp"

#include "base/huge_pages.hpp"
#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "graph/components.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace ohm {
namespace {

constexpr std::int64_t kCached = 1 << 22;       // bytes of x; if it has more, edges are sorted
constexpr std::int64_t kFewColumns = 2;         // so few are not worth sorting in one thread
constexpr std::int64_t kSortedEdges = 1 << 20;  // sorted at a time
constexpr std::int64_t kMostRanges = 1 << 8;    // with more, sorting is slower
constexpr std::int64_t kPart = 1 << 15;         // edges that a thread takes at a time; fewer are not worth a thread
constexpr std::int64_t kAhead = 16;             // halves between a prefetch and its use

// Calls f(width, first column) for pieces of 8 columns and, for the rest, of 4, 2 and 1; `Rest` is columns % 8.
template <int Rest, class F>
OHM_INLINE void for_pieces(std::int64_t columns, F&& f) {
  std::int64_t at = 0;
  for (; at < columns - Rest; at += 8) f(std::integral_constant<int, 8>{}, at);
  if constexpr ((Rest & 4) != 0) f(std::integral_constant<int, 4>{}, at);
  if constexpr ((Rest & 2) != 0) f(std::integral_constant<int, 2>{}, at + (Rest & 4));
  if constexpr ((Rest & 1) != 0) f(std::integral_constant<int, 1>{}, at + (Rest & 6));
}

// `Width` columns of a row, which need not be aligned. Clang would forget a smaller alignment of a typedef.
template <int Width>
struct [[gnu::packed, gnu::may_alias]] Some {
  Row<double, Width> columns;
};

template <int Width>
OHM_INLINE Row<double, Width> load(const double* row) {
  return reinterpret_cast<const Some<Width>*>(row)->columns;
}

template <int Width>
OHM_INLINE void store(double* row, const Row<double, Width>& values) {
  reinterpret_cast<Some<Width>*>(row)->columns = values;
}

// Row-major (n, columns).
struct Block {
  const double* x;
  double* y;
  std::int64_t columns;
};

template <int Rest, class Index, class Weight>
OHM_KERNEL void add_edges(const Index* u, const Index* v, const Weight* w, std::int64_t edges, std::int64_t n,
                          const Block& to) {
  const double* __restrict x = to.x;
  double* __restrict y = to.y;
  const std::int64_t columns = to.columns;
  for (std::int64_t e = 0; e < edges; ++e) {
    const std::int64_t a = u[e];
    const std::int64_t b = v[e];
    if (a >= n || b >= n) continue;
    double weight = 1.0;
    if constexpr (!std::is_same_v<Weight, Unit>) weight = static_cast<double>(w[e]);
    for_pieces<Rest>(columns, [&](auto width, std::int64_t at) __attribute__((always_inline)) {
      constexpr int size = width.value;
      const Row<double, size> flow = weight * (load<size>(x + a * columns + at) - load<size>(x + b * columns + at));
      store<size>(y + a * columns + at, load<size>(y + a * columns + at) + flow);
      store<size>(y + b * columns + at, load<size>(y + b * columns + at) - flow);
    });
  }
}

template <int Rest, class Half, class Weight>
OHM_KERNEL void add_halves(const Half* halves, const Weight* w, std::int64_t count, const Block& to) {
  const double* __restrict x = to.x;
  double* __restrict y = to.y;
  const std::int64_t columns = to.columns;
  for (std::int64_t i = 0; i < count; ++i) {
    const double* ahead = x + halves[std::min(i + kAhead, count - 1)].neighbour * columns;
    for (std::int64_t c = 0; c < columns; c += 8) __builtin_prefetch(ahead + c);
    __builtin_prefetch(ahead + columns - 1);
    const std::int64_t a = halves[i].node * columns;
    const std::int64_t b = halves[i].neighbour * columns;
    double weight = 1.0;
    if constexpr (!std::is_same_v<Weight, Unit>) weight = w[i];
    for_pieces<Rest>(columns, [&](auto width, std::int64_t at) __attribute__((always_inline)) {
      constexpr int size = width.value;
      store<size>(y + a + at, load<size>(y + a + at) + weight * (load<size>(x + a + at) - load<size>(x + b + at)));
    });
  }
}

// Calls f with the number of columns that are left of pieces of eight.
template <class F>
void with_rest(std::int64_t columns, F&& f) {
  const auto choose = [&]<int... Rests>(std::integer_sequence<int, Rests...>) {
    ((columns % 8 == Rests ? f(std::integral_constant<int, Rests>{}) : void()), ...);
  };
  choose(std::make_integer_sequence<int, 8>{});
}

void add_half(const Surroundings& to, std::int64_t node, std::int64_t neighbour, double weight) {
  to.degrees[node] += weight;
  const std::int64_t at = to.column[node];
  if (at >= 0) to.sums[at] += weight * static_cast<double>(to.x[neighbour * to.columns + at]);
}

// How many edges are sorted at a time; 0 if they are added in order.
std::int64_t most_edges(std::int32_t n, std::int64_t columns, int threads) {
  const std::int64_t bytes = n * columns * static_cast<std::int64_t>(sizeof(double));
  const bool is_large = bytes > kCached && (threads > 1 || columns > kFewColumns);
  // Adding an edge in order takes about 4 + columns units of time; reading, sorting and adding it, 32 + columns.
  const bool are_many = threads * (4 + columns) > 32 + columns;
  return is_large || (threads > 1 && are_many) ? kSortedEdges : 0;
}

// What was found in a part of the edges.
struct Found {
  std::int64_t count = 0;  // edges that may join sets
  std::int64_t lost = -1;
};

// What the ends of an edge say about components.
enum class Ends { together, apart, lost };

OHM_INLINE Ends compare_ends(const Joined& to, std::int64_t a, std::int64_t b, std::int64_t n, double weight) {
  if (a == b || !(weight > 0.0)) return Ends::together;
  if (a >= n || b >= n || to.component[a] != to.component[b]) return Ends::lost;
  return to.parent[a] == to.parent[b] ? Ends::together : Ends::apart;  // together nearly always, after a while
}

}  // namespace

EdgePass::EdgePass(std::int32_t n, const double* x, std::int64_t columns, int threads, double* y)
    : n_(n), x_(x), columns_(columns), threads_(threads), y_(y), most_(most_edges(n, columns, threads)) {
  while ((n >> shift_) >= kMostRanges) ++shift_;
  ranges_ = (n >> shift_) + 1;
}

template <class Index, class Weight>
void EdgePass::add(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w) {
  if (most_ == 0) {
    add_in_order(u, v, w);
    return;
  }
  const std::int64_t edges = std::ssize(u);
  for (std::int64_t at = 0, count; at < edges; at += count) {
    count = std::min(edges - at, most_ - collected_);
    const auto some_u = u.subspan(at, count), some_v = v.subspan(at, count);
    const auto some_w = w.empty() ? w : w.subspan(at, count);
    if (count == most_) {
      add_sorted(some_u, some_v, some_w);
    } else {
      collect(some_u, some_v, some_w);
      if (collected_ == most_) add_collected();
    }
  }
}

void EdgePass::finish() {
  if (collected_ > 0) add_collected();
}

void EdgePass::join_pair(std::int64_t a, std::int64_t b) {
  const std::span parent(joined_->parent, static_cast<std::size_t>(n_));
  join_sets(parent, static_cast<std::int32_t>(a), static_cast<std::int32_t>(b));
}

template <class Index, class Weight>
void EdgePass::collect(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w) {
  const std::int64_t count = std::ssize(u);
  u_.resize(most_);
  v_.resize(most_);
  if (!w.empty()) w_.resize(most_);
  if (!w.empty() && !is_weighted_) std::fill_n(w_.begin(), collected_, 1.0);
  is_weighted_ = is_weighted_ || !w.empty();
  const auto copy = [&](const auto* from, auto* to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::decay_t<decltype(*to)>>(from[i]);
  };
  copy(u.data(), u_.data() + collected_);
  copy(v.data(), v_.data() + collected_);
  if (!w.empty()) {
    if constexpr (!std::is_same_v<Weight, Unit>) copy(w.data(), w_.data() + collected_);
  } else if (is_weighted_) {
    std::fill_n(w_.begin() + collected_, count, 1.0);
  }
  collected_ += count;
}

void EdgePass::add_collected() {
  const auto count = static_cast<std::size_t>(collected_);
  const auto u = std::span<const std::int32_t>(u_).first(count), v = std::span<const std::int32_t>(v_).first(count);
  const auto add = [&](auto w) {
    if (collected_ < kPart) {
      add_in_order(u, v, w);
    } else {
      add_sorted(u, v, w);
    }
  };
  if (is_weighted_) {
    add(std::span<const double>(w_).first(count));
  } else {
    add(std::span<const Unit>());
  }
  collected_ = 0;
  is_weighted_ = false;
}

template <class Index, class Weight>
void EdgePass::add_in_order(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w) {
  const std::int64_t edges = std::ssize(u);
  const auto multiply = [&] {
    const Block to{x_, y_, columns_};
    with_rest(columns_, [&](auto rest) { add_edges<rest.value>(u.data(), v.data(), w.data(), edges, n_, to); });
  };
  const auto look_around = [&] {
    for (std::int64_t e = 0; e < edges; ++e) {
      if (u[e] >= n_ || v[e] >= n_ || u[e] == v[e]) continue;
      add_half(*around_, u[e], v[e], weight_at(w, e));
      add_half(*around_, v[e], u[e], weight_at(w, e));
    }
  };
  const auto join = [&] {
    for (std::int64_t e = 0; e < edges; ++e) {
      const Ends ends = compare_ends(*joined_, u[e], v[e], n_, weight_at(w, e));
      if (ends == Ends::lost && !lost_) lost_ = {u[e], v[e]};
      if (ends != Ends::together && u[e] < n_ && v[e] < n_) join_pair(u[e], v[e]);
    }
  };
  // These have nothing in common, so that each can have its thread.
  parallel_for(edges < kPart ? 1 : threads_, around_ || joined_ ? 3 : 1, [&](std::int64_t task) {
    if (task == 0 && columns_ > 0) multiply();
    if (task == 1 && around_) look_around();
    if (task == 2 && joined_) join();
  });
}

// Adds many edges, as halves (node, neighbour) that are sorted by ranges of 2^shift nodes: one pass of a radix sort.
//
// 1. Threads count, for their parts of the edges, the halves of each range. Of edges that join two sets they only note
//    the positions, because joining cannot be shared.
// 2. One thread turns counts into places, by range and then by part, so halves of a range stay in the order of the
//    stream; and it joins the sets.
// 3. Threads move the halves of their parts to their places.
// 4. Threads add the halves of one range after the other to y, and to what is known of the surroundings. No two threads
//    write to the same node, and each node gets its edges in their order: the bits are those of add_in_order.
template <class Index, class Weight>
void EdgePass::add_sorted(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w) {
  constexpr bool weighted = !std::is_same_v<Weight, Unit>;
  const std::int64_t edges = std::ssize(u), parts = (edges + kPart - 1) / kPart;
  halves_.resize(2 * most_);
  if (weighted) weights_.resize(2 * most_);
  places_.assign(parts * ranges_, 0);
  std::vector<Found> found(joined_ ? parts : 0);
  Half* halves = halves_.data();
  double* weights = weights_.data();
  const Block to{x_, y_, columns_};
  const auto is_known = [&](std::int64_t e) { return u[e] < n_ && v[e] < n_; };
  const auto for_edges = [&](std::int64_t part, const auto& f) {
    for (std::int64_t e = part * kPart; e < std::min(edges, (part + 1) * kPart); ++e) f(e);
  };
  Crew crew(static_cast<int>(std::min<std::int64_t>(parts, threads_)));
  // 1. Positions are kept where halves will be.
  crew.run(parts, [&](std::int64_t part) {
    std::uint32_t* places = places_.data() + part * ranges_;
    for_edges(part, [&](std::int64_t e) {
      if (!is_known(e)) return;
      ++places[u[e] >> shift_];
      ++places[v[e] >> shift_];
    });
    if (!joined_) return;
    Found& here = found[part];
    for_edges(part, [&](std::int64_t e) {
      const Ends ends = compare_ends(*joined_, u[e], v[e], n_, weight_at(w, e));
      if (ends == Ends::together) return;
      if (ends == Ends::lost && here.lost < 0) here.lost = e;
      if (is_known(e)) halves[part * kPart + here.count++].node = static_cast<std::int32_t>(e);
    });
  });
  // 2.
  std::uint32_t before = 0;
  for (std::int64_t range = 0; range < ranges_; ++range) {
    for (std::int64_t part = 0; part < parts; ++part) {
      before += std::exchange(places_[part * ranges_ + range], before);
    }
  }
  for (std::int64_t part = 0; part < std::ssize(found); ++part) {
    if (found[part].lost >= 0 && !lost_) lost_ = {u[found[part].lost], v[found[part].lost]};
    for (std::int64_t i = part * kPart; i < part * kPart + found[part].count; ++i) {
      join_pair(u[halves[i].node], v[halves[i].node]);
    }
  }
  // 3.
  crew.run(parts, [&](std::int64_t part) {
    std::uint32_t* places = places_.data() + part * ranges_;
    for_edges(part, [&](std::int64_t e) {
      if (!is_known(e)) return;
      const auto a = static_cast<std::int32_t>(u[e]), b = static_cast<std::int32_t>(v[e]);
      const std::uint32_t at_a = places[a >> shift_]++, at_b = places[b >> shift_]++;
      halves[at_a] = {a, b};
      halves[at_b] = {b, a};
      if constexpr (weighted) weights[at_a] = weights[at_b] = static_cast<double>(w[e]);
    });
  });
  // 4. Threads add ranges. The places of the last part are the ends of the ranges now.
  const std::uint32_t* ends = places_.data() + (parts - 1) * ranges_;
  crew.run(ranges_, [&](std::int64_t range) {
    const std::int64_t begin = range == 0 ? 0 : ends[range - 1], count = ends[range] - begin;
    using HalfWeight = std::conditional_t<weighted, double, Unit>;
    const HalfWeight* its_weights = nullptr;
    if constexpr (weighted) its_weights = weights + begin;
    with_rest(columns_, [&](auto rest) { add_halves<rest.value>(halves + begin, its_weights, count, to); });
    if (!around_) return;
    for (std::int64_t i = begin; i < begin + count; ++i) {
      if (halves[i].node == halves[i].neighbour) continue;
      double weight = 1.0;
      if constexpr (weighted) weight = weights[i];
      add_half(*around_, halves[i].node, halves[i].neighbour, weight);
    }
  });
}

std::int64_t EdgePass::bytes(std::int32_t n, std::int64_t columns, int threads) {
  const std::int64_t of_edge = 2 * sizeof(std::int32_t) + 2 * sizeof(Half) + 3 * sizeof(double);
  return most_edges(n, columns, threads) * of_edge;
}

#define OHM_INSTANTIATE(Index, Weight) \
  template void EdgePass::add(std::span<const Index>, std::span<const Index>, std::span<const Weight>);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
