#include "points/sparse_nearest.hpp"

#include "base/parallel.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace ohm {
namespace {

constexpr std::int64_t kSlack = 8;  // candidates beyond k
constexpr double kTiny = 1e-300;    // more than is lost where products are below the smallest double
using Found = std::pair<double, std::int32_t>;

template <class Value>
struct SparseRow {
  std::span<const std::int32_t> column;
  std::span<const Value> value;
};

template <class Value>
SparseRow<Value> row_of(const SparseRows<Value>& rows, std::int64_t i) {
  const std::int64_t begin = rows.offset[i];
  const std::int64_t size = rows.offset[i + 1] - begin;
  return {rows.column.subspan(begin, size), rows.value.subspan(begin, size)};
}

template <class Value>
double square_of(const SparseRow<Value>& row) {
  double sum = 0.0;
  for (const Value value : row.value) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

// The same sum as exact_squares of panels.hpp: coordinates that are 0 in both points add nothing.
template <class Value>
double squared_distance(const SparseRow<Value>& x, const SparseRow<Value>& y) {
  double sum = 0.0;
  std::size_t a = 0, b = 0;
  while (a < x.column.size() || b < y.column.size()) {
    double difference;
    if (b == y.column.size() || (a < x.column.size() && x.column[a] < y.column[b])) {
      difference = static_cast<double>(x.value[a++]);
    } else if (a == x.column.size() || y.column[b] < x.column[a]) {
      difference = static_cast<double>(y.value[b++]);
    } else {
      difference = static_cast<double>(x.value[a++]) - static_cast<double>(y.value[b++]);
    }
    sum += difference * difference;
  }
  return sum;
}

}  // namespace

template <class Value>
SparseNearest<Value>::SparseNearest(SparseRows<Value> points, std::int64_t dims)
    : points_(points),
      start_(dims + 1),
      row_(points.column.size()),
      value_(points.column.size()),
      square_(points.size()) {
  for (const std::int32_t c : points.column) ++start_[c + 1];
  for (std::int64_t c = 0; c < dims; ++c) start_[c + 1] += start_[c];
  std::vector<std::int64_t> next(start_.begin(), start_.end() - 1);
  for (std::int64_t i = 0; i < points.size(); ++i) {
    const auto row = row_of(points, i);
    square_[i] = square_of(row);
    for (std::size_t e = 0; e < row.column.size(); ++e) {
      const std::int64_t to = next[row.column[e]]++;
      row_[to] = static_cast<std::int32_t>(i);
      value_[to] = row.value[e];
    }
  }
}

template <class Value>
Neighbours SparseNearest<Value>::find(const SparseRows<Value>& queries, std::int64_t k, bool own, std::int64_t begin,
                                      std::int64_t end, int threads) const {
  constexpr std::int64_t kChunk = 16;
  Neighbours found{std::vector<std::int32_t>((end - begin) * k), std::vector<double>((end - begin) * k)};
  Crew crew(threads);
  for_blocks(crew, end - begin, [&](std::int64_t first, std::int64_t last) {
    std::vector<double> bound(n());
    std::vector<Found> heap, nearest;
    for (std::int64_t i = begin + first; i < begin + last; ++i) {
      // 1. Lower bounds. With m products and u = 2^-53, |x|^2, |y|^2 and 2 x'y lose at most (m + 3) u each.
      const auto x = row_of(queries, i);
      std::fill(bound.begin(), bound.end(), 0.0);
      for (std::size_t e = 0; e < x.column.size(); ++e) {
        const double value = static_cast<double>(x.value[e]);
        for (std::int64_t at = start_[x.column[e]]; at < start_[x.column[e] + 1]; ++at) {
          bound[row_[at]] += value * static_cast<double>(value_[at]);
        }
      }
      const double square = square_of(x);
      const double relative = 4.0 * (static_cast<double>(dims()) + 8.0) * 0x1p-53;
      for (std::int64_t j = 0; j < n(); ++j) {
        const double sum = square + square_[j];
        bound[j] = std::max(0.0, (sum - 2.0 * bound[j]) - relative * sum - kTiny);
      }
      if (own) bound[i] = std::numeric_limits<double>::infinity();
      // 2. The candidates: those with the smallest bounds.
      const std::int64_t others = own ? n() - 1 : n();
      const auto kept = static_cast<std::size_t>(std::min(k + kSlack, others));
      heap.clear();
      for (std::int64_t j = 0; j < n(); ++j) {
        if (own && j == i) continue;
        const Found candidate(bound[j], static_cast<std::int32_t>(j));
        if (heap.size() == kept) {
          if (!(candidate < heap.front())) continue;
          std::pop_heap(heap.begin(), heap.end());
          heap.back() = candidate;
        } else {
          heap.push_back(candidate);
        }
        std::push_heap(heap.begin(), heap.end());
      }
      const Found most = heap.front();
      const auto measure = [&](std::int32_t j) { return Found(squared_distance(x, row_of(points_, j)), j); };
      nearest.clear();
      for (const Found& candidate : heap) nearest.push_back(measure(candidate.second));
      std::sort(nearest.begin(), nearest.end());
      // 3. All others whose bound does not exclude them; there are none if bounds and distances differ enough.
      const double grown = 1.0 + relative;
      if (std::ssize(heap) < others && !(Found(nearest[k - 1].first * grown, nearest[k - 1].second) <= most)) {
        const double limit = nearest[k - 1].first * grown;
        for (std::int32_t j = 0; j < n(); ++j) {
          if (bound[j] <= limit && Found(bound[j], j) > most && !(own && j == i)) nearest.push_back(measure(j));
        }
        std::sort(nearest.begin(), nearest.end());
      }
      for (std::int64_t e = 0; e < k; ++e) {
        found.square[(i - begin) * k + e] = nearest[e].first;
        found.index[(i - begin) * k + e] = nearest[e].second;
      }
    }
  }, kChunk);
  return found;
}

template class SparseNearest<float>;
template class SparseNearest<double>;

}  // namespace ohm
