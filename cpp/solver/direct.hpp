// Exact elimination of small systems, dense.
//
// The algorithm of Grassmann, Taksar and Heyman (1985) for M-matrices: a pivot is the sum of the remaining weights, not
// a difference, so every entry of the factor has full relative accuracy for any contrast of weights.
#pragma once

#include "graph/csr.hpp"
#include "solver/matrix.hpp"
#include "solver/right_hand_sides.hpp"

#include <cstdint>
#include <vector>

namespace ohm {

class DenseFactor {
 public:
  // The factor of scale * (L + D). The scale keeps sums of weights in the range of double.
  DenseFactor(const CsrView& graph, const double* ground, double scale = 1.0);
  std::int64_t entries() const { return static_cast<std::int64_t>(multiplier_.size()); }
  // y <- (scale (L + D))^-1 y for row-major y with `width` columns; on a component without ground, whose part of y must
  // sum to zero, the solution whose value at the first node is zero.
  void solve(double* y, std::int64_t width) const;

 private:
  std::int64_t n_;
  std::vector<double> multiplier_;  // (i, k), i < k: conductance from k to i over the pivot of k
  std::vector<double> pivot_;  // 0 for the last node of a component without ground
};

// Solves (L + D) x = b with a dense factor. Weights and columns are scaled by powers of two, which is exact, so that
// nothing overflows, and one step of refinement follows where it helps.
class DirectSolver {
 public:
  // The arguments must outlive the solver.
  DirectSolver(const CsrView& graph, const double* ground, const NullSpace& null_space);
  std::int64_t entries() const { return factor_.entries(); }
  void solve(const Columns& columns, double tolerance, ColumnReport* reports) const;

 private:
  CsrView graph_;
  const double* ground_;
  const NullSpace& null_;
  double scale_;
  DenseFactor factor_;
};

}  // namespace ohm
