// Approximate Cholesky factor of L + D, L a graph Laplacian and D >= 0 a diagonal ("ground").
//
// Gao, Kyng, Spielman, "Robust and practical solution of Laplacian equations by approximate
// elimination" (2023), after Kyng and Sachdeva (2016): eliminating a node replaces it by a clique of
// its neighbours; here only a random tree of that clique, right in expectation, is kept. So every
// elimination of degree d leaves at most d - 1 new edges and the factor stays about as large as the
// graph. Choices made here:
//  - order: smallest current degree first, first come first served, lazily updated buckets. A bucket
//    is swept in the node order it was filled in, so consecutive eliminations are near in memory
//    and far in the graph;
//  - the ground is not a node of high degree but a number per node: fill between a neighbour and the
//    ground is exact and costs one addition;
//  - no subtraction anywhere: weights keep their relative accuracy (as in the GTH algorithm);
//  - a column's largest coefficient is not stored but is one minus the others, so that float
//    coefficients still conserve current and keep constants exactly: without it, the rounding
//    of a heavy column is a spurious ground that drowns the light edges.
#pragma once

#include "csr.hpp"
#include "simd.hpp"

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace ohm {

// L + D ~ C diag(1/inverse_diagonal) C', where C becomes unit lower triangular once its rows stand in the
// order of elimination. Column k belongs to row order[k] and has -coefficient at the rows of its entries, all
// eliminated later. The last entry of a column is its heaviest neighbour, coded as follows: a value
// with the sign bit set, -g, stands for 1 - g - (sum of the others), g being the ground's share;
// any other value stands for itself.
template <class Real>
struct Factor {
  std::vector<std::int32_t> order;  // order[k] = row eliminated k-th
  std::vector<std::int64_t> start;  // n + 1
  struct Entry {
    std::int32_t row;
    Real coefficient;
  };
  std::vector<Entry> entry;
  std::vector<double> inverse_diagonal;  // 0 for the last node of a component without ground
  std::int64_t entries() const { return static_cast<std::int64_t>(entry.size()); }
};

struct EliminationOptions {
  std::uint64_t seed = 0;
  // Ways an edge is split before sampling: 1 is AC, 2 is AC2, larger and more accurate.
  int copies = 1;
  // The factor is that of scale * (L + D): keeps the weights in the range of Real.
  double scale = 1.0;
};

// Rows are the graph's nodes renumbered: row k is node relabel[k].
template <class Real>
Factor<Real> approximate_cholesky(const CsrView& graph, const double* ground,
                                  std::span<const std::int32_t> relabel,
                                  const EliminationOptions& options);

// y <- C^-1 y, one column, on vectors whose rows are `Row`.
template <class Row, class Value, class Real>
OHM_INLINE void forward_column(const Factor<Real>& factor, std::int64_t k, Row* y) {
  const std::int64_t begin = factor.start[k];
  const std::int64_t last = factor.start[k + 1] - 1;
  if (last < begin) return;
  const Row here = y[factor.order[k]];
  const auto code = static_cast<Value>(factor.entry[last].coefficient);
  Row rest = code * here;
  if (std::signbit(code)) {
    rest += here;
    for (std::int64_t e = begin; e < last; ++e) {
      const Row moved = static_cast<Value>(factor.entry[e].coefficient) * here;
      y[factor.entry[e].row] += moved;
      rest -= moved;
    }
  } else {
    for (std::int64_t e = begin; e < last; ++e) {
      y[factor.entry[e].row] += static_cast<Value>(factor.entry[e].coefficient) * here;
    }
  }
  y[factor.entry[last].row] += rest;
}

// y <- C'^-1 D^-1 y, one column.
template <class Row, class Value, class Real>
OHM_INLINE void backward_column(const Factor<Real>& factor, std::int64_t k, Row* y) {
  const std::int64_t begin = factor.start[k];
  const std::int64_t last = factor.start[k + 1] - 1;
  Row sum = static_cast<Value>(factor.inverse_diagonal[k]) * y[factor.order[k]];
  if (last >= begin) {
    const auto code = static_cast<Value>(factor.entry[last].coefficient);
    const Row heaviest = y[factor.entry[last].row];
    sum += code * heaviest;
    if (std::signbit(code)) {
      sum += heaviest;
      for (std::int64_t e = begin; e < last; ++e) {
        sum += static_cast<Value>(factor.entry[e].coefficient) * (y[factor.entry[e].row] - heaviest);
      }
    } else {
      for (std::int64_t e = begin; e < last; ++e) {
        sum += static_cast<Value>(factor.entry[e].coefficient) * y[factor.entry[e].row];
      }
    }
  }
  y[factor.order[k]] = sum;
}

}  // namespace ohm
