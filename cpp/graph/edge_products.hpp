// The product L x for a stream of edges and many columns, where reading and writing rows of x and y at random would
// cost far more than the arithmetic.
//
// 1. Each edge is two entries (node, neighbour, weight) of L. Nodes are divided into parts, and a thread takes the
//    entries of some of the parts from all edges.
// 2. A part adds up the weights of equal entries in a hash table that fits the cache.
// 3. When the table is full, its entries are sorted by node, and sum w (x_node - x_neighbour) is added to y for one
//    panel of columns after the other, so that the rows of a panel stay in the cache.
//
// What a part does depends only on its own entries in their order, so neither batches nor threads change a bit.
//
// If no table was full before the end, the tables have the whole graph, and more products need no edges.
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
  // For x and y of at most so many columns.
  EdgeProducts(std::int32_t n, std::int64_t most_columns, int threads);
  ~EdgeProducts();
  EdgeProducts(const EdgeProducts&) = delete;
  EdgeProducts& operator=(const EdgeProducts&) = delete;

  // Starts a product; x and y are row-major (n, columns), and edges are added to y. Both must live until `finish`.
  void begin(const double* x, std::int64_t columns, double* y);

  // Takes in edges; those with an end above n - 1 are ignored. Ids must not be negative. Instantiated, like build_csr,
  // for Index int32 and int64, Weight float, double and Unit.
  template <class Index, class Weight>
  void add(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w);

  // Adds to y what is still in tables. Returns whether these have all edges.
  bool finish();

  // Adds a product with all edges, if the last `finish` has returned true.
  void repeat(const double* x, std::int64_t columns, double* y);

  // Memory beside x and y.
  static std::int64_t bytes(std::int32_t n, std::int64_t columns, int threads);

 private:
  struct Part;
  struct Scratch;
  struct Tables;
  class Panels;

  void empty_pending(Part& part, Scratch& scratch);
  void sort_table(const Part& part, Scratch& scratch) const;
  void multiply_table(const Part& part, Scratch& scratch);
  void clear_table(Part& part);

  std::int32_t n_;
  int threads_;
  std::int64_t slots_;  // of a table; none if there are few columns
  const double* x_ = nullptr;
  double* y_ = nullptr;
  std::int64_t columns_ = 0;
  std::unique_ptr<Panels> panels_;
  std::unique_ptr<Tables> tables_;
  std::vector<Part> parts_;
  std::vector<Scratch> scratch_;  // one per thread
};

}  // namespace ohm
