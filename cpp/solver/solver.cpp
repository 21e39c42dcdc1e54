#include "solver/solver.hpp"

#include "solver/ordering.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>

namespace ohm {
namespace {

// Costs of a factor in units of diagonal iterations on one column, measured on 13 graphs of 986 to 36,458 nodes: to
// build it, if rows are so long that their entries are all that an iteration costs; per iteration with it, and the
// number of such iterations for 1e-8. The other work of an iteration on a row is that of `kRowWork` entries.
constexpr double kBuildCost = 250.0;
constexpr std::int64_t kRowWork = 8;
constexpr double kFactorIterationCost = 4.0;
constexpr double kFactorIterations = 22.0;
// Columns that are solved together share the memory traffic of the matrix.
constexpr double kBlockDiscount = 0.45;

// Smallest ball radii (see ordering.hpp) for which renumbering helps, and for which a factor always pays.
constexpr int kLocalRadius = 6;
constexpr int kMeshRadius = 16;
// Entries per row above which a factor takes several times the memory of the graph, so that it is a last resort.
constexpr std::int64_t kFactorRow = 32;
// Entries per row above which most of the memory traffic is the matrix, so that double vectors are nearly free.
constexpr std::int64_t kMatrixRow = 64;
// A float factor is abandoned if more iterations than this are forecast: with float vectors, with double vectors.
constexpr double kFloatPatience = 300.0;
constexpr double kDoublePatience = 600.0;

// A weak link between clusters is one slow mode among n, and its part of a random right-hand side is tiny. If that
// mode is not resolved, the sampler drops such links (seen at tolerance 1e-3 on three blocks with three bridges).
constexpr double kEmbeddingTolerance = 1e-4;
constexpr std::int32_t kEmbeddingIterations = 1000;
constexpr double kClusterPatience = 100.0;  // iterations without a factor, if a factor is cheap
constexpr float kFloatContrast = 1e6f;      // the largest contrast of weights for which vectors may be floats

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

// The number of diagonal iterations above which a factor is cheaper, for this many columns.
double break_even(const CsrView& graph, std::int64_t columns, double tolerance) {
  const double part = static_cast<double>(graph.entries()) / static_cast<double>(graph.entries() + kRowWork * graph.n);
  const double work = columns == 1 ? 1.0 : kBlockDiscount * static_cast<double>(columns);
  const double digits = std::max(1.0, -std::log10(tolerance)) / 8.0;
  return part * kBuildCost / work + kFactorIterationCost * kFactorIterations * digits;
}

// Conjugate gradients in floats, then in doubles if floats stagnate; true if all columns converge.
bool solve_without_factor(const ClusteredGraph& graph, Crew& crew, const Columns& columns) {
  const Matrix& a = graph.matrix;
  const std::int64_t entries = std::ssize(a.index);
  const Preconditioner preconditioner = &graph.tree;
  std::vector<ColumnReport> reports(columns.count);
  SolveOptions options{.tolerance = kEmbeddingTolerance, .max_iterations = kEmbeddingIterations,
                       .measure_energy = true, .threads = crew.size()};
  if (entries <= kFactorRow * a.n) options.hopeless_beyond = kClusterPatience;
  const auto [lightest, heaviest] = find_extremes(std::get<Buffer<float>>(a.weight), crew);
  options.float_vectors = entries == 0 || heaviest < kFloatContrast * lightest;
  for (;; options.float_vectors = false) {
    pcg({a, graph.null_space, preconditioner}, columns, options, reports.data());
    const auto is_unfinished = [](const ColumnReport& r) { return r.outcome != Outcome::converged; };
    if (std::none_of(reports.begin(), reports.end(), is_unfinished)) return true;
    std::fill_n(columns.x, columns.stride * a.n, 0.0);
    const auto is_stagnant = [](const ColumnReport& r) { return r.outcome == Outcome::stagnated; };
    if (!options.float_vectors || std::none_of(reports.begin(), reports.end(), is_stagnant)) return false;
  }
}

}  // namespace

Solver::Solver(const CsrView& graph, const double* ground, const SolverOptions& options)
    : graph_(graph), ground_(ground), options_(options), plan_(options.method) {
  const Stopwatch watch(setup_seconds_);
  null_ = ohm::null_space(graph_, ground_);
  if (plan_ == Method::automatic && graph.n <= kDirectChosen) {
    plan_ = Method::direct;
    plan_reason_ = "at most " + std::to_string(kDirectChosen) + " nodes";
  } else if (plan_ != Method::automatic) {
    plan_reason_ = "asked for";
  }
  if (plan_ == Method::direct) {
    if (graph.n > kDirectLimit) throw std::length_error("too many nodes for a dense factor");
    direct_.emplace(graph_, ground_, null_);
  } else {
    const int radius = graph_.n > 0 ? ball_radius(graph_) : 0;
    is_local_ = radius >= kLocalRadius;
    if (is_local_ && numbers_are_scattered(graph_)) {
      matrix_.order = bfs_order(graph_);
    } else {
      matrix_.order.resize(graph_.n);
      std::iota(matrix_.order.begin(), matrix_.order.end(), 0);
    }
    if (plan_ == Method::automatic && radius >= kMeshRadius) {
      plan_ = Method::cholesky;
      plan_reason_ = "spread out like a mesh: a 64th of the nodes takes " + std::to_string(radius) + " steps to reach";
    }
    if (plan_ != Method::cholesky) sort_by_length(graph_, matrix_.order);
    Crew crew(options_.threads);
    matrix_ = make_matrix(graph_, ground_, std::move(matrix_.order), crew);
    if (plan_ == Method::cholesky) use_factor();
  }
  method_ = plan_;
  reason_ = plan_reason_;
}

void Solver::use_factor() {
  if (std::holds_alternative<std::monostate>(factor_)) {
    factor_ = matrix_.float_range ? build_factor<float>(1) : build_factor<double>(2);
  }
  in_use_ = &factor_;
}

void Solver::use_fine_factor() {
  if (std::holds_alternative<std::monostate>(fine_factor_)) fine_factor_ = build_factor<double>(2);
  in_use_ = &fine_factor_;
}

template <class Real>
Preconditioner Solver::build_factor(int copies) const {
  Crew crew(options_.threads);
  return approximate_cholesky<Real>(matrix_, dissect(matrix_, crew), {.seed = options_.seed, .copies = copies}, crew);
}

std::int64_t Solver::factor_entries() const {
  if (direct_) return direct_->entries();
  if (const auto* factor = std::get_if<Factor<float>>(in_use_)) return factor->entries();
  if (const auto* factor = std::get_if<Factor<double>>(in_use_)) return factor->entries();
  return 0;
}

std::vector<ColumnReport> Solver::solve(const Columns& columns, double tolerance, std::int32_t max_iterations) {
  std::vector<ColumnReport> reports(columns.count);
  method_ = plan_ == Method::automatic ? Method::diagonal : plan_;
  reason_ = plan_reason_;
  if (columns.count == 0 || graph_.n == 0) return reports;
  SolveOptions options{.tolerance = tolerance, .max_iterations = max_iterations,
                       .measure_energy = options_.measure_energy, .threads = options_.threads};
  if (plan_ == Method::direct) {
    direct_->solve(columns, tolerance, reports.data());
    return reports;
  }
  in_use_ = &diagonal_;
  if (plan_ == Method::cholesky) use_factor();
  // Without a factor, float vectors need more iterations if a few slow modes stand apart (two to seven times as many on
  // clusters joined by single edges). In a sparse graph a factor removes such modes.
  if (plan_ != Method::cholesky) options.float_vectors = graph_.entries() <= kMatrixRow * graph_.n;
  if (plan_ == Method::automatic) {
    solve_diagonal_first(columns, options, reports.data());
  } else {
    options.hopeless_beyond = patience(kFloatPatience);
    pcg(system(), columns, options, reports.data());
  }
  retry_unfinished(columns, options, reports.data());
  return reports;
}

// A forecast may stop a stage only if a finer factor can be tried next.
double Solver::patience(double iterations) const {
  return std::holds_alternative<Factor<float>>(*in_use_) ? iterations : std::numeric_limits<double>::infinity();
}

// The first block is a trial for all columns. A factor starts from what the diagonal has reached.
void Solver::solve_diagonal_first(const Columns& columns, const SolveOptions& options, ColumnReport* reports) {
  SolveOptions trial = options;
  trial.hopeless_beyond = break_even(graph_, columns.count, options.tolerance);
  trial.mean_rate = !is_local_;
  const auto wants_factor = [](const ColumnReport& r) {
    return r.outcome != Outcome::converged && r.outcome != Outcome::iteration_limit;
  };
  std::int64_t tried = 0;
  while (tried < columns.count && std::none_of(reports, reports + tried, wants_factor)) {
    const std::int64_t left = columns.count - tried;
    const std::int64_t count = tried == 0 ? std::min<std::int64_t>(left, kBlockColumns) : left;
    pcg(system(), Columns{columns.b + tried, columns.x + tried, columns.stride, count}, trial, reports + tried);
    tried += count;
  }
  std::int32_t used = 0;
  for (std::int64_t c = 0; c < tried; ++c) used = std::max(used, reports[c].iterations);
  if (std::none_of(reports, reports + tried, wants_factor)) {
    const bool limit = std::any_of(reports, reports + tried,
                                   [](const ColumnReport& r) { return r.outcome == Outcome::iteration_limit; });
    reason_ = std::string(limit ? "the diagonal was stopped after " : "the diagonal converged in ") +
              std::to_string(used) + " iterations";
    return;
  }
  {
    const Stopwatch watch(setup_seconds_);
    use_factor();
  }
  method_ = Method::cholesky;
  const bool hopeless = std::any_of(reports, reports + tried,
                                    [](const ColumnReport& r) { return r.outcome == Outcome::hopeless; });
  reason_ = hopeless ? "the diagonal would have needed more than " +
                           std::to_string(static_cast<long>(trial.hopeless_beyond)) + " iterations"
                     : "the diagonal stagnated after " + std::to_string(used) + " iterations";
  std::vector<ColumnReport> before(reports, reports + tried);
  SolveOptions factored = options;
  factored.float_vectors = true;
  factored.max_iterations = std::max(0, options.max_iterations - used);
  factored.hopeless_beyond = patience(kFloatPatience);
  pcg(system(), columns, factored, reports);
  for (std::int64_t c = 0; c < tried; ++c) reports[c].iterations += before[c].iterations;
}

// Columns that have not converged continue from where they are: in double, then with a better factor.
void Solver::retry_unfinished(const Columns& columns, const SolveOptions& options, ColumnReport* reports) {
  for (int stage = 0; stage < 2; ++stage) {
    std::map<std::int32_t, std::vector<std::int64_t>> open;  // by iterations used, because these reduce the limit
    for (std::int64_t c = 0; c < columns.count; ++c) {
      const bool spent = reports[c].iterations >= options.max_iterations;
      const bool done = reports[c].outcome == Outcome::converged || reports[c].outcome == Outcome::rounding;
      if (!done && !spent) open[reports[c].iterations].push_back(c);
    }
    if (open.empty()) return;
    if (stage == 1) {
      if (!std::holds_alternative<Factor<float>>(*in_use_)) return;
      const Stopwatch watch(setup_seconds_);
      use_fine_factor();
      reason_ += "; continued with a finer factor in double precision, because the float factor did not converge";
    }
    for (const auto& [used, chosen] : open) {
      SolveOptions again = options;
      again.float_vectors = false;
      again.hopeless_beyond = patience(kDoublePatience);
      again.max_iterations = options.max_iterations - used;
      solve_chosen(columns, chosen, again, reports);
    }
  }
}

// Continues with some of the columns and keeps the better answer of each.
void Solver::solve_chosen(const Columns& columns, const std::vector<std::int64_t>& chosen,
                          const SolveOptions& options, ColumnReport* reports) const {
  const std::int64_t width = std::ssize(chosen);
  std::vector<double> b(graph_.n * width);
  std::vector<double> x(graph_.n * width);
  for (std::int64_t i = 0; i < graph_.n; ++i) {
    for (std::int64_t c = 0; c < width; ++c) {
      b[i * width + c] = columns.b[i * columns.stride + chosen[c]];
      x[i * width + c] = columns.x[i * columns.stride + chosen[c]];
    }
  }
  std::vector<ColumnReport> result(width);
  pcg(system(), Columns{b.data(), x.data(), width, width}, options, result.data());
  for (std::int64_t c = 0; c < width; ++c) {
    ColumnReport& report = reports[chosen[c]];
    result[c].iterations += report.iterations;
    if (result[c].residual <= report.residual) {
      for (std::int64_t i = 0; i < graph_.n; ++i) columns.x[i * columns.stride + chosen[c]] = x[i * width + c];
      report = result[c];
    } else {  // worse than before: keep the earlier answer
      report.iterations = result[c].iterations;
    }
  }
}

void Solver::precondition(const Columns& columns) {
  if (plan_ == Method::direct) {
    std::vector<ColumnReport> reports(columns.count);
    direct_->solve(columns, 1e-8, reports.data());
    return;
  }
  if (plan_ == Method::automatic) {
    const Stopwatch watch(setup_seconds_);
    use_factor();
  }
  ohm::precondition({matrix_, null_, plan_ == Method::diagonal ? diagonal_ : factor_}, columns,
                    options_.threads);
}

void solve_with_clusters(const ClusteredGraph& graph, std::uint64_t seed, Crew& crew, const Columns& columns) {
  if (solve_without_factor(graph, crew, columns)) return;
  const Matrix& a = graph.matrix;
  const auto& scaled = std::get<Buffer<float>>(a.weight);
  Buffer<double> weight(scaled.size());
  std::transform(scaled.begin(), scaled.end(), weight.begin(), [&](double w) { return w / a.scale; });
  const CsrView view{a.n, a.start.data(), a.index.data(), weight.data()};
  try {
    Solver solver(view, nullptr, SolverOptions{Method::cholesky, seed, crew.size(), true});
    solver.solve(columns, kEmbeddingTolerance, kEmbeddingIterations);
  } catch (const std::length_error&) {
    // Too many entries for a factor. If the first factor was too large, x is zero; if the finer one was, x is what the
    // first has reached. estimate_leverages detects a wrong x, and the sampler then uses lower bounds alone.
  }
}

}  // namespace ohm
