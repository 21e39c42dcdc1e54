#include "solver/direct.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ohm {

DenseFactor::DenseFactor(const CsrView& graph, const double* ground, double scale)
    : n_(graph.n), multiplier_(n_ * n_, 0.0), pivot_(n_, 0.0) {
  std::vector<double> to_ground(n_, 0.0);
  for (std::int64_t i = 0; i < n_; ++i) {
    if (ground != nullptr) to_ground[i] = ground[i] * scale;
    for (std::int64_t e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) {
      multiplier_[i * n_ + graph.indices[e]] = graph.weights[e] * scale;
    }
  }
  // Row k holds the conductances from k to the nodes before it; eliminating k spreads it over them.
  for (std::int64_t k = n_ - 1; k >= 0; --k) {
    double* row = multiplier_.data() + k * n_;
    double pivot = to_ground[k];
    for (std::int64_t j = 0; j < k; ++j) pivot += row[j];
    if (!(pivot > 0.0)) continue;
    pivot_[k] = pivot;
    for (std::int64_t j = 0; j < k; ++j) row[j] /= pivot;
    for (std::int64_t i = 0; i < k; ++i) {
      const double conductance = multiplier_[i * n_ + k];
      if (conductance == 0.0) continue;
      double* other = multiplier_.data() + i * n_;
      for (std::int64_t j = 0; j < k; ++j) other[j] += conductance * row[j];
      other[i] = 0.0;
      to_ground[i] += conductance * (to_ground[k] / pivot);
    }
  }
}

void DenseFactor::solve(double* y, std::int64_t width) const {
  for (std::int64_t k = n_ - 1; k >= 0; --k) {
    const double* row = multiplier_.data() + k * n_;
    const double* here = y + k * width;
    for (std::int64_t j = 0; j < k; ++j) {
      if (row[j] == 0.0) continue;
      for (std::int64_t c = 0; c < width; ++c) y[j * width + c] += row[j] * here[c];
    }
  }
  for (std::int64_t k = 0; k < n_; ++k) {
    const double* row = multiplier_.data() + k * n_;
    double* here = y + k * width;
    for (std::int64_t c = 0; c < width; ++c) here[c] = pivot_[k] > 0.0 ? here[c] / pivot_[k] : 0.0;
    for (std::int64_t j = 0; j < k; ++j) {
      if (row[j] == 0.0) continue;
      for (std::int64_t c = 0; c < width; ++c) here[c] += row[j] * y[j * width + c];
    }
  }
}

DirectSolver::DirectSolver(const CsrView& graph, const double* ground, const NullSpace& null_space)
    : graph_(graph),
      ground_(ground),
      null_(null_space),
      scale_(weight_range(graph, ground).scale),
      factor_(graph, ground, scale_) {}

// 1. Scale each column b by a power of two, which is exact, so that no square overflows.
// 2. Centre b on each component without ground. What that removes has no solution; its fraction of b is reported.
// 3. Solve: r = b; x = (L + D)^-1 r, centred. Then once more with the true residual r = b - (L + D) x, and x plus the
//    answer: a step of refinement. In each column, the x with the smaller residual is kept.
// 4. Undo the scaling, and report the residual of each column. A column that lies in the null space, up to rounding, has
//    the answer 0.
void DirectSolver::solve(const Columns& columns, double tolerance, ColumnReport* reports) const {
  const std::int64_t n = graph_.n;
  const std::int64_t width = columns.count;
  const auto w = static_cast<int>(width);
  const auto centre = [&](std::vector<double>& y) {
    const std::vector<double> mean = null_.means(y.data(), width, w);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t c = 0; c < width; ++c) y[i * width + c] -= mean[null_.component[i] * width + c];
    }
    return mean;
  };
  const auto squares = [&](const std::vector<double>& y) {
    std::vector<double> sum(width, 0.0);
    for (std::int64_t k = 0; k < n * width; ++k) sum[k % width] += y[k] * y[k];
    return sum;
  };
  // 1
  std::vector<int> exponent(width, 0);
  std::vector<double> b(n * width);
  for (std::int64_t c = 0; c < width; ++c) {
    double peak = 0.0;
    for (std::int64_t i = 0; i < n; ++i) peak = std::max(peak, std::abs(columns.b[i * columns.stride + c]));
    if (peak > 0.0) exponent[c] = std::ilogb(peak);
    for (std::int64_t i = 0; i < n; ++i) {
      b[i * width + c] = std::ldexp(columns.b[i * columns.stride + c], -exponent[c]);
    }
  }
  // 2
  const std::vector<double> whole = squares(b);
  const std::vector<double> mean = centre(b);
  const std::vector<double> kept = squares(b);
  std::vector<double> removed(width, 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t c = 0; c < width; ++c) {
      const double part = mean[null_.component[i] * width + c];
      removed[c] += part * part;
    }
  }

  // 3
  std::vector<double> x(n * width, 0.0);
  std::vector<double> left(width, std::numeric_limits<double>::infinity());
  std::vector<double> size(width, 0.0);  // |diagonal x|^2
  std::vector<double> r = b;
  for (int pass = 0; pass < 2; ++pass) {
    centre(r);
    factor_.solve(r.data(), width);
    for (std::int64_t k = 0; k < n * width; ++k) r[k] += x[k];
    centre(r);
    std::vector<double> next = std::move(r);
    r.assign(n * width, 0.0);
    std::vector<double> current(width, 0.0);
    for (std::int64_t i = 0; i < n; ++i) {
      double diagonal = ground_ == nullptr ? 0.0 : ground_[i] * scale_;
      for (std::int64_t e = graph_.indptr[i]; e < graph_.indptr[i + 1]; ++e) diagonal += graph_.weights[e] * scale_;
      for (std::int64_t c = 0; c < width; ++c) {
        const double here = next[i * width + c];
        double sum = ground_ == nullptr ? 0.0 : ground_[i] * scale_ * here;
        for (std::int64_t e = graph_.indptr[i]; e < graph_.indptr[i + 1]; ++e) {
          sum += graph_.weights[e] * scale_ * (here - next[graph_.indices[e] * width + c]);
        }
        r[i * width + c] = b[i * width + c] - sum;
        current[c] += diagonal * here * diagonal * here;
      }
    }
    const std::vector<double> now = squares(r);
    for (std::int64_t c = 0; c < width; ++c) {
      if (pass > 0 && !(now[c] < left[c])) continue;
      left[c] = now[c];
      size[c] = current[c];
      for (std::int64_t i = 0; i < n; ++i) x[i * width + c] = next[i * width + c];
    }
  }
  // 4
  for (std::int64_t c = 0; c < width; ++c) {
    const bool zero = kept[c] <= whole[c] * 1e-30;
    for (std::int64_t i = 0; i < n; ++i) {
      columns.x[i * columns.stride + c] = zero ? 0.0 : std::ldexp(x[i * width + c], exponent[c] + std::ilogb(scale_));
    }
    reports[c].residual = zero ? 0.0 : std::sqrt(left[c] / kept[c]);
    reports[c].projected_out = whole[c] > 0.0 ? std::min(1.0, std::sqrt(removed[c] / whole[c])) : 0.0;
    reports[c].outcome = reports[c].residual <= tolerance ? Outcome::converged : Outcome::rounding;
  }
}

}  // namespace ohm
