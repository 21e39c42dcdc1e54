#include "graph/csr.hpp"

#include "graph/components.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <utility>

#include "base/rng.hpp"
#include "check.hpp"

namespace {

using Reason = ohm::EdgeFault::Reason;
using Pair = std::pair<std::int64_t, std::int64_t>;

template <class Index, class Weight>
std::variant<ohm::BuiltCsr, ohm::EdgeFault> build(std::int32_t n, const std::vector<Index>& u,
                                                  const std::vector<Index>& v, const std::vector<Weight>& w) {
  return ohm::build_csr<Index, Weight>(n, u, v, w);
}

template <class Index>
ohm::EdgeFault fault_of(std::int32_t n, const std::vector<Index>& u, const std::vector<Index>& v,
                        const std::vector<double>& w) {
  return std::get<ohm::EdgeFault>(build(n, u, v, w));
}

ohm::CsrView view(const ohm::Csr& csr) {
  return {static_cast<std::int32_t>(csr.indptr.size() - 1), csr.indptr.data(), csr.indices.data(),
          csr.weights.data()};
}

// Random edges against a map that adds weights in input order: equal to the last bit.
template <class Index, class Weight>
void compare_with_map(std::int32_t n, std::size_t m, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Index> u(m), v(m);
  std::vector<Weight> w(std::is_same_v<Weight, ohm::Unit> ? 0 : m);
  std::map<Pair, double> expected;
  std::int64_t self_loops = 0, zero_weights = 0;
  for (std::size_t i = 0; i < m; ++i) {
    u[i] = static_cast<Index>(random() % n);
    v[i] = static_cast<Index>(random() % n);
    double weight = 1.0;
    if constexpr (!std::is_same_v<Weight, ohm::Unit>) {
      w[i] = random() % 10 == 0 ? Weight(0) : static_cast<Weight>(random()) / Weight(1e7);
      weight = w[i];
    }
    if (u[i] == v[i]) {
      ++self_loops;
    } else if (weight == 0.0) {
      ++zero_weights;
    } else {
      expected[{u[i], v[i]}] += weight;
      expected[{v[i], u[i]}] += weight;
    }
  }
  const auto result = build(n, u, v, w);
  CHECK(std::holds_alternative<ohm::BuiltCsr>(result));
  const auto& built = std::get<ohm::BuiltCsr>(result);
  CHECK(built.n_self_loops == self_loops);
  CHECK(built.n_zero_weights == zero_weights);
  CHECK(built.csr.indptr.size() == static_cast<std::size_t>(n) + 1);
  CHECK(built.csr.indptr.back() == static_cast<std::int64_t>(expected.size()));
  // A map is ordered by (row, column), which is the order that CSR promises.
  auto entry = expected.begin();
  for (std::int32_t row = 0; row < n; ++row) {
    for (auto k = built.csr.indptr[row]; k < built.csr.indptr[row + 1]; ++k, ++entry) {
      CHECK(entry->first == Pair(row, built.csr.indices[k]));
      CHECK(entry->second == built.csr.weights[k]);
    }
  }
  // The edges of the graph, in order and each once, give it again.
  std::vector<std::int64_t> rows, columns;
  std::vector<double> weights;
  for (const auto& [ends, weight] : expected) {
    if (ends.first > ends.second) continue;
    rows.push_back(ends.first);
    columns.push_back(ends.second);
    weights.push_back(weight);
  }
  const auto again = std::get<ohm::BuiltCsr>(build(n, rows, columns, weights)).csr;
  CHECK(again.indptr == built.csr.indptr && again.indices == built.csr.indices && again.weights == built.csr.weights);
}

// Many edges, so that there are several pieces and buckets; among few nodes, so that many are parallel.
TEST(threads_sort_edges_in_the_same_way) {
  constexpr std::int32_t kNodes = 3000;
  constexpr std::int64_t kEdges = 200000, kSorted = 5000;
  std::vector<std::int32_t> u, v;
  std::vector<float> w;
  std::map<std::pair<std::int32_t, std::int32_t>, double> sums;
  for (std::int64_t i = 0; i < kEdges; ++i) {
    const bool sorted = i < kSorted;
    u.push_back(sorted ? static_cast<std::int32_t>(i / 4) : static_cast<std::int32_t>(ohm::hash(1, i) % kNodes));
    v.push_back(sorted ? u[i] + 1 + static_cast<std::int32_t>(i % 4) : static_cast<std::int32_t>(ohm::hash(2, i) % 50));
    w.push_back(static_cast<float>(ohm::uniform(ohm::hash(3, i))));
    if (u[i] != v[i]) sums[std::minmax(u[i], v[i])] += static_cast<double>(w[i]);
  }
  for (const int threads : {1, 2, 5}) {
    ohm::Crew crew(threads);
    const ohm::Triangle edges = ohm::sort_edges(kNodes, u, v, w, kSorted, {}, {}, crew);
    CHECK(edges.edges() == std::ssize(sums));
    std::int64_t e = 0;
    for (const auto& [ends, sum] : sums) {
      CHECK(edges.start[ends.first] <= e && e < edges.start[ends.first + 1]);
      CHECK(edges.other[e] == ends.second && edges.weight[e] == static_cast<float>(sum));
      ++e;
    }
    std::vector<double> degree(kNodes);
    for (const auto& [ends, sum] : sums) {
      degree[ends.first] += sum;
      degree[ends.second] += sum;
    }
    const std::vector<double> found = ohm::degrees(edges);
    for (std::int32_t i = 0; i < kNodes; ++i) CHECK(std::abs(found[i] - degree[i]) < 1e-4);
    ohm::Csr one;
    std::vector<std::int64_t> start;
    ohm::Buffer<std::int32_t> index;
    ohm::Buffer<float> weight;
    ohm::Triangle copy = edges, again = edges;
    ohm::mirror(copy, 2.0, one.indptr, one.indices, one.weights);
    ohm::mirror(again, 2.0, start, index, weight, crew);
    CHECK(one.indptr == start && one.indices == index && std::ranges::equal(one.weights, weight));
    CHECK(again.other.empty() && again.weight.empty());
    ohm::restore(again, 2.0, start, index, weight);
    CHECK(again.other == edges.other && again.weight == edges.weight);
  }
}

}  // namespace

TEST(random_edges_equal_an_ordered_map) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    compare_with_map<std::int32_t, float>(50, 400, seed);
    compare_with_map<std::int32_t, double>(7, 500, seed);
    compare_with_map<std::int32_t, ohm::Unit>(30, 100, seed);
    compare_with_map<std::int64_t, float>(2, 20, seed);
    compare_with_map<std::int64_t, double>(1000, 300, seed);
    compare_with_map<std::int64_t, ohm::Unit>(1, 5, seed);
  }
}

TEST(parallel_edges_add_up_in_input_order) {
  // (1e16 + 1) + 1 is 1e16 in doubles and 1 + 1 + 1e16 is not.
  const auto big_first = build<int, double>(2, {0, 1, 0}, {1, 0, 1}, {1e16, 1, 1});
  const auto big_last = build<int, double>(2, {0, 1, 0}, {1, 0, 1}, {1, 1, 1e16});
  CHECK(std::ranges::equal(std::get<ohm::BuiltCsr>(big_first).csr.weights, std::vector<double>{1e16, 1e16}));
  CHECK(std::ranges::equal(std::get<ohm::BuiltCsr>(big_last).csr.weights, std::vector<double>{1e16 + 2, 1e16 + 2}));
}

TEST(variances_of_parallel_edges_are_half_summed) {
  const std::vector<std::int32_t> u{0, 0, 1, 1, 0}, v{1, 2, 0, 2, 1};
  const std::vector<float> w{2.0f, 5.0f, 3.0f, 1e30f, 1.0f}, probability{0.5f, 0.125f, 0.25f, 1.0f, 1.0f};
  for (const std::int64_t known : {0, 2}) {
    const ohm::Triangle edges = ohm::sort_edges(3, u, v, w, known, probability);
    CHECK(std::ranges::equal(edges.weight, std::vector<float>{6.0f, 5.0f, 1e30f}));
    const double variances = 0.5 * 4.0 + 0.75 * 9.0, largest = 0.75 * 9.0;
    CHECK(std::abs(static_cast<double>(edges.probability[0]) - (1.0 - (variances + largest) / 72.0)) < 1e-7);
    CHECK(edges.probability[1] == 0.125f && edges.probability[2] == 1.0f);
  }
  CHECK(ohm::sort_edges(3, u, v, w).probability.empty());
}

TEST(edges_that_come_in_order_give_the_same_graph) {
  // (0, 1) (0, 2) (0, 2) (1, 3), a self-loop and a zero weight between; then the same shuffled
  const auto ordered = build<int, double>(5, {0, 0, 4, 0, 1, 1}, {1, 2, 4, 2, 2, 3}, {1, 2, 9, 3, 0, 4});
  const auto shuffled = build<int, double>(5, {3, 2, 2, 1, 4, 2}, {1, 0, 0, 0, 4, 1}, {4, 2, 3, 1, 9, 0});
  const auto& a = std::get<ohm::BuiltCsr>(ordered);
  const auto& b = std::get<ohm::BuiltCsr>(shuffled);
  CHECK(a.csr.indptr == b.csr.indptr && a.csr.indices == b.csr.indices && a.csr.weights == b.csr.weights);
  CHECK(a.n_self_loops == 1 && b.n_self_loops == 1 && a.n_zero_weights == 1 && b.n_zero_weights == 1);
}

TEST(float_weights_are_summed_in_double) {
  const auto result = build<int, float>(2, {0, 0}, {1, 1}, {16777216.0F, 1.0F});
  CHECK(std::get<ohm::BuiltCsr>(result).csr.weights[0] == 16777217.0);
}

TEST(no_nodes_and_no_edges) {
  const auto empty = build<int, double>(0, {}, {}, {});
  CHECK(std::get<ohm::BuiltCsr>(empty).csr.indptr == std::vector<std::int64_t>{0});
  const auto isolated = build<int, double>(3, {}, {}, {});
  CHECK(std::get<ohm::BuiltCsr>(isolated).csr.indptr == std::vector<std::int64_t>{0, 0, 0, 0});
}

TEST(bad_ids_are_reported_with_their_place) {
  const auto negative = fault_of<int>(3, {0, -1}, {1, 7}, {1, 1});
  CHECK(negative.reason == Reason::node_u && negative.position == 1 && negative.node == -1);
  const auto large = fault_of<std::int64_t>(3, {0, 1}, {1, std::int64_t{1} << 40}, {1, 1});
  CHECK(large.reason == Reason::node_v && large.position == 1 && large.node == std::int64_t{1} << 40);
  const auto no_nodes = fault_of<int>(0, {0}, {0}, {1});
  CHECK(no_nodes.reason == Reason::node_u && no_nodes.position == 0);
}

TEST(bad_weights_are_reported_with_their_place) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-1.0, inf, -inf, nan}) {
    const auto fault = fault_of<int>(3, {0, 1, 1}, {1, 2, 1}, {0, 1, bad});  // on a self-loop
    CHECK(fault.reason == Reason::weight && fault.position == 2);
    CHECK(fault.weight == bad || (fault.weight != fault.weight && bad != bad));
  }
}

TEST(a_sum_past_the_largest_double_is_a_fault) {
  const double max = std::numeric_limits<double>::max();
  const auto fault = fault_of<int>(3, {0, 1, 1, 2}, {1, 1, 2, 1}, {1, 1, max, max});
  CHECK(fault.reason == Reason::overflow && fault.position == 2 && fault.weight == max);
}

TEST(components_are_numbered_by_their_first_node) {
  //  0 - 3   1   2 - 5 - 4
  const auto result = build<int, ohm::Unit>(6, {3, 5, 5}, {0, 4, 2}, {});
  const auto found = ohm::components(view(std::get<ohm::BuiltCsr>(result).csr));
  CHECK(found.count == 3);
  CHECK(found.labels == std::vector<std::int32_t>{0, 1, 2, 0, 2, 2});
  CHECK(ohm::components(ohm::CsrView{}).count == 0);
  const std::vector<int> u = {0, 2, 4}, v = {3, 5, 5};
  const std::vector<float> w = {1, 1, 1};
  CHECK(ohm::components(ohm::sort_edges(6, u, v, w)).labels == found.labels);
  CHECK(ohm::components(ohm::sort_edges(0, {}, {}, {})).count == 0);
}
