#include "sampling/leverages.hpp"

#include "base/rng.hpp"
#include "sampling/embedding.hpp"
#include "sampling/thinning.hpp"
#include "solver/solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ohm {
namespace {

constexpr double kLargestCoordinate = std::numeric_limits<float>::max();
constexpr double kWrongSketch = 0.25;   // relative error of the sum of sketches that shows a failed solve
// Measured by tests/statistical/test_sparsifier_quality.py.
constexpr double kUnexplained = 0.002;  // fraction of the rank from which on several sketches are averaged
constexpr int kSketches = 4;

// The matrix of a graph, which has no edges while this lives.
struct Mirrored {
  Triangle& h;
  Matrix matrix;
  ~Mirrored() { restore(h, matrix.scale, matrix.start, matrix.index, std::get<Buffer<float>>(matrix.weight)); }
};

}  // namespace

Laplacian::Laplacian(const Triangle& h, Crew& crew) {
  crew.run(2, [&](std::int64_t task) {
    if (task == 0) {
      space = null_space(h);
    } else {
      degree = degrees(h);
    }
  });
  tree = find_clusters(h, degree, static_cast<std::int32_t>(space.singular.size()), crew);
}

void record_nodes(const Laplacian& laplacian, std::span<NodeRecord> nodes) {
  const std::size_t n = laplacian.degree.size();
  for (std::size_t i = n; i < nodes.size(); ++i) {
    nodes[i].cluster = static_cast<std::int32_t>(laplacian.tree.clusters.size());
  }
  for (std::size_t i = 0; i < n; ++i) {
    NodeRecord& node = nodes[i];
    node.degree_now = static_cast<float>(laplacian.degree[i]);
    node.inverse_degree = node.inverse_degree_now = 1.0f / node.degree_now;
    node.cluster = laplacian.tree.smallest[i];
    node.balance = 0.0f;
    node.component = laplacian.degree[i] > 0.0 ? laplacian.space.component[i] : -1;
  }
}

void sketch_nodes(Triangle& h, const Laplacian& laplacian, std::uint64_t key, Crew& crew,
                  std::vector<NodeRecord>& nodes) {
  constexpr int kColumns = NodeRecord::kColumns;
  static_assert(kColumns == kRoughColumns);
  const Mirrored mirrored{h, make_matrix(h, laplacian.degree, crew)};
  const Matrix& matrix = mirrored.matrix;
  const Rows<double, kColumns> y(h.n());
  rough_right_hand_sides(matrix, key, y, crew);
  const Rows<double, kColumns> z(h.n());
  std::fill_n(&z[0], h.n(), Row<double, kColumns>{});
  solve_with_clusters({matrix, laplacian.space, laplacian.tree}, key, crew,
                      Columns{reinterpret_cast<double*>(&y[0]), reinterpret_cast<double*>(&z[0]), kColumns, kColumns});
  if (std::ssize(nodes) < h.n()) nodes.resize(h.n());
  const double unit = 1.0 / std::sqrt(static_cast<double>(kColumns));
  for (std::int32_t i = 0; i < h.n(); ++i) {
    for (int c = 0; c < kColumns; ++c) {
      const double value = unit * z[i][c];
      nodes[i].z[c] = std::abs(value) <= kLargestCoordinate ? static_cast<float>(value) : 0.0f;
    }
  }
}

Leverages estimate_leverages(Triangle& h, const Laplacian& laplacian, float certain, std::uint64_t key, Crew& crew,
                             std::vector<NodeRecord>& nodes, const std::function<void(float)>& use_sketch,
                             double unexplained) {
  const Embedding embedding{nodes, laplacian.tree.clusters};
  Leverages found{Buffer<float>(h.edges())};
  const double rank = laplacian.rank();
  LeverageSums sums = row_leverages(h, embedding, {}, certain, found.of_edges, crew);
  const double deviation = std::sqrt(2.0 * rank / NodeRecord::kColumns);  // of a right sketch
  const bool wrong = !(std::abs(sums.sketch - rank) <= kWrongSketch * rank + 6.0 * deviation);
  if (!wrong && sums.unexplained + unexplained > 1.0 + kUnexplained * rank) {
    std::vector<float> squares(h.edges());
    constexpr float kPart = 1.0f / kSketches;
    for (int k = 1; k < kSketches; ++k) {
      add_sketches(h, embedding, kPart, squares, crew);
      use_sketch(kPart);
      sketch_nodes(h, laplacian, hash(key, static_cast<std::uint64_t>(k)), crew, nodes);
    }
    add_sketches(h, embedding, kPart, squares, crew);
    use_sketch(kPart);
    sums = row_leverages(h, embedding, squares, certain, found.of_edges, crew);
  } else {
    if (wrong) {
      for (NodeRecord& node : nodes) std::fill_n(node.z, NodeRecord::kColumns, 0.0f);
      sums = row_leverages(h, embedding, {}, certain, found.of_edges, crew);
    }
    use_sketch(1.0f);
  }
  found.correction = std::max(1.0, rank / sums.estimates);
  const auto factor = static_cast<float>(found.correction);
  for_row_pieces(h, crew, [&](std::int64_t, std::int32_t first, std::int32_t last) {
    for (std::int64_t e = h.start[first]; e < h.start[last]; ++e) {
      found.of_edges[e] = std::min(1.0f, factor * found.of_edges[e]);
    }
  });
  return found;
}

}  // namespace ohm
