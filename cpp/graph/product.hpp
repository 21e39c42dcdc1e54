// Products L x with the Laplacian of a graph in memory; `edge_pass` has those of a stream of edges.
//
// L x is the sum of w (x_u - x_v), which is accurate relative to differences of x. Threads share the rows.
#pragma once

#include "graph/csr.hpp"

#include <cstdint>
#include <span>

namespace ohm {

// y = L x, both row-major (n, columns). With more than eight columns it takes 64 bytes per node.
void laplacian_product(const CsrView& graph, const double* x, std::int64_t columns, int threads, double* y);

// degrees += w at both ends of each edge, in the order of the edges. Self-loops and edges with an end above
// n - 1 are ignored.
template <class Index, class Weight>
void add_degrees(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                 std::span<double> degrees);

}  // namespace ohm
