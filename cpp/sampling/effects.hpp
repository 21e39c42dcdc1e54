// What the candidates of a round change, found by several threads; Sampler::add_candidates then applies it in order.
#pragma once

#include "base/parallel.hpp"
#include "sampling/coins.hpp"
#include "sampling/estimates.hpp"
#include "sampling/recent_pairs.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace ohm {

struct Effect {
  float more_u;  // what the degree of u and the cuts around it gain
  float more_v;
  float gain_u;  // the weight, relative to the cut of the vertex of `Sides`
  float gain_v;
  std::int32_t vertex_u;
  std::int32_t vertex_v;
};

// Finds the effects of candidates, which are given in pieces, and adds their weights to the table of recent pairs.
//
// An edge of weight w to v is in series with the cut c around v. The two together add w c / (w + c) to the cuts around
// u. Here w includes earlier edges between u and v. If w exceeds a few times both cuts, u and v belong to one cluster.
// The members of that cluster are known only after the next resample. Until then nothing is added, so resistances near
// it are overestimated.
void find_effects(Crew& crew, const Embedding& embedding, std::span<const std::vector<Candidate>> pieces,
                  std::span<PairWeight> pairs, Buffer<Effect>& effects);

}  // namespace ohm
