#include "solver/approx_cholesky.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "check.hpp"
#include "graphs.hpp"

namespace {

using Dense = std::vector<double>;  // row-major n x n

std::vector<std::int32_t> natural(std::int32_t n) {
  std::vector<std::int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// As `dissect` numbers them: pieces of successive nodes; of two neighbours in different ones, the first separates them.
std::vector<std::int32_t> pieces_of(const ohm::CsrView& graph, int leaves) {
  const auto leaf = [&](int node) { return leaves + node * leaves / graph.n; };
  std::vector<std::int32_t> tree(leaves > 1 ? graph.n : 0);
  for (int k = 0; k < std::ssize(tree); ++k) {
    int other = leaf(k);
    for (auto e = graph.indptr[k]; e < graph.indptr[k + 1]; ++e) other = std::max(other, leaf(graph.indices[e]));
    for (tree[k] = leaf(k); tree[k] != other; other /= 2) tree[k] /= 2;
  }
  return tree;
}

template <class Real>
ohm::Factor<Real> factor_of(const graphs::Graph& graph, const double* ground, std::uint64_t seed, int copies = 1,
                            int leaves = 1) {
  const ohm::Matrix matrix = ohm::make_matrix(graph.view(), ground, natural(graph.view().n));
  ohm::EliminationOptions options;
  options.seed = seed;
  options.copies = copies;
  auto factor = ohm::approximate_cholesky<Real>(matrix, pieces_of(graph.view(), leaves), options);
  for (auto& piece : factor.pieces) {
    for (Real& inverse : piece.inverse_diagonal) inverse *= static_cast<Real>(matrix.scale);
  }
  return factor;
}

template <class Real>
std::vector<std::int32_t> order_of(const ohm::Factor<Real>& factor) {
  std::vector<std::int32_t> order;
  for (const auto& piece : factor.pieces) order.insert(order.end(), piece.order.begin(), piece.order.end());
  return order;
}

// C diag(pivots) C', the implied coefficients written out.
template <class Real>
Dense product(const ohm::Factor<Real>& factor) {
  const std::size_t n = order_of(factor).size();
  Dense result(n * n, 0.0);
  for (const auto& piece : factor.pieces) {
    std::size_t begin = 0, end = 0;
    for (std::size_t k = 0; k < piece.order.size(); ++k, begin = end) {
      end = begin + piece.count[k];
      if (piece.inverse_diagonal[k] == 0) continue;
      std::vector<std::pair<std::size_t, double>> column{{piece.order[k], 1.0}};
      double others = 0.0;
      for (std::size_t e = begin; e < end; ++e) {
        auto a = static_cast<double>(piece.coefficient[e]);
        if (e + 1 == end && std::signbit(a)) a = 1.0 + a - others;
        others += a;
        const auto row = static_cast<std::size_t>(piece.row[e]);
        column.emplace_back(row < n ? row : piece.halo[row - piece.slot], -a);
      }
      for (const auto& [i, x] : column) {
        for (const auto& [j, y] : column) result[i * n + j] += x * y / piece.inverse_diagonal[k];
      }
    }
  }
  return result;
}

Dense laplacian(const graphs::Graph& graph, const double* ground) {
  const ohm::CsrView view = graph.view();
  const std::size_t n = view.n;
  Dense result(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    if (ground != nullptr) result[i * n + i] += ground[i];
    for (auto e = view.indptr[i]; e < view.indptr[i + 1]; ++e) {
      result[i * n + i] += view.weights[e];
      result[i * n + view.indices[e]] -= view.weights[e];
    }
  }
  return result;
}

template <class Real>
void check_exact(const graphs::Graph& graph, const double* ground, double relative, int leaves = 1) {
  const Dense expected = laplacian(graph, ground);
  const Dense found = product(factor_of<Real>(graph, ground, 7, 1, leaves));
  double scale = 0.0;
  for (const double value : expected) scale = std::max(scale, std::abs(value));
  for (std::size_t k = 0; k < expected.size(); ++k) CHECK(std::abs(found[k] - expected[k]) <= relative * scale);
}

}  // namespace

// If no eliminated node has more than two neighbours, the clique is an edge, and nothing is sampled.
TEST(elimination_is_exact_on_trees_and_rings) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    std::vector<double> ground(40, 0.0);
    ground[seed] = 0.3;
    ground[39] = 1e-3;
    for (const double* d : {static_cast<const double*>(nullptr), static_cast<const double*>(ground.data())}) {
      check_exact<double>(graphs::tree(40, 3, seed), d, 1e-14);
      for (const int leaves : {1, 2, 4, 8}) check_exact<double>(graphs::ring(40, 3, seed), d, 1e-14, leaves);
      check_exact<float>(graphs::tree(40, 3, seed), d, 1e-2);  // coefficients of three digits
      check_exact<float>(graphs::ring(40, 3, seed), d, 1e-2);
    }
  }
}

// The mean over seeds approaches L + D: 4000 seeds, entries of size about one, standard deviation of a mean below 0.02;
// five of those are exceeded with a probability below 1e-4 over all entries.
TEST(elimination_is_right_in_expectation) {
  const graphs::Graph graph = graphs::grid(4, 1, 1);
  std::vector<double> ground(16, 0.0);
  ground[3] = 0.5;
  for (const auto& [copies, leaves] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 4}}) {
    Dense mean(16 * 16, 0.0);
    constexpr int kSeeds = 4000;
    for (int seed = 0; seed < kSeeds; ++seed) {
      const Dense one = product(factor_of<double>(graph, ground.data(), seed, copies, leaves));
      for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += one[k] / kSeeds;
    }
    const Dense expected = laplacian(graph, ground.data());
    for (std::size_t k = 0; k < mean.size(); ++k) CHECK(std::abs(mean[k] - expected[k]) < 0.1);
  }
}

// Every single sample is symmetric, semi-definite by its form, and has the row sums of L + D.
TEST(every_factor_conserves_current) {
  const graphs::Graph graph = graphs::wheel(30);
  std::vector<double> ground(30, 0.0);
  ground[11] = 0.25;
  for (int seed = 0; seed < 20; ++seed) {
    for (const double* d : {static_cast<const double*>(nullptr), static_cast<const double*>(ground.data())}) {
      const auto factor = factor_of<double>(graph, d, seed, 1 + seed % 2, 1 + seed % 4 / 2);
      std::ptrdiff_t zeros = 0;
      for (const auto& piece : factor.pieces) {
        for (const double inverse : piece.inverse_diagonal) CHECK(inverse >= 0.0 && std::isfinite(inverse));
        zeros += std::ranges::count(piece.inverse_diagonal, 0.0);
      }
      CHECK(zeros == (d == nullptr ? 1 : 0));
      const Dense found = product(factor);
      double total = 0.0;
      for (std::size_t i = 0; i < 30; ++i) {
        double sum = 0.0;
        for (std::size_t j = 0; j < 30; ++j) sum += found[i * 30 + j];
        total += sum;
        if (d == nullptr) CHECK(std::abs(sum) < 1e-12);
      }
      CHECK(std::abs(total - (d == nullptr ? 0.0 : 0.25)) < 1e-11);
      std::vector<std::int32_t> order = order_of(factor);
      std::ranges::sort(order);
      CHECK(order == natural(30));
    }
  }
}

TEST(factors_depend_on_the_seed_alone) {
  const graphs::Graph graph = graphs::grid(12, 4, 2);
  const auto one = factor_of<float>(graph, nullptr, 5);
  const auto same = factor_of<float>(graph, nullptr, 5);
  const auto other = factor_of<float>(graph, nullptr, 6);
  CHECK(one.pieces[0].row == same.pieces[0].row && order_of(one) == order_of(same));
  CHECK(product(one) == product(same));
  CHECK(product(one) != product(other));
}

TEST(substitution_inverts_the_factor) {
  const graphs::Graph graph = graphs::wheel(25);
  std::vector<double> ground(25, 0.1);
  const auto whole = factor_of<double>(graph, ground.data(), 3);
  const auto& factor = whole.pieces[0];
  const Dense matrix = product(whole);
  const std::vector<double> b = graphs::random_vector(25, 1);
  std::vector<double> x = b;
  std::int64_t at = 0;
  for (std::int64_t k = 0; k < 25; at += factor.count[k++]) {
    ohm::forward_column<double, double>(factor, k, at, at + factor.count[k], x.data());
  }
  for (std::int64_t k = 24; k >= 0; --k) {
    at -= factor.count[k];
    ohm::backward_column<double, double>(factor, k, at, at + factor.count[k], x.data());
  }
  for (std::size_t i = 0; i < 25; ++i) {
    double sum = 0.0;
    for (std::size_t j = 0; j < 25; ++j) sum += matrix[i * 25 + j] * x[j];
    CHECK(std::abs(sum - b[i]) < 1e-11);
  }
}

TEST(factors_of_nothing_and_of_isolated_nodes) {
  CHECK(factor_of<float>(graphs::make(0, {}), nullptr, 0).entries() == 0);
  const std::vector<double> ground{0.0, 2.0, 0.0};
  const auto factor = factor_of<float>(graphs::make(3, {}), ground.data(), 0).pieces[0];
  CHECK(factor.entries() == 0);
  for (std::size_t k = 0; k < 3; ++k) CHECK(factor.inverse_diagonal[k] == (factor.order[k] == 1 ? 0.5F : 0.0F));
}

// A node with more entries than the limit is refused: at the start, or when its list grows.
TEST(nodes_with_too_many_entries_are_refused) {
  const auto refusal = [](const graphs::Graph& graph, std::int32_t most_entries) -> std::string {
    ohm::EliminationOptions options;
    options.most_entries = most_entries;
    try {
      ohm::approximate_cholesky<float>(ohm::make_matrix(graph.view(), nullptr, natural(graph.view().n)), {}, options);
    } catch (const std::length_error& error) {
      return error.what();
    }
    return "";
  };
  const graphs::Graph wheel = graphs::wheel(200);
  CHECK(refusal(wheel, 199 + 199 / 4 + 2).empty());
  CHECK(refusal(wheel, 199 + 199 / 4 + 1) ==
        "a node needs room for 250 entries of the approximate Cholesky factor, more than 249; use method=\"diagonal\"");
  const graphs::Graph grid = graphs::grid(30, 9, 1);
  CHECK(!refusal(grid, 4 + 4 / 4 + 2).empty());  // enough at the start
  CHECK(refusal(grid, 1000).empty());
}
