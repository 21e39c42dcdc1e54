#include "graph/product.hpp"

#include "graph/components.hpp"

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
TEST(products_of_edges_and_of_their_graph_agree) {
  constexpr std::int32_t n = 300;
  const Edges edges = random_edges(n, 200'000, 1);  // enough for threads
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
      std::vector<double> y(n * columns), z(n * columns, 0.0);
      ohm::laplacian_product(graph, x.data(), columns, threads, y.data());
      ohm::add_edge_products<std::int32_t, double>(edges.u, edges.v, edges.w, n, x.data(), columns, threads, z.data());
      CHECK(y == expected);
      CHECK(z == expected);
    }
  }
}

TEST(nodes_past_the_last_are_left_out) {
  const std::vector<std::int64_t> u{0, 5, 1}, v{1, 0, 9};
  const std::vector<double> x{3.0, 1.0};
  std::vector<double> y(2, 0.0);
  ohm::add_edge_products<std::int64_t, ohm::Unit>(u, v, {}, 2, x.data(), 1, 1, y.data());
  CHECK(y == std::vector<double>{2.0, -2.0});
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
      return ohm::join_ends<std::int32_t, double>(edges.u, edges.v, edges.w, component, parent);
    };
    CHECK(join(parts.labels) == -1);
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
    CHECK(join(apart) == first);
  }
}

TEST(surroundings_are_degrees_and_sums_over_neighbours) {
  constexpr std::int32_t n = 40;
  constexpr std::int64_t columns = 2;
  const Edges edges = random_edges(n, 500, 3);
  const std::vector<double> values = random_columns(n * columns, 4);
  const std::vector<float> x(values.begin(), values.end());
  std::vector<std::int32_t> column(n, -1);
  column[7] = 1;
  column[20] = 0;
  std::vector<double> degrees(n, 0.0), sums(columns, 0.0), expected(n, 0.0), expected_sums(columns, 0.0);
  for (std::size_t e = 0; e < edges.u.size(); ++e) {
    for (const auto& [a, b] : {std::pair(edges.u[e], edges.v[e]), std::pair(edges.v[e], edges.u[e])}) {
      if (a == b) continue;
      expected[a] += edges.w[e];
      if (column[a] >= 0) expected_sums[column[a]] += edges.w[e] * values[b * columns + column[a]];
    }
  }
  const ohm::Surroundings to{n, columns, column.data(), x.data(), degrees.data(), sums.data()};
  ohm::add_surroundings<std::int32_t, double>(edges.u, edges.v, edges.w, to);
  CHECK(degrees == expected);
  CHECK(sums == expected_sums);
  const std::vector<std::int64_t> u{0, 1}, v{1, n};  // the second edge has an unknown end
  ohm::add_surroundings<std::int64_t, ohm::Unit>(u, v, {}, to);
  CHECK(degrees[0] == expected[0] + 1.0);
  CHECK(degrees[1] == expected[1] + 1.0);
  std::vector<double> counted(n, 0.0);
  ohm::add_degrees<std::int32_t, double>(edges.u, edges.v, edges.w, counted);
  ohm::add_degrees<std::int64_t, ohm::Unit>(u, v, {}, counted);
  CHECK(counted == degrees);
}
