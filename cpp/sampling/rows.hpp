// What all samplers keep, and what they give: the rows of H, counters, snapshots.
#pragma once

#include "base/huge_pages.hpp"
#include "graph/csr.hpp"
#include "sampling/counts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace ohm {

// The rows of H, column by column.
struct EdgeRows {
  Buffer<std::int32_t> u{}, v{};
  Buffer<float> w{};
  Buffer<float> probability{};  // with which each row has been kept so far, see sort_edges
  Buffer<double> time{};   // of the newest edge in each row
  bool has_times = false;  // otherwise `time` is empty

  template <class F>
  void for_each_column(F&& f) {
    f(u), f(v), f(w), f(probability);
    if (has_times) f(time);
  }
  std::int64_t size() const { return std::ssize(u); }
  std::int64_t capacity() const {
    const std::size_t of_time = has_times ? time.capacity() : u.capacity();
    return static_cast<std::int64_t>(
        std::min({u.capacity(), v.capacity(), w.capacity(), probability.capacity(), of_time}));
  }
  void reserve(std::int64_t rows) {
    for_each_column([&](auto& column) { column.reserve(rows); });
  }
  void resize(std::int64_t rows) {
    for_each_column([&](auto& column) { column.resize(rows); });
  }
  void set(std::int64_t row, std::int32_t from, std::int32_t to, float weight, float kept) {
    u[row] = from;
    v[row] = to;
    w[row] = weight;
    probability[row] = kept;
  }
  void move(std::int64_t from, std::int64_t to) {
    for_each_column([&](auto& column) { column[to] = column[from]; });
  }
  void append(const EdgeRows& other) {
    reserve(size() + other.size());
    const auto add = [](auto& column, const auto& more) { column.insert(column.end(), more.begin(), more.end()); };
    add(u, other.u), add(v, other.v), add(w, other.w), add(probability, other.probability), add(time, other.time);
  }
  // Brings the rows into the order of time and drops those before `earliest`. Rows of equal times stay in their order.
  // If memory runs out, the rows are unchanged.
  void sort_by_time(double earliest) {
    if (!std::is_sorted(time.begin(), time.end())) {
      std::vector<std::pair<double, std::int64_t>> order(size());
      for (std::int64_t i = 0; i < size(); ++i) order[i] = {time[i], i};
      std::sort(order.begin(), order.end());
      const auto reordered = [&]<class Column>(const Column& column) {
        Column sorted(column.size());
        for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i].second];
        return sorted;
      };
      *this = {reordered(u), reordered(v), reordered(w), reordered(probability), reordered(time), true};
    }
    const std::int64_t old = std::lower_bound(time.begin(), time.end(), earliest) - time.begin();
    for_each_column([&](auto& column) { column.erase(column.begin(), column.begin() + old); });
  }
};

struct SamplerOptions {
  std::uint64_t seed = 0;
  // beta = constant (ln n + offset) / epsilon^2, or, with a budget, what leaves `max_rows` rows.
  double epsilon = 0.5;
  double constant = 1.2;  // measured by docs/calibration.md
  double offset = 0.0;
  std::int64_t max_rows = 0;  // 0: no budget
  bool retracts = true;       // false: rows are never dropped ("online")
  int threads = 1;
  bool grows = true;  // false: no edge has a new node
  double half_life = std::numeric_limits<double>::infinity();  // of the weights of edges, see decay.hpp
  // Of a WindowSampler: rows older than the latest time minus this are dropped.
  double horizon = std::numeric_limits<double>::infinity();
};

// The part of a state that all samplers have.
struct SamplerState {
  std::int32_t n_nodes = 0;  // given, or one more than the largest id seen
  EdgeRows rows;
  std::int64_t n_sorted = 0;  // rows from the last resample, which come first and in order; later ones follow
  std::int64_t position = 0;  // edges seen, including dropped ones
  std::int64_t n_self_loops = 0;
  std::int64_t n_zero_weights = 0;
  std::int64_t n_resamples = 0;
  std::int64_t capacity = 0;
  double beta = std::numeric_limits<double>::infinity();
  double latest = -std::numeric_limits<double>::infinity();  // time of the edges seen
  // Eight partial sums, chosen by position modulo 8, so that the result does not depend on batches. Unit weights are
  // all added to the first, which is exact.
  std::array<double, 8> weight_seen = {};

  // Counts edges that have been seen.
  template <class Index, class Weight>
  void count(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w, Crew& crew = alone) {
    const Counts counts = count_edges(u, v, w, position, weight_seen, crew);
    n_self_loops += counts.loops;
    n_zero_weights += counts.zeros;
    position += std::ssize(u);
  }

  // Adds the rows and counters of another sampler, whose weights are multiplied by a power of two.
  void add(const SamplerState& other, double scale = 1.0) {
    if (other.position > kMostEdges - position) {
      throw std::length_error("the sparsifiers have seen more than 2**60 edges");
    }
    const std::int64_t before = rows.size();
    rows.append(other.rows);
    for (std::int64_t i = before; i < rows.size(); ++i) {
      rows.w[i] = static_cast<float>(scale * static_cast<double>(rows.w[i]));
    }
    n_nodes = std::max(n_nodes, other.n_nodes);
    position += other.position;
    n_self_loops += other.n_self_loops;
    n_zero_weights += other.n_zero_weights;
    beta = std::min(beta, other.beta);
    latest = std::max(latest, other.latest);
    for (int lane = 0; lane < 8; ++lane) weight_seen[lane] += scale * other.weight_seen[lane];
  }
};

constexpr double kGrowth = 2.5;              // of H between two resamples
constexpr std::int64_t kSmallest = 1 << 12;  // rows below which resampling is not worth it

// The rows before a resample, if there were `rows` after the last one.
inline std::int64_t grow(double rows) {
  return static_cast<std::int64_t>(std::min(0x1p62, kGrowth * rows));  // NaN gives 2^62
}

// The beta of one sparsifier of n nodes without a budget.
inline double usual_beta(const SamplerOptions& options, std::int64_t n) {
  return options.constant * (std::log(std::max<double>(2.0, static_cast<double>(n))) + options.offset) /
         (options.epsilon * options.epsilon);
}

struct Snapshot {
  Triangle h;
  bool is_whole = false;  // no edge was dropped, except those that do not count any more
};

}  // namespace ohm
