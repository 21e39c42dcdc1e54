#include "graph/csr.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ohm {

constexpr std::int64_t kMirrored = 1 << 16;  // edges for which a thread is worthwhile

std::vector<double> degrees(const Triangle& edges) {
  std::vector<double> degree(edges.n());
  for (std::int32_t u = 0; u < edges.n(); ++u) {
    double sum = 0.0;
    for (std::int64_t e = edges.start[u]; e < edges.start[u + 1]; ++e) {
      const auto w = static_cast<double>(edges.weight[e]);
      sum += w;
      degree[edges.other[e]] += w;
    }
    degree[u] += sum;
  }
  return degree;
}

// Moves what a matrix has above the diagonal to its beginning, and then into a column of the edges; does not fail.
template <class Edges, class Column>
static void keep_above(Edges& edges, const std::vector<std::int64_t>& start, Column& matrix, Column& column) {
  for (std::int32_t u = 0; u < edges.n(); ++u) {
    const std::int64_t size = edges.start[u + 1] - edges.start[u];
    std::copy_n(matrix.begin() + start[u + 1] - size, size, matrix.begin() + edges.start[u]);
  }
  matrix.resize(edges.edges());
  drop_tail(matrix);
  column = std::move(matrix);
}

// Threads take consecutive rows. Each counts how many entries of every column it will write, so that all entries of a
// column can be written at once and in order. Weights are written from the last to the first, so that the same counts
// lead to the same places.
template <class From, class Weight>
void mirror(TriangleOf<From>& edges, double scale, std::vector<std::int64_t>& start, Buffer<std::int32_t>& index,
            Buffer<Weight>& weight, Crew& crew) {
  const std::int32_t n = edges.n();
  const std::int64_t parts = std::clamp<std::int64_t>(edges.edges() / kMirrored, 1, crew.size());
  const auto first_row = [&](std::int64_t part) {
    const auto row = std::lower_bound(edges.start.begin(), edges.start.end(), edges.edges() * part / parts);
    return part == parts ? n : static_cast<std::int32_t>(row - edges.start.begin());
  };
  std::vector<std::vector<std::int64_t>> next(parts);  // by column: the number of entries, then where the next one goes
  crew.run(parts, [&](std::int64_t part) {
    resize_huge(next[part], n);
    const std::int64_t end = edges.start[first_row(part + 1)];
    for (std::int64_t e = edges.start[first_row(part)]; e < end; ++e) ++next[part][edges.other[e]];
  });
  resize_huge(start, static_cast<std::size_t>(n) + 1);
  for (std::int32_t u = 0; u < n; ++u) {  // neighbours below u, then those above
    std::int64_t at = start[u];
    for (std::vector<std::int64_t>& of_part : next) at += std::exchange(of_part[u], at);
    start[u + 1] = at + edges.start[u + 1] - edges.start[u];
  }
  index.resize(start[n]);
  crew.run(parts, [&](std::int64_t part) {
    std::int64_t* place = next[part].data();
    for (std::int32_t u = first_row(part); u < first_row(part + 1); ++u) {
      std::int64_t here = start[u + 1] - (edges.start[u + 1] - edges.start[u]);
      for (std::int64_t e = edges.start[u]; e < edges.start[u + 1]; ++e, ++here) {
        index[here] = edges.other[e];
        index[place[edges.other[e]]++] = u;
      }
    }
  });
  edges.other = Buffer<std::int32_t>();
  try {
    weight.resize(start[n]);
  } catch (...) {
    keep_above(edges, start, index, edges.other);
    throw;
  }
  crew.run(parts, [&](std::int64_t part) {
    std::int64_t* place = next[part].data();
    for (std::int32_t u = first_row(part + 1); u-- > first_row(part);) {
      std::int64_t here = start[u + 1];
      for (std::int64_t e = edges.start[u + 1]; e-- > edges.start[u];) {
        const auto w = static_cast<Weight>(static_cast<double>(edges.weight[e]) * scale);
        weight[--here] = w;
        weight[--place[index[here]]] = w;
      }
    }
  });
  edges.weight = Buffer<From>();
}

void restore(Triangle& edges, double scale, const std::vector<std::int64_t>& start, Buffer<std::int32_t>& index,
             Buffer<float>& weight) noexcept {
  keep_above(edges, start, index, edges.other);
  keep_above(edges, start, weight, edges.weight);
  for (float& w : edges.weight) w = static_cast<float>(static_cast<double>(w) / scale);
}

template void mirror(Triangle&, double, std::vector<std::int64_t>&, Buffer<std::int32_t>&, Buffer<float>&, Crew&);
template void mirror(Triangle&, double, std::vector<std::int64_t>&, Buffer<std::int32_t>&, Buffer<double>&, Crew&);
template void mirror(TriangleOf<double>&, double, std::vector<std::int64_t>&, Buffer<std::int32_t>&, Buffer<double>&,
                     Crew&);

template <class Index>
std::optional<BuiltCsr> read_matrix(std::span<const Index> indptr, std::span<const Index> indices,
                                    std::span<const double> values, double tolerance, double* excess) {
  constexpr double kMost = std::numeric_limits<double>::max();
  const double sign = excess != nullptr ? -1.0 : 1.0;
  const auto n = static_cast<std::int32_t>(indptr.size() - 1);
  if (indptr[0] != 0 || !std::is_sorted(indptr.begin(), indptr.end()) || indptr[n] > std::ssize(indices)) return {};
  BuiltCsr built;
  auto& [start, index, weight] = built.csr;
  resize_huge(start, indptr.size());
  index.resize(indptr[n]);
  weight.resize(indptr[n]);
  std::vector<std::int64_t> next(n);  // of each row, the first entry above the diagonal without its mirror image
  std::int64_t to = 0;
  for (std::int32_t u = 0; u < n; ++u) {
    double sum = 0.0, size = 0.0;
    std::int64_t below = 0;
    Index last = -1;
    for (Index k = indptr[u]; k < indptr[u + 1]; last = indices[k++]) {
      const Index v = indices[k];
      const double value = values[k];
      if (v <= last || v >= n) return {};
      sum += value;
      size += std::abs(value);
      double w = v == u && excess != nullptr ? std::abs(value) : sign * value;
      if (!(w >= 0.0 && w <= kMost)) return {};
      if (v == u) {
        built.n_self_loops += excess == nullptr;
        continue;
      }
      built.n_zero_weights += v > u && w == 0.0;
      if (w == 0.0) continue;
      if (v < u) {
        const std::int64_t image = next[v]++;
        if (image >= start[v + 1] || index[image] != u) return {};
        if (const double other = weight[image]; other != w) {
          if (!(std::abs(other - w) <= tolerance * std::max(other, w)) || other + w > kMost) return {};
          weight[image] = w = (other + w) / 2;
        }
        ++below;
      }
      index[to] = static_cast<std::int32_t>(v);
      weight[to++] = w;
    }
    next[u] = start[u] + below;
    start[u + 1] = to;
    if (excess != nullptr) {
      if (!(sum >= -tolerance * size)) return {};
      excess[u] = sum > tolerance * size ? sum : 0.0;
    }
  }
  for (std::int32_t u = 0; u < n; ++u) {
    if (next[u] != start[u + 1]) return {};
  }
  index.resize(to);
  weight.resize(to);
  return built;
}

template std::optional<BuiltCsr> read_matrix(std::span<const std::int32_t>, std::span<const std::int32_t>,
                                             std::span<const double>, double, double*);
template std::optional<BuiltCsr> read_matrix(std::span<const std::int64_t>, std::span<const std::int64_t>,
                                             std::span<const double>, double, double*);

std::pair<float, float> find_extremes(std::span<const float> values, Crew& crew) {
  constexpr std::int64_t kPiece = 1 << 16;  // values that a thread takes at a time
  const std::int64_t size = std::ssize(values);
  std::vector<std::pair<float, float>> found((size + kPiece - 1) / kPiece);
  for_blocks(crew, size, [&](std::int64_t begin, std::int64_t end) {
    const auto part = values.subspan(begin, end - begin);
    float least = part[0], most = part[0];
    for (const float value : part) {
      least = value < least ? value : least;
      most = value > most ? value : most;
    }
    found[begin / kPiece] = {least, most};
  }, kPiece);
  if (found.empty()) return {};
  for (const auto& [least, most] : found) {
    found[0].first = std::min(found[0].first, least);
    found[0].second = std::max(found[0].second, most);
  }
  return found[0];
}

}  // namespace ohm
