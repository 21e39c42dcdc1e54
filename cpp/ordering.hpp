// Breadth-first numbering: neighbours get close numbers, so that kernels meet them in cache.
#pragma once

#include "csr.hpp"

#include <cstdint>
#include <vector>

namespace ohm {

// True when the numbers of neighbours are so far apart that renumbering pays for itself.
bool wants_reordering(const CsrView& graph);

// order[k] = node numbered k; components follow one another.
std::vector<std::int32_t> bfs_order(const CsrView& graph);

}  // namespace ohm
