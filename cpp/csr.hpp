// A weighted undirected graph as the symmetric CSR of its adjacency, and how to build one from edges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ohm {

// Node ids fit 32 bits, entry offsets 64: more than 2^31 entries are possible, 2^31 nodes are not.
// Rows are sorted, without duplicates and without a diagonal; each edge is stored twice.
struct CsrView {
  std::int32_t n = 0;
  const std::int64_t* indptr = nullptr;
  const std::int32_t* indices = nullptr;
  const double* weights = nullptr;
  std::int64_t entries() const { return n == 0 ? 0 : indptr[n]; }
};

struct Csr {
  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> indices;
  std::vector<double> weights;
};

}  // namespace ohm
