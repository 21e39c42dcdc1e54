#include "graph/product.hpp"

#include "graph/components.hpp"
#include "graph/edge_pass.hpp"

#include <numeric>
#include <random>
#include <variant>

#include "check.hpp"

namespace {

struct Edges {
  std::vector<std::int32_t> u, v;
  std::vector<double> w;
};

Edges random_edges(std::int32_t n, std::int64_t m, unsigned seed) {
  std::mt19937 random(seed);
  Edges edges;
  for (std::int64_t e = 0; e < m; ++e) {
    edges.u.push_back(static_cast<std::int32_t>(random() % n));
    edges.v.push_back(static_cast<std::int32_t>(random() % n));
    edges.w.push_back(random() % 7 == 0 ? 0.0 : static_cast<double>(random() % 64) / 4);
  }
  return edges;
}

std::vector<double> random_columns(std::int64_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> x(size);
  for (double& value : x) value = static_cast<double>(random() % 1024) / 8 - 64;
  return x;
}

}  // namespace

// Numbers that are exact in binary, so that all orders of summation give the same sum.
TEST(products_of_a_graph_are_sums_over_its_edges) {
  constexpr std::int32_t n = 1000;
  const Edges edges = random_edges(n, 400'000, 1);  // enough for threads
  const auto built = ohm::build_csr<std::int32_t, double>(n, edges.u, edges.v, edges.w);
  const ohm::Csr& csr = std::get<ohm::BuiltCsr>(built).csr;
  const ohm::CsrView graph{n, csr.indptr.data(), csr.indices.data(), csr.weights.data()};
  for (std::int64_t columns = 1; columns <= 11; ++columns) {
    const std::vector<double> x = random_columns(n * columns, 2);
    std::vector<double> expected(n * columns, 0.0);
    for (std::size_t e = 0; e < edges.u.size(); ++e) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const double flow = edges.w[e] * (x[edges.u[e] * columns + c] - x[edges.v[e] * columns + c]);
        expected[edges.u[e] * columns + c] += flow;
        expected[edges.v[e] * columns + c] -= flow;
      }
    }
    for (int threads = 1; threads <= 3; ++threads) {
      std::vector<double> y(n * columns);
      ohm::laplacian_product(graph, x.data(), columns, threads, y.data());
      CHECK(y == expected);
    }
  }
}

TEST(joined_ends_are_the_components) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    constexpr std::int32_t n = 200;
    const Edges edges = random_edges(n, 120 + 10 * seed, seed);
    const auto built = ohm::build_csr<std::int32_t, double>(n, edges.u, edges.v, edges.w);
    const ohm::Csr& csr = std::get<ohm::BuiltCsr>(built).csr;
    const ohm::Components parts = ohm::components({n, csr.indptr.data(), csr.indices.data(), csr.weights.data()});
    std::vector<std::int32_t> parent(n);
    std::iota(parent.begin(), parent.end(), 0);
    const auto join = [&](std::span<const std::int32_t> component) {
      ohm::EdgePass pass(n, nullptr, 0, 1, nullptr);
      pass.join({component.data(), parent.data()});
      pass.add<std::int32_t, double>(edges.u, edges.v, edges.w);
      return pass.lost();
    };
    CHECK(!join(parts.labels));
    ohm::find_roots(parent);
    for (std::int32_t i = 0; i < n; ++i) {
      CHECK(parts.labels[parent[i]] == parts.labels[i]);
      CHECK(parent[i] <= i && parent[parent[i]] == parent[i]);
      CHECK(i == 0 || parts.labels[i] != parts.labels[i - 1] || parent[i] == parent[i - 1]);
    }
    std::vector<std::int32_t> apart(n);
    std::iota(apart.begin(), apart.end(), 0);
    std::int64_t first = 0;
    while (edges.u[first] == edges.v[first] || edges.w[first] == 0.0) ++first;
    CHECK(join(apart) == std::pair<std::int64_t, std::int64_t>(edges.u[first], edges.v[first]));
  }
}

TEST(degrees_are_sums_of_weights) {
  constexpr std::int32_t n = 40;
  const Edges edges = random_edges(n, 500, 3);
  std::vector<double> degrees(n, 0.0), expected(n, 0.0);
  for (std::size_t e = 0; e < edges.u.size(); ++e) {
    if (edges.u[e] == edges.v[e]) continue;
    expected[edges.u[e]] += edges.w[e];
    expected[edges.v[e]] += edges.w[e];
  }
  expected[0] += 1.0;
  expected[1] += 1.0;
  const std::vector<std::int64_t> u{0, 1}, v{1, n};  // the second edge has an unknown end
  ohm::add_degrees<std::int32_t, double>(edges.u, edges.v, edges.w, degrees);
  ohm::add_degrees<std::int64_t, ohm::Unit>(u, v, {}, degrees);
  CHECK(degrees == expected);
}
