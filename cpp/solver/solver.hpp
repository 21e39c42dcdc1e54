// Chooses how to solve (L + D) x = b, keeps the factor between solves, and falls back when a method fails.
//
// auto: n <= 500 is eliminated exactly. A graph spread out like a mesh gets an approximate Cholesky factor at
// once. On others conjugate gradients with the diagonal begin; after 20 iterations, and every 20 from
// there, their rate is extrapolated, and a factor is built when it promises to be cheaper, set-up
// included. A factor in float with float vectors comes first; columns on which that stagnates go on with
// double vectors, and at last with an AC2 factor in double.
//
// Every solve takes these steps from the first: factors are kept, what an earlier solve has found out is not. So an
// answer depends on the system, the options and its right-hand sides, to the last bit, and not on the solves before
// it. Where auto ends with a factor, later solves pay for that with some 20 iterations of the diagonal.
#pragma once

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

// Whether a factor of a graph with so many entries and nodes fits in about the memory of the graph.
bool factor_is_cheap(std::int64_t entries, std::int64_t n);

class Solver {
 public:
  // The largest system that `direct` takes, and the largest that `automatic` gives to it.
  static constexpr std::int32_t kDirectLimit = 5000;
  static constexpr std::int32_t kDirectChosen = 500;

  // The graph and the ground (may be null) must outlive the solver.
  Solver(const CsrView& graph, const double* ground, const SolverOptions& options);
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // Not to be called from two threads at once: a solve may build a factor.
  std::vector<ColumnReport> solve(const Columns& columns, double tolerance, std::int32_t max_iterations);
  void precondition(const Columns& columns);

  const NullSpace& null_space() const { return null_; }
  // Of the last solve; before the first, what is known of it: automatic where that is nothing.
  Method method() const { return method_; }
  const std::string& reason() const { return reason_; }
  std::int64_t factor_entries() const;  // of the last factor that it used
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
  Method plan_;  // what every solve begins with; automatic: the diagonal, on trial
  std::string plan_reason_;
  Method method_;
  std::string reason_;
  NullSpace null_;
  Matrix matrix_;
  // Factors are built when they are needed first.
  Preconditioner diagonal_;
  Preconditioner factor_;       // in float where the weights allow it
  Preconditioner fine_factor_;  // AC2 in double
  const Preconditioner* in_use_ = &diagonal_;
  std::optional<DirectSolver> direct_;
  double setup_seconds_ = 0.0;
};

}  // namespace ohm
