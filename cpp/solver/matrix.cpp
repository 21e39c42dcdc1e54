#include "solver/matrix.hpp"

#include "base/simd.hpp"
#include "graph/components.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace ohm {

namespace {

// Adds rows of `Width` columns to the sums of their components, with compensation (Kahan): a constant vector minus its
// mean is then zero up to the last bit.
template <int Width>
void add_rows(const NullSpace& space, const double* columns, std::int64_t stride, int width, double* sums) {
  using R = Row<double, Width>;
  const Rows<double, Width> sum(std::ssize(space.singular)), lost(std::ssize(space.singular));
  std::fill_n(&sum[0], space.singular.size(), R{});
  std::fill_n(&lost[0], space.singular.size(), R{});
  for (std::size_t i = 0; i < space.component.size(); ++i) {
    const std::int64_t k = space.component[i];
    if (!space.singular[k]) continue;
    R row;
    std::memcpy(&row, columns + i * stride, sizeof(R));
    const R term = row - lost[k];
    const R next = sum[k] + term;
    lost[k] = (next - sum[k]) - term;
    sum[k] = next;
  }
  for (std::size_t k = 0; k < space.singular.size(); ++k) {
    std::memcpy(sums + k * width, &sum[static_cast<std::int64_t>(k)], sizeof(R));
  }
}

}  // namespace

std::vector<double> NullSpace::means(const double* columns, std::int64_t stride, int width) const {
  std::vector<double> mean(singular.size() * width, 0.0);
  std::vector<double> count(singular.size(), 0.0);
  for (const std::int32_t k : component) count[k] += singular[k] ? 1.0 : 0.0;
  int first = 0;
  for (; first + 8 <= width; first += 8) add_rows<8>(*this, columns + first, stride, width, &mean[first]);
  for (; first + 4 <= width; first += 4) add_rows<4>(*this, columns + first, stride, width, &mean[first]);
  for (; first < width; ++first) add_rows<1>(*this, columns + first, stride, width, &mean[first]);
  for (std::size_t k = 0; k < count.size(); ++k) {
    for (int c = 0; c < width; ++c) mean[k * width + c] /= std::max(count[k], 1.0);
  }
  return mean;
}

NullSpace null_space(const CsrView& graph, const double* ground) {
  Components found = components(graph);
  NullSpace space{std::move(found.labels), std::vector<char>(found.count, true)};
  if (ground != nullptr) {
    for (std::int32_t i = 0; i < graph.n; ++i) {
      if (ground[i] > 0.0) space.singular[space.component[i]] = false;
    }
  }
  return space;
}

NullSpace null_space(const Triangle& edges) {
  Components found = components(edges);
  return {std::move(found.labels), std::vector<char>(found.count, true)};
}

namespace {

WeightRange weight_range(double largest, double smallest) {
  constexpr double kSmallestInFloat = 1e-25;  // products of a few residuals and inverses must not overflow
  if (largest == 0.0) return {};
  const double scale = std::exp2(std::min(1022, -std::ilogb(largest)));  // subnormal weights stay below one
  return {scale, smallest * scale >= kSmallestInFloat};
}

constexpr std::int64_t kChunkWork = 1 << 16;
void cut_chunks(Matrix& a) {
  a.chunk.push_back(0);
  std::int64_t work = 0;
  for (std::int32_t k = 0; k < a.n; ++k) {
    work += a.start[k + 1] - a.start[k] + 8;
    if (work >= kChunkWork || k + 1 == a.n) {
      a.chunk.push_back(k + 1);
      work = 0;
    }
  }
}

}  // namespace

WeightRange weight_range(const CsrView& graph, const double* ground) {
  double largest = 0.0;
  double smallest = std::numeric_limits<double>::infinity();
  const auto take = [&](double value) {
    largest = std::max(largest, value);
    if (value > 0.0) smallest = std::min(smallest, value);
  };
  for (std::int64_t e = 0; e < graph.entries(); ++e) take(graph.weights[e]);
  if (ground != nullptr) {
    for (std::int32_t i = 0; i < graph.n; ++i) take(ground[i]);
  }
  return weight_range(largest, smallest);
}

Matrix make_matrix(const CsrView& graph, const double* ground, std::vector<std::int32_t> order, Crew& crew) {
  Matrix a;
  a.n = graph.n;
  a.order = std::move(order);
  const std::int64_t entries = graph.entries();
  const WeightRange range = weight_range(graph, ground);
  a.scale = range.scale;
  a.float_range = range.fits_float;
  std::atomic<bool> fits_float = true;
  for_blocks(crew, entries, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t e = begin; e < end && fits_float.load(std::memory_order_relaxed); ++e) {
      const double w = graph.weights[e] * a.scale;
      if (static_cast<double>(static_cast<float>(w)) != w) fits_float = false;
    }
  });

  std::vector<std::int32_t> number(a.n);
  a.start.resize(static_cast<std::size_t>(a.n) + 1);
  for_blocks(crew, a.n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int32_t u = a.order[k];
      number[u] = static_cast<std::int32_t>(k);
      a.start[k + 1] = graph.indptr[u + 1] - graph.indptr[u];
    }
  });
  std::partial_sum(a.start.begin(), a.start.end(), a.start.begin());
  a.index.resize(entries);
  a.inverse_diagonal.resize(a.n);
  if (ground != nullptr) a.ground.resize(a.n);
  if (fits_float) {
    a.weight = Buffer<float>(entries);
  } else {
    a.weight = Buffer<double>(entries);
  }
  std::visit([&](auto& weight) {
        for_blocks(crew, a.n, [&](std::int64_t begin, std::int64_t end) {
          std::int64_t out = a.start[begin];
          for (std::int64_t k = begin; k < end; ++k) {
            const std::int32_t u = a.order[k];
            double diagonal = 0.0;
            if (ground != nullptr) diagonal = a.ground[k] = ground[u] * a.scale;
            for (std::int64_t e = graph.indptr[u]; e < graph.indptr[u + 1]; ++e, ++out) {
              const double w = graph.weights[e] * a.scale;
              a.index[out] = number[graph.indices[e]];
              weight[out] = static_cast<std::decay_t<decltype(weight[0])>>(w);
              diagonal += w;
            }
            a.inverse_diagonal[k] = diagonal > 0.0 ? 1.0 / diagonal : 0.0;
          }
        });
      },
      a.weight);

  cut_chunks(a);
  return a;
}

Matrix make_matrix(Triangle& edges, std::span<const double> degree, Crew& crew) {
  Matrix a;
  a.n = edges.n();
  if (edges.edges() > 0) {
    const auto [smallest, largest] = find_extremes(edges.weight, crew);
    const WeightRange range = weight_range(static_cast<double>(largest), static_cast<double>(smallest));
    if (range.fits_float) a.scale = range.scale;  // otherwise it may not be exact
    a.float_range = range.fits_float;
  }
  a.order.resize(a.n);
  std::iota(a.order.begin(), a.order.end(), 0);
  a.inverse_diagonal.resize(a.n);
  for (std::int32_t u = 0; u < a.n; ++u) a.inverse_diagonal[u] = degree[u] > 0.0 ? 1.0 / (degree[u] * a.scale) : 0.0;
  a.chunk.reserve(2 + (2 * edges.edges() + 8 * std::int64_t{a.n}) / kChunkWork);  // nothing fails after `mirror`
  mirror(edges, a.scale, a.start, a.index, a.weight.emplace<Buffer<float>>(), crew);
  cut_chunks(a);
  return a;
}

}  // namespace ohm
