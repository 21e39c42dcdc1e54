// The coins of arriving edges: the probability of an edge, from what is known of H, and whether it passes.
#pragma once

#include "graph/edges.hpp"
#include "sampling/estimates.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace ohm {

// An edge that has passed its coin. A certain one is kept; half of the others are, see Sampler::add_candidates.
struct Candidate {
  std::int64_t position;  // in the stream
  std::int32_t u;
  std::int32_t v;
  float w;       // divided by the probability of the coin
  float probability;  // with which the edge is kept in the end
  bool certain;
  bool tie;  // a fair coin, which decides ties
};

// Edges of a batch; w and t may be empty.
template <class Index, class Weight>
struct EdgeBatch {
  std::span<const Index> u, v;
  std::span<const Weight> w;
  std::span<const double> t;
  OHM_INLINE float weight(std::int64_t i) const { return static_cast<float>(weight_at(w, i)); }
};

// What the coins of a batch depend on.
struct Coins {
  std::uint64_t key;
  std::int64_t position;  // of the first edge of the batch in the stream
  float beta;  // times the correction of estimated leverages
  Embedding embedding;
  std::span<const float> bound;  // of resistances, see bound_resistances
};

// Tosses independent coins for edges begin..end of a batch, and appends those that pass. An edge that is not in H has
// leverage w / (w + C) once added, where C is the conductance of H between its ends. It is to be kept with probability
// p = min(1, beta times leverage), and for certain where C is zero: between components, or at a node that has no
// embedding yet. If 2 p <= 1, the coin has probability 2 p and half of the candidates are dropped later; otherwise it
// has probability p. Most coins are decided by the bound alone. This reads two floats instead of two records and gives
// the same result.
template <class Index, class Weight>
void toss_edges(EdgeBatch<Index, Weight> batch, std::int64_t begin, std::int64_t end, Coins coins,
                std::vector<Candidate>& candidates);

}  // namespace ohm
