#include "solver/ordering.hpp"

#include <algorithm>
#include <cstdlib>

namespace ohm {
namespace {

// Appends the unseen neighbours of a node.
void append_neighbours(const CsrView& graph, std::int32_t node, std::vector<bool>& seen,
                       std::vector<std::int32_t>& found) {
  for (std::int64_t e = graph.indptr[node]; e < graph.indptr[node + 1]; ++e) {
    const std::int32_t other = graph.indices[e];
    if (seen[other]) continue;
    seen[other] = true;
    found.push_back(other);
  }
}

}  // namespace

int ball_radius(const CsrView& graph) {
  const std::size_t enough = std::min<std::size_t>(graph.n / 64, 1 << 14);
  std::vector<bool> seen(graph.n, false);
  std::vector<std::int32_t> ball{graph.n / 2};
  seen[ball[0]] = true;
  int radius = 0;
  for (std::size_t head = 0; head < ball.size() && ball.size() < enough; ++radius) {
    for (const std::size_t level_end = ball.size(); head < level_end && ball.size() < enough; ++head) {
      append_neighbours(graph, ball[head], seen, ball);
    }
  }
  return radius;
}

bool numbers_are_scattered(const CsrView& graph) {
  // A mean distance of 2^15 numbers is 256 KiB of doubles: neighbours still meet in the L2 cache. A sample of rows is
  // enough to see it.
  constexpr std::int64_t kMeanDistance = 1 << 15;
  const std::int32_t step = std::max(1, graph.n / 20000);
  std::int64_t distance = 0;
  std::int64_t entries = 0;
  for (std::int64_t u = 0; u < graph.n; u += step) {
    for (std::int64_t e = graph.indptr[u]; e < graph.indptr[u + 1]; ++e) {
      distance += std::abs(graph.indices[e] - u);
      ++entries;
    }
  }
  return distance > kMeanDistance * entries;
}

std::vector<std::int32_t> bfs_order(const CsrView& graph) {
  std::vector<std::int32_t> order;
  order.reserve(graph.n);
  std::vector<bool> seen(graph.n, false);
  for (std::int32_t root = 0; root < graph.n; ++root) {
    if (seen[root]) continue;
    std::size_t head = order.size();
    seen[root] = true;
    order.push_back(root);
    while (head < order.size()) append_neighbours(graph, order[head++], seen, order);
  }
  return order;
}

}  // namespace ohm
