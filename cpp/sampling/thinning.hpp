// Which edges of H to keep at a resample.
#pragma once

#include "graph/csr.hpp"
#include "sampling/estimates.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace ohm {

// Estimates the leverages w R of the edges of H.
//
// True leverages add up to the rank of the Laplacian, which is the number of nodes minus that of components. So the
// sums of the estimates, and of w times the sketch alone, show whether they can be right.
struct LeverageSums {
  double estimates = 0.0;
  double sketch = 0.0;
};
LeverageSums row_leverages(const Triangle& h, const Embedding& embedding, std::span<float> leverage);

// Sets the leverage of the edges of a spanning forest of H to kCertain, so that H stays as connected as it is whatever
// the estimates say. Edges of high leverage are preferred. The forest is chosen before any coin, so it does not bias H.
constexpr float kCertain = 1e30f;
void keep_forest(const Triangle& h, std::int32_t n_components, std::span<float> leverage);

// Chooses edges so that each is kept with its own chance, and the weight at every node hardly changes.
//
// The largest part of the error of a sparsifier with independent coins is in the degrees of nodes: they fluctuate with
// the number of edges kept. So coins are made dependent. Chances are rounded, at random and without bias, to eighths,
// and then decided bit by bit, the lowest first. A bit that is set is rounded up or down, whichever compensates what
// earlier edges have added to, or taken from, the weight at the two ends. If there is nothing to compensate, a coin
// decides. Swapping "up" and "down" everywhere gives an equally likely outcome, so each bit is rounded up with
// probability 1/2, and every edge is kept with exactly its chance. If a cluster has a smaller cut than the node, the
// weight that leaves the cluster is balanced instead.
//
// With about 30 edges per node, epsilon is a third smaller than with independent coins, or half as many edges suffice.
// On a complete graph the result is close to a random regular graph, which is nearly the best possible.
std::vector<char> choose_rows(const Triangle& h, const Embedding& embedding, std::span<const float> chance,
                              std::uint64_t key);

}  // namespace ohm
