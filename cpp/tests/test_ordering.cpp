#include "solver/ordering.hpp"

#include <algorithm>
#include <numeric>

#include "check.hpp"
#include "graphs.hpp"

TEST(breadth_first_order_is_a_permutation_by_levels) {
  // Two rings under shuffled numbers, and an isolated node.
  std::vector<int> name(101);
  std::iota(name.begin(), name.end(), 0);
  std::shuffle(name.begin(), name.end(), std::mt19937(1));
  std::vector<graphs::Edge> edges;
  for (int i = 0; i < 60; ++i) edges.push_back({name[i], name[(i + 1) % 60]});
  for (int i = 0; i < 40; ++i) edges.push_back({name[60 + i], name[60 + (i + 1) % 40]});
  const graphs::Graph graph = graphs::make(101, edges);
  const std::vector<std::int32_t> order = ohm::bfs_order(graph.view());
  std::vector<std::int32_t> sorted = order;
  std::ranges::sort(sorted);
  for (int i = 0; i < 101; ++i) CHECK(sorted[i] == i);
  std::vector<int> number(101);
  for (int k = 0; k < 101; ++k) number[order[k]] = k;
  // Two fronts run around a ring: neighbours are at most two numbers apart.
  for (const graphs::Edge& e : edges) CHECK(std::abs(number[e.u] - number[e.v]) <= 2);
}

TEST(only_far_neighbours_are_scattered) {
  constexpr int n = 200000;
  std::vector<graphs::Edge> near, far;
  for (int i = 0; i < n; ++i) {
    near.push_back({i, (i + 1) % n});
    far.push_back({i, static_cast<int>((i * 77777LL + 13) % n)});
  }
  CHECK(!ohm::numbers_are_scattered(graphs::make(n, near).view()));
  CHECK(ohm::numbers_are_scattered(graphs::make(n, far).view()));
  CHECK(!ohm::numbers_are_scattered(graphs::make(0, {}).view()));
  CHECK(!ohm::numbers_are_scattered(graphs::make(5, {}).view()));
}

TEST(neighbours_are_in_one_piece_or_one_above_the_other) {
  const auto dissect = [](const graphs::Graph& graph, int threads) {
    ohm::Crew crew(threads);
    std::vector<std::int32_t> order(graph.view().n);
    std::iota(order.begin(), order.end(), 0);
    return ohm::dissect(ohm::make_matrix(graph.view(), nullptr, order), crew);
  };
  const graphs::Graph grid = graphs::grid(300, 0, 1);
  const std::vector<std::int32_t> tree = dissect(grid, 1);
  CHECK(tree == dissect(grid, 3));
  std::vector<int> rows(8, 0);
  for (std::int32_t u = 0; u < std::ssize(tree); ++u) {
    ++rows[tree[u]];
    for (auto e = grid.csr.indptr[u]; e < grid.csr.indptr[u + 1]; ++e) {
      auto below = std::max(tree[u], tree[grid.csr.indices[e]]), above = std::min(tree[u], tree[grid.csr.indices[e]]);
      while (below > above) below /= 2;
      CHECK(below == above);
    }
  }
  CHECK(rows[1] + rows[2] + rows[3] < 1500);
  for (int leaf = 4; leaf < 8; ++leaf) CHECK(rows[leaf] > 18000 && rows[leaf] < 27000);
  // An expander has no small separators.
  std::mt19937 random(1);
  std::vector<graphs::Edge> edges;
  for (int i = 0; i < 280000; ++i) edges.push_back({static_cast<int>(random() % 70000), static_cast<int>(random() % 70000)});
  CHECK(dissect(graphs::make(70000, edges), 2).empty());
  CHECK(dissect(graphs::ring(60000, 0, 1), 2).empty());  // too small
}
