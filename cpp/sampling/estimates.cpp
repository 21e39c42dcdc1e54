#include "sampling/estimates.hpp"

#include <cmath>

namespace ohm {

void measure_distances(std::span<NodeRecord> nodes) {
  constexpr int kColumns = NodeRecord::kColumns;
  std::vector<std::int64_t> size;
  for (const NodeRecord& node : nodes) {
    if (node.component < 0) continue;
    if (node.component >= std::ssize(size)) size.resize(node.component + 1);
    ++size[node.component];
  }
  const auto largest = static_cast<std::int32_t>(std::max_element(size.begin(), size.end()) - size.begin());
  double centre[kColumns] = {};
  for (const NodeRecord& node : nodes) {
    if (node.component != largest) continue;
    for (int c = 0; c < kColumns; ++c) centre[c] += static_cast<double>(node.z[c]);
  }
  NodeRecord middle;
  for (int c = 0; c < kColumns && !size.empty(); ++c) {
    middle.z[c] = static_cast<float>(centre[c] / static_cast<double>(size[largest]));
  }
  for (NodeRecord& node : nodes) {
    node.distance = node.component == largest ? sketch(node, middle) : NodeRecord::kInfinity;
  }
}

std::vector<float> bound_resistances(const Embedding& h) {
  std::vector<float> highest(h.clusters.size() + 1);  // largest inverse cut of the cluster and its ancestors
  for (std::int64_t k = std::ssize(h.clusters) - 1; k >= 0; --k) {
    highest[k] = std::max(h.clusters[k].inverse_cut_now, highest[h.clusters[k].parent]);
  }
  std::vector<float> bound(h.nodes.size(), NodeRecord::kInfinity);
  for (std::size_t i = 0; i < h.nodes.size(); ++i) {
    const NodeRecord& node = h.nodes[i];
    if (std::isinf(node.distance)) continue;
    const float floor_now = std::max(node.inverse_degree_now, highest[node.cluster]);
    bound[i] = resistance(2.0f * node.distance, node.inverse_degree, floor_now);
  }
  return bound;
}

}  // namespace ohm
