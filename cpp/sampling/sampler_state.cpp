// Checks of a state before a sampler continues from it. Files and messages can hold anything, and update, merge and
// snapshot index with what a state holds.
#include "sampling/sampler.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <utility>

namespace ohm {
namespace {

constexpr double kLargestFloat = std::numeric_limits<float>::max();

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

// Comparisons are written so that NaN fails them. Some numbers may be infinite: shares of nodes without edges,
// distances outside the largest component.
bool is_sound(const NodeRecord& node, const Sampler::State& state) {
  for (const float z : node.z) {
    if (!std::isfinite(z)) return false;
  }
  if (!(node.degree_now >= 0.0f && std::isfinite(node.degree_now)) || !std::isfinite(node.balance)) return false;
  for (const float value : {node.share, node.share_now, node.distance}) {
    if (!(value >= 0.0f)) return false;
  }
  if (node.cluster < 0 || node.cluster > std::ssize(state.clusters)) return false;
  return node.component >= -1 && node.component < state.n_nodes;
}

// Parents have larger numbers, so climbing ends.
bool is_sound(const Cluster& cluster, std::int64_t number, const Sampler::State& state) {
  for (const float value : {cluster.share, cluster.share_now, cluster.cut_now}) {
    if (!(value >= 0.0f && std::isfinite(value))) return false;
  }
  return std::isfinite(cluster.balance) && cluster.parent > number && cluster.parent <= std::ssize(state.clusters);
}

std::string find_record_fault(const Sampler::State& state) {
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    if (!is_sound(state.nodes[i], state)) {
      return "the record of node " + std::to_string(i) + " holds a number out of its range";
    }
  }
  if (std::ssize(state.clusters) > std::ssize(state.nodes)) {
    return "there are " + std::to_string(state.clusters.size()) + " clusters of " + std::to_string(state.n_nodes) +
           " nodes";
  }
  for (std::int64_t k = 0; k < std::ssize(state.clusters); ++k) {
    if (!is_sound(state.clusters[k], k, state)) {
      return "the record of cluster " + std::to_string(k) + " holds a number out of its range";
    }
  }
  return {};
}

std::string find_pair_fault(const Sampler::State& state) {
  const std::size_t size = state.pairs.size();
  if (size > 0 && (!std::has_single_bit(size) || size > 2 * std::max<std::size_t>(1, state.nodes.size()))) {
    return "the table of pairs has " + std::to_string(size) + " slots for " + std::to_string(state.n_nodes) + " nodes";
  }
  for (const PairWeight& pair : state.pairs) {
    if (!(pair.weight >= 0.0f && std::isfinite(pair.weight))) {
      return "a pair of nodes has weight " + number(static_cast<double>(pair.weight));
    }
  }
  return {};
}

std::string find_row_fault(const Sampler::State& state) {
  const std::size_t rows = state.rows.u.size();
  if (state.rows.v.size() != rows || state.rows.w.size() != rows || state.rows.chance.size() != rows) {
    return "u, v, w and chance have " + std::to_string(rows) + ", " + std::to_string(state.rows.v.size()) + ", " +
           std::to_string(state.rows.w.size()) + " and " + std::to_string(state.rows.chance.size()) + " rows";
  }
  if (state.n_sorted < 0 || state.n_sorted > state.rows.size()) {
    return std::to_string(state.n_sorted) + " of " + std::to_string(rows) + " rows are sorted";
  }
  std::vector<double> degree(state.n_nodes);
  for (std::size_t i = 0; i < rows; ++i) {
    const std::int32_t u = state.rows.u[i], v = state.rows.v[i];
    const auto w = static_cast<double>(state.rows.w[i]);
    const auto row = [&] { return "row " + std::to_string(i); };
    if (u < 0 || u >= state.n_nodes || v < 0 || v >= state.n_nodes || u == v) {
      return row() + " joins nodes " + std::to_string(u) + " and " + std::to_string(v) + " of " +
             std::to_string(state.n_nodes);
    }
    if (!(w >= kSmallestWeight && w <= kLargestFloat)) return row() + " has weight " + number(w);
    const auto chance = static_cast<double>(state.rows.chance[i]);
    if (!(chance >= 0.0 && chance <= 1.0)) return row() + " was kept with probability " + number(chance);
    for (const std::int32_t node : {u, v}) {
      degree[node] += w;
      if (degree[node] > kLargestFloat) {
        return "the weights at node " + std::to_string(node) + " add up to more than the largest float";
      }
    }
    if (static_cast<std::int64_t>(i) >= state.n_sorted) continue;
    const bool after = i == 0 || std::pair(state.rows.u[i - 1], state.rows.v[i - 1]) < std::pair(u, v);
    if (u > v || !after) return row() + " is not in order";
  }
  return {};
}

std::string find_counter_fault(const Sampler::State& state) {
  const auto in_range = [](std::int64_t value, std::int64_t most) { return value >= 0 && value <= most; };
  if (!in_range(state.position, kMostEdges)) return "the number of edges seen is " + std::to_string(state.position);
  if (!in_range(state.n_self_loops, state.position)) {
    return std::to_string(state.n_self_loops) + " of " + std::to_string(state.position) + " edges are self-loops";
  }
  if (!in_range(state.n_zero_weights, state.position - state.n_self_loops)) {
    return std::to_string(state.n_zero_weights) + " of " + std::to_string(state.position - state.n_self_loops) +
           " edges have zero weight";
  }
  const std::int64_t seen = state.position - state.n_self_loops - state.n_zero_weights;
  if (state.rows.size() > seen) {
    return std::to_string(state.rows.u.size()) + " rows come from " + std::to_string(seen) + " edges";
  }
  if (!in_range(state.n_resamples, kMostEdges)) {
    return "the number of resamples is " + std::to_string(state.n_resamples);
  }
  if (!(state.beta > 0.0) || (state.n_resamples == 0 && std::isfinite(state.beta))) {
    return "the rate beta is " + number(state.beta) + " after " + std::to_string(state.n_resamples) + " resamples";
  }
  if (!(state.correction >= 1.0 && std::isfinite(state.correction))) {
    return "the correction of leverages is " + number(state.correction);
  }
  if (!(state.n_expected >= 0.0)) return "n_expected = " + number(state.n_expected) + " must be at least 0";
  if (state.n_expected > static_cast<double>(seen)) {
    return "n_expected = " + number(state.n_expected) + " exceeds the " + std::to_string(seen) +
           " edges that could be kept";
  }
  for (const double lane : state.weight_seen) {
    if (!(lane >= 0.0 && lane <= kLargestWeight * static_cast<double>(kMostEdges))) {
      return "the weight seen is " + number(lane);
    }
  }
  return {};
}

std::string find_time_fault(const Sampler::State& state, double half_life) {
  if (!std::isfinite(half_life)) {
    return state.rows.time.empty() && state.latest < 0.0 && std::isinf(state.latest) ? "" : "there are times, but no half-life";
  }
  if (state.rows.time.size() != state.rows.u.size()) {
    return "there are " + std::to_string(state.rows.time.size()) + " times of " + std::to_string(state.rows.u.size()) + " rows";
  }
  if (state.n_faded < 0 || state.n_faded > state.position) {
    return std::to_string(state.n_faded) + " of " + std::to_string(state.position) + " edges came too late";
  }
  if (state.latest == -std::numeric_limits<double>::infinity()) {
    return state.rows.u.empty() && state.position == 0 && state.epoch == 0 ? "" : "the latest time is missing";
  }
  if (!(std::abs(state.latest) <= kMostHalfLives * half_life) || state.epoch != find_epoch(state.latest, half_life)) {
    return "the latest time " + number(state.latest) + " is not in epoch " + std::to_string(state.epoch);
  }
  for (std::size_t i = 0; i < state.rows.time.size(); ++i) {
    if (!(state.rows.time[i] <= state.latest && std::isfinite(state.rows.time[i]))) {
      return "row " + std::to_string(i) + " has time " + number(state.rows.time[i]) + ", but the latest is " +
             number(state.latest);
    }
  }
  return {};
}

}  // namespace

std::string Sampler::find_fault(const State& state, std::int32_t n_nodes) const {
  if (state.n_nodes < 0 || std::ssize(state.nodes) != state.n_nodes) {
    return "there are " + std::to_string(state.nodes.size()) + " records for " + std::to_string(state.n_nodes) +
           " nodes";
  }
  if (!options_.grows && state.n_nodes < n_nodes) {
    return "there are records for " + std::to_string(state.n_nodes) + " of " + std::to_string(n_nodes) + " nodes";
  }
  if (std::string fault = find_counter_fault(state); !fault.empty()) return fault;
  if (std::string fault = find_row_fault(state); !fault.empty()) return fault;
  if (std::string fault = find_time_fault(state, options_.half_life); !fault.empty()) return fault;
  if (std::string fault = find_record_fault(state); !fault.empty()) return fault;
  if (std::string fault = find_pair_fault(state); !fault.empty()) return fault;
  const std::int64_t least = capacity_for(0.0);
  const std::int64_t most = options_.max_rows > 0 ? least : capacity_for(std::numeric_limits<double>::infinity());
  if (state.capacity < least || state.capacity > most) {
    return "the capacity is " + std::to_string(state.capacity) + " rows";
  }
  return {};
}

// No memory is taken for `n_nodes` nodes before the state has been checked: it may be any number.
Sampler Sampler::from_state(State state, std::int32_t n_nodes, const SamplerOptions& options) {
  const std::string fault = Sampler(0, options).find_fault(state, n_nodes);
  if (!fault.empty()) throw std::invalid_argument(fault);
  return Sampler(std::move(state), options);
}

}  // namespace ohm
