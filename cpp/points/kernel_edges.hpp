// All pairs of points, weighted by a kernel: rows of a similarity matrix that is never stored.
#pragma once

#include "points/points.hpp"

#include <cstdint>

namespace ohm {

enum class Kernel {
  rbf,        // exp(-gamma |x - y|^2)
  laplacian,  // exp(-gamma |x - y|_1)
  cosine,     // max(0, x'y); points must have length 1
};

// The pairs i < j with begin <= i < end, ordered by i, then j: n - 1 - i of them for each i.
std::int64_t count_pairs(std::int64_t n, std::int64_t begin, std::int64_t end);

// Writes these pairs to u, v and w, which must have room for all.
template <class Value>
void kernel_edges(const Points<Value>& points, Kernel kernel, double gamma, std::int64_t begin, std::int64_t end,
                  int threads, std::int32_t* u, std::int32_t* v, float* w);

}  // namespace ohm
