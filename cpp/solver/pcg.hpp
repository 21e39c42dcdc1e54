// Preconditioned conjugate gradients on (L + D) x = b for a block of right-hand sides.
//
// Vectors may be float: L is applied in difference form, sum of w (p_i - p_j), which is accurate relative to the p that
// is stored, and the solution is summed up in double. The residual is recomputed in double from time to time while the
// search direction is kept ("reliable updates", Clark et al. 2010). So the answer has double accuracy at nearly the
// memory traffic of float. Only such a true residual decides whether a column has converged. Results do not depend on
// the number of threads: sums are taken per chunk of rows and the chunks are added in order.
#pragma once

#include "graph/clusters.hpp"
#include "solver/approx_cholesky.hpp"
#include "solver/matrix.hpp"
#include "solver/right_hand_sides.hpp"

#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

namespace ohm {

// None means the diagonal. A tree of clusters adds 1_A 1_A' / cut(A) to the inverse diagonal for each cluster A, whose
// indicator vector is 1_A. Heavy edges hold such clusters together, and the diagonal alone converges slowly on them.
using Preconditioner = std::variant<std::monostate, const ClusterTree*, Factor<float>, Factor<double>>;

struct System {
  const Matrix& matrix;
  const NullSpace& null_space;
  const Preconditioner& preconditioner;
};

// Right-hand sides are solved in blocks of this many.
constexpr int kBlockColumns = 8;

struct SolveOptions {
  double tolerance = 1e-8;
  std::int32_t max_iterations = 1000;
  // Stop early if the convergence so far suggests that more iterations than this would be needed.
  double hopeless_beyond = std::numeric_limits<double>::infinity();
  // The forecast has the rate of the last ten iterations, which shows early that a factor is too coarse, or, if this is
  // true, the mean rate since the start. With the diagonal, and if the graph is not like a mesh, ten are often far off.
  bool mean_rate = false;
  bool float_vectors = true;
  // If true, a column converges only when r'M^-1 r has also fallen by tolerance^2, where M is the preconditioner. Its
  // root approximates the energy norm of the error. The norm of r alone does not show errors across light edges.
  bool measure_energy = false;
  int threads = 1;
};

void pcg(const System& system, const Columns& columns, const SolveOptions& options, ColumnReport* reports);

// x <- M^-1 b: the preconditioner alone, for scipy's Krylov methods.
void precondition(const System& system, const Columns& columns, int threads);

}  // namespace ohm
