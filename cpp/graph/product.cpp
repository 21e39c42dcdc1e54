#include "graph/product.hpp"

#include "base/parallel.hpp"
#include "base/simd.hpp"

#include <algorithm>
#include <utility>

namespace ohm {
namespace {

constexpr std::int64_t kMostRows = 1 << 12;     // that a thread takes at a time
constexpr std::int64_t kThreadTerms = 1 << 19;  // fewer terms of sums per thread than this are not worthwhile

// Rows of x have these columns only, those of y are `stride` apart.
template <int Columns>
OHM_KERNEL void multiply_rows(const CsrView& graph, std::int64_t first, std::int64_t last, const double* x, double* y,
                              std::int64_t stride) {
  for (std::int64_t i = first; i < last; ++i) {
    const double* xi = x + i * Columns;
    double sum[Columns] = {};
    for (std::int64_t e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) {
      const double* xj = x + static_cast<std::int64_t>(graph.indices[e]) * Columns;
      const double w = graph.weights[e];
      for (int c = 0; c < Columns; ++c) sum[c] += w * (xi[c] - xj[c]);
    }
    for (int c = 0; c < Columns; ++c) y[i * stride + c] = sum[c];
  }
}

// Calls f with groups of columns, as compile-time counts and the offset of each.
template <class F>
void for_column_groups(std::int64_t columns, F&& f) {
  std::int64_t at = 0;
  for (; columns - at >= 8; at += 8) f(std::integral_constant<int, 8>{}, at);
  const auto rest = [&]<int... Counts>(std::integer_sequence<int, Counts...>) {
    ((columns - at == Counts ? f(std::integral_constant<int, Counts>{}, at) : void()), ...);
  };
  rest(std::integer_sequence<int, 1, 2, 3, 4, 5, 6, 7>{});
}

}  // namespace

void laplacian_product(const CsrView& graph, const double* x, std::int64_t columns, int threads, double* y) {
  const std::int64_t terms = graph.entries() * std::min<std::int64_t>(columns, 8);
  const auto useful = static_cast<int>(std::clamp<std::int64_t>(terms / kThreadTerms, 1, threads));
  const std::int64_t rows = std::min<std::int64_t>(kMostRows, graph.n / (4 * useful) + 1);
  const auto for_rows = [&](auto&& f) {
    parallel_for(useful, (graph.n + rows - 1) / rows, [&](std::int64_t piece) {
      f(piece * rows, std::min<std::int64_t>(graph.n, (piece + 1) * rows));
    });
  };
  // Copied together, eight columns of many more nodes fit the cache.
  const Rows<double, 8> copy(columns <= 8 ? 0 : graph.n);
  double* some = reinterpret_cast<double*>(static_cast<Row<double, 8>*>(copy));
  for_column_groups(columns, [&](auto count, std::int64_t at) {
    constexpr int size = count.value;
    if (columns > size) {
      for_rows([&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) std::copy_n(x + i * columns + at, size, some + i * size);
      });
    }
    for_rows([&](std::int64_t first, std::int64_t last) {
      multiply_rows<size>(graph, first, last, columns > size ? some : x, y + at, columns);
    });
  });
}

template <class Index, class Weight>
void add_degrees(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                 std::span<double> degrees) {
  const std::int64_t n = std::ssize(degrees);
  for (std::int64_t e = 0; e < std::ssize(u); ++e) {
    const std::int64_t a = u[e];
    const std::int64_t b = v[e];
    if (a >= n || b >= n || a == b) continue;
    const double weight = weight_at(w, e);
    degrees[a] += weight;
    degrees[b] += weight;
  }
}

#define OHM_INSTANTIATE(Index, Weight)                                                     \
  template void add_degrees<Index, Weight>(std::span<const Index>, std::span<const Index>, \
                                           std::span<const Weight>, std::span<double>);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
