#include "solver/direct.hpp"

namespace ohm {

DenseFactor::DenseFactor(const CsrView& graph, const double* ground, double scale)
    : n_(graph.n), share_(n_ * n_, 0.0), pivot_(n_, 0.0) {
  std::vector<double> to_ground(n_, 0.0);
  for (std::int64_t i = 0; i < n_; ++i) {
    if (ground != nullptr) to_ground[i] = ground[i] * scale;
    for (std::int64_t e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) {
      share_[i * n_ + graph.indices[e]] = graph.weights[e] * scale;
    }
  }
  // Row k holds the conductances from k to the nodes before it; eliminating k spreads it over them.
  for (std::int64_t k = n_ - 1; k >= 0; --k) {
    double* row = share_.data() + k * n_;
    double pivot = to_ground[k];
    for (std::int64_t j = 0; j < k; ++j) pivot += row[j];
    if (!(pivot > 0.0)) continue;
    pivot_[k] = pivot;
    for (std::int64_t j = 0; j < k; ++j) row[j] /= pivot;
    for (std::int64_t i = 0; i < k; ++i) {
      const double conductance = share_[i * n_ + k];
      if (conductance == 0.0) continue;
      double* other = share_.data() + i * n_;
      for (std::int64_t j = 0; j < k; ++j) other[j] += conductance * row[j];
      other[i] = 0.0;
      to_ground[i] += conductance * (to_ground[k] / pivot);
    }
  }
}

void DenseFactor::solve(double* y, std::int64_t width) const {
  for (std::int64_t k = n_ - 1; k >= 0; --k) {
    const double* row = share_.data() + k * n_;
    const double* here = y + k * width;
    for (std::int64_t j = 0; j < k; ++j) {
      if (row[j] == 0.0) continue;
      for (std::int64_t c = 0; c < width; ++c) y[j * width + c] += row[j] * here[c];
    }
  }
  for (std::int64_t k = 0; k < n_; ++k) {
    const double* row = share_.data() + k * n_;
    double* here = y + k * width;
    for (std::int64_t c = 0; c < width; ++c) here[c] = pivot_[k] > 0.0 ? here[c] / pivot_[k] : 0.0;
    for (std::int64_t j = 0; j < k; ++j) {
      if (row[j] == 0.0) continue;
      for (std::int64_t c = 0; c < width; ++c) here[c] += row[j] * y[j * width + c];
    }
  }
}

}  // namespace ohm
