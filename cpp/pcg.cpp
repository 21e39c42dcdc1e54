#include "pcg.hpp"

#include "huge_pages.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <new>

namespace ohm {
namespace {

constexpr std::size_t kLine = 64;

// Storage for rows, on cache-line boundaries, not initialised.
template <class Value, int Width>
class Rows {
  using R = Row<Value, Width>;

 public:
  explicit Rows(std::int64_t rows)
      : bytes_(static_cast<std::byte*>(::operator new[](rows * sizeof(R) + kLine, std::align_val_t{kLine}))) {
    prefer_huge_pages(bytes_.get(), rows * sizeof(R));
  }
  operator R*() const { return reinterpret_cast<R*>(bytes_.get()); }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{kLine}); }
  };
  std::unique_ptr<std::byte[], Free> bytes_;
};

// One block of `Width` columns. Value: type of the vectors; Io: type of b and x.
template <class Value, class Weight, class Io, int Width>
class Block {
 public:
  Block(const System& system, const Columns<Io>& columns, const SolveOptions& options, int threads,
        ColumnReport* reports)
      : a_(system.matrix),
        weight_(std::get<std::vector<Weight>>(a_.weight).data()),
        null_(system.null_space),
        preconditioner_(system.preconditioner),
        columns_(columns),
        width_(static_cast<int>(columns.count)),
        options_(options),
        team_(threads),
        reports_(reports),
        r_(a_.n),
        p_(a_.n),
        z_(a_.n),
        x_(a_.n),
        partial_((a_.chunk.size() - 1) * Width) {}

  void run() {
    measure_right_hand_sides();
    team_.run([this](int rank) { iterate(rank); });
    centre_answer();
  }

 private:
  using R = Row<Value, Width>;
  using Wide = Row<double, Width>;
  static constexpr bool kRefine = sizeof(Io) == sizeof(double);
  // Between two true residuals the recursive one may fall by this much: floats have drifted by then.
  static constexpr double kTrust = sizeof(Value) == sizeof(float) ? 1e-5 : 1e-12;
  static constexpr int kLongestRun = 100;
  static constexpr int kForecastEvery = 20;

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

  const double* mean_of(std::int64_t node) const { return mean_.data() + std::int64_t{null_.component[node]} * width_; }

  // Null-space part and norm of every right-hand side.
  void measure_right_hand_sides() {
    mean_ = null_.means(columns_.b, columns_.stride, width_);
    double whole[Width] = {};
    double kept[Width] = {};
    for (std::int64_t i = 0; i < a_.n; ++i) {
      for (int c = 0; c < width_; ++c) {
        const double value = columns_.b[i * columns_.stride + c];
        const double rest = value - mean_of(i)[c];
        whole[c] += value * value;
        kept[c] += rest * rest;
      }
    }
    for (int c = 0; c < width_; ++c) {
      reports_[c] = {};
      if (whole[c] > 0.0) reports_[c].projected_out = std::sqrt(std::max(0.0, 1.0 - kept[c] / whole[c]));
      // What rounding leaves of a vector in the null space is nothing; its answer is zero.
      if (kept[c] > whole[c] * 1e-30) {
        norm_[c] = std::sqrt(kept[c]);
        inverse_norm_[c] = 1.0 / norm_[c];
      }
    }
  }

  // x = the caller's x / (|b| scale), renumbered
  void read_start(int rank) {
    each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double*) {
      for (std::int64_t k = begin; k < end; ++k) {
        const Io* from = columns_.x + a_.order[k] * columns_.stride;
        for (int c = 0; c < Width; ++c) {
          lanes(x_ + k)[c] = c < width_ ? from[c] * (inverse_norm_[c] / a_.scale) : 0.0;
        }
        p_[k] = R{};
      }
    });
    team_.meet();
  }

  void write_answer(int rank) {
    each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double*) {
      for (std::int64_t k = begin; k < end; ++k) {
        Io* to = columns_.x + a_.order[k] * columns_.stride;
        for (int c = 0; c < width_; ++c) to[c] = static_cast<Io>(lanes(x_ + k)[c] * (norm_[c] * a_.scale));
      }
    });
  }

  void centre_answer() {
    mean_ = null_.means(columns_.x, columns_.stride, width_);
    for (std::int64_t i = 0; i < a_.n; ++i) {
      for (int c = 0; c < width_; ++c) columns_.x[i * columns_.stride + c] -= static_cast<Io>(mean_of(i)[c]);
    }
  }

  // r = z = (b - A x) / |b|, computed in double; returns the norms.
  void true_residual(int rank, double* norm) {
    each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double* dot) {
      std::fill_n(dot, Width, 0.0);
      for (std::int64_t k = begin; k < end; ++k) {
        Wide product = product_row<double, Weight, Width>(a_, weight_, k, x_);
        const std::int64_t node = a_.order[k];
        const Io* b = columns_.b + node * columns_.stride;
        for (int c = 0; c < Width; ++c) {
          const double value = c < width_ ? (b[c] - mean_of(node)[c]) * inverse_norm_[c] - lanes(&product)[c] : 0.0;
          lanes(r_ + k)[c] = lanes(z_ + k)[c] = static_cast<Value>(value);
          dot[c] += value * value;
        }
      }
    });
    total(norm);
    for (int c = 0; c < Width; ++c) norm[c] = std::sqrt(norm[c]);
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
    if (rank == 0) {
      if (const auto* factor = std::get_if<Factor<float>>(&preconditioner_)) {
        forward<Value, float, Width>(*factor, a_.n, z_);
        backward<Value, float, Width>(*factor, a_.n, r_, z_, shared_);
      } else if constexpr (sizeof(Value) == sizeof(double)) {
        const auto& wide = std::get<Factor<double>>(preconditioner_);
        forward<Value, double, Width>(wide, a_.n, z_);
        backward<Value, double, Width>(wide, a_.n, r_, z_, shared_);
      }
    }
    team_.meet();
    std::copy_n(shared_, Width, rz);
    team_.meet();
  }

  // One thread's walk. All threads hold the same scalars, so all take the same branches.
  void iterate(int rank) {
    double norm[Width];      // latest residual
    double recursive[Width]; // residual before the last update
    double anchor[Width];    // true residual at the last update
    double earlier[Width] = {};  // residual half-way to the forecast
    int idle[Width] = {};    // updates in a row that brought nothing
    bool running[Width];
    std::int32_t iterations = 0;
    std::int32_t since_update = 0;
    read_start(rank);
    true_residual(rank, norm);
    for (int c = 0; c < Width; ++c) running[c] = c < width_;
    std::fill_n(anchor, Width, std::numeric_limits<double>::infinity());
    std::copy_n(norm, Width, recursive);

    // Ends the columns that are done or beyond help; true while some go on.
    const auto settle = [&](bool limit, bool hopeless) {
      bool any = false;
      for (int c = 0; c < Width; ++c) {
        if (!running[c]) continue;
        const bool done = norm[c] <= options_.tolerance;
        // The recursion claims progress that the true residual does not show: precision is at its end.
        idle[c] = norm[c] > 0.5 * anchor[c] && norm[c] > 2.0 * recursive[c] ? idle[c] + 1 : 0;
        const bool stuck = idle[c] >= 2 || !std::isfinite(norm[c]);
        anchor[c] = norm[c];
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
      for (int c = 0; c < Width; ++c) {
        norm[c] = std::sqrt(rr[c]);
        const double goal = std::max(0.9 * options_.tolerance, kTrust * anchor[c]);
        low = low && (!running[c] || lanes(&alpha)[c] == Value{0} || norm[c] <= goal);
      }
      const bool hopeless = iterations % kForecastEvery == 0 &&
                            forecast(iterations, running, norm, earlier) > options_.hopeless_beyond;
      if (2 * iterations % kForecastEvery == 0) std::copy_n(norm, Width, earlier);
      const bool limit = iterations >= options_.max_iterations;
      if (!low && !limit && !hopeless && since_update < kLongestRun) continue;
      each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double*) {
        const Wide step = widen<Value, Width>(alpha);
        for (std::int64_t k = begin; k < end; ++k) x_[k] += step * widen<Value, Width>(p_[k]);
      });
      team_.meet();
      alpha = R{};
      since_update = 0;
      std::copy_n(norm, Width, recursive);
      if (kRefine || !low) true_residual(rank, norm);
      go = settle(limit, hopeless);
    }
    write_answer(rank);
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
  const Columns<Io> columns_;
  const int width_;  // columns in use
  const SolveOptions& options_;
  Team team_;
  ColumnReport* reports_;
  Rows<Value, Width> r_, p_, z_;
  Rows<double, Width> x_;
  std::vector<double> partial_;  // sums of each chunk
  std::vector<double> mean_;     // of b, later of x, over each singular component
  double norm_[Width] = {};
  double inverse_norm_[Width] = {};
  double shared_[Width] = {};
};

// Several blocks share the threads out among them; a single one uses them all.
template <class Value, class Weight, class Io, int Width>
void solve_blocks(const System& system, const Columns<Io>& columns, const SolveOptions& options,
                  ColumnReport* reports) {
  const std::int64_t blocks = (columns.count + Width - 1) / Width;
  const int outer = static_cast<int>(std::clamp<std::int64_t>(blocks, 1, std::max(1, options.threads)));
  parallel_for(outer, blocks, [&](std::int64_t k) {
    const std::int64_t first = k * Width;
    const Columns<Io> part{columns.b + first, columns.x + first, columns.stride,
                           std::min<std::int64_t>(Width, columns.count - first)};
    Block<Value, Weight, Io, Width>(system, part, options, std::max(1, options.threads / outer), reports + first)
        .run();
  });
}

template <class Value, class Weight, class Io>
void solve_columns(const System& system, const Columns<Io>& columns, const SolveOptions& options,
                   ColumnReport* reports) {
  // Wider blocks save a little more traffic but hold more memory and leave less to share out among threads.
  if (columns.count <= 1) {
    solve_blocks<Value, Weight, Io, 1>(system, columns, options, reports);
  } else if (columns.count <= 4) {
    solve_blocks<Value, Weight, Io, 4>(system, columns, options, reports);
  } else {
    solve_blocks<Value, Weight, Io, kBlockColumns>(system, columns, options, reports);
  }
}

}  // namespace

template <class Io>
void pcg(const System& system, const Columns<Io>& columns, const SolveOptions& options, ColumnReport* reports) {
  const bool narrow = std::holds_alternative<std::vector<float>>(system.matrix.weight);
  const bool wide_factor = std::holds_alternative<Factor<double>>(system.preconditioner);
  if (options.float_vectors && !wide_factor) {
    if (narrow) {
      solve_columns<float, float>(system, columns, options, reports);
    } else {
      solve_columns<float, double>(system, columns, options, reports);
    }
  } else if constexpr (sizeof(Io) == sizeof(double)) {
    if (narrow) {
      solve_columns<double, float>(system, columns, options, reports);
    } else {
      solve_columns<double, double>(system, columns, options, reports);
    }
  }
}

template void pcg(const System&, const Columns<double>&, const SolveOptions&, ColumnReport*);
template void pcg(const System&, const Columns<float>&, const SolveOptions&, ColumnReport*);

void precondition(const System& system, const Columns<double>& columns) {
  const Matrix& a = system.matrix;
  const std::vector<double> mean_b =
      system.null_space.means(columns.b, columns.stride, static_cast<int>(columns.count));
  std::vector<double> z(a.n);
  std::vector<double> zeros(a.n, 0.0);
  double unused = 0.0;
  for (std::int64_t c = 0; c < columns.count; ++c) {
    for (std::int64_t k = 0; k < a.n; ++k) {
      const std::int64_t node = a.order[k];
      z[k] = columns.b[node * columns.stride + c] - mean_b[system.null_space.component[node] * columns.count + c];
    }
    if (const auto* factor = std::get_if<Factor<float>>(&system.preconditioner)) {
      forward<double, float, 1>(*factor, a.n, z.data());
      backward<double, float, 1>(*factor, a.n, zeros.data(), z.data(), &unused);
    } else if (const auto* wide = std::get_if<Factor<double>>(&system.preconditioner)) {
      forward<double, double, 1>(*wide, a.n, z.data());
      backward<double, double, 1>(*wide, a.n, zeros.data(), z.data(), &unused);
    } else {
      scale_by_diagonal<double, 1>(a, 0, a.n, zeros.data(), z.data(), &unused);
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
