// The columns of a solve: the null space is projected out, and they are scaled to the range of float.
#pragma once

#include "solver/matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace ohm {

// Columns of row-major arrays with `stride` columns, in the graph's numbering.
struct Columns {
  const double* b;
  double* x;  // the starting point, then the answer, which has mean zero on components without ground
  std::int64_t stride;
  std::int64_t count;
};

// rounding: doubles cannot store a better answer, because its entries are so large compared with b / A.
enum class Outcome : std::uint8_t { converged, iteration_limit, stagnated, hopeless, rounding };

struct ColumnReport {
  std::int32_t iterations = 0;
  double residual = 0.0;       // true, relative to the projected right-hand side
  double projected_out = 0.0;  // fraction of the right-hand side's norm that lies in the null space
  Outcome outcome = Outcome::converged;
};

// Measures up to `Width` right-hand sides. b is scaled by its largest entry before squares are summed, and by its norm
// afterwards. Both scales are rounded to powers of two, so that scaling is exact.
template <int Width>
class RightHandSides {
 public:
  double projected_out[Width] = {};  // fraction of the norm that lies in the null space
  double inverse_unit[Width] = {};   // b * inverse_unit has norm 1 to 2; 0 if there is nothing to solve
  double unit_over_norm[Width] = {};

  RightHandSides(const Columns& columns, const NullSpace& null, double matrix_scale)
      : null_(null),
        width_(static_cast<int>(columns.count)),
        means_(null.means(columns.b, columns.stride, width_)) {
    if (width_ == Width) {
      measure(columns, matrix_scale, std::integral_constant<int, Width>());
    } else {
      measure(columns, matrix_scale, width_);
    }
  }

  // Conversions between the solution of the scaled system and the answer.
  double to_answer(int c, double x) const { return x * answer_unit_[c][0] * answer_unit_[c][1]; }
  double from_answer(int c, double x) const { return x * inverse_answer_unit_[c][0] * inverse_answer_unit_[c][1]; }

  // Means of the columns over the component of a node; zero if that is grounded.
  const double* mean(std::int64_t node) const { return means_.data() + std::int64_t{null_.component[node]} * width_; }

 private:
  static int within_range(int exponent) { return std::clamp(exponent, -1022, 1022); }

  // Compilers vectorise the loops over a number of columns that they know.
  void measure(const Columns& columns, double matrix_scale, auto width) {
    const auto n = static_cast<std::int64_t>(null_.component.size());
    double peak[Width] = {};
    for (std::int64_t i = 0; i < n; ++i) {
      for (int c = 0; c < width; ++c) {
        peak[c] = std::max(peak[c], std::abs(columns.b[i * columns.stride + c]));
      }
    }
    int exponent[Width] = {};
    double shrink[Width] = {};
    for (int c = 0; c < width; ++c) {
      if (peak[c] > 0.0) exponent[c] = within_range(std::ilogb(peak[c]));
      shrink[c] = std::exp2(-exponent[c]);
    }
    double whole[Width] = {};
    double kept[Width] = {};
    double removed[Width] = {};
    for (std::int64_t i = 0; i < n; ++i) {
      for (int c = 0; c < width; ++c) {
        const double value = columns.b[i * columns.stride + c] * shrink[c];
        const double in_null_space = mean(i)[c] * shrink[c];
        const double rest = value - in_null_space;
        whole[c] += value * value;
        kept[c] += rest * rest;
        removed[c] += in_null_space * in_null_space;
      }
    }
    for (int c = 0; c < width; ++c) {
      if (whole[c] > 0.0) projected_out[c] = std::min(1.0, std::sqrt(removed[c] / whole[c]));
      // A vector in the null space, up to rounding: its answer is zero.
      if (kept[c] <= whole[c] * 1e-30) continue;
      const double norm = std::sqrt(kept[c]);
      const int e = within_range(exponent[c] + std::ilogb(norm));
      inverse_unit[c] = std::exp2(-e);
      unit_over_norm[c] = 1.0 / std::ldexp(norm, exponent[c] - e);
      // As two factors, because the unit itself may be outside the range of double.
      const int answer = e + std::ilogb(matrix_scale);
      for (const int part : {0, 1}) {
        const int exponent_of_part = (answer + part) >> 1;
        answer_unit_[c][part] = std::exp2(exponent_of_part);
        inverse_answer_unit_[c][part] = std::exp2(-exponent_of_part);
      }
    }
  }

  double answer_unit_[Width][2] = {};  // 0 if there is nothing to solve
  double inverse_answer_unit_[Width][2] = {};
  const NullSpace& null_;
  int width_;
  std::vector<double> means_;
};

}  // namespace ohm
