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

constexpr std::int64_t kMirrored = 1 << 16;  // edges for which a thread is worthwhile

// An edge as seen from one endpoint. Packed: padding would make the scratch memory a third larger.
#pragma pack(push, 4)
template <class Weight>
struct Half {
  std::int32_t other;
  [[no_unique_address]] Weight weight;
};
#pragma pack(pop)
static_assert(sizeof(Half<double>) == 12 && sizeof(Half<Unit>) == 4);

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

template <class Index, class Weight>
class Builder {
 public:
  Builder(std::int32_t n, std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w)
      : n_(n), u_(u), v_(v), w_(w), high_(n), low_(n) {}

  std::variant<BuiltCsr, EdgeFault> build() {
    if (const auto fault = scan()) return *fault;
    sort_triangle();
    if (const auto fault = mirror()) return *fault;
    return std::move(built_);
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
    using Reason = EdgeFault::Reason;
    Index last_u = 0, last_v = 0;
    for (std::size_t i = 0; i < u_.size(); ++i) {
      const auto position = static_cast<std::int64_t>(i);
      const Index a = u_[i], b = v_[i];
      const double weight = weight_at(w_, i);
      if (a < 0 || a >= n_) return EdgeFault{Reason::node_u, position, a};
      if (b < 0 || b >= n_) return EdgeFault{Reason::node_v, position, b};
      // Written so that NaN fails it.
      if (!(weight >= 0.0 && weight <= std::numeric_limits<double>::max())) {
        return EdgeFault{Reason::weight, position, 0, weight};
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
      for (std::size_t i = 0; i < u_.size(); ++i) {
        if (!dropped(i)) by_low_[low_.claim(u_[i])] = {static_cast<std::int32_t>(v_[i]), weight_at(w_, i)};
      }
      return;
    }
    const Halves by_high = allocate(high_.total());
    for (std::size_t i = 0; i < u_.size(); ++i) {
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
    for (std::int32_t lower = 0; lower < n_; ++lower) {
      const std::int64_t end = low_.start(lower + 1);
      for (std::int64_t k = low_.start(lower); k < end;) {
        const std::int32_t higher = by_low_[k].other;
        double sum = 0.0;
        for (; k < end && by_low_[k].other == higher; ++k) sum += static_cast<double>(by_low_[k].weight);
        visit(lower, higher, sum);
      }
    }
  }

  std::optional<EdgeFault> mirror() {
    RowFill rows(n_);
    std::optional<EdgeFault> fault;
    for_each_edge([&](std::int32_t lower, std::int32_t higher, double sum) {
      rows.count(lower);
      rows.count(higher);
      if (!std::isfinite(sum) && !fault) fault = overflow(lower, higher);
    });
    if (fault) return fault;
    rows.close_counts();
    Csr& csr = built_.csr;
    csr.indices.resize(rows.total());
    csr.weights.resize(rows.total());
    const auto put = [&](std::int32_t row, std::int32_t column, double weight) {
      const std::int64_t at = rows.claim(row);
      csr.indices[at] = column;
      csr.weights[at] = weight;
    };
    for_each_edge([&](std::int32_t lower, std::int32_t higher, double sum) {
      put(lower, higher, sum);
      put(higher, lower, sum);
    });
    csr.indptr = rows.release();
    return std::nullopt;
  }

  // Finite weights whose sum is infinite: reports the first of the parallel edges.
  EdgeFault overflow(std::int32_t lower, std::int32_t higher) const {
    std::size_t i = 0;
    while (dropped(i) || std::min(u_[i], v_[i]) != lower || std::max(u_[i], v_[i]) != higher) ++i;
    return {EdgeFault::Reason::overflow, static_cast<std::int64_t>(i), 0, weight_at(w_, i)};
  }

  std::int32_t n_;
  std::span<const Index> u_, v_;
  std::span<const Weight> w_;
  RowFill high_, low_;
  bool in_order_ = true;
  Halves by_low_;
  BuiltCsr built_;
};

}  // namespace

template <class Index, class Weight>
std::variant<BuiltCsr, EdgeFault> build_csr(std::int32_t n, std::span<const Index> u,
                                            std::span<const Index> v, std::span<const Weight> w) {
  return Builder<Index, Weight>(n, u, v, w).build();
}

#define OHM_INSTANTIATE(Index, Weight)                             \
  template std::variant<BuiltCsr, EdgeFault> build_csr<Index, Weight>( \
      std::int32_t, std::span<const Index>, std::span<const Index>, std::span<const Weight>);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

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

// Threads take consecutive rows. Each counts how many entries of every column it will write, so that all entries of a
// column can be written at once and in order.
template <class Weight>
void mirror(const Triangle& edges, double scale, std::vector<std::int64_t>& start, Buffer<std::int32_t>& index,
            Buffer<Weight>& weight, Crew& crew) {
  const std::int32_t n = edges.n();
  const std::int64_t parts = std::clamp<std::int64_t>(edges.edges() / kMirrored, 1, crew.size());
  const auto first_row = [&](std::int64_t part) {
    const auto row = std::lower_bound(edges.start.begin(), edges.start.end(), edges.edges() * part / parts);
    return part == parts ? n : static_cast<std::int32_t>(row - edges.start.begin());
  };
  std::vector<std::vector<std::int64_t>> next(parts);  // by column: the number of entries, then where the next one goes
  crew.run(parts, [&](std::int64_t part) {
    resize_huge(next[part], n);
    const std::int64_t end = edges.start[first_row(part + 1)];
    for (std::int64_t e = edges.start[first_row(part)]; e < end; ++e) ++next[part][edges.other[e]];
  });
  resize_huge(start, static_cast<std::size_t>(n) + 1);
  for (std::int32_t u = 0; u < n; ++u) {  // neighbours below u, then those above
    std::int64_t at = start[u];
    for (std::vector<std::int64_t>& of_part : next) at += std::exchange(of_part[u], at);
    start[u + 1] = at + edges.start[u + 1] - edges.start[u];
  }
  index.resize(start[n]);
  weight.resize(start[n]);
  crew.run(parts, [&](std::int64_t part) {
    std::int64_t* place = next[part].data();
    for (std::int32_t u = first_row(part); u < first_row(part + 1); ++u) {
      std::int64_t here = start[u + 1] - (edges.start[u + 1] - edges.start[u]);
      for (std::int64_t e = edges.start[u]; e < edges.start[u + 1]; ++e, ++here) {
        const auto w = static_cast<Weight>(static_cast<double>(edges.weight[e]) * scale);
        const std::int64_t there = place[edges.other[e]]++;
        index[here] = edges.other[e];
        index[there] = u;
        weight[here] = weight[there] = w;
      }
    }
  });
}

template void mirror(const Triangle&, double, std::vector<std::int64_t>&, Buffer<std::int32_t>&, Buffer<float>&,
                     Crew&);
template void mirror(const Triangle&, double, std::vector<std::int64_t>&, Buffer<std::int32_t>&, Buffer<double>&,
                     Crew&);

std::pair<float, float> find_extremes(std::span<const float> values, Crew& crew) {
  constexpr std::int64_t kPiece = 1 << 16;  // values that a thread takes at a time
  const std::int64_t size = std::ssize(values);
  std::vector<std::pair<float, float>> found((size + kPiece - 1) / kPiece);
  crew.run(std::ssize(found), [&](std::int64_t piece) {
    const auto part = values.subspan(piece * kPiece, std::min(kPiece, size - piece * kPiece));
    float least = part[0], most = part[0];
    for (const float value : part) {
      least = value < least ? value : least;
      most = value > most ? value : most;
    }
    found[piece] = {least, most};
  });
  if (found.empty()) return {};
  for (const auto& [least, most] : found) {
    found[0].first = std::min(found[0].first, least);
    found[0].second = std::max(found[0].second, most);
  }
  return found[0];
}

}  // namespace ohm
