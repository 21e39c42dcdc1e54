// Edges to a Triangle, by several threads, and to CSR.
//
//   1. each piece of the edges is spread over buckets, which are ranges of the smaller endpoint, in input order;
//   2. each bucket is sorted by both endpoints, with a radix sort that keeps the order of parallel edges. A bucket and
//      its copy fit the cache;
//   3. each bucket is merged with the edges that are sorted already, and parallel edges are summed.
//
// Sums are in input order, so neither pieces nor buckets change a bit. `mirror` makes both halves of the matrix from the
// result, which moves less memory than sorting both would.
#include "graph/csr.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace ohm {
namespace {

constexpr std::int64_t kPiece = 1 << 16;         // edges that a thread takes at a time
constexpr std::int64_t kBucket = 1 << 14;        // edges in a bucket, if there are few
constexpr std::int64_t kMostBuckets = 512;       // more would not fit the cache while they are written
constexpr std::int64_t kMany = 1 << 21;          // edges from which buckets are filled in parts, to save memory
constexpr std::int64_t kParts = 4;
constexpr std::int64_t kFew = 64;                // edges for which a radix sort is not worthwhile
constexpr int kMostBits = 11;                    // of a digit of the radix sort

// A row of a sampler, see sort_edges.
struct Sampled {
  float weight;
  float probability;
  operator double() const { return static_cast<double>(weight); }
};

// The same for a sampler with a half-life.
struct TimedSampled : Sampled {
  double time;
};

// The rows of a sampler as arrays of Sampled and TimedSampled.
struct SampledRows {
  std::span<const float> weight, probability;
};
struct TimedRows : SampledRows {
  std::span<const double> time;
};
using ohm::weight_at;  // for spans, beside these
Sampled weight_at(const SampledRows& rows, std::int64_t i) { return {rows.weight[i], rows.probability[i]}; }
TimedSampled weight_at(const TimedRows& rows, std::int64_t i) {
  return {{rows.weight[i], rows.probability[i]}, rows.time[i]};
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
    const double variance = (1.0 - static_cast<double>(row.probability)) * w * w;
    weight += w;
    variances += variance;
    largest = std::max(largest, variance);
  }
  float probability() const {
    return static_cast<float>(std::clamp(1.0 - 0.5 * (variances + largest) / (weight * weight), 0.0, 1.0));
  }
};

struct TimedSum : SampledSum {
  double time = -std::numeric_limits<double>::infinity();
  void add(TimedSampled row) {
    SampledSum::add(row);
    time = std::max(time, row.time);
  }
};

// `Weights` is a span, SampledRows or TimedRows; `Real` is the type of sums of weights in the result.
template <class Index, class Weights, class Real>
class Sorter {
  using Weight = decltype(weight_at(Weights(), 0));
  static constexpr bool kTimed = std::is_same_v<Weight, TimedSampled>;
  static constexpr bool kSampled = kTimed || std::is_same_v<Weight, Sampled>;
  using Sum = std::conditional_t<kTimed, TimedSum, std::conditional_t<kSampled, SampledSum, PlainSum>>;

  struct Edge {
    std::int32_t lower;
    std::int32_t higher;
    [[no_unique_address]] Weight weight;
    std::uint64_t key(int bits) const {
      return static_cast<std::uint64_t>(lower) << bits | static_cast<std::uint64_t>(higher);
    }
  };

 public:
  Sorter(std::int32_t n, std::span<const Index> u, std::span<const Index> v, Weights w, std::int64_t n_sorted,
         Crew& crew)
      : n_(n), u_(u), v_(v), w_(w), n_sorted_(n_sorted), crew_(crew) {}

  TriangleOf<Real> run() {
    choose_buckets();
    count_edges();
    resize_huge(result_.start, static_cast<std::size_t>(n_) + 1);
    const std::int64_t parts = std::ssize(u_) - n_sorted_ >= kMany ? kParts : 1;
    if (parts > 1) resize_result(std::ssize(u_));  // reserves memory, which is not touched before it is written
    std::vector<std::int64_t> begin(n_buckets_ + 1);  // in the result
    for (std::int64_t first = 0, count = 0; first < n_buckets_; first += count) {
      std::int64_t left = (std::ssize(u_) - n_sorted_) / parts;
      for (count = 0; first + count < n_buckets_ && left >= 0; ++count) {
        for (const std::vector<std::int64_t>& of_piece : next_) left -= of_piece[first + count];
      }
      spread(first, first + count);
      crew_.run(count, [&](std::int64_t task) {
        sort_bucket(first + task);
        merge_bucket(first + task, [&](std::int32_t, std::int32_t, const Sum&) { ++begin[first + task + 1]; });
      });
      for (std::int64_t bucket = first; bucket < first + count; ++bucket) begin[bucket + 1] += begin[bucket];
      resize_result(begin[first + count]);
      crew_.run(count, [&](std::int64_t task) { write_bucket(first + task, begin[first + task]); });
    }
    return std::move(result_);
  }

 private:
  void resize_result(std::int64_t edges) {
    result_.other.resize(edges);
    result_.weight.resize(edges);
    if constexpr (kSampled) result_.probability.resize(edges);
    if constexpr (kTimed) result_.time.resize(edges);
  }

  void choose_buckets() {
    const std::int64_t most = std::clamp<std::int64_t>((std::ssize(u_) - n_sorted_) / kBucket, 1, kMostBuckets);
    while (((std::int64_t{n_} - 1) >> shift_) >= most) ++shift_;
    n_buckets_ = n_ == 0 ? 0 : ((n_ - 1) >> shift_) + 1;
  }

  std::int32_t first_node(std::int64_t bucket) const {
    return static_cast<std::int32_t>(std::min<std::int64_t>(n_, bucket << shift_));
  }

  // Validates every edge, dropped ones too.
  bool counts(std::int64_t i) const {
    const double weight = weight_at(w_, i);
    const bool is_valid = u_[i] >= 0 && u_[i] < n_ && v_[i] >= 0 && v_[i] < n_ && weight >= 0.0 &&
                          weight <= std::numeric_limits<double>::max();  // false for NaN
    if (!is_valid) {
      throw std::invalid_argument("a row of the sparsifier is not an edge with a finite positive weight");
    }
    return u_[i] != v_[i] && weight != 0.0;
  }

  template <class Visit>
  void for_each_piece(Visit&& visit) {
    const std::int64_t size = std::ssize(u_) - n_sorted_;
    crew_.run((size + kPiece - 1) / kPiece, [&](std::int64_t piece) {
      next_[piece].resize(n_buckets_);
      visit(next_[piece].data(), n_sorted_ + piece * kPiece, n_sorted_ + std::min(size, (piece + 1) * kPiece));
    });
  }

  void count_edges() {
    next_.resize((std::ssize(u_) - n_sorted_ + kPiece - 1) / kPiece);
    for_each_piece([&](std::int64_t* count, std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) {
        if (counts(i)) ++count[std::min(u_[i], v_[i]) >> shift_];
      }
    });
    bucket_.resize(n_buckets_ + 1);
  }

  // Of buckets first_bucket..end_bucket-1. Other edges are written to nowhere, because a branch would be mispredicted.
  void spread(std::int64_t first_bucket, std::int64_t end_bucket) {
    std::int64_t at = 0;
    for (std::int64_t bucket = first_bucket; bucket < end_bucket; ++bucket) {
      bucket_[bucket] = at;
      for (std::vector<std::int64_t>& of_piece : next_) at += std::exchange(of_piece[bucket], at);
    }
    bucket_[end_bucket] = at;
    edges_ = Buffer<Edge>();  // before there are others
    edges_.resize(at);
    for_each_piece([&](std::int64_t* place, std::int64_t i, std::int64_t end) {
      Edge nowhere;
      Edge* const edges = edges_.data();
      for (; i < end; ++i) {
        const auto lower = static_cast<std::int32_t>(std::min(u_[i], v_[i]));
        const auto higher = static_cast<std::int32_t>(std::max(u_[i], v_[i]));
        const std::int64_t bucket = lower >> shift_;
        const bool is_in = (bucket >= first_bucket) & (bucket < end_bucket) & (lower != higher) &
                           (weight_at(w_, i) != 0.0);
        Edge* const to = is_in ? edges + place[bucket] : &nowhere;
        *to = {lower, higher, weight_at(w_, i)};
        place[bucket] += is_in;
      }
    });
  }

  void sort_bucket(std::int64_t bucket) {
    const int node_bits = std::bit_width(static_cast<std::uint32_t>(n_));
    const std::int64_t size = bucket_[bucket + 1] - bucket_[bucket];
    Edge* edges = edges_.data() + bucket_[bucket];
    const auto before = [&](const Edge& a, const Edge& b) { return a.key(node_bits) < b.key(node_bits); };
    if (std::is_sorted(edges, edges + size, before)) return;
    if (size < kFew) {
      std::stable_sort(edges, edges + size, before);
      return;
    }
    const int bits = shift_ + node_bits;  // the others are those of the bucket
    const int digits = (bits + kMostBits - 1) / kMostBits;
    const int digit_bits = (bits + digits - 1) / digits;
    Buffer<Edge> copy(size);
    Edge* from = edges;
    Edge* to = copy.data();
    std::vector<std::uint32_t> place(std::size_t{1} << digit_bits);
    for (int digit = 0; digit < digits; ++digit, std::swap(from, to)) {
      const auto of = [&](const Edge& edge) {
        return edge.key(node_bits) >> (digit * digit_bits) & (place.size() - 1);
      };
      std::fill(place.begin(), place.end(), 0);
      for (std::int64_t k = 0; k < size; ++k) ++place[of(from[k])];
      std::uint32_t at = 0;
      for (std::uint32_t& of_digit : place) at += std::exchange(of_digit, at);
      for (std::int64_t k = 0; k < size; ++k) to[place[of(from[k])]++] = from[k];
    }
    if (from != edges) std::copy_n(from, size, edges);
  }

  // Calls visit(lower, higher, sum) once for each set of parallel edges of a bucket, in order.
  template <class Visit>
  void merge_bucket(std::int64_t bucket, Visit&& visit) const {
    const auto sorted = u_.first(n_sorted_);
    const auto place = [&](std::int64_t of) {
      return std::lower_bound(sorted.begin(), sorted.end(), first_node(of)) - sorted.begin();
    };
    const std::int64_t end_sorted = place(bucket + 1);
    const Edge* edge = edges_.data() + bucket_[bucket];
    const Edge* end = edges_.data() + bucket_[bucket + 1];
    const auto visit_parallel = [&](std::int32_t lower, std::int32_t higher, Sum sum) {
      for (; edge != end && edge->lower == lower && edge->higher == higher; ++edge) sum.add(edge->weight);
      visit(lower, higher, sum);
    };
    for (std::int64_t at = place(bucket); at < end_sorted; ++at) {
      while (edge != end && (edge->lower < u_[at] || (edge->lower == u_[at] && edge->higher < v_[at]))) {
        visit_parallel(edge->lower, edge->higher, {});
      }
      Sum sum;
      sum.add(weight_at(w_, at));
      visit_parallel(static_cast<std::int32_t>(u_[at]), static_cast<std::int32_t>(v_[at]), sum);
    }
    while (edge != end) visit_parallel(edge->lower, edge->higher, {});
  }

  void write_bucket(std::int64_t bucket, std::int64_t e) {
    std::int32_t row = first_node(bucket);
    merge_bucket(bucket, [&](std::int32_t lower, std::int32_t higher, const Sum& sum) {
      if (std::is_same_v<Real, float> && !(sum.weight <= std::numeric_limits<float>::max())) {
        throw std::overflow_error(
            "the weights of parallel edges add up to more than the largest float32; divide all weights by a constant");
      }
      while (row < lower) result_.start[++row] = e;
      result_.other[e] = higher;
      result_.weight[e] = static_cast<Real>(sum.weight);
      if constexpr (kSampled) result_.probability[e] = sum.probability();
      if constexpr (kTimed) result_.time[e] = sum.time;
      ++e;
    });
    while (row < first_node(bucket + 1)) result_.start[++row] = e;
  }

  std::int32_t n_;
  std::span<const Index> u_, v_;
  Weights w_;
  std::int64_t n_sorted_;
  Crew& crew_;
  int shift_ = 0;  // node i is in bucket i >> shift_
  std::int64_t n_buckets_ = 0;
  std::vector<std::vector<std::int64_t>> next_;  // by piece and bucket: the number of edges, then where the next goes
  std::vector<std::int64_t> bucket_;             // where each starts, in its part
  Buffer<Edge> edges_;
  TriangleOf<Real> result_;
};

// Validates every edge, dropped ones too, and counts these. `in_order`: none is dropped, and all are in the order of the
// result, each once.
template <class Index, class Weight>
std::optional<EdgeFault> look_at_edges(std::int32_t n, std::span<const Index> u, std::span<const Index> v,
                                       std::span<const Weight> w, BuiltCsr& built, bool& in_order) {
  using Reason = EdgeFault::Reason;
  Index last_u = -1, last_v = -1;
  for (std::int64_t i = 0; i < std::ssize(u); ++i) {
    const double weight = weight_at(w, i);
    if (u[i] < 0 || u[i] >= n) return EdgeFault{Reason::node_u, i, u[i]};
    if (v[i] < 0 || v[i] >= n) return EdgeFault{Reason::node_v, i, v[i]};
    // Written so that NaN fails it.
    if (!(weight >= 0.0 && weight <= std::numeric_limits<double>::max())) {
      return EdgeFault{Reason::weight, i, 0, weight};
    }
    built.n_self_loops += u[i] == v[i];
    built.n_zero_weights += u[i] != v[i] && weight == 0.0;
    in_order = in_order && weight > 0.0 && u[i] < v[i] && (last_u < u[i] || (last_u == u[i] && last_v < v[i]));
    last_u = u[i];
    last_v = v[i];
  }
  return std::nullopt;
}

}  // namespace

Triangle sort_edges(std::int32_t n, std::span<const std::int32_t> u, std::span<const std::int32_t> v,
                    std::span<const float> w, std::int64_t n_sorted, std::span<const float> probability,
                    std::span<const double> time, Crew& crew) {
  const auto sort = [&]<class Weights>(const Weights& weights) {
    return Sorter<std::int32_t, Weights, float>(n, u, v, weights, n_sorted, crew).run();
  };
  if (!time.empty()) return sort(TimedRows{{w, probability}, time});
  if (!probability.empty()) return sort(SampledRows{w, probability});
  return sort(w);
}

template <class Index, class Weight>
std::variant<BuiltCsr, EdgeFault> build_csr(std::int32_t n, std::span<const Index> u, std::span<const Index> v,
                                            std::span<const Weight> w) {
  BuiltCsr built;
  bool in_order = true;
  if (const auto fault = look_at_edges(n, u, v, w, built, in_order)) return *fault;
  const std::int64_t n_sorted = in_order ? std::ssize(u) : 0;
  auto edges = Sorter<Index, std::span<const Weight>, double>(n, u, v, w, n_sorted, alone).run();
  for (std::int64_t e = 0; e < edges.edges(); ++e) {
    if (std::isfinite(edges.weight[e])) continue;
    // Finite weights whose sum is infinite: reports the first of the parallel edges.
    const std::int64_t higher = edges.other[e];
    const std::int64_t lower = std::upper_bound(edges.start.begin(), edges.start.end(), e) - edges.start.begin() - 1;
    std::int64_t i = 0;
    while (std::min(u[i], v[i]) != lower || std::max(u[i], v[i]) != higher || weight_at(w, i) == 0.0) ++i;
    return EdgeFault{EdgeFault::Reason::overflow, i, 0, weight_at(w, i)};
  }
  mirror(edges, 1.0, built.csr.indptr, built.csr.indices, built.csr.weights);
  return built;
}

#define OHM_INSTANTIATE(Index, Weight)                                 \
  template std::variant<BuiltCsr, EdgeFault> build_csr<Index, Weight>( \
      std::int32_t, std::span<const Index>, std::span<const Index>, std::span<const Weight>);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
