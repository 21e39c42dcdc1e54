// Approximate Cholesky factor of L + D, L a graph Laplacian and D >= 0 a diagonal ("ground").
//
// Gao, Kyng, Spielman, "Robust and practical solution of Laplacian equations by approximate elimination" (2023), after
// Kyng and Sachdeva (2016): eliminating a node replaces it by a clique of its neighbours; here only a random tree of
// that clique is kept, whose expectation is the clique. So every elimination of degree d leaves at most d - 1 new edges
// and the factor stays about as large as the graph. Choices made here:
//  - order: smallest current degree first, first come first served, lazily updated buckets. A bucket
//    is swept in the node order it was filled in, so consecutive eliminations are near in memory
//    and far in the graph;
//  - the ground is not a node of high degree but a number per node: fill between a neighbour and the
//    ground is exact and costs one addition;
//  - no subtraction anywhere: weights keep their relative accuracy (as in the GTH algorithm);
//  - a column's largest coefficient is not stored but is one minus the others, so that rounded
//    coefficients still conserve current and keep constants exactly: without it, the rounding
//    of a heavy column is a spurious ground that drowns the light edges;
//  - in a large graph with small separators, pieces of it are eliminated, and substituted, side by side. Their rows do
//    not meet: what a piece adds to rows of separators waits in its halo. So the factor does not depend on the threads.
#pragma once

#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "solver/matrix.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace ohm {

// The upper half of a float: a preconditioner is bound by memory, and sampling has left its coefficients with far
// larger errors than the rounding to three digits does.
class Brief {
 public:
  Brief() = default;
  explicit Brief(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    bits_ = static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits_} << 16); }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }

 private:
  std::uint16_t bits_ = 0;
};

// Columns of a factor L + D ~ C diag(1/inverse_diagonal) C', where C is unit lower triangular if its rows are in the
// order of elimination: the pieces one after another.
// The k-th column belongs to row order[k] and has -coefficient at `count[k]` rows, all eliminated later; the columns
// are concatenated. The last entry of a column is its heaviest neighbour, encoded as follows: a value -g with the sign
// bit set means 1 - g - (sum of the others), where g is the fraction of the ground; any other value is the coefficient
// itself.
template <class Weight>
struct FactorPiece {
  using Coefficient = std::conditional_t<sizeof(Weight) == sizeof(float), Brief, Weight>;
  std::vector<std::int32_t> order;
  std::vector<std::int32_t> count;
  std::vector<Weight> inverse_diagonal;  // 0 for the last node of a component without ground
  std::vector<std::int32_t> row;
  std::vector<Coefficient> coefficient;
  // Rows of later pieces, to which the columns refer as slot, slot + 1, ...: places in vectors behind all n rows.
  std::vector<std::int32_t> halo;
  std::int32_t slot = 0;
  std::int64_t entries() const { return std::ssize(row); }
};

template <class Weight>
struct Factor {
  std::vector<FactorPiece<Weight>> pieces;
  std::vector<std::size_t> level;  // pieces level[k] .. level[k + 1] - 1 do not depend on one another
  std::int64_t slots = 0;          // of all halos
  std::int64_t entries() const {
    std::int64_t sum = 0;
    for (const auto& piece : pieces) sum += piece.entries();
    return sum;
  }
};

struct EliminationOptions {
  std::uint64_t seed = 0;
  // Copies that an edge is split into before sampling: 1 is AC; 2 is AC2, which is larger and more accurate.
  int copies = 1;
  // The most entries at one node, which are counted in 32 bits. More are a std::length_error.
  std::int32_t most_entries = std::numeric_limits<std::int32_t>::max();
};

// `tree` has the piece of each row, as `dissect` returns it (ordering.hpp); if it is empty, there is one piece.
template <class Weight>
Factor<Weight> approximate_cholesky(const Matrix& matrix, std::span<const std::int32_t> tree,
                                    const EliminationOptions& options, Crew& crew = alone);

// y <- C^-1 y, one column with entries begin..end, on vectors whose rows are `Row`.
template <class Row, class Value, class Weight>
OHM_INLINE void forward_column(const FactorPiece<Weight>& factor, std::int64_t k, std::int64_t begin, std::int64_t end,
                               Row* y) {
  if (begin == end) return;
  const std::int64_t last = end - 1;
  const Row here = y[factor.order[k]];
  const auto code = static_cast<Value>(factor.coefficient[last]);
  Row rest = code * here;
  if (std::signbit(code)) {
    rest += here;
    for (std::int64_t e = begin; e < last; ++e) {
      const Row moved = static_cast<Value>(factor.coefficient[e]) * here;
      y[factor.row[e]] += moved;
      rest -= moved;
    }
  } else {
    for (std::int64_t e = begin; e < last; ++e) {
      y[factor.row[e]] += static_cast<Value>(factor.coefficient[e]) * here;
    }
  }
  y[factor.row[last]] += rest;
}

// y <- C'^-1 D^-1 y, one column.
template <class Row, class Value, class Weight>
OHM_INLINE void backward_column(const FactorPiece<Weight>& factor, std::int64_t k, std::int64_t begin, std::int64_t end,
                                Row* y) {
  Row sum = static_cast<Value>(factor.inverse_diagonal[k]) * y[factor.order[k]];
  if (begin < end) {
    const std::int64_t last = end - 1;
    const auto code = static_cast<Value>(factor.coefficient[last]);
    const Row heaviest = y[factor.row[last]];
    sum += code * heaviest;
    if (std::signbit(code)) {
      sum += heaviest;
      for (std::int64_t e = begin; e < last; ++e) {
        sum += static_cast<Value>(factor.coefficient[e]) * (y[factor.row[e]] - heaviest);
      }
    } else {
      for (std::int64_t e = begin; e < last; ++e) {
        sum += static_cast<Value>(factor.coefficient[e]) * y[factor.row[e]];
      }
    }
  }
  y[factor.order[k]] = sum;
}

}  // namespace ohm
