// Chooses how to solve (L + D) x = b, keeps the factor between solves, and falls back when a method fails.
//
// auto: a graph with at most 500 nodes is eliminated exactly. A graph like a mesh gets an approximate Cholesky factor
// at once. On other graphs conjugate gradients with the diagonal begin. Every 20 iterations their rate is extrapolated,
// and a factor is built if that seems cheaper, including its set-up. The first attempt is a factor in float with float
// vectors; columns on which it fails continue with double vectors, and finally with a finer factor in double (AC2, see
// approx_cholesky.hpp).
//
// Every solve takes these steps from the beginning: factors are kept between solves, decisions are not. So the bits of
// an answer depend on the system, the options and the right-hand sides alone, and not on earlier solves. The price is
// about 20 iterations with the diagonal in each solve that ends with a factor.
#pragma once

#include "graph/clusters.hpp"
#include "solver/direct.hpp"
#include "solver/matrix.hpp"
#include "solver/pcg.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ohm {

enum class Method { automatic, diagonal, cholesky, direct };

struct SolverOptions {
  Method method = Method::automatic;
  std::uint64_t seed = 0;
  int threads = 1;
  bool measure_energy = false;  // as in SolveOptions
};

class Solver {
 public:
  // The largest system that `direct` takes, and the largest that `automatic` gives to it.
  static constexpr std::int32_t kDirectLimit = 5000;
  static constexpr std::int32_t kDirectChosen = 500;

  // The graph and the ground (may be null) must outlive the solver.
  Solver(const CsrView& graph, const double* ground, const SolverOptions& options);
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // Must not be called from two threads at once, because a solve may build a factor.
  std::vector<ColumnReport> solve(const Columns& columns, double tolerance, std::int32_t max_iterations);
  void precondition(const Columns& columns);

  const NullSpace& null_space() const { return null_; }
  // The method of the last solve; before the first solve, the planned one, which may be `automatic`.
  Method method() const { return method_; }
  const std::string& reason() const { return reason_; }
  std::int64_t factor_entries() const;  // of the factor that solve() or precondition() chose last
  double setup_seconds() const { return setup_seconds_; }

 private:
  void solve_diagonal_first(const Columns& columns, const SolveOptions& options, ColumnReport* reports);
  void retry_unfinished(const Columns& columns, const SolveOptions& options, ColumnReport* reports);
  void solve_chosen(const Columns& columns, const std::vector<std::int64_t>& chosen,
                    const SolveOptions& options, ColumnReport* reports) const;
  System system() const { return {matrix_, null_, *in_use_}; }
  double patience(double iterations) const;
  void use_factor();
  void use_fine_factor();
  template <class Real>
  Preconditioner build_factor(int copies) const;

  CsrView graph_;
  const double* ground_;
  SolverOptions options_;
  Method plan_;  // what every solve begins with; automatic: the diagonal, as a trial
  std::string plan_reason_;
  bool is_local_ = false;  // neighbours of neighbours are few, as in a mesh
  Method method_;
  std::string reason_;
  NullSpace null_;
  Matrix matrix_;
  // Factors are built when they are first needed.
  Preconditioner diagonal_;
  Preconditioner factor_;       // in float where the weights allow it
  Preconditioner fine_factor_;  // AC2 in double
  const Preconditioner* in_use_ = &diagonal_;
  std::optional<DirectSolver> direct_;
  double setup_seconds_ = 0.0;
};

struct ClusteredGraph {
  const Matrix& matrix;  // of a Triangle
  const NullSpace& null_space;
  const ClusterTree& tree;
};

// Solves L x = b to low accuracy, for the embeddings of the sampler.
//
// Conjugate gradients with the diagonal and the clusters are enough for most graphs; the clusters make the number of
// iterations independent of the contrast of the weights. Floats cannot hold the differences of potentials across very
// heavy edges, so doubles take over there. Where convergence is slow for another reason, as on a mesh, a factor is
// built.
void solve_with_clusters(const ClusteredGraph& graph, std::uint64_t seed, Crew& crew, const Columns& columns);

}  // namespace ohm
