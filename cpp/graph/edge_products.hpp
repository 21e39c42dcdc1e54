// The product L x for a stream of edges and many columns, where reading and writing rows of x and y at random would
// cost far more than the arithmetic.
//
// 1. Each edge is two entries (node, neighbour, weight) of L. Nodes are divided into parts, and a thread takes the
//    entries of some of the parts from all edges.
// 2. A part adds up the weights of equal entries in a hash table that fits the cache.
// 3. When the table is full, its entries are sorted by node, and sum w (x_node - x_neighbour) is added to y, for a few
//    columns at a time.
//
// What a part does depends only on its own entries in their order, so neither batches nor threads change a bit.
#pragma once

#include "graph/edges.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ohm {

class EdgeProducts {
 public:
  // x and y are row-major (n, columns); edges are added to y. Both must live until `finish`.
  EdgeProducts(std::int32_t n, const double* x, std::int64_t columns, int threads, double* y);
  ~EdgeProducts();
  EdgeProducts(const EdgeProducts&) = delete;
  EdgeProducts& operator=(const EdgeProducts&) = delete;

  // Takes in edges; those with an end above n - 1 are ignored. Ids must not be negative. Instantiated, like build_csr,
  // for Index int32 and int64, Weight float, double and Unit.
  template <class Index, class Weight>
  void add(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w);

  // Adds to y what is still in tables.
  void finish();

  // Memory beside x and y.
  static std::int64_t bytes(std::int32_t n, std::int64_t columns, int threads);

 private:
  struct Part;
  struct Scratch;
  struct Tables;

  void empty_pending(Part& part, Scratch& scratch);
  void empty_table(Part& part, Scratch& scratch);

  std::int32_t n_;
  const double* x_;
  std::int64_t columns_;
  int threads_;
  double* y_;
  std::int64_t slots_;  // of a table; none if there are few columns
  std::unique_ptr<Tables> tables_;
  std::vector<Part> parts_;
  std::vector<Scratch> scratch_;  // one per thread
};

}  // namespace ohm
