// Products L x with the Laplacian of a graph in memory, or of a stream of edges.
//
// L x is the sum of w (x_u - x_v), which is accurate relative to differences of x. Each entry of the product is a sum
// in the order of the edges, so neither batches nor threads change a bit. Threads share the rows of the product, and
// each of them reads all edges of a batch, which is cheaper than sorting them.
#pragma once

#include "graph/csr.hpp"

#include <cstdint>
#include <span>

namespace ohm {

// y = L x, both row-major (n, columns). With more than eight columns it takes 64 bytes per node.
void laplacian_product(const CsrView& graph, const double* x, std::int64_t columns, int threads, double* y);

// y += L x for the Laplacian L of the edges; edges with an end above n - 1 are ignored. Ids must not be negative.
// Instantiated, like build_csr, for Index int32 and int64, Weight float, double and Unit.
template <class Index, class Weight>
void add_edge_products(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                       std::int32_t n, const double* x, std::int64_t columns, int threads, double* y);

// What a pass over the edges finds out about the surroundings of nodes.
struct Surroundings {
  std::int32_t n;
  std::int64_t columns;
  const std::int32_t* column;  // the column of x that belongs to a node, or -1
  const float* x;              // row-major (n, columns)
  double* degrees;             // += w at both ends of an edge
  double* sums;                // one per column: += w x over the neighbours of its node
};

// Adds the edges, in their order and in one thread. Self-loops and edges with an end above n - 1 are ignored.
template <class Index, class Weight>
void add_surroundings(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                      const Surroundings& to);

// degrees += w at both ends of each edge, in the order of the edges; the same edges are ignored.
template <class Index, class Weight>
void add_degrees(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                 std::span<double> degrees);

}  // namespace ohm
