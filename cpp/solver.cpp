#include "solver.hpp"

#include "ordering.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace ohm {
namespace {

// What a factor costs, in diagonal iterations on one column (measured on grids and kNN graphs of 10^6
// nodes): to build, per iteration with it, and how many of those 1e-8 takes.
constexpr double kBuildCost = 150.0;
constexpr double kFactorIterationCost = 3.0;
constexpr double kFactorIterations = 35.0;
// Columns solved together share the traffic of the matrix.
constexpr double kBlockDiscount = 0.45;

// Ball radii (see ordering.hpp) from which on local numbers exist, and from which on a factor surely pays.
constexpr int kLocalRadius = 6;
constexpr int kMeshRadius = 16;
// Iterations forecast at which a float factor, and then double vectors with it, are given up.
constexpr double kFloatPatience = 300.0;
constexpr double kDoublePatience = 600.0;

class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total), start_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_;
};

// Diagonal iterations beyond which a factor would have been cheaper, for this many columns.
double break_even(std::int64_t columns, double tolerance) {
  const double work = columns == 1 ? 1.0 : kBlockDiscount * static_cast<double>(columns);
  const double digits = std::max(1.0, -std::log10(tolerance)) / 8.0;
  return kBuildCost / work + kFactorIterationCost * kFactorIterations * digits;
}

}  // namespace

Solver::Solver(const CsrView& graph, const double* ground, const SolverOptions& options)
    : graph_(graph), ground_(ground), options_(options), method_(options.method) {
  const Stopwatch watch(setup_seconds_);
  null_ = ohm::null_space(graph_, ground_);
  if (method_ == Method::automatic && graph.n <= kDirectChosen) {
    method_ = Method::direct;
    reason_ = "at most " + std::to_string(kDirectChosen) + " nodes";
  } else if (method_ != Method::automatic) {
    reason_ = "asked for";
  }
  if (method_ == Method::direct) {
    if (graph.n > kDirectLimit) throw std::length_error("too many nodes for a dense factor");
    dense_.emplace(graph_, ground_);
    return;
  }
  const int radius = graph_.n > 0 ? ball_radius(graph_) : 0;
  if (radius >= kLocalRadius && numbers_are_scattered(graph_)) {
    matrix_.order = bfs_order(graph_);
  } else {
    matrix_.order.resize(graph_.n);
    std::iota(matrix_.order.begin(), matrix_.order.end(), 0);
  }
  if (method_ == Method::automatic && radius >= kMeshRadius) {
    method_ = Method::cholesky;
    reason_ = "spread out like a mesh: a 64th of the nodes takes " + std::to_string(radius) + " steps to reach";
  }
  if (method_ == Method::cholesky) build_factor<float>(1);
  matrix_ = make_matrix(graph_, ground_, std::move(matrix_.order));
}

template <class Real>
void Solver::build_factor(int copies) {
  EliminationOptions options;
  options.seed = options_.seed;
  options.copies = copies;
  options.scale = power_of_two_scale(graph_, ground_);
  preconditioner_ = approximate_cholesky<Real>(graph_, ground_, matrix_.order, options);
}

std::int64_t Solver::factor_entries() const {
  if (dense_) return dense_->entries();
  if (const auto* factor = std::get_if<Factor<float>>(&preconditioner_)) return factor->entries();
  if (const auto* factor = std::get_if<Factor<double>>(&preconditioner_)) return factor->entries();
  return 0;
}

std::vector<ColumnReport> Solver::solve(const Columns<double>& columns, double tolerance,
                                        std::int32_t max_iterations) {
  return solve_any(columns, tolerance, max_iterations);
}

std::vector<ColumnReport> Solver::solve(const Columns<float>& columns, double tolerance,
                                        std::int32_t max_iterations) {
  if (method_ != Method::direct) return solve_any(columns, tolerance, max_iterations);
  const std::int64_t size = graph_.n * columns.count;
  std::vector<double> b(size);
  std::vector<double> x(size, 0.0);
  for (std::int64_t k = 0; k < size; ++k) {
    b[k] = static_cast<double>(columns.b[k / columns.count * columns.stride + k % columns.count]);
  }
  auto reports = solve_any(Columns<double>{b.data(), x.data(), columns.count, columns.count}, tolerance, 0);
  for (std::int64_t k = 0; k < size; ++k) {
    columns.x[k / columns.count * columns.stride + k % columns.count] = static_cast<float>(x[k]);
  }
  return reports;
}

template <class Io>
std::vector<ColumnReport> Solver::solve_any(const Columns<Io>& columns, double tolerance,
                                            std::int32_t max_iterations) {
  std::vector<ColumnReport> reports(columns.count);
  if (columns.count == 0 || graph_.n == 0) return reports;
  SolveOptions options;
  options.tolerance = tolerance;
  options.max_iterations = max_iterations;
  options.threads = options_.threads;
  if constexpr (sizeof(Io) == sizeof(double)) {
    if (method_ == Method::direct) {
      solve_direct(columns, tolerance, reports.data());
      return reports;
    }
  }
  if (method_ == Method::automatic) {
    solve_diagonal_first(columns, options, reports.data());
  } else {
    if (method_ == Method::cholesky) options.hopeless_beyond = kFloatPatience;
    pcg(system(), columns, options, reports.data());
  }
  if constexpr (sizeof(Io) == sizeof(double)) retry_unfinished(columns, options, reports.data());
  return reports;
}

// The first block decides for all. What it has reached is where a factor starts from.
template <class Io>
void Solver::solve_diagonal_first(const Columns<Io>& columns, const SolveOptions& options, ColumnReport* reports) {
  SolveOptions trial = options;
  trial.hopeless_beyond = break_even(columns.count, options.tolerance);
  Columns<Io> first = columns;
  first.count = std::min<std::int64_t>(columns.count, kBlockColumns);
  pcg(system(), first, trial, reports);
  Columns<Io> rest{columns.b + first.count, columns.x + first.count, columns.stride, columns.count - first.count};
  const bool hopeless = std::any_of(reports, reports + first.count,
                                    [](const ColumnReport& r) { return r.outcome == Outcome::hopeless; });
  if (!hopeless) {
    method_ = Method::diagonal;
    reason_ = "the diagonal converged in " + std::to_string(reports[0].iterations) + " iterations";
    if (rest.count > 0) pcg(system(), rest, options, reports + first.count);
    return;
  }
  {
    const Stopwatch watch(setup_seconds_);
    build_factor<float>(1);
  }
  method_ = Method::cholesky;
  reason_ = "the diagonal would have needed more than " +
            std::to_string(static_cast<long>(trial.hopeless_beyond)) + " iterations";
  std::vector<ColumnReport> before(reports, reports + first.count);
  SolveOptions factored = options;
  factored.hopeless_beyond = kFloatPatience;
  pcg(system(), columns, factored, reports);
  for (std::int64_t c = 0; c < first.count; ++c) reports[c].iterations += before[c].iterations;
}

// Elimination, then one step of refinement.
void Solver::solve_direct(const Columns<double>& columns, double tolerance, ColumnReport* reports) const {
  const std::int64_t n = graph_.n;
  const std::int64_t width = columns.count;
  const auto w = static_cast<int>(width);
  const auto centre = [&](std::vector<double>& y) {
    const std::vector<double> mean = null_.means(y.data(), width, w);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t c = 0; c < width; ++c) y[i * width + c] -= mean[null_.component[i] * width + c];
    }
  };
  std::vector<double> b(n * width);
  for (std::int64_t i = 0; i < n; ++i) std::copy_n(columns.b + i * columns.stride, width, b.data() + i * width);
  std::vector<double> whole(width, 0.0);
  std::vector<double> kept(width, 0.0);
  for (std::int64_t k = 0; k < n * width; ++k) whole[k % width] += b[k] * b[k];
  centre(b);
  for (std::int64_t k = 0; k < n * width; ++k) kept[k % width] += b[k] * b[k];

  std::vector<double> x(n * width, 0.0);
  std::vector<double> r = b;
  for (int pass = 0; pass < 2; ++pass) {
    centre(r);
    dense_->solve(r.data(), width);
    for (std::int64_t k = 0; k < n * width; ++k) x[k] += r[k];
    centre(x);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t c = 0; c < width; ++c) {
        double sum = ground_ == nullptr ? 0.0 : ground_[i] * x[i * width + c];
        for (std::int64_t e = graph_.indptr[i]; e < graph_.indptr[i + 1]; ++e) {
          sum += graph_.weights[e] * (x[i * width + c] - x[graph_.indices[e] * width + c]);
        }
        r[i * width + c] = b[i * width + c] - sum;
      }
    }
  }
  std::vector<double> left(width, 0.0);
  for (std::int64_t k = 0; k < n * width; ++k) left[k % width] += r[k] * r[k];
  for (std::int64_t i = 0; i < n; ++i) std::copy_n(x.data() + i * width, width, columns.x + i * columns.stride);
  for (std::int64_t c = 0; c < width; ++c) {
    const bool zero = kept[c] <= whole[c] * 1e-30;
    reports[c].residual = zero ? 0.0 : std::sqrt(left[c] / kept[c]);
    reports[c].projected_out = whole[c] > 0.0 ? std::sqrt(std::max(0.0, 1.0 - kept[c] / whole[c])) : 0.0;
    reports[c].outcome = reports[c].residual <= tolerance ? Outcome::converged : Outcome::stagnated;
  }
}

// Columns that did not converge go on from where they are: in double, then with a better factor.
void Solver::retry_unfinished(const Columns<double>& columns, const SolveOptions& options, ColumnReport* reports) {
  for (int stage = 0; stage < 2; ++stage) {
    std::vector<std::int64_t> open;
    for (std::int64_t c = 0; c < columns.count; ++c) {
      const bool spent = reports[c].iterations >= options.max_iterations;
      if (reports[c].outcome != Outcome::converged && !spent) open.push_back(c);
    }
    if (open.empty()) return;
    if (stage == 1) {
      if (method_ != Method::cholesky || std::holds_alternative<Factor<double>>(preconditioner_)) return;
      const Stopwatch watch(setup_seconds_);
      build_factor<double>(2);
      reason_ += "; AC2 in double after the float factor stagnated";
    }
    const std::int64_t width = std::ssize(open);
    std::vector<double> b(graph_.n * width);
    std::vector<double> x(graph_.n * width);
    for (std::int64_t i = 0; i < graph_.n; ++i) {
      for (std::int64_t c = 0; c < width; ++c) {
        b[i * width + c] = columns.b[i * columns.stride + open[c]];
        x[i * width + c] = columns.x[i * columns.stride + open[c]];
      }
    }
    SolveOptions again = options;
    again.float_vectors = false;
    again.hopeless_beyond = stage == 0 ? kDoublePatience : std::numeric_limits<double>::infinity();
    std::int32_t used = 0;
    for (const std::int64_t c : open) used = std::max(used, reports[c].iterations);
    again.max_iterations = options.max_iterations - used;
    std::vector<ColumnReport> result(width);
    pcg(system(), Columns<double>{b.data(), x.data(), width, width}, again, result.data());
    for (std::int64_t c = 0; c < width; ++c) {
      ColumnReport& report = reports[open[c]];
      if (result[c].residual > report.residual) continue;  // it only got worse: keep what there was
      for (std::int64_t i = 0; i < graph_.n; ++i) columns.x[i * columns.stride + open[c]] = x[i * width + c];
      result[c].iterations += report.iterations;
      report = result[c];
    }
  }
}

void Solver::precondition(const Columns<double>& columns) {
  if (method_ == Method::automatic) {
    const Stopwatch watch(setup_seconds_);
    build_factor<float>(1);
    method_ = Method::cholesky;
    reason_ = "a preconditioner was asked for before a solution";
  }
  if (method_ == Method::direct) {
    std::vector<ColumnReport> reports(columns.count);
    solve_direct(columns, 1e-8, reports.data());
    return;
  }
  ohm::precondition(system(), columns);
}

}  // namespace ohm
