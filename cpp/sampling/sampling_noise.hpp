// Errors that another sample of the same edges could have made, drawn from one sample.
//
// The error of a sparsifier H is L_H - L_G, and G is gone. But each edge of H has a probability p with which it was
// kept (sort_edges), so the variance of its weight w is about (1 - p) w^2. A draw adds to each weight a random number
// with mean 0 and this variance. It must also imitate how the errors of different edges depend on each other: rows are
// chosen such that the weight at each node, or in the cut of its cluster, hardly changes (choose_rows). So the signs of
// the drawn errors are balanced in the same way. Independent signs would make epsilon 1.2 to 1.7 times too large.
#pragma once

#include "graph/csr.hpp"

#include <cstdint>
#include <vector>

namespace ohm {

// One error for each edge of H, between -w and w, so that H with the errors added is a graph.
//
// An error is sqrt(1 - p) w times a sum of m independent signs over sqrt(m), where m is about 1 / (1 - p). An edge of a
// small probability is doubled or removed, like a row at a resample. The sum of many parallel edges has a probability
// near 1; its error is nearly Gaussian. `loose` is the fraction of edges whose signs are independent coins instead of
// balanced.
std::vector<float> draw_errors(const Triangle& h, double loose, std::uint64_t key);

}  // namespace ohm
