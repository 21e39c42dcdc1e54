#include "graph/components.hpp"

#include <numeric>

namespace ohm {
namespace {

Components number_sets(std::vector<std::int32_t> parent) {
  const auto n = static_cast<std::int32_t>(parent.size());
  Components result;
  result.labels.resize(n);
  for (std::int32_t i = 0; i < n; ++i) {
    const std::int32_t first = find_root(parent, i);
    result.labels[i] = first == i ? result.count++ : result.labels[first];
  }
  return result;
}

}  // namespace

std::vector<std::int32_t> lone_nodes(std::int32_t n) {
  std::vector<std::int32_t> parent(n);
  std::iota(parent.begin(), parent.end(), 0);
  return parent;
}

Components components(const CsrView& graph) {
  const std::int32_t n = graph.n;
  std::vector<std::int32_t> parent = lone_nodes(n);
  // Once all nodes that have edges are in one set, the remaining edges need not be read.
  std::int64_t missing = -1;
  for (std::int32_t u = 0; u < n; ++u) missing += graph.indptr[u] < graph.indptr[u + 1];
  for (std::int32_t u = 0; u < n && missing > 0; ++u) {
    for (std::int64_t e = graph.indptr[u]; e < graph.indptr[u + 1]; ++e) {
      missing -= join_sets(parent, u, graph.indices[e]);
    }
  }
  return number_sets(std::move(parent));
}

Components components(const Triangle& edges, Crew& crew) {
  std::vector<std::int32_t> parent = lone_nodes(edges.n());
  std::int32_t missing = edges.n() - 1;
  visit_joining(edges, {}, 0, parent, crew, [&](std::int32_t u, std::int32_t v, std::int64_t) {
    missing -= join_sets(parent, u, v);
    return missing > 0;
  });
  return number_sets(std::move(parent));
}

void find_roots(std::span<std::int32_t> parent) {
  // Parents come first, so theirs are replaced already.
  for (std::int32_t& node : parent) node = parent[node];
}

}  // namespace ohm
