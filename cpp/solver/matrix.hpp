// The system scale * (L + D), renumbered for locality, and its null space.
#pragma once

#include "graph/csr.hpp"

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace ohm {

// The indicator vectors of the components without ground.
struct NullSpace {
  std::vector<std::int32_t> component;  // of each node
  std::vector<char> singular;           // per component: whether no node of it is grounded

  // means[component * width + c] = mean of column c over a singular component, else zero.
  std::vector<double> means(const double* columns, std::int64_t stride, int width) const;
};

NullSpace null_space(const CsrView& graph, const double* ground);
NullSpace null_space(const Triangle& edges);

// Row k belongs to node order[k] of the graph.
struct Matrix {
  std::int32_t n = 0;
  double scale = 1.0;  // see WeightRange
  bool float_range = true;
  std::vector<std::int32_t> order;
  std::vector<std::int64_t> start;
  Buffer<std::int32_t> index;
  std::variant<Buffer<float>, Buffer<double>> weight;            // float where that loses nothing
  std::vector<double> ground;                                    // empty: none
  std::vector<double> inverse_diagonal;
  std::vector<std::int32_t> chunk;  // row boundaries of about equal work, independent of the number of threads
};

// How far apart weights and grounds are.
struct WeightRange {
  double scale = 1.0;      // a power of two that scales the largest to about one
  bool fits_float = true;  // after scaling, the smallest and its inverse are well within the range of float
};
WeightRange weight_range(const CsrView& graph, const double* ground);

Matrix make_matrix(const CsrView& graph, const double* ground, std::vector<std::int32_t> order, Crew& crew = alone);
// Without ground or renumbering. `restore` gives the edges back.
Matrix make_matrix(Triangle& edges, std::span<const double> degree, Crew& crew = alone);

}  // namespace ohm
