// Breadth-first numbering: neighbours get close numbers, so that kernels meet them in cache.
#pragma once

#include "graph/csr.hpp"

#include <cstdint>
#include <vector>

namespace ohm {

// Steps a breadth-first search takes to see a 64th of the nodes (at most 2^14). Small where the graph expands
// like a random one, large where it is spread out like a mesh: there diagonal scaling converges slowly and
// numbers can be made local.
int ball_radius(const CsrView& graph);

// True when the numbers of neighbours are so far apart that renumbering pays for itself.
bool numbers_are_scattered(const CsrView& graph);

// order[k] = node numbered k; components follow one another.
std::vector<std::int32_t> bfs_order(const CsrView& graph);

}  // namespace ohm
