// Points in float32, in panels for the tiles of tiles.hpp, with rigorous lower bounds of their distances.
//
// Points are centred, scaled by a power of two and rounded to float32. With u = 2^-24, each step below has an error of
// at most the given multiple of |x|^2 + |y|^2, for any order of the sums, with or without FMA:
//
//   rounding of coordinates: 4 u;  x'y of m coordinates: m u / (1 - m u);  |x|^2, |y|^2 and the two sums: 4 u.
//
// So each |x|^2 is lowered by the fraction `relative` = (m + 16) 2^-24 (1 + ...), and the value of a tile, |x|^2 +
// |y|^2 - 2 x'y, is at most the true squared distance. If the coordinates are small integers, all sums are exact, the
// fraction is 0, and the value is the distance. m may be the largest number of coordinates that are not 0.
//
// Panels are leaves of a tree of medians, so that their points are near each other, and have boxes: panels that are too
// far from each other are never compared.
#pragma once

#include "base/simd.hpp"
#include "points/tiles.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace ohm {

using FloatRows = Rows<float, 16>;
inline float* floats(const FloatRows& rows) { return reinterpret_cast<float*>(static_cast<Row<float, 16>*>(rows)); }

// How points become float32: (x - centre) 2^exponent.
struct Rounding {
  std::vector<double> centre;
  int exponent = 0;
  double relative = 0.0;  // fraction by which squares are lowered
  double absolute = 0.0;  // and what numbers below the smallest normal ones add
  bool is_exact = false;
  double largest = 0.0;  // of all |x|^2

  // The squared distance as a limit for values of tiles: if the squared distance of two points, as exact_squares
  // computes it, is at most `square`, their value is at most the limit.
  float limit(double square) const;
};

// Coordinates between two corners; rows of the same padded length.
struct Box {
  const float* low;
  const float* high;
};

class Panels {
 public:
  template <class Value>
  Panels(const Value* x, std::int64_t n, std::int64_t dims, int threads);

  std::int64_t n() const { return n_; }
  std::int64_t dims() const { return dims_; }
  std::int64_t count() const { return count_; }
  const Rounding& rounding() const { return rounding_; }
  std::int32_t point(std::int64_t position) const { return order_[position]; }  // padding: -1
  PanelView view(std::int64_t panel, const float* limits) const {
    return {floats(x_) + panel * dims_ * kPanel, floats(square_) + panel * kPanel, limits + panel * kPanel};
  }
  Box box(std::int64_t panel) const {
    const float* low = floats(boxes_) + panel * 2 * padded();
    return {low, low + padded()};
  }
  float largest(std::int64_t panel) const { return largest_[panel]; }  // of the squares of the panel
  std::int64_t padded() const { return padded_; }                      // length of rows of boxes

  // At most the squared distance of any point in one box from any in the other, if their squares are at most these.
  double apart(Box a, float largest_a, Box b, float largest_b) const;

 private:
  std::int64_t n_, dims_, count_, padded_;
  Rounding rounding_;
  std::vector<std::int32_t> order_;
  FloatRows x_;       // [panel][coordinate][kPanel], padded with zeros
  FloatRows square_;  // [panel][kPanel], lowered; padded with infinity
  FloatRows boxes_;   // [panel][low, high][padded()]
  std::vector<float> largest_;
};

// Some points that need not be among those of the panels, laid out as one panel.
class QueryPanel {
 public:
  explicit QueryPanel(const Panels& panels);
  // `rows` are at most kPanel points. Returns false if one is so far away that float32 cannot hold it.
  template <class Value>
  bool fill(std::span<const Value* const> rows);
  PanelView view(const float* limits) const { return {floats(x_), floats(square_), limits}; }
  Box box() const { return {floats(box_), floats(box_) + panels_.padded()}; }
  // At most the squared distance of any of the points from any in the panel.
  double apart(std::int64_t panel) const {
    return panels_.apart(box(), largest_, panels_.box(panel), panels_.largest(panel)) - lost_;
  }

 private:
  const Panels& panels_;
  FloatRows x_, square_, box_;
  float largest_ = 0.0f;
  double lost_ = 0.0;  // what rounding of these points costs beyond what the panels allow for
};

// Squared distances of x from other points, in double: sums of (x - y)^2, coordinate by coordinate, without FMA. Equal
// for (x, y) and (y, x), and on all machines.
template <class Value>
void exact_squares(const Value* x, std::span<const Value* const> others, std::int64_t dims, double* squares);

}  // namespace ohm
