// Edges to CSR by three linear scatters, no comparison sort.
//
//   1. by larger endpoint:   rows `high`, each holding smaller endpoints in input order
//   2. by smaller endpoint:  walking the rows of 1 upwards leaves each row `low` sorted by the
//                            larger endpoint, parallel edges side by side and in input order
//   3. to both endpoints:    walking the rows of 2 upwards, row r has received all neighbours below
//                            r, in order, before its neighbours above r are appended
//
// Edges that are in the order of 2 already skip step 1. Working on one triangle until the last step moves 3 entries per
// edge, where sorting the full symmetric matrix moves 4, and needs half the scratch memory.
#include "graph/csr.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/huge_pages.hpp"

namespace ohm {
namespace {

// An edge as seen from one endpoint. Packed: padding would make the scratch memory a third larger.
#pragma pack(push, 4)
template <class Weight>
struct Half {
  std::int32_t other;
  [[no_unique_address]] Weight weight;
};
#pragma pack(pop)
static_assert(sizeof(Half<double>) == 12 && sizeof(Half<Unit>) == 4);

// A row of a sampler, see sort_edges.
struct Sampled {
  float weight;
  float chance;
  operator double() const { return static_cast<double>(weight); }
};

// The rows of a sampler as an array of Sampled.
struct SampledRows {
  std::span<const float> weight, chance;
};
using ohm::weight_at;  // for spans, beside this one
Sampled weight_at(const SampledRows& rows, std::int64_t i) { return {rows.weight[i], rows.chance[i]}; }

// The same for a sampler with a half-life.
#pragma pack(push, 4)
struct TimedSampled : Sampled {
  double time;
};
#pragma pack(pop)
struct TimedRows : SampledRows {
  std::span<const double> time;
};
TimedSampled weight_at(const TimedRows& rows, std::int64_t i) {
  return {{rows.weight[i], rows.chance[i]}, rows.time[i]};
}

// The sum of parallel edges.
struct PlainSum {
  double weight = 0.0;
  void add(double w) { weight += w; }
};

// The variance is explained in sort_edges.
struct SampledSum {
  double weight = 0.0;
  double variances = 0.0;
  double largest = 0.0;
  void add(Sampled row) {
    const double w = row;
    const double variance = (1.0 - static_cast<double>(row.chance)) * w * w;
    weight += w;
    variances += variance;
    largest = std::max(largest, variance);
  }
  float chance() const {
    return static_cast<float>(std::clamp(1.0 - 0.5 * (variances + largest) / (weight * weight), 0.0, 1.0));
  }
};

struct TimedSum : SampledSum {
  double time = -std::numeric_limits<double>::infinity();
  void add(TimedSampled row) {
    SampledSum::add(row);
    time = std::max(time, static_cast<double>(row.time));
  }
};

// Row boundaries that are also write positions. Sizes are counted two slots to the right, so that after the prefix sum
// slot r + 1 holds the start of row r; `claim` moves it to the row's end, which is where row r + 1 starts. When
// everything is written, row r is [start(r), start(r + 1)).
class RowFill {
 public:
  explicit RowFill(std::int32_t n) { resize_huge(slots_, static_cast<std::size_t>(n) + 2); }
  void count(std::int64_t row, std::int64_t entries = 1) { slots_[row + 2] += entries; }
  void close_counts() { std::partial_sum(slots_.begin(), slots_.end(), slots_.begin()); }
  std::int64_t claim(std::int64_t row, std::int64_t entries = 1) {
    return std::exchange(slots_[row + 1], slots_[row + 1] + entries);
  }
  std::int64_t start(std::int64_t row) const { return slots_[row]; }
  std::int64_t total() const { return slots_.back(); }
  std::vector<std::int64_t> release() {
    slots_.pop_back();
    return std::move(slots_);
  }

 private:
  std::vector<std::int64_t> slots_;
};

// `Weights` is an array of Weight: a span, SampledRows or TimedRows.
template <class Index, class Weight, class Weights = std::span<const Weight>>
class Builder {
  static constexpr bool kTimed = std::is_same_v<Weight, TimedSampled>;
  static constexpr bool kSampled = kTimed || std::is_same_v<Weight, Sampled>;
  using Sum = std::conditional_t<kTimed, TimedSum, std::conditional_t<kSampled, SampledSum, PlainSum>>;

 public:
  Builder(std::int32_t n, std::span<const Index> u, std::span<const Index> v, Weights w, std::int64_t n_sorted)
      : n_(n), u_(u), v_(v), w_(w), n_sorted_(n_sorted), high_(n), low_(n) {}

  std::variant<BuiltCsr, EdgeFault> build() {
    if (const auto fault = scan()) return *fault;
    sort_triangle();
    if (const auto fault = mirror()) return *fault;
    return std::move(built_);
  }

  Triangle build_triangle() {
    if (scan()) throw std::invalid_argument("a row of the sparsifier is not an edge with a finite positive weight");
    sort_triangle();
    Triangle triangle;
    const auto most = static_cast<std::size_t>(low_.total()) + n_sorted_;
    resize_huge(triangle.start, static_cast<std::size_t>(n_) + 1);
    resize_huge(triangle.other, most);
    resize_huge(triangle.weight, most);
    if constexpr (kSampled) resize_huge(triangle.chance, most);
    if constexpr (kTimed) resize_huge(triangle.time, most);
    std::int64_t edges = 0;
    for_each_edge([&](std::int32_t lower, std::int32_t higher, const Sum& sum) {
      if (!(sum.weight <= std::numeric_limits<float>::max())) {
        throw std::overflow_error(
            "the weights of parallel edges add up to more than the largest float32; divide all weights by a constant");
      }
      ++triangle.start[lower + 1];
      triangle.other[edges] = higher;
      triangle.weight[edges] = static_cast<float>(sum.weight);
      if constexpr (kSampled) triangle.chance[edges] = sum.chance();
      if constexpr (kTimed) triangle.time[edges] = sum.time;
      ++edges;
    });
    std::partial_sum(triangle.start.begin(), triangle.start.end(), triangle.start.begin());
    triangle.other.resize(edges);
    triangle.weight.resize(edges);
    if constexpr (kSampled) triangle.chance.resize(edges);
    if constexpr (kTimed) triangle.time.resize(edges);
    return triangle;
  }

 private:
  using Halves = std::unique_ptr<Half<Weight>[]>;

  static Halves allocate(std::int64_t size) {
    auto halves = std::make_unique_for_overwrite<Half<Weight>[]>(size);
    prefer_huge_pages(halves.get(), size * sizeof(Half<Weight>));
    return halves;
  }

  // Validates every edge, dropped ones too, and counts the rows of the first two scatters.
  std::optional<EdgeFault> scan() {
    using Kind = EdgeFault::Kind;
    Index last_u = 0, last_v = 0;
    for (std::size_t i = n_sorted_; i < u_.size(); ++i) {
      const auto position = static_cast<std::int64_t>(i);
      const Index a = u_[i], b = v_[i];
      const double weight = weight_at(w_, i);
      if (a < 0 || a >= n_) return EdgeFault{Kind::node_u, position, a};
      if (b < 0 || b >= n_) return EdgeFault{Kind::node_v, position, b};
      // Written so that NaN fails it.
      if (!(weight >= 0.0 && weight <= std::numeric_limits<double>::max())) {
        return EdgeFault{Kind::weight, position, 0, weight};
      }
      if (a == b) {
        ++built_.n_self_loops;
      } else if (weight == 0.0) {
        ++built_.n_zero_weights;
      } else {
        high_.count(std::max(a, b));
        low_.count(std::min(a, b));
        in_order_ &= a < b && (a > last_u || (a == last_u && b >= last_v));
        last_u = a;
        last_v = b;
      }
    }
    high_.close_counts();
    low_.close_counts();
    return std::nullopt;
  }

  bool dropped(std::size_t i) const { return u_[i] == v_[i] || weight_at(w_, i) == 0.0; }

  void sort_triangle() {
    by_low_ = allocate(low_.total());
    if (in_order_) {
      for (std::size_t i = n_sorted_; i < u_.size(); ++i) {
        if (!dropped(i)) by_low_[low_.claim(u_[i])] = {static_cast<std::int32_t>(v_[i]), weight_at(w_, i)};
      }
      return;
    }
    const Halves by_high = allocate(high_.total());
    for (std::size_t i = n_sorted_; i < u_.size(); ++i) {
      if (dropped(i)) continue;
      const auto [lower, higher] = std::minmax(u_[i], v_[i]);
      by_high[high_.claim(higher)] = {static_cast<std::int32_t>(lower), weight_at(w_, i)};
    }
    for (std::int32_t higher = 0; higher < n_; ++higher) {
      for (std::int64_t k = high_.start(higher); k < high_.start(higher + 1); ++k) {
        by_low_[low_.claim(by_high[k].other)] = {higher, by_high[k].weight};
      }
    }
  }

  // Calls visit(lower, higher, sum) once for each set of parallel edges, in order.
  template <class Visit>
  void for_each_edge(Visit visit) const {
    std::size_t at = 0;  // among the edges that are sorted already
    for (std::int32_t lower = 0; lower < n_; ++lower) {
      const std::int64_t end = low_.start(lower + 1);
      std::int64_t k = low_.start(lower);
      for (; at < n_sorted_ && u_[at] == lower; ++at) {
        for (; k < end && by_low_[k].other < v_[at];) k = visit_parallel(visit, lower, {}, k, end);
        Sum sum;
        sum.add(weight_at(w_, at));
        if (k < end && by_low_[k].other == v_[at]) {
          k = visit_parallel(visit, lower, sum, k, end);
        } else {
          visit(lower, static_cast<std::int32_t>(v_[at]), sum);
        }
      }
      while (k < end) k = visit_parallel(visit, lower, {}, k, end);
    }
  }

  // One set of parallel edges, the first of which is at k; returns where the next begins.
  template <class Visit>
  std::int64_t visit_parallel(Visit& visit, std::int32_t lower, Sum sum, std::int64_t k, std::int64_t end) const {
    const std::int32_t higher = by_low_[k].other;
    for (; k < end && by_low_[k].other == higher; ++k) sum.add(by_low_[k].weight);
    visit(lower, higher, sum);
    return k;
  }

  std::optional<EdgeFault> mirror() {
    RowFill rows(n_);
    std::optional<EdgeFault> fault;
    for_each_edge([&](std::int32_t lower, std::int32_t higher, const Sum& sum) {
      rows.count(lower);
      rows.count(higher);
      if (!std::isfinite(sum.weight) && !fault) fault = overflow(lower, higher);
    });
    if (fault) return fault;
    rows.close_counts();
    Csr& csr = built_.csr;
    resize_huge(csr.indices, rows.total());
    resize_huge(csr.weights, rows.total());
    const auto put = [&](std::int32_t row, std::int32_t column, double weight) {
      const std::int64_t at = rows.claim(row);
      csr.indices[at] = column;
      csr.weights[at] = weight;
    };
    for_each_edge([&](std::int32_t lower, std::int32_t higher, const Sum& sum) {
      put(lower, higher, sum.weight);
      put(higher, lower, sum.weight);
    });
    csr.indptr = rows.release();
    return std::nullopt;
  }

  // Finite weights whose sum is infinite: reports the first of the parallel edges.
  EdgeFault overflow(std::int32_t lower, std::int32_t higher) const {
    std::size_t i = 0;
    while (dropped(i) || std::min(u_[i], v_[i]) != lower || std::max(u_[i], v_[i]) != higher) ++i;
    return {EdgeFault::Kind::overflow, static_cast<std::int64_t>(i), 0, weight_at(w_, i)};
  }

  std::int32_t n_;
  std::span<const Index> u_, v_;
  Weights w_;
  std::size_t n_sorted_;
  RowFill high_, low_;
  bool in_order_ = true;
  Halves by_low_;
  BuiltCsr built_;
};

}  // namespace

template <class Index, class Weight>
std::variant<BuiltCsr, EdgeFault> build_csr(std::int32_t n, std::span<const Index> u,
                                            std::span<const Index> v, std::span<const Weight> w) {
  return Builder<Index, Weight>(n, u, v, w, 0).build();
}

#define OHM_INSTANTIATE(Index, Weight)                             \
  template std::variant<BuiltCsr, EdgeFault> build_csr<Index, Weight>( \
      std::int32_t, std::span<const Index>, std::span<const Index>, std::span<const Weight>);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

Triangle sort_edges(std::int32_t n, std::span<const std::int32_t> u, std::span<const std::int32_t> v,
                    std::span<const float> w, std::int64_t n_sorted, std::span<const float> chance,
                    std::span<const double> time) {
  if (!time.empty()) {
    return Builder<std::int32_t, TimedSampled, TimedRows>(n, u, v, {{w, chance}, time}, n_sorted).build_triangle();
  }
  if (!chance.empty()) {
    return Builder<std::int32_t, Sampled, SampledRows>(n, u, v, {w, chance}, n_sorted).build_triangle();
  }
  return Builder<std::int32_t, float>(n, u, v, w, n_sorted).build_triangle();
}

std::vector<double> degrees(const Triangle& edges) {
  std::vector<double> degree(edges.n());
  for (std::int32_t u = 0; u < edges.n(); ++u) {
    double sum = 0.0;
    for (std::int64_t e = edges.start[u]; e < edges.start[u + 1]; ++e) {
      const auto w = static_cast<double>(edges.weight[e]);
      sum += w;
      degree[edges.other[e]] += w;
    }
    degree[u] += sum;
  }
  return degree;
}

template <class Weight>
void mirror(const Triangle& edges, double scale, std::vector<std::int64_t>& start, std::vector<std::int32_t>& index,
            std::vector<Weight>& weight) {
  const std::int32_t n = edges.n();
  RowFill rows(n);
  for (std::int32_t u = 0; u < n; ++u) {
    for (std::int64_t e = edges.start[u]; e < edges.start[u + 1]; ++e) rows.count(edges.other[e]);
    rows.count(u, edges.start[u + 1] - edges.start[u]);
  }
  rows.close_counts();
  resize_huge(index, rows.total());
  resize_huge(weight, rows.total());
  for (std::int32_t u = 0; u < n; ++u) {  // all neighbours below u are there
    std::int64_t here = rows.claim(u, edges.start[u + 1] - edges.start[u]);
    for (std::int64_t e = edges.start[u]; e < edges.start[u + 1]; ++e, ++here) {
      const auto w = static_cast<Weight>(static_cast<double>(edges.weight[e]) * scale);
      const std::int64_t there = rows.claim(edges.other[e]);
      index[here] = edges.other[e];
      index[there] = u;
      weight[here] = weight[there] = w;
    }
  }
  start = rows.release();
}

template void mirror(const Triangle&, double, std::vector<std::int64_t>&, std::vector<std::int32_t>&,
                     std::vector<float>&);
template void mirror(const Triangle&, double, std::vector<std::int64_t>&, std::vector<std::int32_t>&,
                     std::vector<double>&);

}  // namespace ohm
