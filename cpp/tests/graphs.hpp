// Small graphs and dense arithmetic for the tests.
#pragma once

#include "graph/csr.hpp"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace graphs {

struct Edge {
  int u, v;
  double w = 1.0;
};

struct Graph {
  ohm::Csr csr;
  ohm::CsrView view() const {
    return {static_cast<std::int32_t>(csr.indptr.size() - 1), csr.indptr.data(), csr.indices.data(),
            csr.weights.data()};
  }
};

inline Graph make(int n, const std::vector<Edge>& edges) {
  std::vector<int> u, v;
  std::vector<double> w;
  for (const Edge& e : edges) {
    u.push_back(e.u);
    v.push_back(e.v);
    w.push_back(e.w);
  }
  return {std::get<ohm::BuiltCsr>(ohm::build_csr<int, double>(n, u, v, w)).csr};
}

// Weights 10^-decades .. 1.
inline double weight(std::mt19937& random, double decades) {
  return std::pow(10.0, -decades * std::uniform_real_distribution<double>()(random));
}

inline Graph tree(int n, double decades, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Edge> edges;
  for (int i = 1; i < n; ++i) edges.push_back({i, static_cast<int>(random() % i), weight(random, decades)});
  return make(n, edges);
}

inline Graph ring(int n, double decades, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Edge> edges;
  for (int i = 0; i < n; ++i) edges.push_back({i, (i + 1) % n, weight(random, decades)});
  return make(n, edges);
}

inline Graph grid(int side, double decades, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Edge> edges;
  for (int i = 0; i < side * side; ++i) {
    if (i % side + 1 < side) edges.push_back({i, i + 1, weight(random, decades)});
    if (i + side < side * side) edges.push_back({i, i + side, weight(random, decades)});
  }
  return make(side * side, edges);
}

inline Graph wheel(int n) {
  std::vector<Edge> edges;
  for (int i = 1; i < n; ++i) {
    edges.push_back({0, i});
    edges.push_back({i, i + 1 < n ? i + 1 : 1});
  }
  return make(n, edges);
}

inline std::vector<double> random_vector(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(size);
  for (double& value : values) value = normal(random);
  return values;
}

// (L + D) x, one column.
inline std::vector<double> multiply(const ohm::CsrView& graph, const double* ground, const std::vector<double>& x) {
  std::vector<double> y(graph.n, 0.0);
  for (std::int32_t i = 0; i < graph.n; ++i) {
    if (ground != nullptr) y[i] = ground[i] * x[i];
    for (auto e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) {
      y[i] += graph.weights[e] * (x[i] - x[graph.indices[e]]);
    }
  }
  return y;
}

inline double norm(const std::vector<double>& x) {
  double sum = 0.0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

inline double distance(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<double> difference(x);
  for (std::size_t i = 0; i < x.size(); ++i) difference[i] -= y[i];
  return norm(difference);
}

inline void subtract_mean(std::vector<double>& x) {
  double sum = 0.0;
  for (const double value : x) sum += value;
  for (double& value : x) value -= sum / static_cast<double>(x.size());
}

}  // namespace graphs
