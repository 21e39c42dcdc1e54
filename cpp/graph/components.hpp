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

// Calls visit(u, v, e) for the edges of one group that may join two sets, in their order, until it returns false. Of the
// others, whose ends are in one set already, threads leave out most. `group` holds the group of each edge; if it is
// empty, all edges are meant.
template <class Visit>
void visit_joining(const Triangle& edges, std::span<const unsigned char> group, unsigned char wanted,
                   std::span<const std::int32_t> parent, Crew& crew, Visit&& visit);

// Replaces the parent of each node by its root.
void find_roots(std::span<std::int32_t> parent);

struct Components {
  std::vector<std::int32_t> labels;  // of each node; components are numbered in the order of their first nodes
  std::int32_t count = 0;
};

Components components(const CsrView& graph);
Components components(const Triangle& edges, Crew& crew = alone);

template <class Visit>
void visit_joining(const Triangle& edges, std::span<const unsigned char> group, unsigned char wanted,
                   std::span<const std::int32_t> parent, Crew& crew, Visit&& visit) {
  struct Found {
    std::int32_t u;
    std::int64_t e;
  };
  constexpr std::int64_t kPiece = 1 << 13;
  const std::int64_t most = 4 * crew.size();  // pieces before the sets are joined
  const auto root = [&](std::int32_t node) {
    while (parent[node] != node) node = parent[node];
    return node;
  };
  std::vector<std::vector<Found>> found(most);
  for (std::int64_t begin = 0, end; begin < edges.edges(); begin = end) {
    end = std::min(edges.edges(), begin + most * kPiece);
    const std::int64_t pieces = (end - begin + kPiece - 1) / kPiece;
    crew.run(pieces, [&](std::int64_t piece) {
      found[piece].clear();
      std::int64_t e = begin + piece * kPiece;
      const std::int64_t last = std::min(end, e + kPiece);
      auto u = static_cast<std::int32_t>(
          std::upper_bound(edges.start.begin(), edges.start.end(), e) - edges.start.begin() - 1);
      for (; e < last; ++e) {
        if (!group.empty()) {
          e = std::find(group.begin() + e, group.begin() + last, wanted) - group.begin();
          if (e == last) break;
        }
        while (edges.start[u + 1] <= e) ++u;
        if (root(u) != root(edges.other[e])) found[piece].push_back({u, e});
      }
    });
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      for (const Found& at : found[piece]) {
        if (!visit(at.u, edges.other[at.e], at.e)) return;
      }
    }
  }
}

}  // namespace ohm
