#include "sampling/state_faults.hpp"

#include "sampling/sampler.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace ohm {
namespace {

constexpr float kLargestFloat = std::numeric_limits<float>::max();

bool in_range(std::int64_t value, std::int64_t most) { return value >= 0 && value <= most; }

void check_counters(const SamplerState& s) {
  refuse_unless(in_range(s.position, kMostEdges), "the number of edges seen is ", s.position);
  refuse_unless(in_range(s.n_self_loops, s.position), s.n_self_loops, " of ", s.position, " edges are self-loops");
  const std::int64_t others = s.position - s.n_self_loops;
  refuse_unless(in_range(s.n_zero_weights, others), s.n_zero_weights, " of ", others, " edges have zero weight");
  const std::int64_t seen = others - s.n_zero_weights;
  refuse_unless(s.rows.size() <= seen, s.rows.size(), " rows come from ", seen, " edges");
  refuse_unless(in_range(s.n_resamples, kMostEdges), "the number of resamples is ", s.n_resamples);
  refuse_unless(s.beta > 0.0 && (s.n_resamples > 0 || std::isinf(s.beta)), "the rate beta is ", s.beta, " after ",
                s.n_resamples, " resamples");
  for (const double lane : s.weight_seen) {
    refuse_unless(lane >= 0.0 && lane <= kLargestWeight * static_cast<double>(kMostEdges), "the weight seen is ", lane);
  }
}

void check_rows(const SamplerState& s) {
  const EdgeRows& rows = s.rows;
  const std::size_t size = rows.u.size();
  refuse_unless(rows.v.size() == size && rows.w.size() == size && rows.probability.size() == size,
                "u, v, w and chance have ", size, ", ", rows.v.size(), ", ", rows.w.size(), " and ",
                rows.probability.size(), " rows");
  refuse_unless(rows.time.size() == (rows.has_times ? size : 0), "there are ", rows.time.size(), " times of ", size,
                " rows");
  refuse_unless(in_range(s.n_sorted, rows.size()), s.n_sorted, " of ", size, " rows are sorted");
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    const std::int32_t u = rows.u[i], v = rows.v[i];
    const float w = rows.w[i], probability = rows.probability[i];
    refuse_unless(u >= 0 && u < s.n_nodes && v >= 0 && v < s.n_nodes && u != v, "row ", i, " joins nodes ", u, " and ",
                  v, " of ", s.n_nodes);
    refuse_unless(w >= static_cast<float>(kSmallestWeight) && w <= kLargestFloat, "row ", i, " has weight ", w);
    refuse_unless(probability >= 0.0f && probability <= 1.0f, "row ", i, " was kept with probability ", probability);
    if (!rows.has_times) continue;
    refuse_unless(rows.time[i] <= s.latest && std::isfinite(rows.time[i]), "row ", i, " has time ", rows.time[i],
                  ", but the latest is ", s.latest);
  }
}

// Sorted rows are in the order of their nodes, each pair once. The weights at a node can be added up as floats.
void check_order(const Sampler::State& s) {
  std::vector<double> degree(s.n_nodes);
  std::pair<std::int32_t, std::int32_t> before{-1, -1};
  for (std::int64_t i = 0; i < s.rows.size(); ++i) {
    const std::pair ends{s.rows.u[i], s.rows.v[i]};
    for (const std::int32_t node : {ends.first, ends.second}) {
      degree[node] += static_cast<double>(s.rows.w[i]);
      refuse_unless(degree[node] <= static_cast<double>(kLargestFloat), "the weights at node ", node,
                    " add up to more than the largest float");
    }
    if (i < s.n_sorted) refuse_unless(ends.first < ends.second && before < ends, "row ", i, " is not in order");
    before = ends;
  }
}

void check_times(const Sampler::State& s, double half_life) {
  const bool is_missing = s.latest == -std::numeric_limits<double>::infinity();
  if (!std::isfinite(half_life)) {
    return refuse_unless(s.rows.time.empty() && is_missing, "there are times, but no half-life");
  }
  refuse_unless(in_range(s.n_faded, s.position), s.n_faded, " of ", s.position, " edges came too late");
  if (is_missing) return refuse_unless(s.position == 0 && s.epoch == 0, "the latest time is missing");
  refuse_unless(std::abs(s.latest) <= kMostHalfLives * half_life && s.epoch == find_epoch(s.latest, half_life),
                "the latest time ", s.latest, " is not in epoch ", s.epoch);
}

// Some numbers may be infinite: inverse degrees of nodes without edges, distances outside the largest component.
bool is_sound(const NodeRecord& node, const Sampler::State& s) {
  return std::ranges::all_of(node.z, [](float z) { return std::isfinite(z); }) && std::isfinite(node.balance) &&
         node.degree_now >= 0.0f && std::isfinite(node.degree_now) && node.inverse_degree >= 0.0f &&
         node.inverse_degree_now >= 0.0f && node.distance >= 0.0f && in_range(node.cluster, std::ssize(s.clusters)) &&
         node.component >= -1 && node.component < s.n_nodes;
}

// Parents have larger numbers, so climbing ends.
bool is_sound(const Cluster& cluster, std::int64_t number, const Sampler::State& s) {
  for (const float value : {cluster.inverse_cut, cluster.inverse_cut_now, cluster.cut_now}) {
    if (!(value >= 0.0f && std::isfinite(value))) return false;
  }
  return std::isfinite(cluster.balance) && cluster.parent > number && cluster.parent <= std::ssize(s.clusters);
}

void check_estimates(const Sampler::State& s) {
  const std::int64_t seen = s.position - s.n_self_loops - s.n_zero_weights;
  refuse_unless(s.correction >= 1.0 && std::isfinite(s.correction), "the correction of leverages is ", s.correction);
  refuse_unless(s.n_expected >= 0.0, "n_expected = ", s.n_expected, " must be at least 0");
  refuse_unless(s.n_expected <= static_cast<double>(seen), "n_expected = ", s.n_expected, " exceeds the ", seen,
                " edges that could be kept");
  for (std::size_t i = 0; i < s.nodes.size(); ++i) {
    refuse_unless(is_sound(s.nodes[i], s), "the record of node ", i, " holds a number out of its range");
  }
  refuse_unless(s.clusters.size() <= s.nodes.size(), "there are ", s.clusters.size(), " clusters of ", s.n_nodes,
                " nodes");
  for (std::int64_t k = 0; k < std::ssize(s.clusters); ++k) {
    refuse_unless(is_sound(s.clusters[k], k, s), "the record of cluster ", k, " holds a number out of its range");
  }
  const std::size_t slots = s.pairs.size();
  refuse_unless(slots == 0 || (std::has_single_bit(slots) && slots <= 2 * std::max<std::size_t>(1, s.nodes.size())),
                "the table of pairs has ", slots, " slots for ", s.n_nodes, " nodes");
  for (const PairWeight& pair : s.pairs) {
    refuse_unless(pair.weight >= 0.0f && std::isfinite(pair.weight), "a pair of nodes has weight ", pair.weight);
  }
}

}  // namespace

void check_common(const SamplerState& state, std::int64_t least_capacity, std::int64_t most_capacity) {
  check_counters(state);
  refuse_unless(state.capacity >= least_capacity && state.capacity <= most_capacity, "the capacity is ", state.capacity,
                " rows");
  check_rows(state);
}

void Sampler::check(const State& s, std::int32_t n_nodes) const {
  refuse_unless(s.n_nodes >= 0 && std::ssize(s.nodes) == s.n_nodes, "there are ", s.nodes.size(), " records for ",
                s.n_nodes, " nodes");
  refuse_unless(options_.grows || s.n_nodes >= n_nodes, "there are records for ", s.n_nodes, " of ", n_nodes, " nodes");
  check_times(s, options_.half_life);
  const std::int64_t least = capacity_for(0.0);
  check_common(s, least, options_.max_rows > 0 ? least : capacity_for(std::numeric_limits<double>::infinity()));
  check_order(s);
  check_estimates(s);
}

// No memory is taken for `n_nodes` nodes before the state has been checked: it may be any number.
Sampler Sampler::from_state(State state, std::int32_t n_nodes, const SamplerOptions& options) {
  const Sampler empty(0, options);
  state.rows.has_times = empty.has_half_life();
  empty.check(state, n_nodes);
  return Sampler(std::move(state), options);
}

}  // namespace ohm
