#include "sampling/sampling_noise.hpp"

#include "base/rng.hpp"
#include "graph/clusters.hpp"
#include "graph/components.hpp"
#include "sampling/estimates.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ohm {
namespace {

constexpr double kMostSigns = 32.0;
constexpr std::uint64_t kCoins = 0x636f696e73ull;

// The size of an error relative to the weight: |sum of m signs| sqrt((1 - p) / m).
double draw_size(double probability, std::uint64_t bits) {
  const double variance = 1.0 - probability;
  if (variance <= 0.0) return 0.0;
  const double m = std::floor(std::min(kMostSigns, 1.0 / variance));
  const auto mask = (std::uint64_t{1} << static_cast<int>(m)) - 1;
  const double sum = 2.0 * std::popcount(bits & mask) - m;
  return std::abs(sum) * std::sqrt(variance / m);
}

}  // namespace

std::vector<float> draw_errors(const Triangle& h, double loose, std::uint64_t key) {
  const std::vector<double> degree = degrees(h);
  const ClusterTree tree = find_clusters(h, degree, components(h).count);
  std::vector<NodeRecord> nodes(h.n());
  for (std::int32_t i = 0; i < h.n(); ++i) {
    nodes[i].inverse_degree = static_cast<float>(1.0 / degree[i]);
    nodes[i].cluster = tree.smallest[i];
  }
  const Embedding embedding{nodes, tree.clusters};
  std::vector<double> balance(nodes.size() + tree.clusters.size());  // relative to the degree or cut
  std::vector<float> error(h.edges());
  for (std::int32_t u = 0; u < h.n(); ++u) {
    for (std::int64_t e = h.start[u]; e < h.start[u + 1]; ++e) {
      const auto counter = static_cast<std::uint64_t>(e);
      const auto w = static_cast<double>(h.weight[e]);
      const double size = w * draw_size(static_cast<double>(h.probability[e]), draw(key, counter));
      if (size == 0.0) continue;
      const std::uint64_t coin = draw(key ^ kCoins, counter);
      const Sides sides = find_sides(embedding, u, h.other[e]);
      double& balance_u = balance[sides.vertex_u];
      double& balance_v = balance[sides.vertex_v];
      const double excess = balance_u + balance_v;
      const bool tossed = uniform(coin) < loose || excess == 0.0;
      const bool up = tossed ? (coin & 1u) != 0 : excess < 0.0;
      const double signed_size = up ? size : -size;
      error[e] = static_cast<float>(signed_size);
      if (uniform(coin) < loose) continue;  // its error is not to be compensated by others
      balance_u += signed_size * static_cast<double>(sides.inverse_cut_u);
      balance_v += signed_size * static_cast<double>(sides.inverse_cut_v);
    }
  }
  return error;
}

}  // namespace ohm
