// Connected components, by union-find.
#pragma once

#include "graph/csr.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace ohm {

// Disjoint sets of nodes, as a forest: at first each node is its own parent. The root of a set is its smallest member,
// and a parent is never larger than its children.
std::vector<std::int32_t> lone_nodes(std::int32_t n);

inline std::int32_t find_root(std::span<std::int32_t> parent, std::int32_t node) {
  while (parent[node] != node) node = parent[node] = parent[parent[node]];
  return node;
}

// Returns false if the two are in the same set already.
inline bool join_sets(std::span<std::int32_t> parent, std::int32_t a, std::int32_t b) {
  a = find_root(parent, a);
  b = find_root(parent, b);
  parent[std::max(a, b)] = std::min(a, b);
  return a != b;
}

// Replaces the parent of each node by its root.
void find_roots(std::span<std::int32_t> parent);

struct Components {
  std::vector<std::int32_t> labels;  // of each node; components are numbered in the order of their first nodes
  std::int32_t count = 0;
};

Components components(const CsrView& graph);
Components components(const Triangle& edges);

// Joins the ends of edges of positive weight in `parent`. Returns the position of the first edge that joins two of the
// given components, or has an end outside 0, ..., n - 1; -1 if there is none.
template <class Index, class Weight>
std::int64_t join_ends(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                       std::span<const std::int32_t> component, std::span<std::int32_t> parent);

}  // namespace ohm
