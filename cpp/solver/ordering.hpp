// Breadth-first numbering: neighbours get close numbers, so that kernels find them in cache.
#pragma once

#include "graph/csr.hpp"

#include <cstdint>
#include <vector>

namespace ohm {

// Steps that a breadth-first search takes to reach 1/64 of the nodes (at most 2^14). It is small if the graph expands
// like a random graph, and large if the graph is like a mesh. On a mesh, diagonal scaling converges slowly and numbers
// can be made local.
int ball_radius(const CsrView& graph);

// True when the numbers of neighbours are so far apart that renumbering pays for itself.
bool numbers_are_scattered(const CsrView& graph);

// order[k] = node numbered k; components follow one another.
std::vector<std::int32_t> bfs_order(const CsrView& graph);

}  // namespace ohm
