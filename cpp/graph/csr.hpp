// A weighted undirected graph as the symmetric CSR of its adjacency, and how to build one from edges.
#pragma once

#include "base/huge_pages.hpp"
#include "base/parallel.hpp"
#include "graph/edges.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace ohm {

// Node ids fit 32 bits, entry offsets 64: more than 2^31 entries are possible, 2^31 nodes are not. Rows are sorted,
// without duplicates and without a diagonal; each edge is stored twice.
struct CsrView {
  std::int32_t n = 0;
  const std::int64_t* indptr = nullptr;
  const std::int32_t* indices = nullptr;
  const double* weights = nullptr;
  std::int64_t entries() const { return n == 0 ? 0 : indptr[n]; }
};

struct Csr {
  std::vector<std::int64_t> indptr;
  Buffer<std::int32_t> indices;
  Buffer<double> weights;
};

// A graph, and the numbers of edges that were dropped.
struct BuiltCsr {
  Csr csr;
  std::int64_t n_self_loops = 0;
  std::int64_t n_zero_weights = 0;
};

// Builds the graph on nodes 0..n-1 whose i-th edge is u[i] - v[i] with weight w[i] (`Unit`: w is empty and all weights
// are one). Parallel edges, in either direction, are summed in the order of the input; self-loops and zero weights are
// dropped and counted. u and v (and w) have the same length.
//
// Besides the result it needs 12 bytes per edge; before the result exists, 28 (24 with float weights, 20 without).
//
// Instantiated for Index int32 and int64, Weight float, double and Unit.
template <class Index, class Weight>
std::variant<BuiltCsr, EdgeFault> build_csr(std::int32_t n, std::span<const Index> u,
                                            std::span<const Index> v, std::span<const Weight> w);

// The graph of a symmetric adjacency matrix, or with `excess` of a Laplacian plus a diagonal, of which this gets what is
// more than rounding. One pass checks and copies: as rows are taken in order, the mirror image of an entry below the
// diagonal is the next one above it in its own row. Nullopt if rows are not sorted, entries appear twice or are no
// weights, the matrix is not symmetric up to `tolerance`, or the diagonal is negative.
template <class Index>
std::optional<BuiltCsr> read_matrix(std::span<const Index> indptr, std::span<const Index> indices,
                                    std::span<const double> values, double tolerance, double* excess);

// The edges of a graph, each once: row u holds the neighbours above u, in order.
template <class Weight>
struct TriangleOf {
  std::vector<std::int64_t> start;  // n + 1
  Buffer<std::int32_t> other;
  Buffer<Weight> weight;
  Buffer<float> probability;  // of the rows of a sampler, see sort_edges; empty for other graphs
  Buffer<double> time;   // of the rows of a sampler with a half-life; empty for other graphs
  std::int32_t n() const { return static_cast<std::int32_t>(start.size() - 1); }
  std::int64_t edges() const { return start.back(); }
};
using Triangle = TriangleOf<float>;

// Like build_csr, for edges that are known to be valid: for others it throws std::invalid_argument, or
// std::overflow_error if the sum of parallel ones exceeds the largest float. The first `n_sorted` edges must be in
// order, each once and with u < v; they are merged without being sorted again, with the same result.
//
// `probability` is empty, or holds for each edge the probability with which it was kept. Its weight w, already divided
// by that probability p, then has a variance whose unbiased estimate is (1 - p) w^2. The probability of a sum of
// parallel edges is the p that gives its variance. Half of the variance comes from independent coins at arrival and is
// summed. The other half comes from choices that balance the weight at each node, so the errors of parallel edges
// cancel, except for about one of them: of these variances the largest counts.
//
// `time` is empty, or holds a time for each edge, which then has a probability, too. The time of a sum of parallel
// edges is the newest.
Triangle sort_edges(std::int32_t n, std::span<const std::int32_t> u, std::span<const std::int32_t> v,
                    std::span<const float> w, std::int64_t n_sorted = 0, std::span<const float> probability = {},
                    std::span<const double> time = {}, Crew& crew = alone);

// Sums of the weights at each node.
std::vector<double> degrees(const Triangle& edges);

// Both halves of the matrix, weights multiplied by `scale`. `Weight`: float or double, as precise as `From`. To save
// memory, `other` and `weight` of the edges are given back as soon as they have been read.
template <class From, class Weight>
void mirror(TriangleOf<From>& edges, double scale, std::vector<std::int64_t>& start, Buffer<std::int32_t>& index,
            Buffer<Weight>& weight, Crew& crew = alone);

// Takes `other` and `weight` back from the matrix; does not fail. They are the same if `scale` is a power of two and no
// weight has left the range of floats.
void restore(Triangle& edges, double scale, const std::vector<std::int64_t>& start, Buffer<std::int32_t>& index,
             Buffer<float>& weight) noexcept;

// The smallest and the largest value; zeros if there is none.
std::pair<float, float> find_extremes(std::span<const float> values, Crew& crew);

}  // namespace ohm
