#include "solver/pcg.hpp"

#include "base/parallel.hpp"
#include "solver/convergence.hpp"
#include "solver/pcg_kernels.hpp"
#include "solver/right_hand_sides.hpp"

#include <algorithm>
#include <cmath>

namespace ohm {
namespace {

// z = M^-1 z if the preconditioner is a factor; false if it is not. A factor in double needs double vectors.
template <class Value, int Width>
bool substitute(const Preconditioner& preconditioner, Crew& crew, Row<Value, Width>* z) {
  const auto solve = [&]<class Real>(const Factor<Real>* factor) {
    if (factor == nullptr) return false;
    const auto run = [&](std::size_t level, auto&& f) {
      const auto* first = factor->pieces.data() + factor->level[level];
      crew.run(factor->level[level + 1] - factor->level[level], [&](std::int64_t k) { f(first[k]); });
    };
    const std::size_t levels = factor->level.size() - 1;
    for (std::size_t level = 0; level < levels; ++level) {
      run(level, [&](const FactorPiece<Real>& piece) {
        std::fill_n(z + piece.slot, piece.halo.size(), Row<Value, Width>{});
        forward<Value, Real, Width>(piece, z);
      });
      for (std::size_t k = factor->level[level]; k < factor->level[level + 1]; ++k) {
        const FactorPiece<Real>& piece = factor->pieces[k];
        for (std::size_t i = 0; i < piece.halo.size(); ++i) z[piece.halo[i]] += z[piece.slot + i];
      }
    }
    for (std::size_t level = levels; level-- > 0;) {
      run(level, [&](const FactorPiece<Real>& piece) {
        for (std::size_t i = 0; i < piece.halo.size(); ++i) z[piece.slot + i] = z[piece.halo[i]];
        backward<Value, Real, Width>(piece, z);
      });
    }
    return true;
  };
  if (solve(std::get_if<Factor<float>>(&preconditioner))) return true;
  if constexpr (sizeof(Value) == sizeof(double)) return solve(std::get_if<Factor<double>>(&preconditioner));
  return false;
}

// The rows that vectors need behind their own.
std::int64_t slots(const Preconditioner& preconditioner) {
  if (const auto* factor = std::get_if<Factor<float>>(&preconditioner)) return factor->slots;
  if (const auto* factor = std::get_if<Factor<double>>(&preconditioner)) return factor->slots;
  return 0;
}

// One block of `Width` columns; Value is the type of the vectors.
template <class Value, class Weight, int Width>
class Block {
 public:
  Block(const System& system, const Columns& columns, const SolveOptions& options, int threads, ColumnReport* reports)
      : a_(system.matrix),
        weight_(std::get<Buffer<Weight>>(a_.weight).data()),
        null_(system.null_space),
        preconditioner_(system.preconditioner),
        columns_(columns),
        width_(static_cast<int>(columns.count)),
        b_(columns, null_, a_.scale),
        options_(options),
        crew_(static_cast<int>(std::clamp<std::int64_t>((std::ssize(a_.chunk) - 1) / kChunksPerThread, 1, threads))),
        reports_(reports),
        r_(a_.n),
        p_(a_.n),
        z_(a_.n + slots(preconditioner_)),
        own_x_(is_in_place() ? 0 : a_.n),
        x_(is_in_place() ? reinterpret_cast<Wide*>(columns.x) : own_x_),
        cluster_sums_(count_clusters() + 1),
        partial_((a_.chunk.size() - 1) * Width),
        size_(partial_.size()) {}

  void run() {
    for (int c = 0; c < width_; ++c) {
      reports_[c] = {};
      reports_[c].projected_out = b_.projected_out[c];
    }
    for (std::int64_t i = 0; i < a_.n && zero_start_; ++i) {
      const double* x = columns_.x + i * columns_.stride;
      zero_start_ = std::all_of(x, x + width_, [](double value) { return value == 0.0; });
    }
    if (zero_start_) {
      start_mean_.resize(null_.singular.size() * width_);
    } else {
      start_mean_ = null_.means(columns_.x, columns_.stride, width_);
    }
    iterate();
    centre_answer();
  }

 private:
  using R = Row<Value, Width>;
  using Wide = Row<double, Width>;
  using State = Convergence<Value, Width>;
  // A start with a larger residual (that of zero is 1) does not help and may leave the range of float.
  static constexpr double kWildStart = 1e8;
  static constexpr std::int64_t kStretch = 32;  // rows of a true residual at a time
  static constexpr std::int64_t kChunksPerThread = 2;  // fewer are not worthwhile

  // Calls f(begin, end, sums) for each chunk of rows.
  template <class F>
  void each_chunk(F&& f) {
    crew_.run(std::ssize(a_.chunk) - 1,
              [&](std::int64_t k) { f(a_.chunk[k], a_.chunk[k + 1], partial_.data() + k * Width); });
  }

  // Adds the sums of the chunks.
  void total(double* sum) const {
    std::fill_n(sum, Width, 0.0);
    for (std::size_t k = 0; k < partial_.size(); k += Width) {
      for (int c = 0; c < Width; ++c) sum[c] += partial_[k + c];
    }
  }

  // x = the caller's x, in units of the answer, centred and renumbered
  void read_start() {
    each_chunk([&](std::int32_t begin, std::int32_t end, double*) {
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
  }

  // Sets starts that are too large or not finite to zero; true if there were any.
  bool drop_wild_start(const Column* column) {
    const auto is_wild = [](const Column& each) { return !(each.norm <= kWildStart); };
    if (std::none_of(column, column + width_, is_wild)) return false;
    each_chunk([&](std::int32_t begin, std::int32_t end, double*) {
      for (std::int64_t k = begin; k < end; ++k) {
        for (int c = 0; c < width_; ++c) {
          if (is_wild(column[c])) lanes(x_ + k)[c] = 0.0;
        }
      }
    });
    return true;
  }

  void write_answer(const Column* column) {
    each_chunk([&](std::int32_t begin, std::int32_t end, double*) {
      for (std::int64_t k = begin; k < end; ++k) {
        double* to = columns_.x + a_.order[k] * columns_.stride;
        for (int c = 0; c < width_; ++c) {
          to[c] = column[c].lost ? 0.0 : b_.to_answer(c, lanes(x_ + k)[c]);
        }
      }
    });
  }

  // The relative residual that rounding of x may leave, from |diagonal x|^2.
  double rounding_floor(int c, double size) const {
    return std::numeric_limits<double>::epsilon() * std::sqrt(size) * b_.unit_over_norm[c];
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
      const double floor = rounding_floor(c, size[c]);
      if (!(20.0 * floor <= options_.tolerance)) judge_rounded(c, floor);
    }
  }

  // If the answer is huge compared with b / A, rounding x to double may itself leave a residual near the tolerance.
  // Recomputes the residual of x as returned. Sets Outcome::rounding if double precision allows no better answer.
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
               (report.outcome == Outcome::stagnated && report.residual <= State::kFloors * floor)) {
      report.outcome = Outcome::rounding;
    }
  }

  // r = z = (b - A x) / unit, computed in double. Sets the norm, relative to |b|, and the floor of each column. For a
  // start at zero, A x need not be computed.
  void true_residual(bool zero_start, Column* column) {
    each_chunk([&](std::int32_t begin, std::int32_t end, double* dot) {
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
          double value = 0.0;
          if (c < width_) value = (b[c] - b_.mean(node)[c]) * b_.inverse_unit[c] - lanes(products + at)[c];
          lanes(r_ + k)[c] = lanes(z_ + k)[c] = static_cast<Value>(value);
          dot[c] += value * value;
          const double current = conductance * lanes(x_ + k)[c];
          size[c] += current * current;
        }
      }
    });
    double rr[Width];
    total(rr);
    for (int c = 0; c < Width; ++c) {
      double size = 0.0;
      for (std::size_t k = c; k < size_.size(); k += Width) size += size_[k];
      column[c].norm = std::sqrt(rr[c]) * b_.unit_over_norm[c];
      column[c].floor = rounding_floor(c, size);
    }
  }

  // z = M^-1 z, where z = r; returns r'z.
  void precondition(double* rz) {
    if (!substitute<Value, Width>(preconditioner_, crew_, z_)) {
      each_chunk([&](std::int32_t begin, std::int32_t end, double* dot) {
        scale_by_diagonal<Value, Width>(a_, begin, end, r_, z_, dot);
      });
      const auto* tree = std::get_if<const ClusterTree*>(&preconditioner_);
      if (tree == nullptr) return total(rz);
      add_clusters(**tree);
    }
    each_chunk([&](std::int32_t begin, std::int32_t end, double* dot) {
      inner_product<Value, Width>(begin, end, r_, z_, dot);
    });
    total(rz);
  }

  // Whether the caller's x has the place for that of the scaled system.
  bool is_in_place() const {
    return columns_.stride == Width && width_ == Width && std::is_sorted(a_.order.begin(), a_.order.end()) &&
           reinterpret_cast<std::uintptr_t>(columns_.x) % sizeof(Wide) == 0;
  }

  std::int64_t count_clusters() const {
    const auto* tree = std::get_if<const ClusterTree*>(&preconditioner_);
    return tree == nullptr ? 0 : std::ssize((*tree)->clusters);
  }

  // z += sum over clusters A of 1_A 1_A'r / cut(A): sums upwards, then corrections downwards.
  void add_clusters(const ClusterTree& tree) {
    const auto count = std::ssize(tree.clusters);
    if (count == 0) return;
    const Rows<double, Width>& sum = cluster_sums_;  // the last one is for nodes outside all clusters
    std::fill_n(&sum[0], count + 1, Wide{});
    for (std::int64_t k = 0; k < a_.n; ++k) sum[tree.smallest[a_.order[k]]] += widen<Value, Width>(r_[k]);
    for (std::int64_t k = 0; k < count; ++k) sum[tree.clusters[k].parent] += sum[k];
    sum[count] = Wide{};
    for (std::int64_t k = count - 1; k >= 0; --k) {
      sum[k] = sum[k] * (static_cast<double>(tree.clusters[k].inverse_cut) / a_.scale) + sum[tree.clusters[k].parent];
    }
    each_chunk([&](std::int32_t begin, std::int32_t end, double*) {
      for (std::int64_t k = begin; k < end; ++k) {
        Wide& more = sum[tree.smallest[a_.order[k]]];
        for (int c = 0; c < Width; ++c) lanes(z_ + k)[c] += static_cast<Value>(lanes(&more)[c]);
      }
    });
  }

  // Conjugate gradients with reliable updates; threads share the chunks of rows.
  //
  //   1. r = b - A x, true; p = 0; stop the columns that have converged
  //   while a column runs:
  //   2.   z = M^-1 r; beta = r'z / previous r'z
  //   3.   x = x + alpha p, with the previous alpha; p = z + beta p
  //   4.   q = A p; alpha = r'z / p'q
  //   5.   r = r - alpha q
  //   6.   unless all running columns have reached their goals, one has fallen too far, a limit is reached, or the
  //        forecast is hopeless: go to 2
  //   7.   x = x + alpha p; alpha = 0
  //   8.   r = b - A x, true; stop the columns that have converged or make no progress
  void iterate() {
    State state(options_, width_);
    Column* column = state.column;
    // 1.
    read_start();
    true_residual(zero_start_, column);
    if (drop_wild_start(column)) true_residual(false, column);
    R alpha{};
    R beta{};
    double rz_before[Width] = {};
    bool go = state.settle(reports_);
    while (go) {
      // 2.
      double rz[Width];
      precondition(rz);
      for (int c = 0; c < Width; ++c) {
        column[c].energy = rz[c];
        if (state.iterations == 0) column[c].first_energy = rz[c];
        const bool moves = column[c].running && rz_before[c] > 0.0;
        lanes(&beta)[c] = moves ? static_cast<Value>(rz[c] / rz_before[c]) : Value{0};
        rz_before[c] = rz[c];
      }
      // 3.
      each_chunk([&](std::int32_t begin, std::int32_t end, double*) {
        step_direction<Value, Width>(begin, end, alpha, beta, z_, p_, x_);
      });
      // 4. The array of z receives q.
      each_chunk([&](std::int32_t begin, std::int32_t end, double* dot) {
        multiply<Value, Weight, Width>(a_, weight_, begin, end, p_, z_, dot);
      });
      double pq[Width];
      total(pq);
      for (int c = 0; c < Width; ++c) {
        lanes(&alpha)[c] = column[c].running && pq[c] > 0.0 ? static_cast<Value>(rz[c] / pq[c]) : Value{0};
        column[c].still = lanes(&alpha)[c] == Value{0};
      }
      // 5.
      each_chunk([&](std::int32_t begin, std::int32_t end, double* dot) {
        step_residual<Value, Width>(begin, end, alpha, r_, z_, dot);
      });
      double rr[Width];
      total(rr);
      // 6.
      for (int c = 0; c < Width; ++c) column[c].norm = std::sqrt(rr[c]) * b_.unit_over_norm[c];
      if (!state.count_iteration()) continue;
      // 7.
      each_chunk([&](std::int32_t begin, std::int32_t end, double*) {
        const Wide step = widen<Value, Width>(alpha);
        for (std::int64_t k = begin; k < end; ++k) x_[k] += step * widen<Value, Width>(p_[k]);
      });
      alpha = R{};
      // 8.
      true_residual(false, column);
      go = state.settle(reports_);
    }
    write_answer(column);
  }

  const Matrix& a_;
  const Weight* weight_;
  const NullSpace& null_;
  const Preconditioner& preconditioner_;
  const Columns columns_;
  const int width_;  // columns in use
  const RightHandSides<Width> b_;
  const SolveOptions& options_;
  Crew crew_;
  ColumnReport* reports_;
  Rows<Value, Width> r_, p_, z_;
  Rows<double, Width> own_x_;
  Wide* const x_;  // in the scaled system
  Rows<double, Width> cluster_sums_;
  std::vector<double> partial_;       // sums of each chunk
  std::vector<double> size_;          // of each chunk: |diagonal x|^2 at the last true residual
  std::vector<double> start_mean_;    // of the starting point
  bool zero_start_ = true;
};

// Several blocks share the threads; a single block uses all of them.
template <class Value, class Weight, int Width>
void solve_blocks(const System& system, const Columns& columns, const SolveOptions& options, ColumnReport* reports) {
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
void solve_columns(const System& system, const Columns& columns, const SolveOptions& options, ColumnReport* reports) {
  // Wider blocks save a little more memory traffic, but need more memory and leave fewer blocks for the threads.
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
  const bool narrow = std::holds_alternative<Buffer<float>>(system.matrix.weight);
  const bool wide_factor = std::holds_alternative<Factor<double>>(system.preconditioner);
  const auto solve = [&]<class Value>() {
    narrow ? solve_columns<Value, float>(system, columns, options, reports)
           : solve_columns<Value, double>(system, columns, options, reports);
  };
  if (options.float_vectors && system.matrix.float_range && !wide_factor) return solve.operator()<float>();
  solve.operator()<double>();
}

void precondition(const System& system, const Columns& columns, int threads) {
  Crew crew(threads);
  const Matrix& a = system.matrix;
  const std::vector<double> mean_b =
      system.null_space.means(columns.b, columns.stride, static_cast<int>(columns.count));
  std::vector<double> z(a.n + slots(system.preconditioner));
  for (std::int64_t c = 0; c < columns.count; ++c) {
    for (std::int64_t k = 0; k < a.n; ++k) {
      const std::int64_t node = a.order[k];
      z[k] = columns.b[node * columns.stride + c] - mean_b[system.null_space.component[node] * columns.count + c];
    }
    if (!substitute<double, 1>(system.preconditioner, crew, z.data())) {
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
