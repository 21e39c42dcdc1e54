// Exact nearest neighbours of all points, found once and kept.
//
//   1. Compare all panels with each other in float32 (tiles.hpp). Each tile serves the points of both panels. A point
//      keeps the k + kSlack others with the smallest values, which are lower bounds of the squared distances.
//   2. Compute the distances of these candidates in double, and keep the k nearest. If the k-th is not farther than the
//      largest value that was kept, no other point can be nearer: all others have larger values.
//   3. Search again for points where this test fails, and compute the distances in double of all others whose value is
//      at most the k-th distance.
//
// So the answer is that of a comparison of all pairs in double. Of equally distant points, those with smaller index are
// nearer. No two threads work on the same point: blocks of panels meet in rounds of disjoint pairs.
#pragma once

#include "points/panels.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace ohm {

// k entries per point, nearest first: index, and squared distance.
struct Neighbours {
  std::vector<std::int32_t> index;
  std::vector<double> square;
};

template <class Value>
class Nearest {
 public:
  // `x` has n rows of `dims` coordinates and must outlive the search; 1 <= k <= n - 1.
  Nearest(const Value* x, std::int64_t n, std::int64_t dims, std::int64_t k, int threads);

  // Does a part of the work, of about a second; returns false if nothing was left to do.
  bool advance(int threads);
  double fraction() const { return is_done_ ? 1.0 : done_ / total_; }
  std::int64_t n_redone() const { return std::ssize(failed_); }  // points that were searched again
  Neighbours take() { return std::move(found_); }

 private:
  using Key = std::uint64_t;  // value in the upper half, index in the lower
  struct Block {
    std::int64_t begin, end;  // panels
  };

  void plan_rounds(int threads);
  void compare_blocks(std::int64_t a, std::int64_t b);
  void compare_panels(std::int64_t p, std::int64_t q, Tile& tile);
  void offer(std::int64_t position, float value, std::int32_t index);
  float limit_of(std::int64_t begin, std::int64_t end) const;

  const Value* x_;
  std::int64_t k_, kept_;
  Panels panels_;
  std::vector<Key> heaps_;  // the `kept_` smallest keys of each position, as a heap with the largest on top
  FloatRows limits_;        // the value on top, for each position
  std::vector<Block> blocks_;
  FloatRows boxes_;  // [block][low, high][padded]
  std::vector<float> largest_;  // square in each block
  std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> rounds_;  // disjoint pairs of blocks
  std::size_t round_ = 0, pair_ = 0;                                       // what comes next
  std::int64_t settled_ = 0;
  std::vector<std::int64_t> failed_;  // positions to search again
  std::size_t redone_ = 0;
  double done_ = 0.0, total_ = 1.0;
  bool is_done_ = false;
  Neighbours found_;
};

// The k nearest of `points` for each of `count` other points `queries`.
template <class Value>
Neighbours nearest_of(const Panels& panels, const Value* points, const Value* queries, std::int64_t count,
                      std::int64_t k, int threads);

}  // namespace ohm
