// A pass over a stream of edges: the product L x with its Laplacian, and, if asked for, the surroundings of nodes and the
// components of the graph.
//
// Each entry of the product is the sum of w (x_node - x_neighbour) over the edges of its node, in their order, which is
// accurate relative to differences of x. So neither batches nor threads change a bit. There are two ways to add edges:
//
// In order. One thread adds each edge at both ends; others find surroundings and components meanwhile. This is fastest
// while x and y fit the cache, because sorting would take more time than the sums. Reading edges takes still more, and
// other threads can do that.
//
// Sorted. Some hundred thousand edges are collected. Each edge becomes two halves (node, neighbour), which are sorted by
// ranges of nodes. Those of a range keep their order and are added by one thread, while its rows of x and y stay in the
// cache. This is fastest for large x, and for many threads, because hardly anything is left that only one can do.
#pragma once

#include "base/huge_pages.hpp"
#include "graph/edges.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ohm {

// What a pass finds out about the surroundings of nodes. Self-loops are ignored.
struct Surroundings {
  std::int64_t columns = 0;
  const std::int32_t* column = nullptr;  // the column of x that belongs to a node, or -1
  const float* x = nullptr;              // row-major (n, columns)
  double* degrees = nullptr;             // += w at both ends of an edge
  double* sums = nullptr;                // one per column: += w x over the neighbours of its node
};

// Sets of nodes whose members are joined by edges of positive weight, see `join_sets`.
struct Joined {
  const std::int32_t* component = nullptr;  // of each node, in another graph
  std::int32_t* parent = nullptr;
};

class EdgePass {
 public:
  // x and y are row-major (n, columns); the product is added to y. Both must live until `finish`.
  EdgePass(std::int32_t n, const double* x, std::int64_t columns, int threads, double* y);

  // What else to find, if asked for before the first edge.
  void watch(const Surroundings& around) { around_ = around; }
  void join(const Joined& joined) { joined_ = joined; }

  // Takes in edges; those with an end above n - 1 are ignored. Ids are from 0 to 2^31 - 1. Instantiated, like build_csr,
  // for Index int32 and int64, Weight float, double and Unit.
  template <class Index, class Weight>
  void add(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w);

  // Adds the edges that are still collected.
  void finish();

  // After `finish`: the first edge of positive weight between two of the given components, or with an end above n - 1.
  std::optional<std::pair<std::int64_t, std::int64_t>> lost() const { return lost_; }

  std::int32_t n() const { return n_; }
  // The most memory that a pass takes beside x and y.
  static std::int64_t bytes(std::int32_t n, std::int64_t columns, int threads);

 private:
  struct Half {
    std::int32_t node, neighbour;
  };

  template <class Index, class Weight>
  void add_in_order(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w);
  template <class Index, class Weight>
  void add_sorted(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w);
  template <class Index, class Weight>
  void collect(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w);
  void add_collected();
  void join_pair(std::int64_t a, std::int64_t b);

  std::int32_t n_;
  const double* x_;
  std::int64_t columns_;
  int threads_;
  double* y_;
  std::optional<Surroundings> around_;
  std::optional<Joined> joined_;
  std::optional<std::pair<std::int64_t, std::int64_t>> lost_;

  // If edges are sorted.
  std::int64_t most_;  // edges that are sorted at a time; else 0
  std::int64_t collected_ = 0;
  bool is_weighted_ = false;  // whether some collected edge has a weight
  int shift_ = 0;             // a range has 2^shift nodes
  std::int64_t ranges_ = 0;
  Buffer<std::int32_t> u_, v_;  // collected edges
  Buffer<double> w_;
  Buffer<Half> halves_;
  Buffer<double> weights_;  // of the halves
  std::vector<std::uint32_t> places_;  // for each thread and range
};

}  // namespace ohm
