#include "sampling/windows.hpp"

#include "base/rng.hpp"
#include "sampling/state_faults.hpp"
#include "sampling/window_thinning.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace ohm {
namespace {

constexpr double kFraction = 0.5;  // of the beta of one sparsifier
constexpr double kReach = 2.0;   // see resample
constexpr double kLeft = 0.7;    // of the capacity, see resample
constexpr double kSafety = 0.95;  // each step to a budget is shorter by this factor than the one before
constexpr double kRise = 1.1;         // of beta at each resample, with a budget
constexpr double kLeastBeta = 1e-12;  // at which hardly more than a forest is left
constexpr std::int64_t kMostNodes = std::int64_t{1} << 30;
constexpr std::uint64_t kWindowCoins = 0x77696e646f7773ull;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

WindowSampler::WindowSampler(std::int32_t n_nodes, const SamplerOptions& options) : options_(options) {
  state_.n_nodes = n_nodes;
  state_.capacity = capacity_for(beta_for(n_nodes) * static_cast<double>(n_nodes));
}

WindowSampler::WindowSampler(State state, const SamplerOptions& options) : options_(options), state_(std::move(state)) {}

double WindowSampler::beta_for(std::int64_t n) const { return kFraction * usual_beta(options_, n); }

// Rows among which none has to be dropped: as many as one sparsifier of all edges may have.
double WindowSampler::target() const {
  if (options_.max_rows > 0) return static_cast<double>(options_.max_rows);
  return beta_for(state_.n_nodes) / kFraction * static_cast<double>(state_.n_nodes);
}

// The rows at which a resample is due, if there are `rows` after one.
std::int64_t WindowSampler::capacity_for(double rows) const {
  if (options_.max_rows > 0) rows = static_cast<double>(options_.max_rows);
  return std::max(kSmallest, grow(rows));
}

template <class Index, class Weight>
void WindowSampler::update(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                           std::span<const double> t) {
  const std::int64_t size = std::ssize(u);
  settled_.reset();
  for (std::int64_t begin = 0; begin < size;) {
    EdgeRows& rows = state_.rows;
    std::int64_t row = rows.size();
    const std::int64_t room = std::max<std::int64_t>(1, state_.capacity - row);
    const std::int64_t end = std::min(size, begin + room);
    if (rows.capacity() < row + end - begin) {
      rows.reserve(std::max(row + end - begin, std::min(state_.capacity, 2 * row)));
    }
    rows.resize(row + end - begin);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto weight = static_cast<float>(weight_at(w, i));
      rows.set(row, static_cast<std::int32_t>(u[i]), static_cast<std::int32_t>(v[i]), weight, 1.0f);
      rows.time[row] = t[i];
      row += u[i] != v[i] && weight >= static_cast<float>(kSmallestWeight);
      state_.latest = std::max(state_.latest, t[i]);
    }
    rows.resize(row);
    const auto part = [&](auto values) { return values.empty() ? values : values.subspan(begin, end - begin); };
    state_.count(part(u), part(v), part(w));
    state_.n_nodes = std::max(state_.n_nodes, static_cast<std::int32_t>(find_last(part(u), part(v)) + 1));
    begin = end;
    if (row < state_.capacity) continue;
    // Nodes may have appeared since the capacity was set.
    if (state_.n_resamples == 0) {
      state_.capacity =
          std::max(state_.capacity, capacity_for(beta_for(state_.n_nodes) * static_cast<double>(state_.n_nodes)));
      if (row < state_.capacity) continue;
    }
    resample(false);
  }
}

void WindowSampler::merge(std::span<const State* const> others) {
  WindowSampler merged(*this);
  State& state = merged.state_;
  for (const State* const other : others) {
    state.add(*other);
    state.thinned = std::max(state.thinned, other->thinned);
  }
  merged.settled_.reset();
  merged.resample(true);
  *this = std::move(merged);
}

Snapshot WindowSampler::snapshot(double since) {
  if (settled_ == nullptr) {
    WindowSampler copy(state_, options_);
    copy.resample(true);
    settled_ = std::make_shared<const State>(std::move(copy.state_));
  }
  const EdgeRows& rows = settled_->rows;
  since = std::max(since, earliest());
  const std::int64_t begin = std::lower_bound(rows.time.begin(), rows.time.end(), since) - rows.time.begin();
  const auto part = [&](const auto& column) { return std::span(column).subspan(begin); };
  return {sort_edges(state_.n_nodes, part(rows.u), part(rows.v), part(rows.w), 0, part(rows.probability)),
          since > settled_->thinned};
}

// Sorts the rows by time, drops those beyond the horizon, and thins out the others.
//
// The probability of an old row hardly changes while the weight of newer ones grows by a small part. So every resample
// goes back only to where the newer rows weigh about kReach times what has arrived since the last one, every second one
// twice as far, every fourth one four times, and so on. That saves time, and accuracy: estimates are noisy, and a row
// that is estimated often is kept with the smallest of its estimates. If too many rows are left, or with `all`, none is
// spared.
void WindowSampler::resample(bool all) {
  EdgeRows& rows = state_.rows;
  const double arrived = std::accumulate(rows.w.begin() + state_.n_sorted, rows.w.end(), 0.0);
  rows.sort_by_time(earliest());
  state_.n_sorted = rows.size();  // also if memory runs out below
  ++state_.n_resamples;
  if (static_cast<double>(rows.size()) > target()) thin_out(all, arrived);  // otherwise all fit
  state_.n_sorted = rows.size();
  state_.capacity = capacity_for(static_cast<double>(rows.size()));
}

void WindowSampler::thin_out(bool all, double arrived) {
  EdgeRows& rows = state_.rows;
  const std::int64_t budget = options_.max_rows;
  const double n = std::max(1, state_.n_nodes);
  // With a budget beta may rise again, slowly, because what was dropped at a smaller one leaves the windows in time.
  state_.beta = budget > 0 ? std::min(kRise * state_.beta, static_cast<double>(budget) / n) : beta_for(state_.n_nodes);
  std::uint64_t step = 0;
  if (!all) {
    const int level = std::countr_zero(static_cast<std::uint64_t>(state_.n_resamples));
    double left = kReach * std::ldexp(arrived, level);
    std::int64_t oldest = rows.size();
    while (oldest > 0 && left > 0.0) left -= static_cast<double>(rows.w[--oldest]);
    thin(oldest, step++);
    const double most = budget > 0 ? static_cast<double>(budget) : kLeft * static_cast<double>(state_.capacity);
    all = static_cast<double>(rows.size()) > most;
  }
  if (all) thin(0, step++);
  for (double less = 1.0; budget > 0 && rows.size() > budget && state_.beta > kLeastBeta;) {
    less *= kSafety;
    state_.beta *= less * static_cast<double>(budget) / static_cast<double>(rows.size());
    thin(0, step++);
  }
}

// Thins out the rows from number `oldest` on, which must be in the order of time. `step` counts within a resample.
void WindowSampler::thin(std::int64_t oldest, std::uint64_t step) {
  const std::uint64_t coins = hash(options_.seed ^ kWindowCoins, static_cast<std::uint64_t>(state_.n_resamples));
  const std::uint64_t key = hash(coins, step);
  // Newest rows that are certain, with a budget: the others and a forest must have room.
  const std::int64_t most = options_.max_rows > 0 ? std::max<std::int64_t>(1, options_.max_rows / 4) : kMostEdges;
  const double newest = thin_rows(state_.rows, oldest, state_.n_nodes, state_.beta, most, key, options_.threads);
  state_.thinned = std::max(state_.thinned, newest);
}

// Sorted rows are in the order of time, and all weights can be added up as floats. Nothing is kept for each node here:
// a state may name any number of nodes.
void WindowSampler::check(const State& s, std::int32_t n_nodes) const {
  refuse_unless(s.n_nodes >= 0 && s.n_nodes <= kMostNodes && (options_.grows || s.n_nodes == n_nodes), "there are ",
                s.n_nodes, " nodes instead of ", n_nodes);
  refuse_unless(s.latest < kInfinity, "the latest time is ", s.latest);
  refuse_unless(s.thinned < kInfinity, "the newest time of a row that was not certain is ", s.thinned);
  const std::int64_t least = capacity_for(0.0);
  check_common(s, least, options_.max_rows > 0 ? least : capacity_for(kInfinity));
  double total = 0.0;
  for (std::int64_t i = 0; i < s.rows.size(); ++i) {
    total += static_cast<double>(s.rows.w[i]);
    refuse_unless(total <= static_cast<double>(std::numeric_limits<float>::max()), "the weights of ", i + 1,
                  " rows add up to more than the largest float");
    if (i > 0 && i < s.n_sorted) {
      refuse_unless(s.rows.time[i - 1] <= s.rows.time[i], "row ", i, " is not in the order of time");
    }
  }
}

// No memory is taken for `n_nodes` nodes before the state has been checked: it may be any number.
WindowSampler WindowSampler::from_state(State state, std::int32_t n_nodes, const SamplerOptions& options) {
  WindowSampler(0, options).check(state, n_nodes);
  return WindowSampler(std::move(state), options);
}

#define OHM_INSTANTIATE(Index, Weight)                                                                            \
  template void WindowSampler::update(std::span<const Index>, std::span<const Index>, std::span<const Weight>,    \
                                      std::span<const double>);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
