#include "graph/edge_pass.hpp"

#include "check.hpp"
#include "graph/components.hpp"
#include "graph/csr.hpp"
#include "graph/product.hpp"

#include <optional>
#include <random>
#include <span>
#include <utility>
#include <variant>
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
    edges.w.push_back(static_cast<double>(random() % 64) / 4);  // zero at times
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

constexpr int kThreads[] = {1, 2, 3, 12};  // with twelve, edges are sorted

// All that a pass finds.
struct Found {
  std::vector<double> product, degrees, sums;
  std::vector<std::int32_t> roots;
  std::optional<std::pair<std::int64_t, std::int64_t>> lost;
  bool operator==(const Found&) const = default;
};

constexpr std::int64_t kWatched = 2;  // nodes 0 and 1

Found read(std::int32_t n, const Edges& edges, const std::vector<double>& x, std::int64_t columns, int threads,
           std::size_t batch) {
  Found found{std::vector<double>(x.size(), 0.0), std::vector<double>(n, 0.0), std::vector<double>(kWatched, 0.0),
              ohm::lone_nodes(n), {}};
  std::vector<std::int32_t> column(n, -1), component(n, 0);
  column[0] = 1;
  column[1] = 0;
  component[2] = 1;  // edges of node 2 are lost
  std::vector<float> values(n * kWatched);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 50);
  ohm::EdgePass pass(n, x.data(), columns, threads, found.product.data());
  pass.watch({kWatched, column.data(), values.data(), found.degrees.data(), found.sums.data()});
  pass.join({component.data(), found.roots.data()});
  for (std::size_t at = 0; at < edges.u.size(); at += batch) {
    const std::size_t size = std::min(batch, edges.u.size() - at);
    pass.add(std::span(edges.u).subspan(at, size), std::span(edges.v).subspan(at, size),
             std::span(edges.w).subspan(at, size));
  }
  pass.finish();
  ohm::find_roots(found.roots);
  found.lost = pass.lost();
  return found;
}

}  // namespace

// Numbers that are exact in binary, so that all orders of summation give the same sum.
TEST(passes_find_sums_over_edges) {
  for (const std::int32_t n : {3, 64, 300}) {
    const Edges edges = random_edges(n, 40'000, 1);  // enough to sort them
    Found expected{{}, std::vector<double>(n, 0.0), std::vector<double>(kWatched, 0.0), std::vector<std::int32_t>(n, 0),
                   {}};
    for (std::size_t e = 0; e < edges.u.size(); ++e) {
      const std::int32_t a = edges.u[e], b = edges.v[e];
      if (a == b) continue;
      if ((a == 2 || b == 2) && edges.w[e] > 0.0 && !expected.lost) expected.lost = {a, b};
      for (const auto& [node, neighbour] : {std::pair(a, b), std::pair(b, a)}) {
        expected.degrees[node] += edges.w[e];
        if (node > 1) continue;
        const int at = 1 - node;
        expected.sums[at] += edges.w[e] * static_cast<double>((neighbour * kWatched + at) % 50);
      }
    }
    for (const std::int64_t columns : {1, 7, 8, 21}) {
      const std::vector<double> x = random_columns(n * columns, 2);
      expected.product = add_one_by_one(edges, x, columns);
      for (const int threads : kThreads) CHECK(read(n, edges, x, columns, threads, 30'000) == expected);
    }
  }
}

// More edges than are sorted at a time, and rows of x for which they are sorted in one thread, too.
TEST(neither_batches_nor_threads_change_a_pass) {
  const Edges edges = random_edges(90'000, 1'100'000, 3);
  for (const std::int64_t columns : {1, 7}) {
    std::vector<double> x = random_columns(90'000 * columns, 4);
    for (double& value : x) value /= 7.0;  // sums are rounded
    const Found expected = read(90'000, edges, x, columns, 1, edges.u.size());
    for (const int threads : kThreads) {
      for (const std::size_t batch : {70'000, 1'100'000}) {
        CHECK(read(90'000, edges, x, columns, threads, batch) == expected);
      }
    }
  }
}

TEST(components_that_edges_join_are_found) {
  constexpr std::int32_t n = 60'000;
  const Edges edges = random_edges(n, 40'000, 5);  // many components
  const std::vector<double> x(n, 1.0);
  std::vector<std::int32_t> roots = ohm::lone_nodes(n);
  for (std::size_t e = 0; e < edges.u.size(); ++e) {
    if (edges.w[e] > 0.0) ohm::join_sets(roots, edges.u[e], edges.v[e]);
  }
  ohm::find_roots(roots);
  for (const int threads : kThreads) CHECK(read(n, edges, x, 1, threads, 10'000).roots == roots);
}

TEST(batches_with_and_without_weights_can_follow_each_other) {
  const Edges edges = random_edges(50, 60'000, 6);
  const std::vector<double> x = random_columns(50, 7);
  const std::span<const std::int32_t> u(edges.u), v(edges.v);
  const std::span<const double> w(edges.w);
  Edges all = edges;
  for (std::size_t e = 0; e < 40'000; ++e) all.w[e < 20'000 ? e : e + 20'000] = 1.0;
  for (const int threads : kThreads) {
    std::vector<double> y(50, 0.0);
    ohm::EdgePass pass(50, x.data(), 1, threads, y.data());
    pass.add<std::int32_t, ohm::Unit>(u.first(20'000), v.first(20'000), {});
    pass.add<std::int32_t, double>(u.subspan(20'000, 20'000), v.subspan(20'000, 20'000), w.subspan(20'000, 20'000));
    pass.add<std::int32_t, ohm::Unit>(u.last(20'000), v.last(20'000), {});
    pass.finish();
    CHECK(y == add_one_by_one(all, x, 1));
  }
}

TEST(passes_ignore_nodes_past_the_last) {
  constexpr std::int64_t columns = 16;
  std::vector<std::int64_t> u{0, 5, 1, 1}, v{1, 0, 9, 1};
  u.resize(40'000, 7);
  v.resize(40'000, 0);
  std::vector<double> x(2 * columns, 1.0);
  x[0] = 3.0;
  for (const int threads : kThreads) {
    std::vector<double> y(2 * columns, 0.0);
    const std::vector<std::int32_t> component(2, 0);
    std::vector<std::int32_t> parent = ohm::lone_nodes(2);
    ohm::EdgePass pass(2, x.data(), columns, threads, y.data());
    pass.join({component.data(), parent.data()});
    pass.add<std::int64_t, ohm::Unit>(u, v, {});
    pass.finish();
    CHECK(y[0] == 2.0 && y[1] == 0.0 && y[columns] == -2.0);
    CHECK(pass.lost() == std::pair<std::int64_t, std::int64_t>(5, 0));
  }
}

// Numbers that are exact in binary, as above.
TEST(products_of_a_graph_are_sums_over_its_edges) {
  constexpr std::int32_t n = 1000;
  const Edges edges = random_edges(n, 400'000, 1);  // enough for threads
  const auto built = ohm::build_csr<std::int32_t, double>(n, edges.u, edges.v, edges.w);
  const ohm::Csr& csr = std::get<ohm::BuiltCsr>(built).csr;
  const ohm::CsrView graph{n, csr.indptr.data(), csr.indices.data(), csr.weights.data()};
  for (std::int64_t columns = 1; columns <= 11; ++columns) {
    const std::vector<double> x = random_columns(n * columns, 2);
    const std::vector<double> expected = add_one_by_one(edges, x, columns);
    for (int threads = 1; threads <= 3; ++threads) {
      std::vector<double> y(n * columns);
      ohm::laplacian_product(graph, x.data(), columns, threads, y.data());
      CHECK(y == expected);
    }
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
