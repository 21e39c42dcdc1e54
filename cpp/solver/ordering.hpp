// Breadth-first numbering: neighbours get close numbers, so that kernels find them in cache.
#pragma once

#include "base/parallel.hpp"
#include "graph/csr.hpp"
#include "solver/matrix.hpp"

#include <cstdint>
#include <vector>

namespace ohm {

// Smaller graphs are not dissected: on one thread that would cost more than the better use of caches gains.
constexpr std::int32_t kLeastDissected = 1 << 16;

// Steps that a breadth-first search takes to reach 1/64 of the nodes (at most 2^14). It is small if the graph expands
// like a random graph, and large if the graph is like a mesh. On a mesh, diagonal scaling converges slowly and numbers
// can be made local.
int ball_radius(const CsrView& graph);

// True when the numbers of neighbours are so far apart that renumbering pays for itself.
bool numbers_are_scattered(const CsrView& graph);

// order[k] = node numbered k; components follow one another.
std::vector<std::int32_t> bfs_order(const CsrView& graph);

// Sorts rows by their lengths, within windows that keep numbers local. A processor then guesses where a row ends.
void sort_by_length(const CsrView& graph, std::vector<std::int32_t>& order);

// Cuts a large graph into pieces that can be eliminated side by side, by nested dissection.
//
// The pieces are numbered as in a binary tree: separators are 1 (the last to be eliminated), 2 and 3, and so on; the
// children of piece k, which it separates, are 2k and 2k + 1; the last level has the subdomains. Neighbours are in one
// piece, or the piece of one is above that of the other. Returns the piece of each row; none if the graph is small, or
// its separators would be large. Independent of the number of threads.
std::vector<std::int32_t> dissect(const Matrix& matrix, Crew& crew);

}  // namespace ohm
