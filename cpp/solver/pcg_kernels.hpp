// The steps of conjugate gradients on rows begin..end of a block of vectors; `dot` receives sums over these rows.
#pragma once

#include "base/simd.hpp"
#include "solver/approx_cholesky.hpp"
#include "solver/matrix.hpp"

#include <cstdint>
#include <type_traits>

namespace ohm {

// The values of a row, one by one.
template <class R>
auto lanes(R* row) {
  if constexpr (std::is_arithmetic_v<R>) {
    return row;
  } else {
    return reinterpret_cast<std::remove_reference_t<decltype((*row)[0])>*>(row);
  }
}

// Long sums: a few rows in the precision of the vectors, which are then added in double.
template <class Value, int Width>
class Sum {
 public:
  OHM_INLINE void add(std::int64_t row, Row<Value, Width> value) {
    part_ += value;
    if (row % 16 == 0) flush();
  }
  OHM_INLINE void store(double* out) {
    flush();
    for (int c = 0; c < Width; ++c) out[c] = total_[c];
  }

 private:
  OHM_INLINE void flush() {
    if constexpr (Width == 1) {
      total_[0] += static_cast<double>(part_);
    } else {
      for (int c = 0; c < Width; ++c) total_[c] += static_cast<double>(part_[c]);
    }
    part_ = Row<Value, Width>{};
  }
  Row<Value, Width> part_{};
  double total_[Width] = {};
};

// Long rows are summed in several strands, so that an addition need not wait for the one before it.
template <class Value, class Weight, int Width>
OHM_INLINE Row<Value, Width> product_row(const Matrix& a, const Weight* weight, std::int64_t i,
                                         const Row<Value, Width>* p) {
  constexpr int kStrands = Width == 1 ? 4 : 2;
  const Row<Value, Width> here = p[i];
  const auto term = [&](std::int64_t e) {
    std::int64_t at = a.index[e];
    if constexpr (Width == 1) asm("" : "+r"(at));  // GCC would gather terms into vectors, and take them apart to add
    return static_cast<Value>(weight[e]) * (here - p[at]);
  };
  Row<Value, Width> sum{};
  std::int64_t e = a.start[i];
  const std::int64_t end = a.start[i + 1];
  if (end - e >= 4 * kStrands) {
    Row<Value, Width> strand[kStrands] = {};
    for (; e + kStrands <= end; e += kStrands) {
      for (int k = 0; k < kStrands; ++k) strand[k] += term(e + k);
    }
    for (int k = 0; k < kStrands; ++k) sum += strand[k];
  }
  for (; e < end; ++e) sum += term(e);
  if (!a.ground.empty()) sum += static_cast<Value>(a.ground[i]) * here;
  return sum;
}

// q = A p; dot = p'q
template <class Value, class Weight, int Width>
OHM_KERNEL void multiply(const Matrix& a, const Weight* weight, std::int32_t begin, std::int32_t end,
                         const Row<Value, Width>* p, Row<Value, Width>* q, double* dot) {
  Sum<Value, Width> sum;
  for (std::int64_t i = begin; i < end; ++i) {
    const Row<Value, Width> row = product_row<Value, Weight, Width>(a, weight, i, p);
    q[i] = row;
    sum.add(i, row * p[i]);
  }
  sum.store(dot);
}

// out = A x for rows begin..end, in double
template <class Weight, int Width>
OHM_KERNEL void multiply_double(const Matrix& a, const Weight* weight, std::int64_t begin, std::int64_t end,
                                const Row<double, Width>* x, Row<double, Width>* out) {
  for (std::int64_t i = begin; i < end; ++i) *out++ = product_row<double, Weight, Width>(a, weight, i, x);
}

// r -= alpha q; q = r (the start of the preconditioner); dot = r'r
template <class Value, int Width>
OHM_KERNEL void step_residual(std::int32_t begin, std::int32_t end, const Row<Value, Width>& alpha,
                              Row<Value, Width>* r, Row<Value, Width>* q, double* dot) {
  Sum<Value, Width> sum;
  const Row<Value, Width> step = alpha;
  for (std::int64_t i = begin; i < end; ++i) {
    const Row<Value, Width> now = r[i] - step * q[i];
    r[i] = now;
    q[i] = now;
    sum.add(i, now * now);
  }
  sum.store(dot);
}

template <class Value, int Width>
OHM_INLINE Row<double, Width> widen(const Row<Value, Width>& row) {
  if constexpr (Width == 1) {
    return static_cast<double>(row);
  } else {
    return __builtin_convertvector(row, Row<double, Width>);
  }
}

// x += alpha p; p = z + beta p
template <class Value, int Width>
OHM_KERNEL void step_direction(std::int32_t begin, std::int32_t end, const Row<Value, Width>& alpha,
                               const Row<Value, Width>& beta, const Row<Value, Width>* z, Row<Value, Width>* p,
                               Row<double, Width>* x) {
  const Row<double, Width> step = widen<Value, Width>(alpha);
  const Row<Value, Width> keep = beta;
  for (std::int64_t i = begin; i < end; ++i) {
    const Row<Value, Width> old = p[i];
    x[i] += step * widen<Value, Width>(old);
    p[i] = z[i] + keep * old;
  }
}

// z = r / diagonal in place; dot = r'z
template <class Value, int Width>
OHM_KERNEL void scale_by_diagonal(const Matrix& a, std::int32_t begin, std::int32_t end,
                                  const Row<Value, Width>* r, Row<Value, Width>* z, double* dot) {
  Sum<Value, Width> sum;
  for (std::int64_t i = begin; i < end; ++i) {
    const Row<Value, Width> value = static_cast<Value>(a.inverse_diagonal[i]) * z[i];
    z[i] = value;
    sum.add(i, value * r[i]);
  }
  sum.store(dot);
}

// Columns of the factor refer to scattered rows, so the rows of a column are prefetched this many columns ahead. With a
// single right-hand side the vector is mostly in cache, and prefetching costs more than it saves.
constexpr std::int64_t kAhead = 12;

template <class Weight, class Row>
OHM_INLINE void fetch_column(const FactorPiece<Weight>& factor, std::int64_t k, std::int64_t begin, std::int64_t end,
                             const Row* y) {
  __builtin_prefetch(y + factor.order[k]);
  for (std::int64_t e = begin; e < end; ++e) __builtin_prefetch(y + factor.row[e]);
}

template <class Value, class Weight, int Width>
OHM_KERNEL void forward(const FactorPiece<Weight>& factor, Row<Value, Width>* z) {
  const std::int64_t n = std::ssize(factor.order);
  std::int64_t begin = 0;
  std::int64_t ahead = 0;
  for (std::int64_t k = -kAhead; k < n; ++k) {
    if (Width > 1 && k + kAhead < n) {
      fetch_column(factor, k + kAhead, ahead, ahead + factor.count[k + kAhead], z);
      ahead += factor.count[k + kAhead];
    }
    if (k < 0) continue;
    const std::int64_t end = begin + factor.count[k];
    forward_column<Row<Value, Width>, Value>(factor, k, begin, end, z);
    begin = end;
  }
}

// Second half of the preconditioner.
template <class Value, class Weight, int Width>
OHM_KERNEL void backward(const FactorPiece<Weight>& factor, Row<Value, Width>* z) {
  const std::int64_t n = std::ssize(factor.order);
  std::int64_t end = factor.entries();
  std::int64_t ahead = end;
  for (std::int64_t k = n - 1 + kAhead; k >= 0; --k) {
    if (Width > 1 && k >= kAhead) {
      fetch_column(factor, k - kAhead, ahead - factor.count[k - kAhead], ahead, z);
      ahead -= factor.count[k - kAhead];
    }
    if (k >= n) continue;
    const std::int64_t begin = end - factor.count[k];
    backward_column<Row<Value, Width>, Value>(factor, k, begin, end, z);
    end = begin;
  }
}

// dot = r'z
template <class Value, int Width>
OHM_KERNEL void inner_product(std::int32_t begin, std::int32_t end, const Row<Value, Width>* r,
                              const Row<Value, Width>* z, double* dot) {
  Sum<Value, Width> sum;
  for (std::int64_t i = begin; i < end; ++i) sum.add(i, r[i] * z[i]);
  sum.store(dot);
}

}  // namespace ohm
