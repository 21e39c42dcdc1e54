// Distances between points, computed in tiles, for kNN graphs and kernel graphs.
//
// A distance is summed over the coordinates one by one, without FMA: (x - y)^2 and (y - x)^2 are the same number, so
// d(i, j) and d(j, i) have the same bits in any tile and on any machine. The formula |x|^2 + |y|^2 - 2 x'y does not
// have this property, and it loses digits. Four points are compared with two machine vectors of others at a time: eight
// independent sums keep the adders busy.
#pragma once

#include "base/simd.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ohm {

enum class Metric { squared, manhattan, product };  // sum of (x - y)^2, of |x - y|, of x y

template <class Value>
class Points {
 public:
  static constexpr int kLanes = 64 / sizeof(Value);
  static constexpr int kPanel = 2 * kLanes;  // points stored side by side, coordinate after coordinate
  static constexpr int kTile = 4;            // points compared with a panel at once
  static constexpr int kRows = 16;           // points compared with all panels at once; these stay in cache

  // `x` has n rows of `dims` coordinates.
  Points(const Value* x, std::int64_t n, std::int64_t dims);

  std::int64_t n() const { return n_; }
  std::int64_t dims() const { return dims_; }
  std::int64_t stride() const { return panels_ * kPanel; }  // n, rounded up

  // Distances of point first + r to points from..n-1 go to space.row(r); values in other columns are undefined. r =
  // 0..count-1 with count <= kRows.
  class Workspace;
  void distances(Metric metric, std::int64_t first, std::int64_t count, std::int64_t from, Workspace& space) const;

  // A workspace for the lifetime of the lease. Workspaces are reused, because fresh memory costs page faults.
  class Lease;

 private:
  std::int64_t n_;
  std::int64_t dims_;
  std::int64_t panels_;
  Rows<Value, kLanes> packed_;  // [panel][coordinate][kPanel], padded with zeros
  mutable std::mutex guard_;
  mutable std::vector<std::unique_ptr<Workspace>> spare_;
  mutable std::size_t lent_ = 0;
};

// The workspace of a thread: its current points, transposed, and their distances.
template <class Value>
class Points<Value>::Workspace {
 public:
  explicit Workspace(const Points& points)
      : stride_(points.stride()),
        rows_(points.dims() * kRows / kLanes + 1),
        out_(points.stride() / kLanes * kRows) {}
  Value* row(std::int64_t r) { return reinterpret_cast<Value*>(static_cast<Row<Value, kLanes>*>(out_)) + r * stride_; }

 private:
  friend Points;
  Value* rows() { return reinterpret_cast<Value*>(static_cast<Row<Value, kLanes>*>(rows_)); }
  std::int64_t stride_;
  Rows<Value, kLanes> rows_;  // [tile][coordinate][kTile]
  Rows<Value, kLanes> out_;
};

template <class Value>
class Points<Value>::Lease {
 public:
  explicit Lease(const Points& points) : points_(points) {
    const std::lock_guard lock(points.guard_);
    if (!points.spare_.empty()) {
      space_ = std::move(points.spare_.back());
      points.spare_.pop_back();
    }
    if (!space_) space_ = std::make_unique<Workspace>(points);
    points.spare_.reserve(points.spare_.size() + ++points.lent_);  // so that giving back cannot fail
  }
  ~Lease() {
    const std::lock_guard lock(points_.guard_);
    points_.spare_.push_back(std::move(space_));
    --points_.lent_;
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Workspace& operator*() { return *space_; }

 private:
  const Points& points_;
  std::unique_ptr<Workspace> space_;
};

}  // namespace ohm
