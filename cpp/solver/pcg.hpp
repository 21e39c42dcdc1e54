// Preconditioned conjugate gradients on (L + D) x = b for a block of right-hand sides.
//
// Vectors may be float: L is applied in difference form, sum of w (p_i - p_j), which is accurate relative
// to the p that is stored, and the solution is summed up in double. The residual is computed anew
// in double now and then while the search direction is kept ("reliable updates", Clark et al. 2010).
// So the answer has double accuracy at nearly the memory traffic of float; a column counts as converged
// only by such a true residual. Results do not depend on the number of threads: sums are taken per
// chunk of rows and the chunks are added in order.
#pragma once

#include "solver/approx_cholesky.hpp"
#include "graph/clusters.hpp"
#include "solver/matrix.hpp"
#include "solver/right_hand_sides.hpp"

#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

namespace ohm {

// None: the diagonal. Clusters: to the diagonal's is added, for each cluster A, 1_A 1_A' / cut(A), 1_A its indicator
// vector. Where heavy edges hold a cluster together, the diagonal alone takes ages to move it as a whole.
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
  // Stop early once the convergence so far says that more iterations than this would be needed.
  double hopeless_beyond = std::numeric_limits<double>::infinity();
  bool float_vectors = true;
  // Whether r'M^-1 r, M the preconditioner, must fall by tolerance^2, too. It is about the energy of the error, in which
  // all modes count alike, if the preconditioner is a good one; in |r| light edges count for nothing beside heavy ones.
  bool measure_energy = false;
  int threads = 1;
};

void pcg(const System& system, const Columns& columns, const SolveOptions& options, ColumnReport* reports);

// x <- M b: the preconditioner alone, as scipy's Krylov methods want it.
void precondition(const System& system, const Columns& columns);

}  // namespace ohm
