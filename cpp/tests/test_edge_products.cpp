#include "graph/edge_products.hpp"

#include "check.hpp"

#include <random>
#include <span>
#include <vector>

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
    edges.w.push_back(static_cast<double>(random() % 64) / 4);
  }
  return edges;
}

std::vector<double> random_columns(std::int64_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> x(size);
  for (double& value : x) value = static_cast<double>(random() % (1 << 26)) / 8;
  return x;
}

std::vector<double> add_one_by_one(const Edges& edges, const std::vector<double>& x, std::int64_t columns) {
  std::vector<double> y(x.size(), 0.0);
  for (std::size_t e = 0; e < edges.u.size(); ++e) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const double flow = edges.w[e] * (x[edges.u[e] * columns + c] - x[edges.v[e] * columns + c]);
      y[edges.u[e] * columns + c] += flow;
      y[edges.v[e] * columns + c] -= flow;
    }
  }
  return y;
}

std::vector<double> multiply(std::int32_t n, const Edges& edges, const std::vector<double>& x, std::int64_t columns,
                             int threads, std::size_t batch) {
  std::vector<double> y(x.size(), 0.0);
  ohm::EdgeProducts products(n, x.data(), columns, threads, y.data());
  for (std::size_t at = 0; at < edges.u.size(); at += batch) {
    const std::size_t size = std::min(batch, edges.u.size() - at);
    products.add(std::span(edges.u).subspan(at, size), std::span(edges.v).subspan(at, size),
                 std::span(edges.w).subspan(at, size));
  }
  products.finish();
  return y;
}

}  // namespace

// Numbers that are exact in binary, so that all orders of summation give the same sum.
TEST(edge_products_are_sums_over_edges) {
  for (const std::int32_t n : {3, 64, 300}) {
    const Edges edges = random_edges(n, 40'000, 1);  // enough to fill tables and for threads
    for (const std::int64_t columns : {1, 15, 16, 17, 32, 59}) {
      const std::vector<double> x = random_columns(n * columns, 2);
      const std::vector<double> expected = add_one_by_one(edges, x, columns);
      for (int threads = 1; threads <= 3; ++threads) {
        CHECK(multiply(n, edges, x, columns, threads, 30'000) == expected);
      }
    }
  }
}

TEST(neither_batches_nor_threads_change_edge_products) {
  constexpr std::int32_t n = 500;
  constexpr std::int64_t columns = 21;
  const Edges edges = random_edges(n, 50'000, 3);
  std::vector<double> x = random_columns(n * columns, 4);
  for (double& value : x) value /= 7.0;  // sums are rounded
  const std::vector<double> expected = multiply(n, edges, x, columns, 1, edges.u.size());
  for (int threads = 1; threads <= 3; ++threads) {
    for (const std::size_t batch : {1'000, 17'000, 50'000}) {
      CHECK(multiply(n, edges, x, columns, threads, batch) == expected);
    }
  }
}

TEST(edge_products_ignore_nodes_past_the_last) {
  constexpr std::int64_t columns = 16;
  const std::vector<std::int64_t> u{0, 5, 1, 1}, v{1, 0, 9, 1};
  std::vector<double> x(2 * columns, 1.0), y(2 * columns, 0.0);
  x[0] = 3.0;
  ohm::EdgeProducts products(2, x.data(), columns, 1, y.data());
  products.add<std::int64_t, ohm::Unit>(u, v, {});
  products.finish();
  CHECK(y[0] == 2.0 && y[1] == 0.0 && y[columns] == -2.0);
}
