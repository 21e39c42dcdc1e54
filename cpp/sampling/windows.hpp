// One pass over a stream of edges with times, which keeps a sparsifier of the edges since t0, for every t0 at once.
//
// Rows (u, v, w, t) are kept in the order of time. Those with t >= t0 must be a sparsifier of the edges with t >= t0. So
// a row is to be kept with probability p = min(1, beta w R), where R is the resistance between its ends in the graph of
// the rows that are not older than itself: every window that contains the row contains all of that graph, and more edges
// only lower resistances ("reverse online" leverage, Braverman et al. 2020). A new edge is therefore kept for certain
// until newer ones make it redundant. There is no coin on arrival.
//
// When rows have reached the capacity, they are thinned out from the newest to the oldest (window_thinning.hpp).
//
// A row at depth x, counted from the newest edge, is kept with a probability of about beta n / x. In a window of X edges
// the newer rows are kept more often than the window needs, which halves its variance; so half the beta of one
// sparsifier is enough (kFraction). The rows number about beta n (1 + ln(X / (beta n))) / 2.
#pragma once

#include "graph/csr.hpp"
#include "graph/edges.hpp"
#include "sampling/rows.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

namespace ohm {

class WindowSampler {
 public:
  // The complete state: two samplers with equal states and options give equal results for the same edges.
  // Sorted rows are in the order of time.
  struct State : SamplerState {
    State() { rows.has_times = true; }
    double thinned = -std::numeric_limits<double>::infinity();  // the newest time of a row that was not certain
  };

  WindowSampler(std::int32_t n_nodes, const SamplerOptions& options);

  // Continues from the state of a sampler that was made with the same arguments. Throws std::invalid_argument for an
  // invalid state, because states may come from untrusted files.
  static WindowSampler from_state(State state, std::int32_t n_nodes, const SamplerOptions& options);

  // An independent sampler with the same state, which uses another number of threads.
  WindowSampler copy(int threads) const {
    WindowSampler other(*this);
    other.options_.threads = threads;
    return other;
  }

  // Adds edges in which find_fault finds no fault, and whose times are finite. New nodes are added.
  template <class Index, class Weight>
  void update(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w, std::span<const double> t);

  // Adds the rows of other samplers and resamples once. If that fails, this sampler is unchanged.
  void merge(std::span<const State* const> others);
  void merge(const State& other) { merge(std::array{&other}); }

  // The sparsifier of the edges since a time, and whether it has all of them. The state is unchanged. Rows are thinned
  // out once, and kept until the next update.
  Snapshot snapshot(double since);

  const State& state() const { return state_; }
  int threads() const { return options_.threads; }
  std::int64_t n_rows() const { return state_.rows.size(); }

 private:
  WindowSampler(State state, const SamplerOptions& options);
  void check(const State& state, std::int32_t n_nodes) const;
  double beta_for(std::int64_t n) const;
  double target() const;
  std::int64_t capacity_for(double rows) const;
  void resample(bool all);
  void thin_out(bool all, double arrived);
  void thin(std::int64_t oldest, std::uint64_t step);
  double earliest() const { return state_.latest - options_.horizon; }

  SamplerOptions options_;
  State state_;
  std::shared_ptr<const State> settled_;  // thinned out, for snapshots
};

}  // namespace ohm
