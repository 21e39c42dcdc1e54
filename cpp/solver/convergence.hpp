// When a block of conjugate gradients needs true residuals, and when its columns stop.
#pragma once

#include "solver/pcg.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ohm {

// What is known of a column.
struct Column {
  double norm = 0.0;       // relative norm of the latest residual
  double recursive = 0.0;  // the same from the recursion, before the latest true residual replaced it
  double anchor = std::numeric_limits<double>::infinity();  // of the latest true residual
  double best = std::numeric_limits<double>::infinity();    // least of all true residuals
  double floor = 0.0;         // the part of `norm` that the rounding of x may explain
  double earlier = 0.0;       // `norm` where the rate of the next forecast begins
  double energy = 0.0;        // r'M^-1 r at the start of the current iteration
  double first_energy = 0.0;  // r'M^-1 r at the start of the first iteration
  int idle = 0;               // successive true residuals without progress
  int slow = 0;               // successive true residuals that are not half the best
  bool running = false;
  bool lost = false;   // there is no finite answer
  bool still = false;  // the latest step has length zero: the preconditioner does not see the residual
};

// Each thread of a block has a copy. All copies hold the same values, so all threads take the same branches.
template <class Value, int Width>
class Convergence {
 public:
  // A residual that stagnates below kFloors * eps * |diagonal x| / |b| is due to the rounding of x. After float
  // vectors, double vectors may still improve it a little.
  static constexpr double kFloors = sizeof(Value) == sizeof(float) ? 0.25 : 8.0;

  Convergence(const SolveOptions& options, int width) : options_(options), width_(width) {
    for (int c = 0; c < width_; ++c) column[c].running = true;
  }

  Column column[Width];
  std::int32_t iterations = 0;

  // Counts an iteration, after which the norms are those of the recursion; true if true residuals are needed: all
  // running columns have reached their goals, one has fallen too far below its goal, or it is time to stop.
  bool count_iteration() {
    ++iterations;
    ++since_update_;
    hopeless_ = iterations % kForecastEvery == 0 && forecast() > options_.hopeless_beyond;
    bool low = true;
    bool too_far = false;
    for (Column& each : column) {
      if (!options_.mean_rate && 2 * iterations % kForecastEvery == 0) each.earlier = each.norm;
      if (!each.running) continue;
      const double tolerance = waits_for_energy(each) ? 0.0 : 0.9 * options_.tolerance;
      const double goal = std::max(tolerance, kTrust * each.anchor);
      low = low && (each.still || each.norm <= goal);
      too_far = too_far || !(each.norm > kTooFar * goal && std::isfinite(each.norm));
    }
    const bool update = low || too_far || hopeless_ || at_limit() || since_update_ >= kLongestRun;
    for (Column& each : column) each.recursive = each.norm;
    return update;
  }

  // Given true residuals, stops the columns that have converged or make no progress, and reports them; true while
  // others run.
  bool settle(ColumnReport* reports) {
    since_update_ = 0;
    bool any = false;
    for (int c = 0; c < width_; ++c) {
      Column& each = column[c];
      if (!each.running) continue;
      if (iterations == 0) each.earlier = each.norm;
      const bool done = each.norm <= options_.tolerance && !waits_for_energy(each);
      // The precision is exhausted if the true residual is much larger than the recursive one, or is at the level of
      // rounding. Before the first iteration there is no recursive residual.
      const bool overtaken = iterations > 0 && each.norm > 2.0 * each.recursive;
      const bool at_end = each.still || overtaken || each.norm <= kFloors * each.floor;
      each.idle = each.norm > 0.5 * each.best && at_end ? each.idle + 1 : 0;
      each.lost = !std::isfinite(each.norm);
      if (each.lost) each.norm = 1.0;  // that of the answer zero, which is returned
      each.slow = each.norm > 0.5 * each.best ? each.slow + 1 : 0;
      const bool stuck = each.idle >= 2 || each.slow >= kSlowUpdates || each.lost;
      each.anchor = each.norm;
      each.best = std::min(each.best, each.norm);
      each.running = !(done || stuck || at_limit() || hopeless_);
      any = any || each.running;
      if (each.running) continue;
      reports[c].iterations = iterations;
      reports[c].residual = each.norm;
      reports[c].outcome = done        ? Outcome::converged
                           : stuck     ? Outcome::stagnated
                           : hopeless_ ? Outcome::hopeless
                                       : Outcome::iteration_limit;
    }
    return any;
  }

 private:
  // Between two true residuals the recursive one may fall by this factor; then floats have drifted.
  static constexpr double kTrust = sizeof(Value) == sizeof(float) ? 1e-5 : 1e-12;
  // A column that falls by this factor below its goal, while others run, would underflow.
  static constexpr double kTooFar = 1e-3;
  static constexpr int kLongestRun = 100;  // iterations between true residuals
  // After this many slow updates in float, double vectors take over. In double there is nothing else to try.
  static constexpr int kSlowUpdates = sizeof(Value) == sizeof(float) ? 4 : std::numeric_limits<int>::max();
  static constexpr int kForecastEvery = 20;

  bool at_limit() const { return iterations >= options_.max_iterations; }

  bool waits_for_energy(const Column& each) const {
    const double least = options_.tolerance * options_.tolerance * each.first_energy;
    return options_.measure_energy && each.norm > 0.0 && (iterations == 0 || each.energy > least);
  }

  // Total iterations that the slowest column will need, at the rate of the last ten or at the mean rate.
  double forecast() const {
    double worst = 0.0;
    for (const Column& each : column) {
      if (!each.running || each.norm <= options_.tolerance) continue;
      const double rate =
          std::log(each.earlier / each.norm) / (options_.mean_rate ? iterations : kForecastEvery / 2);
      const double left = std::log(each.norm / options_.tolerance);
      worst = std::max(worst, rate > 0.0 ? left / rate : std::numeric_limits<double>::infinity());
    }
    return iterations + worst;
  }

  const SolveOptions& options_;
  int width_;
  std::int32_t since_update_ = 0;
  bool hopeless_ = false;
};

}  // namespace ohm
