// Exact nearest neighbours of points with few coordinates that are not 0, in CSR form.
//
// For each query, all products x'y are summed over the columns of its coordinates, in double. |x|^2 + |y|^2 - 2 x'y,
// lowered by the largest error that it can have, is a lower bound of the squared distance. Distances are computed
// again, coordinate by coordinate, for the points with the smallest bounds, until no other can be among the k nearest.
// The answer is that of the same points in a dense matrix, to the last bit.
#pragma once

#include "points/nearest.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace ohm {

// Rows whose column indices increase.
template <class Value>
struct SparseRows {
  std::span<const std::int64_t> offset;  // one more than there are rows
  std::span<const std::int32_t> column;
  std::span<const Value> value;
  std::int64_t size() const { return std::ssize(offset) - 1; }
};

template <class Value>
class SparseNearest {
 public:
  // The rows must outlive this.
  SparseNearest(SparseRows<Value> points, std::int64_t dims);
  const SparseRows<Value>& points() const { return points_; }
  std::int64_t n() const { return points_.size(); }
  std::int64_t dims() const { return std::ssize(start_) - 1; }
  // The k nearest points of queries begin..end-1. If `own`, query i is point i, and not its own neighbour.
  Neighbours find(const SparseRows<Value>& queries, std::int64_t k, bool own, std::int64_t begin, std::int64_t end,
                  int threads) const;

 private:
  SparseRows<Value> points_;
  std::vector<std::int64_t> start_;  // where each column begins in the two arrays below
  std::vector<std::int32_t> row_;
  std::vector<Value> value_;
  std::vector<double> square_;
};

}  // namespace ohm
