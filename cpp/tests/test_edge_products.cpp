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

// Multiples of 1/8 below `limit` / 8.
std::vector<double> random_columns(std::int64_t size, std::uint32_t limit, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> x(size);
  for (double& value : x) value = static_cast<double>(random() % limit) / 8;
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

std::vector<double> multiply(ohm::EdgeProducts& products, const Edges& edges, const std::vector<double>& x,
                             std::int64_t columns, std::size_t batch) {
  std::vector<double> y(x.size(), 0.0);
  products.begin(x.data(), columns, y.data());
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
    for (const std::uint32_t limit : {1u << 10, 1u << 26}) {
      for (const std::int64_t columns : {1, 12, 13, 16, 17, 59}) {
        const std::vector<double> x = random_columns(n * columns, limit, 2);
        const std::vector<double> expected = add_one_by_one(edges, x, columns);
        for (int threads = 1; threads <= 3; ++threads) {
          ohm::EdgeProducts products(n, columns, threads);
          CHECK(multiply(products, edges, x, columns, 30'000) == expected);
          CHECK(multiply(products, edges, x, columns, 40'000) == expected);  // once more with the same tables
        }
      }
    }
  }
}

TEST(neither_batches_nor_threads_change_edge_products) {
  constexpr std::int32_t n = 500;
  constexpr std::int64_t columns = 21;
  const Edges edges = random_edges(n, 50'000, 3);
  std::vector<double> x = random_columns(n * columns, 1 << 20, 4);
  for (double& value : x) value /= 7.0;  // sums are rounded
  ohm::EdgeProducts one(n, columns, 1);
  const std::vector<double> expected = multiply(one, edges, x, columns, edges.u.size());
  for (int threads = 1; threads <= 3; ++threads) {
    for (const std::size_t batch : {1'000, 17'000, 50'000}) {
      ohm::EdgeProducts products(n, columns, threads);
      CHECK(multiply(products, edges, x, columns, batch) == expected);
    }
  }
}

TEST(tables_with_all_edges_multiply_again) {
  constexpr std::int32_t n = 2'000;
  constexpr std::int64_t columns = 20;
  Edges edges = random_edges(n, 3'000, 5);
  for (int copies = 0; copies < 4; ++copies) {  // the same pairs again
    for (std::int64_t e = 0; e < 3'000; ++e) {
      edges.u.push_back(edges.u[e]);
      edges.v.push_back(edges.v[e]);
      edges.w.push_back(edges.w[e] / 3.0);
    }
  }
  const std::vector<double> x = random_columns(n * columns, 1 << 26, 6);
  std::vector<double> y(x.size(), 0.0), z(x.size(), 0.0);
  ohm::EdgeProducts products(n, columns, 2);
  products.begin(x.data(), columns, y.data());
  products.add<std::int32_t, double>(edges.u, edges.v, edges.w);
  CHECK(products.finish());
  products.repeat(x.data(), columns, z.data());
  CHECK(y == z);

  const Edges many = random_edges(n, 100'000, 7);
  products.begin(x.data(), columns, y.data());
  products.add<std::int32_t, double>(many.u, many.v, many.w);
  CHECK(!products.finish());
}

TEST(edge_products_ignore_nodes_past_the_last) {
  constexpr std::int64_t columns = 13;
  const std::vector<std::int64_t> u{0, 5, 1, 1}, v{1, 0, 9, 1};
  std::vector<double> x(2 * columns, 1.0), y(2 * columns, 0.0);
  x[0] = 3.0;
  ohm::EdgeProducts products(2, columns, 1);
  products.begin(x.data(), columns, y.data());
  products.add<std::int64_t, ohm::Unit>(u, v, {});
  CHECK(products.finish());
  CHECK(y[0] == 2.0 && y[1] == 0.0 && y[columns] == -2.0);
}
