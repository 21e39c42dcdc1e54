#include "solver/direct.hpp"

#include "check.hpp"
#include "graphs.hpp"

TEST(dense_elimination_solves_grounded_systems) {
  const graphs::Graph graph = graphs::grid(9, 3, 4);
  std::vector<double> ground(81, 0.0);
  ground[80] = 0.5;
  const std::vector<double> b = graphs::random_vector(81 * 3, 2);
  std::vector<double> x = b;
  ohm::DenseFactor(graph.view(), ground.data()).solve(x.data(), 3);
  for (int c = 0; c < 3; ++c) {
    std::vector<double> column(81), expected(81);
    for (int i = 0; i < 81; ++i) {
      column[i] = x[i * 3 + c];
      expected[i] = b[i * 3 + c];
    }
    CHECK(graphs::distance(graphs::multiply(graph.view(), ground.data(), column), expected) < 1e-9);
  }
}

// A chain to ground, conductances 1e-12 .. 1e12: x_i is the sum of resistances before i, to all digits.
TEST(dense_elimination_keeps_relative_accuracy) {
  constexpr int n = 25;
  std::vector<graphs::Edge> edges;
  for (int i = 0; i + 1 < n; ++i) edges.push_back({i, i + 1, std::pow(10.0, (i * 7) % 24 - 12)});
  std::vector<double> ground(n, 0.0);
  ground[0] = 1e-3;
  std::vector<double> x(n, 0.0);
  x[n - 1] = 1.0;
  const graphs::Graph graph = graphs::make(n, edges);
  ohm::DenseFactor(graph.view(), ground.data()).solve(x.data(), 1);
  double resistance = 1e3;
  for (int i = 0; i < n; ++i) {
    CHECK(std::abs(x[i] - resistance) <= 1e-14 * resistance);
    if (i + 1 < n) resistance += 1.0 / edges[i].w;
  }
}

TEST(dense_scale_divides_the_answer) {
  const graphs::Graph graph = graphs::make(3, {{0, 1, 1e308}, {1, 2, 1e308}});  // whose degree overflows
  std::vector<double> x{1.0, 0.0, -1.0};
  ohm::DenseFactor(graph.view(), nullptr, 0x1p-1023).solve(x.data(), 1);
  CHECK(std::abs((x[0] - x[2]) * 0x1p-1023 * 1e308 - 2.0) < 1e-12);
}
