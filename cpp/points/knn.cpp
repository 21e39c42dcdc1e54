#include "points/knn.hpp"

#include "base/parallel.hpp"
#include "base/exponential.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ohm {
namespace {

template <class Value>
OHM_KERNEL std::int64_t count_at_most(const Value* d, std::int64_t n, Value limit) {
  using Count = std::conditional_t<sizeof(Value) == 4, std::int32_t, std::int64_t>;
  Count count = 0;
  for (std::int64_t j = 0; j < n; ++j) count += d[j] <= limit ? 1 : 0;
  return count;
}

template <class Value>
OHM_KERNEL Value largest(const Value* d, std::int64_t n) {
  Value lane[16] = {};
  std::int64_t j = 0;
  for (; j + 16 <= n; j += 16) {
    for (int l = 0; l < 16; ++l) lane[l] = lane[l] > d[j + l] ? lane[l] : d[j + l];
  }
  for (; j < n; ++j) lane[0] = std::max(lane[0], d[j]);
  return *std::max_element(lane, lane + 16);
}

// The middle of two numbers in the order of representable numbers: a binary search then ends after as many steps as a
// number has bits, for any values.
template <class Value>
Value between(Value low, Value high) {
  using Bits = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
  const Bits a = low < 0 ? 0 : std::bit_cast<Bits>(low);
  const Bits b = std::bit_cast<Bits>(high);
  return std::bit_cast<Value>(a + (b - a) / 2);
}

template <class Value>
using Candidate = std::pair<Value, std::int32_t>;

// The pair (d[j], j) of the given rank, counted from 1; one d[j] is -1, all others are at least 0. Counting is faster
// than moving, so the value is narrowed down by counting until few candidates are left.
template <class Value>
Candidate<Value> select(const Value* d, std::int64_t n, std::int64_t rank, std::vector<Candidate<Value>>& few) {
  constexpr std::int64_t kFew = 96;
  Value low = -1;
  Value high = largest(d, n);
  std::int64_t below = 1;  // values <= low; below < rank <= above
  std::int64_t above = n;  // values <= high
  for (int step = 0; above - below > kFew; ++step) {
    // Guess as if values were evenly distributed, alternately a little low and a little high; bisect every third time.
    const std::int64_t margin = std::max(kFew / 4, (above - below) / 16);
    const std::int64_t aim = step % 3 == 0 ? rank - margin : rank + margin;
    const Value from = std::max(low, Value{0});
    Value guess = from + (high - from) * static_cast<Value>(aim - below) / static_cast<Value>(above - below);
    if (step % 3 == 2 || !(guess > low && guess < high)) guess = between(low, high);
    if (!(guess > low && guess < high)) break;  // no number lies between: only ties remain
    const std::int64_t count = count_at_most(d, n, guess);
    if (count >= rank) {
      high = guess;
      above = count;
    } else {
      low = guess;
      below = count;
    }
  }
  few.clear();
  for (std::int64_t j = 0; j < n; ++j) {
    if (d[j] > low && d[j] <= high) few.emplace_back(d[j], static_cast<std::int32_t>(j));
  }
  const auto found = few.begin() + (rank - below - 1);
  std::nth_element(few.begin(), found, few.end());
  return *found;
}

// w[i] = exp(w[i]), at least the smallest normal float: an edge of that weight is not lost.
OHM_KERNEL void exponentials(std::span<float> w) {
  for (float& x : w) x = std::max(exponential(x), 0x1.0p-126f);
}

// 1: an edge; 2: a tie with the k-th neighbour of one end, which the indices decide.
template <class Value>
OHM_KERNEL void mark(const Value* d, const Value* reach, Value own, std::int64_t begin, std::int64_t end,
                     std::uint8_t* code) {
  for (std::int64_t j = begin; j < end; ++j) {
    const bool inside = (d[j] < own) | (d[j] < reach[j]);
    const bool rim = (d[j] == own) | (d[j] == reach[j]);
    code[j] = static_cast<std::uint8_t>(inside | (!inside & rim) << 1);
  }
}

}  // namespace

template <class Value>
Reach<Value> find_reach(const Points<Value>& points, std::int64_t k, std::int64_t begin, std::int64_t end,
                        int threads) {
  constexpr std::int64_t kRows = Points<Value>::kRows;
  const std::int64_t n = points.n();
  Reach<Value> reach{std::vector<Value>(end - begin), std::vector<std::int32_t>(end - begin)};
  parallel_for(threads, (end - begin + kRows - 1) / kRows, [&](std::int64_t task) {
    std::vector<Candidate<Value>> few;
    typename Points<Value>::Lease lease(points);
    auto& space = *lease;
    const std::int64_t first = begin + task * kRows;
    const std::int64_t count = std::min(kRows, end - first);
    points.distances(Metric::squared, first, count, 0, space);
    for (std::int64_t r = 0; r < count; ++r) {
      Value* d = space.row(r);
      d[first + r] = -1;  // a point is not its own neighbour: rank 1 is the point itself
      std::tie(reach.distance[first + r - begin], reach.index[first + r - begin]) = select(d, n, k + 1, few);
    }
  });
  return reach;
}

template <class Value>
EdgeBlock neighbour_edges(const Points<Value>& points, std::span<const Value> distance,
                          std::span<const std::int32_t> index, std::span<const Value> scale, std::int64_t begin,
                          std::int64_t end, int threads) {
  constexpr std::int64_t kRows = Points<Value>::kRows;
  const std::int64_t n = points.n();
  const std::int64_t tasks = (end - begin + kRows - 1) / kRows;
  std::vector<EdgeBlock> parts(tasks);
  parallel_for(threads, tasks, [&](std::int64_t task) {
    typename Points<Value>::Lease lease(points);
    auto& space = *lease;
    std::vector<std::uint8_t> code(n);
    std::vector<std::int32_t> found(n);
    EdgeBlock& part = parts[task];
    const std::int64_t first = begin + task * kRows;
    const std::int64_t last = std::min(end, first + kRows);
    points.distances(Metric::squared, first, last - first, first, space);
    for (std::int64_t i = first; i < last; ++i) {
      const Value* d = space.row(i - first);
      mark(d, distance.data(), distance[i], i + 1, n, code.data());
      std::int64_t count = 0;
      for (std::int64_t j = i + 1; j < n; ++j) {
        bool edge = code[j] & 1;
        if (code[j] & 2) [[unlikely]] {
          edge = (d[j] == distance[i] && j <= index[i]) || (d[j] == distance[j] && i <= index[j]);
        }
        found[count] = static_cast<std::int32_t>(j);
        count += edge;
      }
      part.v.insert(part.v.end(), found.begin(), found.begin() + count);
      part.u.resize(part.v.size(), static_cast<std::int32_t>(i));
      if (scale.empty()) continue;
      for (std::int64_t e = 0; e < count; ++e) {
        const std::int32_t j = found[e];
        part.w.push_back(static_cast<float>(-d[j] / scale[i] / scale[j]));
      }
    }
    exponentials(part.w);
  });
  if (tasks == 1) return std::move(parts[0]);
  const auto join = [&]<class Column>(Column EdgeBlock::*column) {
    std::size_t size = 0;
    for (const EdgeBlock& part : parts) size += (part.*column).size();
    Column all;
    all.reserve(size);
    for (const EdgeBlock& part : parts) all.insert(all.end(), (part.*column).begin(), (part.*column).end());
    return all;
  };
  return {join(&EdgeBlock::u), join(&EdgeBlock::v), join(&EdgeBlock::w)};
}

NeighbourGraph join_neighbours(std::span<const std::int32_t> index, std::span<const double> square,
                               std::span<const double> scale, std::int64_t n, std::int64_t k) {
  NeighbourGraph graph;
  graph.offset.assign(n + 1, 0);
  const auto for_each = [&](const auto& take) {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t e = i * k; e < (i + 1) * k; ++e) {
        if (index[e] >= 0) take(std::min<std::int64_t>(i, index[e]), std::max<std::int64_t>(i, index[e]), square[e]);
      }
    }
  };
  std::vector<std::int64_t> next(n + 1, 0);
  for_each([&](std::int64_t u, std::int64_t, double) { ++next[u + 1]; });
  for (std::int64_t u = 0; u < n; ++u) next[u + 1] += next[u];
  const std::vector<std::int64_t> start = next;
  std::vector<std::pair<std::int32_t, double>> ends(start[n]);
  for_each([&](std::int64_t u, std::int64_t v, double d) { ends[next[u]++] = {static_cast<std::int32_t>(v), d}; });
  for (std::int64_t u = 0; u < n; ++u) {
    const auto begin = ends.begin() + start[u];
    auto end = ends.begin() + start[u + 1];
    std::sort(begin, end);
    end = std::unique(begin, end, [](const auto& a, const auto& b) { return a.first == b.first; });
    for (auto it = begin; it != end; ++it) {
      graph.v.push_back(it->first);
      if (!scale.empty()) graph.w.push_back(static_cast<float>(-it->second / scale[u] / scale[it->first]));
    }
    graph.offset[u + 1] = std::ssize(graph.v);
  }
  exponentials(graph.w);
  return graph;
}

template Reach<float> find_reach(const Points<float>&, std::int64_t, std::int64_t, std::int64_t, int);
template Reach<double> find_reach(const Points<double>&, std::int64_t, std::int64_t, std::int64_t, int);
template EdgeBlock neighbour_edges(const Points<float>&, std::span<const float>, std::span<const std::int32_t>,
                                   std::span<const float>, std::int64_t, std::int64_t, int);
template EdgeBlock neighbour_edges(const Points<double>&, std::span<const double>, std::span<const std::int32_t>,
                                   std::span<const double>, std::int64_t, std::int64_t, int);

}  // namespace ohm
