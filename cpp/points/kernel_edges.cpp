#include "points/kernel_edges.hpp"

#include "base/parallel.hpp"
#include "base/exponential.hpp"

#include <algorithm>

namespace ohm {
namespace {

template <class Value>
OHM_KERNEL void decay(const Value* d, Value minus_gamma, std::int64_t count, float* w) {
  for (std::int64_t j = 0; j < count; ++j) w[j] = exponential(static_cast<float>(minus_gamma * d[j]));
}

template <class Value>
OHM_KERNEL void clip(const Value* d, std::int64_t count, float* w) {
  for (std::int64_t j = 0; j < count; ++j) w[j] = d[j] > 0 ? static_cast<float>(d[j]) : 0.0f;
}

OHM_KERNEL void number(std::int64_t i, std::int64_t count, std::int32_t* u, std::int32_t* v) {
  for (std::int64_t j = 0; j < count; ++j) {
    u[j] = static_cast<std::int32_t>(i);
    v[j] = static_cast<std::int32_t>(i + 1 + j);
  }
}

}  // namespace

std::int64_t count_pairs(std::int64_t n, std::int64_t begin, std::int64_t end) {
  return (end - begin) * (2 * n - 1 - begin - end) / 2;
}

template <class Value>
void kernel_edges(const Points<Value>& points, Kernel kernel, double gamma, std::int64_t begin, std::int64_t end,
                  int threads, std::int32_t* u, std::int32_t* v, float* w) {
  constexpr std::int64_t kRows = Points<Value>::kRows;
  constexpr Metric kMetrics[] = {Metric::squared, Metric::manhattan, Metric::product};
  const std::int64_t n = points.n();
  // As many tasks for each thread, of up to kRows rows.
  const std::int64_t tasks = ((end - begin - 1) / (kRows * threads) + 1) * threads;
  parallel_for(threads, tasks, [&](std::int64_t task) {
    typename Points<Value>::Lease lease(points);
    auto& space = *lease;
    const std::int64_t first = begin + (end - begin) * task / tasks;
    const std::int64_t last = begin + (end - begin) * (task + 1) / tasks;
    if (first == last) return;
    points.distances(kMetrics[static_cast<int>(kernel)], first, last - first, first, space);
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t at = count_pairs(n, begin, i);
      const std::int64_t count = n - 1 - i;
      const Value* d = space.row(i - first) + i + 1;
      if (kernel == Kernel::cosine) {
        clip(d, count, w + at);
      } else {
        decay(d, static_cast<Value>(-gamma), count, w + at);
      }
      number(i, count, u + at, v + at);
    }
  });
}

template void kernel_edges(const Points<float>&, Kernel, double, std::int64_t, std::int64_t, int, std::int32_t*,
                           std::int32_t*, float*);
template void kernel_edges(const Points<double>&, Kernel, double, std::int64_t, std::int64_t, int, std::int32_t*,
                           std::int32_t*, float*);

}  // namespace ohm
