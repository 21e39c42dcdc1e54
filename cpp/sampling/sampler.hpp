// One pass over a stream of edges that keeps a spectral sparsifier H of all edges seen.
//
// After Kyng, Pachocki, Peng and Sachdeva (2016). H is a list of rows (u, v, w). An arriving edge, and every row at a
// resample, is kept with probability p = min(1, beta t), where t estimates its leverage (w R for a row of H, w R / (1 +
// w R) for an edge that H does not have yet), and then weighs w / p. So the expectation of H is right for any
// estimates. Adding edges lowers resistances. Old estimates are therefore too high: more rows are kept than needed, and
// accuracy does not suffer. So:
//  - an edge is tossed on arrival and stored only if kept. One that joins two components, or touches a node that has no
//    embedding yet, is kept for certain;
//  - H is resampled (parallel rows summed, a new embedding, every row kept or dropped) only when the expected number of
//    its rows reaches the capacity: kGrowth times the number of rows after the last resample, or kGrowth times the
//    budget. Unless the budget is less than 2 n rows, a spanning forest is kept for certain, so H is as connected as
//    the edges seen, for any estimates. As long as the different edges seen are no more than the target, they are only
//    summed: nothing is dropped, and nothing embedded;
//  - between two resamples the degrees of nodes and the cuts of clusters are updated a few times, and with them the
//    floors of all estimates (estimates.hpp). In dense graphs the floor is most of the resistance. Updating it saves a
//    third of the resamples.
// Coins are not independent: on arrival twice as many edges pass as are wanted, and of these every second one is
// dropped so that degrees stay balanced (Sampler::add_candidates); choose_rows does the same at a resample. With
// independent coins most of the error of a sparsifier comes from random changes of node degrees.
// Coins of arriving edges are hashes of (seed, position in the stream), those at a resample of (seed, resample, edge),
// and resamples happen at exact positions: neither the split into batches nor the number of threads changes a bit.
// With a half-life, weights fade with time (decay.hpp), and so do rows: a node that keeps no row is as if it were new.
#pragma once

#include "graph/csr.hpp"
#include "sampling/coins.hpp"
#include "sampling/decay.hpp"
#include "sampling/estimates.hpp"
#include "sampling/leverages.hpp"
#include "sampling/recent_pairs.hpp"
#include "sampling/rows.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ohm {

class Sampler {
 public:
  // The complete state: two samplers with equal states and options give equal results for the same edges.
  struct State : SamplerState {
    std::vector<NodeRecord> nodes;
    std::vector<Cluster> clusters;
    std::vector<PairWeight> pairs;  // since the last resample, see find_effects; empty before the first
    double n_expected = 0.0;  // expected number of rows kept since the last resample: the sum of their probabilities
    double correction = 1.0;  // of estimated leverages, see estimate_leverages
    // With a half-life, rows have times, and weights are those at the end of an epoch, see decay.hpp.
    std::int64_t epoch = 0;    // of the latest time; 0 before the first edge
    std::int64_t n_faded = 0;  // edges that had faded before they arrived, also loops and zero weights
  };

  Sampler(std::int32_t n_nodes, const SamplerOptions& options);

  // Continues from the state of a sampler that was made with the same arguments. Throws std::invalid_argument for an
  // invalid state, because states may come from untrusted files.
  static Sampler from_state(State state, std::int32_t n_nodes, const SamplerOptions& options);

  // An independent sampler with the same state, which uses another number of threads.
  Sampler copy(int threads) const {
    Sampler other(*this);
    other.options_.threads = threads;
    return other;
  }

  // Adds edges in which find_fault finds no fault. New nodes are added.
  template <class Index, class Weight>
  void update(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w);

  // The same for a sampler with a half-life. Times are within kMostHalfLives of zero, in any order.
  template <class Index, class Weight>
  void update(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w, std::span<const double> t);

  // Adds the rows of other samplers and resamples once. If that fails, this sampler is unchanged.
  void merge(std::span<const State* const> others);
  void merge(const State& other) { merge(std::array{&other}); }

  // H, resampled to the target; the sampler is unchanged.
  Snapshot snapshot() const;

  // The same for a sampler with a half-life, without what has faded at a time that is not before the latest. Weights
  // are to be multiplied by scale_at(at).
  Snapshot snapshot(double at) const;
  double scale_at(double at) const;
  bool has_half_life() const { return options_.half_life < std::numeric_limits<double>::infinity(); }

  const State& state() const { return state_; }
  int threads() const { return options_.threads; }
  std::int64_t n_rows() const { return state_.rows.size(); }

 private:
  Sampler(State state, const SamplerOptions& options);
  void check(const State& state, std::int32_t n_nodes) const;  // state_faults.cpp
  struct Round;  // edges that are tossed together, see arrivals.cpp

  Triangle gather(Crew& crew) const;  // H as it is
  double rows_between_refreshes() const;
  bool is_full() const;
  template <class Index, class Weight>
  void take_in(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
               std::span<const double> t);
  template <class Index, class Weight>
  void take_in_rounds(Crew& crew, const EdgeBatch<Index, Weight>& all, Round& round, Round& waiting);
  template <class Index, class Weight>
  std::int64_t append_edges(Crew& crew, const EdgeBatch<Index, Weight>& batch, double limit);
  template <class Index, class Weight>
  std::int64_t toss_round(Crew& crew, const EdgeBatch<Index, Weight>& batch, double limit, Round& round,
                          Round& waiting);
  void add_candidates(Round& round);
  void refresh();
  void add(const State& other, double scale);
  void enter_epoch(double time);  // decay.cpp
  void fade_rows(std::int64_t epoch);
  void drop_faded_rows();
  void forget_estimates();
  Snapshot thin_copy(Crew& crew, Triangle rows) const;
  void resample(Crew& crew);
  void thin(Crew& crew, Triangle& h);
  Laplacian embed(Crew& crew, Triangle& h, std::uint64_t key);
  void bound_estimates();
  Buffer<float> find_leverages(Crew& crew, Triangle& h, const Laplacian& laplacian, std::uint64_t key);
  void take_rows(Triangle& h);
  void reserve_nodes(std::int64_t n_nodes);
  void reserve_rows(std::int64_t rows);
  std::int64_t capacity_for(double rows) const;
  double most_rows() const;
  bool all_fit(const Triangle& h) const;

  Embedding embedding() const { return {state_.nodes, state_.clusters}; }

  SamplerOptions options_;
  State state_;
  std::vector<float> bound_;  // of resistances; computed from nodes and clusters
};

}  // namespace ohm
