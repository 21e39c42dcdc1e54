#include "sampling/sampling_noise.hpp"

#include "check.hpp"

#include <cmath>

namespace {

constexpr std::int32_t kNodes = 100;

// Edges within pairs of nodes are `contrast` times as heavy as the others.
ohm::Triangle make_graph(float contrast, float probability) {
  std::vector<std::int32_t> u, v;
  std::vector<float> w;
  for (std::int32_t i = 0; i < kNodes; ++i) {
    for (std::int32_t j = i + 1; j < kNodes; ++j) {
      u.push_back(i);
      v.push_back(j);
      w.push_back(i / 2 == j / 2 ? contrast : 1.0f);
    }
  }
  return ohm::sort_edges(kNodes, u, v, w, 0, std::vector<float>(u.size(), probability));
}

// The error of the weight that leaves each set of `size` nodes, root of the mean square, over its standard deviation
// for independent errors.
double relative_spread(const ohm::Triangle& h, std::int32_t size, double loose) {
  std::vector<double> cut(kNodes / size);
  const std::vector<float> error = ohm::draw_errors(h, loose, 5);
  for (std::int32_t u = 0; u < kNodes; ++u) {
    for (std::int64_t e = h.start[u]; e < h.start[u + 1]; ++e) {
      if (u / size == h.other[e] / size) continue;
      cut[u / size] += static_cast<double>(error[e]);
      cut[h.other[e] / size] += static_cast<double>(error[e]);
    }
  }
  double sum = 0.0;
  for (const double x : cut) sum += x * x;
  const double variance = (1.0 - static_cast<double>(h.probability[0])) * size * (kNodes - size);
  return std::sqrt(sum / static_cast<double>(cut.size()) / variance);
}

}  // namespace

TEST(errors_cancel_at_nodes_or_in_cuts_of_heavy_pairs) {
  for (const float probability : {0.0f, 0.3f, 0.8f}) {
    CHECK(relative_spread(make_graph(1.0f, probability), 1, 0.0) < 0.35);
    CHECK(relative_spread(make_graph(1e4f, probability), 2, 0.0) < 0.35);
    CHECK(std::abs(relative_spread(make_graph(1.0f, probability), 1, 1.0) - 1.0) < 0.3);
  }
}

TEST(errors_do_not_exceed_weights_and_certain_edges_have_none) {
  for (const float probability : {0.0f, 0.2f, 0.5f, 0.97f, 1.0f}) {
    const ohm::Triangle h = make_graph(100.0f, probability);
    const std::vector<float> error = ohm::draw_errors(h, 0.2, 1);
    double largest = 0.0;
    for (std::int64_t e = 0; e < h.edges(); ++e) {
      largest = std::max(largest, static_cast<double>(std::abs(error[e]) / h.weight[e]));
    }
    CHECK(probability == 1.0f ? largest == 0.0 : largest > 0.1 && largest <= 1.0 + 1e-6);
  }
}

TEST(errors_of_an_empty_graph) {
  CHECK(ohm::draw_errors(ohm::sort_edges(0, {}, {}, {}), 0.2, 1).empty());
  CHECK(ohm::draw_errors(ohm::sort_edges(3, {}, {}, {}), 0.2, 1).empty());
}
