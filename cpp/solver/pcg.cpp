#include "solver/pcg.hpp"

#include "solver/pcg_kernels.hpp"
#include "base/parallel.hpp"
#include "solver/right_hand_sides.hpp"

#include <algorithm>
#include <cmath>

namespace ohm {
namespace {

// One block of `Width` columns; Value is the type of the vectors.
template <class Value, class Weight, int Width>
class Block {
 public:
  Block(const System& system, const Columns& columns, const SolveOptions& options, int threads,
        ColumnReport* reports)
      : a_(system.matrix),
        weight_(std::get<std::vector<Weight>>(a_.weight).data()),
        null_(system.null_space),
        preconditioner_(system.preconditioner),
        columns_(columns),
        width_(static_cast<int>(columns.count)),
        b_(columns, null_, a_.scale),
        options_(options),
        team_(static_cast<int>(std::clamp<std::int64_t>((std::ssize(a_.chunk) - 1) / kChunksPerThread, 1, threads))),
        reports_(reports),
        r_(a_.n),
        p_(a_.n),
        z_(a_.n),
        x_(a_.n),
        partial_((a_.chunk.size() - 1) * Width),
        size_(partial_.size()) {}

  void run() {
    for (int c = 0; c < width_; ++c) {
      reports_[c] = {};
      reports_[c].projected_out = b_.projected_out[c];
    }
    start_mean_ = null_.means(columns_.x, columns_.stride, width_);
    for (std::int64_t i = 0; i < a_.n && zero_start_; ++i) {
      const double* x = columns_.x + i * columns_.stride;
      zero_start_ = std::all_of(x, x + width_, [](double value) { return value == 0.0; });
    }
    team_.run([this](int rank) { iterate(rank); });
    centre_answer();
  }

 private:
  using R = Row<Value, Width>;
  using Wide = Row<double, Width>;
  // Between two true residuals the recursive one may fall by this much: floats have drifted by then.
  static constexpr double kTrust = sizeof(Value) == sizeof(float) ? 1e-5 : 1e-12;
  // A column that falls this much further while it waits for others would run into underflow.
  static constexpr double kTooFar = 1e-3;
  // A start with a larger residual (that of zero is 1) is no help and strains the range of float.
  static constexpr double kWildStart = 1e8;
  // A stagnant residual below so many eps |diagonal x| / |b| is put down to the rounding of x; after
  // float vectors, double ones may still gain a little.
  static constexpr double kFloors = sizeof(Value) == sizeof(float) ? 0.25 : 8.0;
  static constexpr int kLongestRun = 100;
  // So many slow updates in float, and double gets its turn; in double, patience is all there is.
  static constexpr int kSlowUpdates = sizeof(Value) == sizeof(float) ? 4 : std::numeric_limits<int>::max();
  static constexpr int kForecastEvery = 20;
  static constexpr std::int64_t kStretch = 32;  // rows of a true residual at a time
  // Less work between two barriers than this, about half a millisecond, is not worth a thread.
  static constexpr std::int64_t kChunksPerThread = 16;

  template <class F>
  void each_chunk(int rank, F&& f) {
    const auto chunks = static_cast<std::int64_t>(a_.chunk.size()) - 1;
    const std::int64_t end = chunks * (rank + 1) / team_.size();
    for (std::int64_t k = chunks * rank / team_.size(); k < end; ++k) {
      f(a_.chunk[k], a_.chunk[k + 1], partial_.data() + k * Width);
    }
  }

  // Every thread adds the chunks' sums in the same order, after all have met.
  void total(double* sum) {
    team_.meet();
    std::fill_n(sum, Width, 0.0);
    for (std::size_t k = 0; k < partial_.size(); k += Width) {
      for (int c = 0; c < Width; ++c) sum[c] += partial_[k + c];
    }
    team_.meet();
  }

  // x = the caller's x, in units of the answer, centred and renumbered
  void read_start(int rank) {
    each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double*) {
      for (std::int64_t k = begin; k < end; ++k) {
        const std::int64_t node = a_.order[k];
        const double* from = columns_.x + node * columns_.stride;
        const double* mean = start_mean_.data() + std::int64_t{null_.component[node]} * width_;
        for (int c = 0; c < Width; ++c) {
          lanes(x_ + k)[c] = c < width_ ? b_.from_answer(c, from[c] - mean[c]) : 0.0;
        }
        p_[k] = R{};
      }
    });
    team_.meet();
  }

  // Starts columns at zero whose start is wild or not finite; true if there were any.
  bool drop_wild_start(int rank, const double* norm) {
    bool any = false;
    for (int c = 0; c < width_; ++c) any = any || !(norm[c] <= kWildStart);
    if (!any) return false;
    each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double*) {
      for (std::int64_t k = begin; k < end; ++k) {
        for (int c = 0; c < width_; ++c) {
          if (!(norm[c] <= kWildStart)) lanes(x_ + k)[c] = 0.0;
        }
      }
    });
    team_.meet();
    return true;
  }

  void write_answer(int rank, const bool* lost) {
    each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double*) {
      for (std::int64_t k = begin; k < end; ++k) {
        double* to = columns_.x + a_.order[k] * columns_.stride;
        for (int c = 0; c < width_; ++c) {
          to[c] = lost[c] ? 0.0 : b_.to_answer(c, lanes(x_ + k)[c]);
        }
      }
    });
  }

  void centre_answer() {
    const std::vector<double> mean = null_.means(columns_.x, columns_.stride, width_);
    double size[Width] = {};  // |diagonal x|^2
    for (std::int64_t k = 0; k < a_.n; ++k) {
      const std::int64_t node = a_.order[k];
      const double conductance = a_.inverse_diagonal[k] > 0.0 ? 1.0 / a_.inverse_diagonal[k] : 0.0;
      double* x = columns_.x + node * columns_.stride;
      for (int c = 0; c < width_; ++c) {
        x[c] -= mean[std::int64_t{null_.component[node]} * width_ + c];
        const double current = conductance * b_.from_answer(c, x[c]);
        size[c] += current * current;
      }
    }
    for (int c = 0; c < width_; ++c) {
      const double floor = std::numeric_limits<double>::epsilon() * std::sqrt(size[c]) * b_.unit_over_norm[c];
      if (!(20.0 * floor <= options_.tolerance)) judge_rounded(c, floor);
    }
  }

  // Rounding x to double may itself leave a residual near the tolerance: where the answer is huge against
  // b / A. Measures what the caller gets, and says so if no better answer could be stored.
  void judge_rounded(int c, double floor) {
    double sum = 0.0;
    const auto at = [&](std::int64_t node) { return b_.from_answer(c, columns_.x[node * columns_.stride + c]); };
    for (std::int64_t k = 0; k < a_.n; ++k) {
      const std::int64_t node = a_.order[k];
      const double here = at(node);
      double value = (columns_.b[node * columns_.stride + c] - b_.mean(node)[c]) * b_.inverse_unit[c];
      if (!a_.ground.empty()) value -= a_.ground[k] * here;
      for (std::int64_t e = a_.start[k]; e < a_.start[k + 1]; ++e) {
        value -= weight_[e] * (here - at(a_.order[a_.index[e]]));
      }
      sum += value * value;
    }
    ColumnReport& report = reports_[c];
    report.residual = std::sqrt(sum) * b_.unit_over_norm[c];
    if (report.residual <= options_.tolerance) {
      report.outcome = Outcome::converged;
    } else if (report.outcome == Outcome::converged ||
               (report.outcome == Outcome::stagnated && report.residual <= kFloors * floor)) {
      report.outcome = Outcome::rounding;
    }
  }

  // r = z = (b - A x) / unit, computed in double; returns the norms, relative to |b|,
  // and how much of them the rounding of x may explain. Of a start at zero, A x need not be computed.
  void true_residual(int rank, bool zero_start, double* norm, double* floor) {
    each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double* dot) {
      std::fill_n(dot, Width, 0.0);
      double* size = size_.data() + (dot - partial_.data());
      std::fill_n(size, Width, 0.0);
      Wide products[kStretch];
      for (std::int64_t k = begin; k < end; ++k) {
        const std::int64_t at = (k - begin) % kStretch;
        if (at == 0 && !zero_start) {
          multiply_double<Weight, Width>(a_, weight_, k, std::min<std::int64_t>(end, k + kStretch), x_, products);
        } else if (at == 0) {
          std::fill_n(products, kStretch, Wide{});
        }
        const double conductance = a_.inverse_diagonal[k] > 0.0 ? 1.0 / a_.inverse_diagonal[k] : 0.0;
        const std::int64_t node = a_.order[k];
        const double* b = columns_.b + node * columns_.stride;
        for (int c = 0; c < Width; ++c) {
          const double value = c < width_ ? (b[c] - b_.mean(node)[c]) * b_.inverse_unit[c] - lanes(products + at)[c] : 0.0;
          lanes(r_ + k)[c] = lanes(z_ + k)[c] = static_cast<Value>(value);
          dot[c] += value * value;
          const double current = conductance * lanes(x_ + k)[c];
          size[c] += current * current;
        }
      }
    });
    total(norm);
    for (int c = 0; c < Width; ++c) {
      double size = 0.0;
      for (std::size_t k = c; k < size_.size(); k += Width) size += size_[k];
      norm[c] = std::sqrt(norm[c]) * b_.unit_over_norm[c];
      floor[c] = std::numeric_limits<double>::epsilon() * std::sqrt(size) * b_.unit_over_norm[c];
    }
  }

  // z = M^-1 z, where z = r; returns r'z. Substitution is sequential: one thread does it.
  void precondition(int rank, double* rz) {
    if (std::holds_alternative<std::monostate>(preconditioner_)) {
      each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double* dot) {
        scale_by_diagonal<Value, Width>(a_, begin, end, r_, z_, dot);
      });
      total(rz);
      return;
    }
    if (std::holds_alternative<const ClusterTree*>(preconditioner_)) {
      each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double* dot) {
        scale_by_diagonal<Value, Width>(a_, begin, end, r_, z_, dot);
      });
      team_.meet();
    }
    if (rank == 0) {
      if (const auto* tree = std::get_if<const ClusterTree*>(&preconditioner_)) {
        add_clusters(**tree);
      } else if (const auto* factor = std::get_if<Factor<float>>(&preconditioner_)) {
        forward<Value, float, Width>(*factor, a_.n, z_);
        backward<Value, float, Width>(*factor, a_.n, z_);
      } else if constexpr (sizeof(Value) == sizeof(double)) {
        const auto& wide = std::get<Factor<double>>(preconditioner_);
        forward<Value, double, Width>(wide, a_.n, z_);
        backward<Value, double, Width>(wide, a_.n, z_);
      }
    }
    team_.meet();
    each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double* dot) {
      inner_product<Value, Width>(begin, end, r_, z_, dot);
    });
    total(rz);
  }

  // z += sum over clusters A of 1_A 1_A'r / cut(A): sums upwards, then corrections downwards.
  void add_clusters(const ClusterTree& tree) {
    const auto count = std::ssize(tree.clusters);
    const Rows<double, Width> sum(count + 1);  // the last one is for nodes of no cluster
    std::fill_n(&sum[0], count + 1, Wide{});
    for (std::int64_t k = 0; k < a_.n; ++k) sum[tree.smallest[a_.order[k]]] += widen<Value, Width>(r_[k]);
    for (std::int64_t k = 0; k < count; ++k) sum[tree.clusters[k].parent] += sum[k];
    sum[count] = Wide{};
    for (std::int64_t k = count - 1; k >= 0; --k) {
      sum[k] = sum[k] * (static_cast<double>(tree.clusters[k].share) / a_.scale) + sum[tree.clusters[k].parent];
    }
    for (std::int64_t k = 0; k < a_.n; ++k) {
      Wide& more = sum[tree.smallest[a_.order[k]]];
      for (int c = 0; c < Width; ++c) lanes(z_ + k)[c] += static_cast<Value>(lanes(&more)[c]);
    }
  }

  // One thread's walk. All threads hold the same scalars, so all take the same branches.
  void iterate(int rank) {
    double norm[Width];      // latest residual
    double recursive[Width]; // residual before the last update
    double anchor[Width];    // true residual at the last update
    double best[Width];      // least of them
    double floor[Width];     // what rounding may explain of it
    double earlier[Width] = {};  // residual half-way to the forecast
    int idle[Width] = {};    // updates in a row that brought nothing
    int slow[Width] = {};    // updates in a row that did not halve the residual
    bool running[Width];
    bool lost[Width] = {};   // no finite answer
    bool still[Width] = {};  // the last step had no length: the preconditioner does not see the residual
    std::int32_t iterations = 0;
    std::int32_t since_update = 0;
    read_start(rank);
    true_residual(rank, zero_start_, norm, floor);
    if (drop_wild_start(rank, norm)) true_residual(rank, false, norm, floor);
    for (int c = 0; c < Width; ++c) running[c] = c < width_;
    std::fill_n(anchor, Width, std::numeric_limits<double>::infinity());
    std::fill_n(best, Width, std::numeric_limits<double>::infinity());
    std::copy_n(norm, Width, recursive);

    double energy[Width] = {};        // r'M^-1 r of the last residual but one
    double energy_begin[Width] = {};  // and of the first
    const auto waits_for_energy = [&](int c) {
      const double least = options_.tolerance * options_.tolerance * energy_begin[c];
      return options_.measure_energy && norm[c] > 0.0 && (iterations == 0 || energy[c] > least);
    };

    // Ends the columns that are done or beyond help; true while some go on.
    const auto settle = [&](bool limit, bool hopeless) {
      bool any = false;
      for (int c = 0; c < Width; ++c) {
        if (!running[c]) continue;
        const bool done = norm[c] <= options_.tolerance && !waits_for_energy(c);
        // The recursion claims progress that the true residual does not show, or that residual is
        // rounding: precision is at its end.
        const bool at_end = still[c] || norm[c] > 2.0 * recursive[c] || norm[c] <= kFloors * floor[c];
        idle[c] = norm[c] > 0.5 * best[c] && at_end ? idle[c] + 1 : 0;
        lost[c] = !std::isfinite(norm[c]);
        if (lost[c]) norm[c] = 1.0;  // that of the zero which is returned
        slow[c] = norm[c] > 0.5 * best[c] ? slow[c] + 1 : 0;
        const bool stuck = idle[c] >= 2 || slow[c] >= kSlowUpdates || lost[c];
        anchor[c] = norm[c];
        best[c] = std::min(best[c], norm[c]);
        running[c] = !(done || stuck || limit || hopeless);
        any = any || running[c];
        if (running[c] || rank != 0) continue;
        reports_[c].iterations = iterations;
        reports_[c].residual = norm[c];
        reports_[c].outcome = done       ? Outcome::converged
                              : stuck    ? Outcome::stagnated
                              : hopeless ? Outcome::hopeless
                                         : Outcome::iteration_limit;
      }
      return any;
    };

    R alpha{};
    R beta{};
    double rz_before[Width] = {};
    bool go = settle(options_.max_iterations <= 0, false);
    while (go) {
      double rz[Width];
      precondition(rank, rz);
      std::copy_n(rz, Width, energy);
      if (iterations == 0) std::copy_n(rz, Width, energy_begin);
      for (int c = 0; c < Width; ++c) {
        const bool moves = running[c] && rz_before[c] > 0.0;
        lanes(&beta)[c] = moves ? static_cast<Value>(rz[c] / rz_before[c]) : Value{0};
        rz_before[c] = rz[c];
      }
      each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double*) {
        step_direction<Value, Width>(begin, end, alpha, beta, z_, p_, x_);
      });
      team_.meet();
      each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double* dot) {
        multiply<Value, Weight, Width>(a_, weight_, begin, end, p_, z_, dot);
      });
      double pq[Width];
      total(pq);
      for (int c = 0; c < Width; ++c) {
        lanes(&alpha)[c] = running[c] && pq[c] > 0.0 ? static_cast<Value>(rz[c] / pq[c]) : Value{0};
      }
      each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double* dot) {
        step_residual<Value, Width>(begin, end, alpha, r_, z_, dot);
      });
      double rr[Width];
      total(rr);
      ++iterations;
      ++since_update;

      bool low = true;
      bool too_far = false;
      for (int c = 0; c < Width; ++c) {
        norm[c] = std::sqrt(rr[c]) * b_.unit_over_norm[c];
        const double goal = std::max(waits_for_energy(c) ? 0.0 : 0.9 * options_.tolerance, kTrust * anchor[c]);
        still[c] = lanes(&alpha)[c] == Value{0};
        low = low && (!running[c] || still[c] || norm[c] <= goal);
        too_far = too_far || (running[c] && !(norm[c] > kTooFar * goal && std::isfinite(norm[c])));
      }
      const bool hopeless = iterations % kForecastEvery == 0 &&
                            forecast(iterations, running, norm, earlier) > options_.hopeless_beyond;
      if (2 * iterations % kForecastEvery == 0) std::copy_n(norm, Width, earlier);
      const bool limit = iterations >= options_.max_iterations;
      if (!low && !too_far && !limit && !hopeless && since_update < kLongestRun) continue;
      each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double*) {
        const Wide step = widen<Value, Width>(alpha);
        for (std::int64_t k = begin; k < end; ++k) x_[k] += step * widen<Value, Width>(p_[k]);
      });
      team_.meet();
      alpha = R{};
      since_update = 0;
      std::copy_n(norm, Width, recursive);
      true_residual(rank, false, norm, floor);
      go = settle(limit, hopeless);
    }
    write_answer(rank, lost);
  }

  // Iterations the slowest column will have taken, at the rate of the last ten.
  double forecast(std::int32_t iterations, const bool* running, const double* norm, const double* earlier) const {
    double worst = 0.0;
    for (int c = 0; c < Width; ++c) {
      if (!running[c] || norm[c] <= options_.tolerance) continue;
      const double rate = std::log(earlier[c] / norm[c]) / (kForecastEvery / 2);
      const double left = std::log(norm[c] / options_.tolerance);
      worst = std::max(worst, rate > 0.0 ? left / rate : std::numeric_limits<double>::infinity());
    }
    return iterations + worst;
  }

  const Matrix& a_;
  const Weight* weight_;
  const NullSpace& null_;
  const Preconditioner& preconditioner_;
  const Columns columns_;
  const int width_;  // columns in use
  const RightHandSides<Width> b_;
  const SolveOptions& options_;
  Team team_;
  ColumnReport* reports_;
  Rows<Value, Width> r_, p_, z_;
  Rows<double, Width> x_;
  std::vector<double> partial_;  // sums of each chunk
  std::vector<double> size_;     // of each chunk: |diagonal x|^2 at the last true residual
  std::vector<double> start_mean_;  // of the starting point
  bool zero_start_ = true;
};

// Several blocks share the threads out among them; a single one uses them all.
template <class Value, class Weight, int Width>
void solve_blocks(const System& system, const Columns& columns, const SolveOptions& options,
                  ColumnReport* reports) {
  const std::int64_t blocks = (columns.count + Width - 1) / Width;
  const int outer = static_cast<int>(std::clamp<std::int64_t>(blocks, 1, std::max(1, options.threads)));
  parallel_for(outer, blocks, [&](std::int64_t k) {
    const std::int64_t first = k * Width;
    const Columns part{columns.b + first, columns.x + first, columns.stride,
                           std::min<std::int64_t>(Width, columns.count - first)};
    Block<Value, Weight, Width>(system, part, options, std::max(1, options.threads / outer), reports + first)
        .run();
  });
}

template <class Value, class Weight>
void solve_columns(const System& system, const Columns& columns, const SolveOptions& options,
                   ColumnReport* reports) {
  // Wider blocks save a little more traffic but hold more memory and leave less to share out among threads.
  if (columns.count <= 1) {
    solve_blocks<Value, Weight, 1>(system, columns, options, reports);
  } else if (columns.count <= 4) {
    solve_blocks<Value, Weight, 4>(system, columns, options, reports);
  } else {
    solve_blocks<Value, Weight, kBlockColumns>(system, columns, options, reports);
  }
}

}  // namespace

void pcg(const System& system, const Columns& columns, const SolveOptions& options, ColumnReport* reports) {
  const bool narrow = std::holds_alternative<std::vector<float>>(system.matrix.weight);
  const bool wide_factor = std::holds_alternative<Factor<double>>(system.preconditioner);
  if (options.float_vectors && system.matrix.float_range && !wide_factor) {
    if (narrow) {
      solve_columns<float, float>(system, columns, options, reports);
    } else {
      solve_columns<float, double>(system, columns, options, reports);
    }
  } else {
    if (narrow) {
      solve_columns<double, float>(system, columns, options, reports);
    } else {
      solve_columns<double, double>(system, columns, options, reports);
    }
  }
}


void precondition(const System& system, const Columns& columns) {
  const Matrix& a = system.matrix;
  const std::vector<double> mean_b =
      system.null_space.means(columns.b, columns.stride, static_cast<int>(columns.count));
  std::vector<double> z(a.n);
  for (std::int64_t c = 0; c < columns.count; ++c) {
    for (std::int64_t k = 0; k < a.n; ++k) {
      const std::int64_t node = a.order[k];
      z[k] = columns.b[node * columns.stride + c] - mean_b[system.null_space.component[node] * columns.count + c];
    }
    if (const auto* factor = std::get_if<Factor<float>>(&system.preconditioner)) {
      forward<double, float, 1>(*factor, a.n, z.data());
      backward<double, float, 1>(*factor, a.n, z.data());
    } else if (const auto* wide = std::get_if<Factor<double>>(&system.preconditioner)) {
      forward<double, double, 1>(*wide, a.n, z.data());
      backward<double, double, 1>(*wide, a.n, z.data());
    } else {
      for (std::int64_t k = 0; k < a.n; ++k) z[k] *= a.inverse_diagonal[k];
    }
    for (std::int64_t k = 0; k < a.n; ++k) columns.x[a.order[k] * columns.stride + c] = z[k] * a.scale;
  }
  const std::vector<double> mean_x =
      system.null_space.means(columns.x, columns.stride, static_cast<int>(columns.count));
  for (std::int64_t i = 0; i < a.n; ++i) {
    for (std::int64_t c = 0; c < columns.count; ++c) {
      columns.x[i * columns.stride + c] -= mean_x[system.null_space.component[i] * columns.count + c];
    }
  }
}

}  // namespace ohm
