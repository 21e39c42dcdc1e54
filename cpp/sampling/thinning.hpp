// Which edges of H to keep at a resample.
#pragma once

#include "graph/csr.hpp"
#include "sampling/estimates.hpp"

#include <cstdint>
#include <span>

namespace ohm {

// Times the floor: eight columns are hardly ever so far above it by chance. Measured by
// tests/statistical/test_sparsifier_quality.py, as kUnexplained and kSketches in leverages.cpp.
constexpr float kFar = 4.0f;

// Sums of leverages, compared with the rank to detect a failed solve.
//
// True leverages add up to the rank of the Laplacian, which is the number of nodes minus that of components.
struct LeverageSums {
  double estimates = 0.0;
  double sketch = 0.0;  // sum of w times the sketch
  // Sum of w times the sketch over edges whose sketch exceeds kFar floors and whose floor alone does not make them
  // certain.
  double unexplained = 0.0;
};

// Estimates the leverages w R of the edges of H. An edge whose leverage is at least `certain` is kept for certain.
// `squares` holds the sketch of each edge as the mean of several; if it is empty, that of the embedding is used.
LeverageSums row_leverages(const Triangle& h, const Embedding& embedding, std::span<const float> squares,
                           float certain, std::span<float> leverage, Crew& crew = alone);

// Adds `factor` times the sketch of each edge to its square.
void add_sketches(const Triangle& h, const Embedding& embedding, float factor, std::span<float> squares,
                  Crew& crew = alone);

// Sets the leverage of the edges of a spanning forest of H to kCertain, so that H stays as connected as it is whatever
// the estimates say. Edges of high leverage are preferred. The forest is chosen before any coin, so it does not bias H.
constexpr float kCertain = 1e30f;
void keep_forest(const Triangle& h, std::int32_t n_components, std::span<float> leverage, Crew& crew = alone);

// The beta for which the sum of min(1, beta t) is `rows`; there must be more leverages than `rows`. The sum is concave
// in beta. Newton's method is exact once it knows which terms equal 1.
double fit_beta(std::span<const float> leverage, std::int64_t rows, Crew& crew = alone);

// Chooses edges so that each is kept with its own probability, and the weight at every node hardly changes.
//
// The largest part of the error of a sparsifier with independent coins is in the degrees of nodes: they fluctuate with
// the number of edges kept. So coins are made dependent. Chances are rounded, at random and without bias, to eighths,
// and then decided bit by bit, the lowest first. Each set bit is rounded up or down so as to reduce the imbalance at
// the two ends. If there is no imbalance, a coin decides. Swapping "up" and "down" everywhere gives an equally likely
// outcome, so each bit is rounded up with probability 1/2, and every edge is kept with exactly its probability. If a
// cluster has a smaller cut than the node, the weight that leaves the cluster is balanced instead.
//
// With about 30 edges per node, epsilon is a third smaller than with independent coins, or half as many edges suffice.
// On a complete graph the result is close to a random regular graph, which is nearly the best possible.
//
// Edges are decided in an order in which several threads can work at a time: the nodes are cut into blocks, and the
// edges between two blocks are one task. Tasks that share no block run at the same time. Edges that leave a cluster
// with a small cut are decided after all others, by one thread. The order does not depend on the number of threads.
Buffer<char> choose_rows(const Triangle& h, const Embedding& embedding, std::span<const float> probability,
                         std::uint64_t key, Crew& crew = alone);

// Calls f(piece, first, last) for pieces of consecutive rows u = first..last-1 with about the same number of edges.
// Pieces do not depend on the number of threads.
std::int64_t count_row_pieces(const Triangle& h);
template <class F>
void for_row_pieces(const Triangle& h, Crew& crew, F&& f) {
  const std::int64_t pieces = count_row_pieces(h);
  const auto first_row = [&](std::int64_t piece) {
    if (piece == pieces) return h.n();
    const auto row = std::lower_bound(h.start.begin(), h.start.end(), h.edges() * piece / pieces);
    return static_cast<std::int32_t>(row - h.start.begin());
  };
  crew.run(pieces, [&](std::int64_t piece) { f(piece, first_row(piece), first_row(piece + 1)); });
}

}  // namespace ohm
