#include "sampling/embedding.hpp"

#include "base/parallel.hpp"
#include "base/rng.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ohm {
namespace {

std::uint64_t edge_bits(std::uint64_t key, std::int32_t u, std::int32_t v) {
  const auto [low, high] = std::minmax(u, v);
  return draw(key, static_cast<std::uint64_t>(low) << 32 | static_cast<std::uint32_t>(high));
}

// row += value with the signs of 8 columns, the lowest bits of `signs`: a bit that is set means plus.
OHM_INLINE void add_signed(Row<double, 8>& row, double value, std::uint32_t signs) {
  using Bits = Row<std::int64_t, 8>;
  constexpr Bits kShift = {63, 62, 61, 60, 59, 58, 57, 56};
  const Bits shifted = (Bits{} + static_cast<std::int64_t>(~signs)) << kShift;
  const Bits minus = shifted & std::numeric_limits<std::int64_t>::min();
  row += reinterpret_cast<Row<double, 8>>(reinterpret_cast<Bits>(Row<double, 8>{} + value) ^ minus);
}

// The value times a random sign and magnitude for each of 8 columns, a byte of `bits` each. The magnitudes are uniform
// in [0.43, 1.476], so that their mean square is 1.
OHM_INLINE Row<double, 8> spread(double value, std::uint64_t bits) {
  using Bits = Row<std::int64_t, 8>;
  constexpr Bits kShift = {56, 48, 40, 32, 24, 16, 8, 0};
  constexpr double kLeast = 0.43;
  constexpr double kStep = 1.0462 / 128.0;
  const Bits bytes = ((Bits{} + static_cast<std::int64_t>(bits)) << kShift) >> 56;  // with their signs
  const Bits minus = bytes & std::numeric_limits<std::int64_t>::min();
  const Bits least = reinterpret_cast<Bits>(Row<double, 8>{} + kLeast) | minus;
  const Row<double, 8> x = __builtin_convertvector(bytes, Row<double, 8>) + 0.5;
  return value * (reinterpret_cast<Row<double, 8>>(least) + kStep * x);
}

OHM_KERNEL void sketch_row(const CsrView& graph, std::uint64_t key, std::int32_t i, double* row) {
  Row<double, 8> low{}, high{};
  for (std::int64_t e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) {
    const std::int32_t j = graph.indices[e];
    const auto signs = static_cast<std::uint32_t>(edge_bits(key, i, j));
    const double root = std::sqrt(graph.weights[e]) * (i < j ? 1.0 : -1.0);
    add_signed(low, root, signs);
    add_signed(high, root, signs >> 8);
  }
  for (int c = 0; c < 8; ++c) {
    row[c] = low[c];
    row[c + 8] = high[c];
  }
}

// Flows into a node come from its smaller neighbours, flows out of it go to the larger ones. Both ends compute them.
OHM_KERNEL void rough_rows(const Matrix& a, std::uint64_t key, std::int32_t first, std::int32_t last,
                           Row<double, kRoughColumns>* y) {
  const auto& weight = std::get<Buffer<float>>(a.weight);
  const double unit = 1.0 / a.scale;
  for (std::int32_t i = first; i < last; ++i) {
    Row<double, 8> in{}, out{};
    for (std::int64_t e = a.start[i]; e < a.start[i + 1]; ++e) {
      const std::int32_t j = a.index[e];
      const Row<double, 8> flow = spread(std::sqrt(static_cast<double>(weight[e]) * unit), edge_bits(key, i, j));
      if (j < i) {
        in -= flow;
      } else {
        out += flow;
      }
    }
    y[i] = in + out;
  }
}

OHM_KERNEL void estimate_pair(const double* zu, const double* zv, std::uint32_t signs, double& square,
                              double& product) {
  double squares = 0.0;
  double products = 0.0;
  for (int c = 0; c < kSketchColumns; ++c) {
    const double difference = zu[c] - zv[c];
    squares += difference * difference;
    products += difference * ((signs >> c & 1u) != 0 ? 1.0 : -1.0);
  }
  square += squares;
  product = products;
}

}  // namespace

void sketch_right_hand_sides(const CsrView& graph, std::uint64_t seed, std::uint64_t round, int threads, double* y) {
  const std::uint64_t key = hash(seed, round);
  Crew crew(threads);
  for_blocks(crew, graph.n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      sketch_row(graph, key, static_cast<std::int32_t>(i), y + i * kSketchColumns);
    }
  });
}

void rough_right_hand_sides(const Matrix& laplacian, std::uint64_t key, Row<double, kRoughColumns>* y, Crew& crew) {
  crew.run(std::ssize(laplacian.chunk) - 1, [&](std::int64_t piece) {
    rough_rows(laplacian, key, laplacian.chunk[piece], laplacian.chunk[piece + 1], y);
  });
}

void add_estimates(const double* z, std::span<const std::int32_t> u, std::span<const std::int32_t> v,
                   std::span<const double> w, std::uint64_t seed, std::uint64_t round, int threads, double* squares,
                   double* products) {
  const std::uint64_t key = hash(seed, round);
  Crew crew(threads);
  for_blocks(crew, std::ssize(u), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint32_t signs = w.empty() ? 0 : static_cast<std::uint32_t>(edge_bits(key, u[i], v[i]));
      double product = 0.0;
      estimate_pair(z + std::int64_t{u[i]} * kSketchColumns, z + std::int64_t{v[i]} * kSketchColumns, signs,
                    squares[i], product);
      if (!w.empty()) products[i] += (u[i] < v[i] ? product : -product) / std::sqrt(w[i]);
    }
  });
}

}  // namespace ohm
