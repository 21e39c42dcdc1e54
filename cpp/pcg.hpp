// Preconditioned conjugate gradients on (L + D) x = b for a block of right-hand sides.
//
// Vectors may be float: L is applied in difference form, sum of w (p_i - p_j), which is accurate relative
// to the p that is stored, and now and then the residual is computed anew in double from the
// double solution while the search direction is kept ("reliable updates"; Clark et al., 2010). So the
// answer has double accuracy at the memory traffic of float. A column counts as converged only by
// such a true residual. Results do not depend on the number of threads: sums are taken per chunk of rows
// and the chunks are added in order.
#pragma once

#include "approx_cholesky.hpp"

#include <cstdint>
#include <variant>
#include <vector>

namespace ohm {

// scale * (L + D), renumbered: row k is node order[k] of the graph.
struct Matrix {
  std::int32_t n = 0;
  double scale = 1.0;  // a power of two
  std::vector<std::int32_t> order;
  std::vector<std::int64_t> start;
  std::vector<std::int32_t> index;
  std::variant<std::vector<float>, std::vector<double>> weight;  // float where that loses nothing
  std::vector<double> ground;                                    // empty: none
  std::vector<double> inverse_diagonal;
  std::vector<std::int32_t> chunk;      // row boundaries of about equal work
  std::vector<std::int32_t> component;  // by node of the graph
  std::vector<char> singular;           // per component: no ground in it
};

Matrix make_matrix(const CsrView& graph, const double* ground, std::vector<std::int32_t> order);

using Preconditioner = std::variant<std::monostate, Factor<float>, Factor<double>>;  // none: the diagonal

struct SolveOptions {
  double tolerance = 1e-8;
  std::int32_t max_iterations = 1000;
  bool float_vectors = true;
  int threads = 1;
};

enum class Outcome : std::uint8_t { converged, iteration_limit, stagnated };

struct ColumnReport {
  std::int32_t iterations = 0;
  double residual = 0.0;       // true, relative to the projected right-hand side
  double projected_out = 0.0;  // share of the right-hand side's norm in the null space
  Outcome outcome = Outcome::converged;
};

// b and x are (n, columns), row-major, in the graph's numbering; x holds the starting point, and at the
// end the answer, of mean zero on every component without ground. With float b and x (embeddings) the
// residual is the recursive one, good enough for tolerances above 1e-5.
template <class Io>
std::vector<ColumnReport> pcg(const Matrix& matrix, const Preconditioner& preconditioner, const Io* b, Io* x,
                              std::int64_t columns, const SolveOptions& options);

}  // namespace ohm
