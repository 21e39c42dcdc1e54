#include "embedding.hpp"

#include "parallel.hpp"
#include "rng.hpp"
#include "simd.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ohm {
namespace {

constexpr std::int64_t kPiece = 1 << 14;  // rows or pairs that a thread takes at a time

std::uint64_t edge_bits(std::uint64_t key, std::int32_t u, std::int32_t v) {
  const auto [low, high] = std::minmax(u, v);
  return draw(key, static_cast<std::uint64_t>(low) << 32 | static_cast<std::uint32_t>(high));
}

std::uint32_t edge_signs(std::uint64_t key, std::int32_t u, std::int32_t v) {
  return static_cast<std::uint32_t>(edge_bits(key, u, v));
}

// The sign of the direction from the smaller to the larger number times the random sign of column c.
double sign_bit(std::uint32_t signs, int c) { return (signs >> c & 1u) != 0 ? 1.0 : -1.0; }

// row += value with the signs of 8 columns, bits of `signs` from 0 on: set is plus.
OHM_INLINE void add_signed(Row<double, 8>& row, double value, std::uint32_t signs) {
  using Bits = Row<std::int64_t, 8>;
  constexpr Bits kShift = {63, 62, 61, 60, 59, 58, 57, 56};
  const Bits minus = ((Bits{} + static_cast<std::int64_t>(~signs)) << kShift) & std::numeric_limits<std::int64_t>::min();
  row += reinterpret_cast<Row<double, 8>>(reinterpret_cast<Bits>(Row<double, 8>{} + value) ^ minus);
}

// row += value times a random factor of mean square 1 for each of 8 columns, a byte of `bits` each: the sign, and
// a magnitude uniform between kLeast and kLeast + kSpread.
OHM_INLINE void add_random(Row<double, 8>& row, double value, std::uint64_t bits) {
  using Vector = Row<double, 8>;
  constexpr double kLeast = 0.43;
  constexpr double kSpread = 1.0462;
  const Vector x = __builtin_convertvector(std::bit_cast<Row<signed char, 8>>(bits), Vector) + 0.5;
  const Vector least = Vector{} + kLeast;
  row += value * (x * (kSpread / 128.0) + (x < 0.0 ? -least : least));
}

template <int Columns>
OHM_KERNEL void right_hand_side_row(const CsrView& graph, std::uint64_t key, std::int64_t i, double* row) {
  Row<double, 8> sums[Columns / 8] = {};
  for (std::int64_t e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) {
    const std::int32_t j = graph.indices[e];
    const std::uint64_t bits = edge_bits(key, static_cast<std::int32_t>(i), j);
    const double root = std::sqrt(graph.weights[e]) * (i < j ? 1.0 : -1.0);
    if constexpr (Columns == kCoarseColumns) {
      add_random(sums[0], root, bits);
    } else {
      for (int block = 0; block < Columns / 8; ++block) {
        add_signed(sums[block], root, static_cast<std::uint32_t>(bits) >> 8 * block);
      }
    }
  }
  for (int c = 0; c < Columns; ++c) row[c] = sums[c / 8][c % 8];
}

OHM_KERNEL void estimate_pair(const double* zu, const double* zv, std::uint32_t signs, double& square, double& product) {
  double squares = 0.0;
  double products = 0.0;
  for (int c = 0; c < kSketchColumns; ++c) {
    const double difference = zu[c] - zv[c];
    squares += difference * difference;
    products += difference * sign_bit(signs, c);
  }
  square += squares;
  product = products;
}

}  // namespace

template <int Columns>
void sketch_right_hand_sides(const CsrView& graph, std::uint64_t seed, std::uint64_t round, int threads, double* y) {
  const std::uint64_t key = hash(seed, round);
  parallel_for(threads, (graph.n + kPiece - 1) / kPiece, [&](std::int64_t piece) {
    const std::int64_t end = std::min<std::int64_t>(graph.n, (piece + 1) * kPiece);
    for (std::int64_t i = piece * kPiece; i < end; ++i) right_hand_side_row<Columns>(graph, key, i, y + i * Columns);
  });
}

template void sketch_right_hand_sides<kSketchColumns>(const CsrView&, std::uint64_t, std::uint64_t, int, double*);
template void sketch_right_hand_sides<kCoarseColumns>(const CsrView&, std::uint64_t, std::uint64_t, int, double*);

void add_estimates(const double* z, std::span<const std::int32_t> u, std::span<const std::int32_t> v,
                   std::span<const double> w, std::uint64_t seed, std::uint64_t round, int threads, double* squares,
                   double* products) {
  const std::uint64_t key = hash(seed, round);
  const std::int64_t pairs = std::ssize(u);
  parallel_for(threads, (pairs + kPiece - 1) / kPiece, [&](std::int64_t piece) {
    const std::int64_t end = std::min(pairs, (piece + 1) * kPiece);
    for (std::int64_t i = piece * kPiece; i < end; ++i) {
      const std::uint32_t signs = w.empty() ? 0 : edge_signs(key, u[i], v[i]);
      double product = 0.0;
      estimate_pair(z + std::int64_t{u[i]} * kSketchColumns, z + std::int64_t{v[i]} * kSketchColumns, signs,
                    squares[i], product);
      if (!w.empty()) products[i] += (u[i] < v[i] ? product : -product) / std::sqrt(w[i]);
    }
  });
}

void combine_estimates(std::span<const std::int32_t> u, std::span<const std::int32_t> v, std::span<const double> w,
                       const double* degrees, double q, double* squares, const double* products) {
  for (std::size_t i = 0; i < u.size(); ++i) {
    double resistance = squares[i] / q;
    const double weight = w.empty() ? 0.0 : w[i];
    if (weight > 0.0) {
      // With variances 2(1 - t^2), (1 - t)/t and covariance 2(1 - t), all over q, the best share of the
      // first estimate is (1 - 2t)/(2t^2 - 2t + 1), none beyond t = 1/2.
      const double t = std::clamp(0.5 * weight * (resistance + products[i] / q), 0.0, 1.0);
      const double share = t < 0.5 ? (1.0 - 2.0 * t) / (2.0 * t * t - 2.0 * t + 1.0) : 0.0;
      resistance = share * resistance + (1.0 - share) * (products[i] / q);
    }
    const double du = degrees[u[i]] - weight;
    const double dv = degrees[v[i]] - weight;
    const double around = du > 0.0 && dv > 0.0 ? du * dv / (du + dv) : 0.0;
    resistance = std::max(resistance, 1.0 / (weight + around));
    if (weight > 0.0) resistance = std::min(resistance, 1.0 / weight);
    squares[i] = resistance;
  }
}

}  // namespace ohm
