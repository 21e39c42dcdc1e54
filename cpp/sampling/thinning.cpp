#include "sampling/thinning.hpp"

#include "graph/components.hpp"
#include "sampling/balanced_coins.hpp"

#include <bit>

namespace ohm {
namespace {

constexpr int kAhead = 24;    // edges between the prefetch of a record and its use
constexpr float kFar = 4.0f;  // times the floor: eight columns are hardly ever so far above it by chance

// Edges are grouped by powers of four of their leverage: group 0 has leverages of at least 1/4.
constexpr int kGroups = 11;
OHM_KERNEL void find_groups(std::span<const float> leverage, unsigned char* group) {
  const std::int64_t size = std::ssize(leverage);
  for (std::int64_t e = 0; e < size; ++e) {
    const int exponent = std::bit_cast<std::int32_t>(leverage[e]) >> 23;  // 125 means from 1/4 to 1/2
    group[e] = static_cast<unsigned char>(std::clamp((126 - exponent) / 2, 0, kGroups - 1));
  }
}

// A walk through a part of the edges.
struct Walk {
  std::int32_t u;
  std::int64_t e;
  std::int64_t end;
};

OHM_KERNEL void balance_rows(const Triangle& h, const Embedding& embedding, std::span<const float> chance,
                             std::uint64_t key, Balance* balance, char* keep) {
  const Tables& tables = Tables::get();
  // Consecutive edges share a node; four interleaved walks, each through a quarter of the edges, avoid that dependency.
  constexpr int kWalks = 4;
  Walk walks[kWalks];
  for (int k = 0; k < kWalks; ++k) {
    const std::int64_t begin = h.edges() * k / kWalks;
    const auto row = std::upper_bound(h.start.begin(), h.start.end(), begin) - h.start.begin() - 1;
    walks[k] = {static_cast<std::int32_t>(row), begin, h.edges() * (k + 1) / kWalks};
  }
  for (std::int64_t step = 0; step < (h.edges() + kWalks - 1) / kWalks; ++step) {
    for (Walk& walk : walks) {
      if (walk.e == walk.end) continue;
      const std::int64_t e = walk.e++;
      while (h.start[walk.u + 1] <= e) ++walk.u;
      if (chance[e] >= 1.0f) {
        keep[e] = 1;
        continue;
      }
      std::int32_t a = walk.u;
      std::int32_t b = h.other[e];
      if (!embedding.clusters.empty()) {
        const Sides best = find_sides(embedding, a, b);
        a = best.vertex_u;
        b = best.vertex_v;
      }
      const std::uint64_t random = draw(key, static_cast<std::uint64_t>(e));
      const Fate* fate = decide(tables, chance[e], random, balance[a] + balance[b]);
      if (fate == nullptr) continue;
      keep[e] = static_cast<char>(fate->keep);
      const float weight = h.weight[e] / chance[e];
      balance[a] += fate->sign * (weight * balance[a][kBits]);
      balance[b] += fate->sign * (weight * balance[b][kBits]);
    }
  }
}

}  // namespace

OHM_KERNEL void add_sketches(const Triangle& h, const Embedding& embedding, float factor, std::span<float> squares) {
  for (std::int32_t u = 0; u < h.n(); ++u) {
    for (std::int64_t e = h.start[u]; e < h.start[u + 1]; ++e) {
      if (e + kAhead < h.edges()) __builtin_prefetch(&embedding.nodes[h.other[e + kAhead]]);
      squares[e] += factor * sketch(embedding.nodes[u], embedding.nodes[h.other[e]]);
    }
  }
}

OHM_KERNEL LeverageSums row_leverages(const Triangle& h, const Embedding& embedding, std::span<const float> squares,
                                      float certain, std::span<float> leverage) {
  LeverageSums sums;
  for (std::int32_t u = 0; u < h.n(); ++u) {
    for (std::int64_t e = h.start[u]; e < h.start[u + 1]; ++e) {
      if (e + kAhead < h.edges()) __builtin_prefetch(&embedding.nodes[h.other[e + kAhead]]);
      const float w = h.weight[e];
      const Sides best = find_sides(embedding, u, h.other[e]);
      const float floor = resistance_floor(1.0f / best.share_u - w, 1.0f / best.share_v - w, w);
      const float square = squares.empty() ? sketch(embedding.nodes[u], embedding.nodes[h.other[e]]) : squares[e];
      leverage[e] = std::min(1.0f, w * resistance(square, floor, floor));
      const auto sketched = static_cast<double>(w * square);
      sums.estimates += static_cast<double>(leverage[e]);
      sums.sketch += sketched;
      sums.unexplained += square > kFar * floor && w * floor < certain ? sketched : 0.0;
    }
  }
  return sums;
}

void keep_forest(const Triangle& h, std::int32_t n_components, std::span<float> leverage) {
  // In groups, because sorting all edges would gain little.
  std::vector<unsigned char> group(leverage.size());
  find_groups(leverage, group.data());
  std::vector<std::int32_t> parent = lone_nodes(h.n());
  std::int32_t missing = h.n() - n_components;
  for (unsigned char wanted = 0; wanted < kGroups && missing > 0; ++wanted) {
    std::int32_t u = 0;
    for (auto at = group.begin(); missing > 0; ++at) {
      at = std::find(at, group.end(), wanted);
      if (at == group.end()) break;
      const std::int64_t e = at - group.begin();
      while (h.start[u + 1] <= e) ++u;
      if (!join_sets(parent, u, h.other[e])) continue;
      leverage[e] = kCertain;
      --missing;
    }
  }
}

double fit_beta(std::span<const float> leverage, std::int64_t rows) {
  double beta = 1.0 / static_cast<double>(kCertain);
  for (;;) {
    std::int64_t whole = 0;
    double rest = 0.0;
    for (const float t : leverage) {
      const bool cut = beta * static_cast<double>(t) >= 1.0;
      whole += cut;
      rest += cut ? 0.0 : static_cast<double>(t);
    }
    const double next = whole < rows ? static_cast<double>(rows - whole) / rest : beta;
    if (!(next > beta * (1.0 + 1e-12))) return beta;
    beta = next;
  }
}

std::vector<char> choose_rows(const Triangle& h, const Embedding& embedding, std::span<const float> chance,
                              std::uint64_t key) {
  const Rows<float, 4> balance(std::ssize(embedding.nodes) + std::ssize(embedding.clusters));
  Balance* next = balance;
  for (const NodeRecord& node : embedding.nodes) *next++ = Balance{0.0f, 0.0f, 0.0f, node.share};
  for (const Cluster& cluster : embedding.clusters) *next++ = Balance{0.0f, 0.0f, 0.0f, cluster.share};
  std::vector<char> keep(h.edges());
  balance_rows(h, embedding, chance, key, balance, keep.data());
  return keep;
}

}  // namespace ohm
