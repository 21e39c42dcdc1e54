#include "solver/solver.hpp"

#include <cstring>
#include <numeric>

#include "check.hpp"
#include "graphs.hpp"

namespace {

struct Answer {
  std::vector<double> x;
  std::vector<ohm::ColumnReport> reports;
};

Answer solve(ohm::Solver& solver, const std::vector<double>& b, std::int64_t columns, double tolerance = 1e-9,
             std::int32_t limit = 5000) {
  Answer answer{std::vector<double>(b.size(), 0.0), {}};
  answer.reports = solver.solve(ohm::Columns{b.data(), answer.x.data(), columns, columns}, tolerance, limit);
  return answer;
}

double true_residual(const graphs::Graph& graph, const double* ground, const std::vector<double>& b,
                     const std::vector<double>& x, std::int64_t columns, std::int64_t c) {
  const std::size_t n = graph.view().n;
  std::vector<double> column(n), right(n);
  for (std::size_t i = 0; i < n; ++i) {
    column[i] = x[i * columns + c];
    right[i] = b[i * columns + c];
  }
  if (ground == nullptr) graphs::subtract_mean(right);
  return graphs::distance(graphs::multiply(graph.view(), ground, column), right) / graphs::norm(right);
}

constexpr ohm::Method kMethods[] = {ohm::Method::automatic, ohm::Method::diagonal, ohm::Method::cholesky,
                                    ohm::Method::direct};

}  // namespace

TEST(every_method_and_width_reaches_the_tolerance) {
  const graphs::Graph graph = graphs::grid(25, 3, 1);
  std::vector<double> ground(625, 0.0);
  ground[17] = 0.2;
  for (const ohm::Method method : kMethods) {
    for (const double* d : {static_cast<const double*>(nullptr), static_cast<const double*>(ground.data())}) {
      for (const std::int64_t columns : {1, 2, 4, 5, 8, 9, 16, 17, 33}) {
        ohm::Solver solver(graph.view(), d, {method, 3, 2});
        const std::vector<double> b = graphs::random_vector(625 * columns, 7);
        const Answer answer = solve(solver, b, columns);
        for (std::int64_t c = 0; c < columns; ++c) {
          CHECK(answer.reports[c].outcome == ohm::Outcome::converged);
          const double residual = true_residual(graph, d, b, answer.x, columns, c);
          CHECK(residual <= 1e-9);
          CHECK(std::abs(residual - answer.reports[c].residual) <= 1e-12);
        }
      }
    }
  }
}

TEST(threads_do_not_change_a_bit) {
  constexpr int n = 66000;
  std::vector<graphs::Edge> parts;  // grids of 130 nodes without edges between them, and isolated nodes
  for (int i = 0; i + 10 < n - 500; ++i) {
    if (i % 130 < 120) parts.push_back({i, i + 10});
    if (i % 10 < 9) parts.push_back({i, i + 1});
  }
  // The last two are dissected.
  const graphs::Graph all[] = {graphs::wheel(20000), graphs::grid(257, 12, 1), graphs::make(n, parts)};
  for (const graphs::Graph& graph : all) {
    const std::size_t rows = graph.view().n;
    const std::vector<double> ground(rows, 0.01);
    for (const ohm::Method method : {ohm::Method::automatic, ohm::Method::diagonal, ohm::Method::cholesky}) {
      for (const std::int64_t columns : {1, 3, 20}) {
        if (&graph != all && (columns > 1 || method != ohm::Method::cholesky)) continue;
        const double* d = &graph == all ? ground.data() : nullptr;
        const std::vector<double> b = graphs::random_vector(rows * columns, 5);
        std::vector<double> first;
        for (const int threads : {1, 2, 3, 64}) {
          ohm::Solver solver(graph.view(), d, {method, 3, threads});
          const Answer answer = solve(solver, b, columns, 1e-6);
          if (first.empty()) first = answer.x;
          CHECK(std::memcmp(first.data(), answer.x.data(), first.size() * sizeof(double)) == 0);
          CHECK(answer.reports[0].residual <= 1e-6);
        }
      }
    }
  }
}

// Neither the factors nor the decisions of an earlier solve change an answer.
TEST(answers_do_not_depend_on_the_solves_before) {
  const graphs::Graph hard = graphs::tree(3000, 4, 1);  // auto ends with a factor
  const graphs::Graph harder = graphs::grid(30, 24, 1);  // a float factor is not enough
  for (const graphs::Graph* graph : {&hard, &harder}) {
    const std::size_t n = graph->view().n;
    for (const ohm::Method method : kMethods) {
      ohm::Solver solver(graph->view(), nullptr, {method, 9, 1});
      const std::vector<double> b = graphs::random_vector(n, 2), many = graphs::random_vector(9 * n, 3);
      const Answer first = solve(solver, b, 1);
      const std::string reason = solver.reason();
      solve(solver, many, 9);
      std::vector<double> x(n);
      solver.precondition(ohm::Columns{b.data(), x.data(), 1, 1});
      const Answer second = solve(solver, b, 1);
      CHECK(second.x == first.x);
      CHECK(second.reports[0].iterations == first.reports[0].iterations);
      CHECK(solver.reason() == reason);
    }
  }
}

TEST(a_numbering_other_than_the_graphs_is_undone) {
  const graphs::Graph graph = graphs::grid(20, 1, 1);
  std::vector<std::int32_t> order(400);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  const ohm::NullSpace null = ohm::null_space(graph.view(), nullptr);
  const ohm::Matrix matrix = ohm::make_matrix(graph.view(), nullptr, order);
  const std::vector<double> b = graphs::random_vector(400 * 5, 1);
  for (const int choice : {0, 1, 2}) {
    ohm::Preconditioner preconditioner;
    if (choice == 1) preconditioner = ohm::approximate_cholesky<float>(matrix, {}, {});
    if (choice == 2) preconditioner = ohm::approximate_cholesky<double>(matrix, {}, {});
    std::vector<double> x(b.size(), 0.0);
    std::vector<ohm::ColumnReport> reports(5);
    ohm::pcg(ohm::System{matrix, null, preconditioner}, ohm::Columns{b.data(), x.data(), 5, 5},
             ohm::SolveOptions{}, reports.data());
    for (int c = 0; c < 5; ++c) CHECK(true_residual(graph, nullptr, b, x, 5, c) <= 1e-8);
  }
}

// Columns of a wider array: other columns are neither read nor written.
TEST(strided_columns) {
  const graphs::Graph graph = graphs::grid(25, 1, 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ohm::Method method : kMethods) {
    ohm::Solver solver(graph.view(), nullptr, {method, 3, 1});
    std::vector<double> b(625 * 4, nan), x(625 * 4, nan), alone(625 * 2);
    const std::vector<double> values = graphs::random_vector(625 * 2, 1);
    for (int i = 0; i < 625; ++i) {
      for (int c = 0; c < 2; ++c) {
        b[i * 4 + c] = values[i * 2 + c];
        x[i * 4 + c] = 0.0;
      }
    }
    solver.solve(ohm::Columns{b.data(), x.data(), 4, 2}, 1e-9, 5000);
    for (int i = 0; i < 625; ++i) {
      CHECK(std::isnan(x[i * 4 + 2]) && std::isnan(x[i * 4 + 3]));
      for (int c = 0; c < 2; ++c) alone[i * 2 + c] = x[i * 4 + c];
    }
    for (int c = 0; c < 2; ++c) CHECK(true_residual(graph, nullptr, values, alone, 2, c) <= 1e-9);
  }
}

TEST(iterations_never_pass_the_limit) {
  const graphs::Graph graph = graphs::grid(40, 9, 1);
  const std::vector<double> b = graphs::random_vector(1600 * 3, 1);
  for (const ohm::Method method : {ohm::Method::automatic, ohm::Method::diagonal, ohm::Method::cholesky}) {
    for (const int limit : {0, 1, 19, 20, 21, 50, 150}) {
      ohm::Solver solver(graph.view(), nullptr, {method, 3, 1});
      for (const ohm::ColumnReport& report : solve(solver, b, 3, 1e-13, limit).reports) {
        CHECK(report.iterations <= limit);
        CHECK(std::isfinite(report.residual));
      }
    }
  }
}

TEST(means_of_constants_are_exact_to_a_bit) {
  const graphs::Graph graph = graphs::ring(100000, 0, 1);
  const ohm::NullSpace null = ohm::null_space(graph.view(), nullptr);
  const std::vector<double> tenth(100000, 0.1);
  CHECK(std::abs(null.means(tenth.data(), 1, 1)[0] - 0.1) <= 0x1p-56);
}

TEST(weight_range_finds_scale_and_span) {
  const auto range = [](double a, double b) {
    return ohm::weight_range(graphs::make(3, {{0, 1, a}, {1, 2, b}}).view(), nullptr);
  };
  CHECK(range(1.0, 1e-12).scale == 1.0 && range(1.0, 1e-12).fits_float);
  CHECK(range(3.0, 1e-30).scale == 0.5 && !range(3.0, 1e-30).fits_float);
  CHECK(std::isfinite(range(1e-310, 1e-311).scale) && range(1e-310, 1e-311).fits_float);
  CHECK(range(1e308, 1e307).scale * 1e308 >= 1.0);
}
