#include "pcg.hpp"

#include "parallel.hpp"
#include "simd.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

namespace ohm {
namespace {

constexpr std::size_t kLine = 64;

template <class R>
auto lanes(R* row) {
  if constexpr (std::is_arithmetic_v<R>) {
    return row;
  } else {
    return reinterpret_cast<std::remove_reference_t<decltype((*row)[0])>*>(row);
  }
}

struct Aligned {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{kLine}); }
};

// Storage on cache-line boundaries, not initialised.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes)
      : bytes_(static_cast<std::byte*>(::operator new[](bytes + kLine, std::align_val_t{kLine}))) {}
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(bytes_.get());
  }

 private:
  std::unique_ptr<std::byte[], Aligned> bytes_;
};

// ---- Kernels. Rows begin..end of vectors; `dot` receives sums over these rows. ----

// Long sums: a few rows in the vectors' own precision, then added up in double.
template <class Value, int Width>
class Sum {
 public:
  OHM_INLINE void add(std::int64_t row, Row<Value, Width> value) {
    part_ += value;
    if (row % 16 == 0) flush();
  }
  OHM_INLINE void store(double* out) {
    flush();
    for (int c = 0; c < Width; ++c) out[c] = total_[c];
  }

 private:
  OHM_INLINE void flush() {
    if constexpr (Width == 1) {
      total_[0] += static_cast<double>(part_);
    } else {
      for (int c = 0; c < Width; ++c) total_[c] += static_cast<double>(part_[c]);
    }
    part_ = Row<Value, Width>{};
  }
  Row<Value, Width> part_{};
  double total_[Width] = {};
};

template <class Value, class Weight, int Width>
OHM_INLINE Row<Value, Width> product_row(const Matrix& a, const Weight* weight, std::int64_t i,
                                         const Row<Value, Width>* p) {
  const Row<Value, Width> here = p[i];
  Row<Value, Width> sum{};
  const std::int64_t end = a.start[i + 1];
  for (std::int64_t e = a.start[i]; e < end; ++e) {
    sum += static_cast<Value>(weight[e]) * (here - p[a.index[e]]);
  }
  if (!a.ground.empty()) sum += static_cast<Value>(a.ground[i]) * here;
  return sum;
}

// q = A p; dot = p'q
template <class Value, class Weight, int Width>
OHM_KERNEL void multiply(const Matrix& a, const Weight* weight, std::int32_t begin, std::int32_t end,
                         const Row<Value, Width>* p, Row<Value, Width>* q, double* dot) {
  Sum<Value, Width> sum;
  for (std::int64_t i = begin; i < end; ++i) {
    const Row<Value, Width> row = product_row<Value, Weight, Width>(a, weight, i, p);
    q[i] = row;
    sum.add(i, row * p[i]);
  }
  sum.store(dot);
}

// r -= alpha q; q = r (the start of the preconditioner); dot = r'r
template <class Value, int Width>
OHM_KERNEL void step_residual(std::int32_t begin, std::int32_t end, const Row<Value, Width>& alpha,
                              Row<Value, Width>* r, Row<Value, Width>* q, double* dot) {
  Sum<Value, Width> sum;
  const Row<Value, Width> step = alpha;
  for (std::int64_t i = begin; i < end; ++i) {
    const Row<Value, Width> now = r[i] - step * q[i];
    r[i] = now;
    q[i] = now;
    sum.add(i, now * now);
  }
  sum.store(dot);
}

template <class Value, int Width>
OHM_INLINE Row<double, Width> widen(const Row<Value, Width>& row) {
  if constexpr (Width == 1) {
    return static_cast<double>(row);
  } else {
    return __builtin_convertvector(row, Row<double, Width>);
  }
}

// x += alpha p; p = z + beta p
template <class Value, int Width>
OHM_KERNEL void step_direction(std::int32_t begin, std::int32_t end, const Row<Value, Width>& alpha,
                               const Row<Value, Width>& beta, const Row<Value, Width>* z, Row<Value, Width>* p,
                               Row<double, Width>* x) {
  const Row<double, Width> step = widen<Value, Width>(alpha);
  const Row<Value, Width> keep = beta;
  for (std::int64_t i = begin; i < end; ++i) {
    const Row<Value, Width> old = p[i];
    x[i] += step * widen<Value, Width>(old);
    p[i] = z[i] + keep * old;
  }
}

// z = r / diagonal in place; dot = r'z
template <class Value, int Width>
OHM_KERNEL void scale_by_diagonal(const Matrix& a, std::int32_t begin, std::int32_t end,
                                  const Row<Value, Width>* r, Row<Value, Width>* z, double* dot) {
  Sum<Value, Width> sum;
  for (std::int64_t i = begin; i < end; ++i) {
    const Row<Value, Width> value = static_cast<Value>(a.inverse_diagonal[i]) * z[i];
    z[i] = value;
    sum.add(i, value * r[i]);
  }
  sum.store(dot);
}

// Columns of the factor jump about in memory: ask for the rows of a column this many columns ahead.
constexpr std::int64_t kAhead = 12;

template <class Real, class Row>
OHM_INLINE void fetch_column(const Factor<Real>& factor, std::int64_t k, const Row* y) {
  __builtin_prefetch(y + factor.order[k]);
  for (std::int64_t e = factor.start[k]; e < factor.start[k + 1]; ++e) __builtin_prefetch(y + factor.index[e]);
}

template <class Value, class Real, int Width>
OHM_KERNEL void forward(const Factor<Real>& factor, std::int64_t n, Row<Value, Width>* z) {
  for (std::int64_t k = 0; k < n; ++k) {
    if (k + kAhead < n) fetch_column(factor, k + kAhead, z);
    forward_column<Row<Value, Width>, Value>(factor, k, z);
  }
}

// Second half of the preconditioner; dot = r'z
template <class Value, class Real, int Width>
OHM_KERNEL void backward(const Factor<Real>& factor, std::int64_t n, const Row<Value, Width>* r,
                         Row<Value, Width>* z, double* dot) {
  Sum<Value, Width> sum;
  for (std::int64_t k = n - 1; k >= 0; --k) {
    if (k >= kAhead) fetch_column(factor, k - kAhead, z);
    backward_column<Row<Value, Width>, Value>(factor, k, z);
    const std::int32_t row = factor.order[k];
    sum.add(k, z[row] * r[row]);
  }
  sum.store(dot);
}

// ---- One block of columns ----

template <class Io>
struct Columns {
  const Io* b;
  Io* x;
  std::int64_t stride;  // columns in the whole arrays
  int width;            // columns in this block
};

// Value: type of the vectors. Io: type of b and x.
template <class Value, class Weight, class Io, int Width>
class Block {
 public:
  Block(const Matrix& matrix, const Preconditioner& preconditioner, const SolveOptions& options, int threads)
      : a_(matrix),
        weight_(std::get<std::vector<Weight>>(matrix.weight).data()),
        preconditioner_(preconditioner),
        options_(options),
        team_(threads),
        size_(static_cast<std::size_t>(matrix.n) * Width),
        r_(size_ * sizeof(Value)),
        p_(size_ * sizeof(Value)),
        z_(size_ * sizeof(Value)),
        x_(size_ * sizeof(double)),
        partial_((matrix.chunk.size() - 1) * Width),
        mean_(matrix.singular.size() * Width) {}

  void solve(const Columns<Io>& columns, ColumnReport* reports) {
    columns_ = columns;
    reports_ = reports;
    prepare();
    team_.run([this](int rank) { iterate(rank); });
    centre_answer();
  }

 private:
  using Rows = Row<Value, Width>;
  static constexpr bool kRefine = sizeof(Io) == sizeof(double);
  // Between two true residuals the recursive one may fall by this much: float has drifted by then.
  static constexpr double kTrust = sizeof(Value) == sizeof(float) ? 1e-4 : 1e-12;
  static constexpr int kLongestRun = 100;

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

  // Null-space part and norm of every right-hand side.
  void prepare() {
    const int width = columns_.width;
    std::fill(mean_.begin(), mean_.end(), 0.0);
    std::vector<double> count(a_.singular.size(), 0.0);
    for (std::int64_t i = 0; i < a_.n; ++i) {
      const std::int32_t component = a_.component[i];
      if (!a_.singular[component]) continue;
      count[component] += 1.0;
      for (int c = 0; c < width; ++c) mean_[component * Width + c] += columns_.b[i * columns_.stride + c];
    }
    for (std::size_t k = 0; k < count.size(); ++k) {
      for (int c = 0; c < Width; ++c) mean_[k * Width + c] /= std::max(count[k], 1.0);
    }
    double whole[Width] = {};
    double kept[Width] = {};
    for (std::int64_t i = 0; i < a_.n; ++i) {
      const double* mean = mean_.data() + static_cast<std::int64_t>(a_.component[i]) * Width;
      for (int c = 0; c < width; ++c) {
        const double value = columns_.b[i * columns_.stride + c];
        whole[c] += value * value;
        kept[c] += (value - mean[c]) * (value - mean[c]);
      }
    }
    for (int c = 0; c < Width; ++c) {
      // What rounding leaves of a constant is nothing.
      const bool zero = kept[c] <= whole[c] * 1e-30;
      norm_[c] = zero ? 0.0 : std::sqrt(kept[c]);
      inverse_norm_[c] = zero ? 0.0 : 1.0 / norm_[c];
      active_[c] = c < width;
      if (c < width) {
        reports_[c] = {};
        reports_[c].projected_out = whole[c] > 0.0 ? std::sqrt(std::max(0.0, 1.0 - kept[c] / whole[c])) : 0.0;
      }
    }
  }

  // x = the caller's x / (|b| scale), renumbered
  void read_start(int rank) {
    each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double*) {
      for (std::int64_t k = begin; k < end; ++k) {
        const Io* from = columns_.x + static_cast<std::int64_t>(a_.order[k]) * columns_.stride;
        for (int c = 0; c < Width; ++c) {
          lanes(x() + k)[c] = c < columns_.width ? from[c] * (inverse_norm_[c] / a_.scale) : 0.0;
        }
      }
    });
    team_.meet();
  }

  void write_answer(int rank) {
    each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double*) {
      for (std::int64_t k = begin; k < end; ++k) {
        Io* to = columns_.x + static_cast<std::int64_t>(a_.order[k]) * columns_.stride;
        for (int c = 0; c < columns_.width; ++c) {
          to[c] = static_cast<Io>(lanes(x() + k)[c] * (norm_[c] * a_.scale));
        }
      }
    });
  }

  // r = z = (b - A x) / |b|, computed in double; returns the norms.
  void true_residual(int rank, double* norm) {
    const int width = columns_.width;
    each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double* dot) {
      std::fill_n(dot, Width, 0.0);
      for (std::int64_t k = begin; k < end; ++k) {
        Row<double, Width> product = product_row<double, Weight, Width>(a_, weight_, k, x());
        const std::int64_t node = a_.order[k];
        const double* mean = mean_.data() + static_cast<std::int64_t>(a_.component[node]) * Width;
        const Io* b = columns_.b + node * columns_.stride;
        for (int c = 0; c < Width; ++c) {
          const double value = c < width ? (b[c] - mean[c]) * inverse_norm_[c] - lanes(&product)[c] : 0.0;
          lanes(r() + k)[c] = lanes(z() + k)[c] = static_cast<Value>(value);
          dot[c] += value * value;
        }
      }
    });
    total(norm);
    for (int c = 0; c < Width; ++c) norm[c] = std::sqrt(norm[c]);
  }

  // z = M^-1 z, where z = r; returns r'z.
  void precondition(int rank, double* rz) {
    if (std::holds_alternative<std::monostate>(preconditioner_)) {
      each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double* dot) {
        scale_by_diagonal<Value, Width>(a_, begin, end, r(), z(), dot);
      });
      total(rz);
      return;
    }
    if (rank == 0) {
      if (const auto* factor = std::get_if<Factor<float>>(&preconditioner_)) {
        forward<Value, float, Width>(*factor, a_.n, z());
        backward<Value, float, Width>(*factor, a_.n, r(), z(), shared_);
      } else if constexpr (sizeof(Value) == sizeof(double)) {
        const auto& wide = std::get<Factor<double>>(preconditioner_);
        forward<Value, double, Width>(wide, a_.n, z());
        backward<Value, double, Width>(wide, a_.n, r(), z(), shared_);
      }
    }
    team_.meet();
    std::copy_n(shared_, Width, rz);
    team_.meet();
  }

  // One thread's walk. All threads hold the same scalars, so all take the same branches.
  void iterate(int rank) {
    double norm[Width];    // latest residual
    double anchor[Width];  // true residual at the last update
    bool running[Width];
    int idle[Width] = {};  // updates in a row that brought nothing
    std::int32_t iterations = 0;
    std::int32_t since_update = 0;
    read_start(rank);
    true_residual(rank, norm);
    std::copy_n(active_, Width, running);
    std::fill_n(anchor, Width, std::numeric_limits<double>::infinity());

    // Ends the columns that are done or hopeless; true while some go on.
    const auto settle = [&](bool limit) {
      bool any = false;
      for (int c = 0; c < Width; ++c) {
        if (!running[c]) continue;
        const bool done = norm[c] <= options_.tolerance;
        idle[c] = norm[c] > 0.5 * anchor[c] ? idle[c] + 1 : 0;
        const bool stuck = idle[c] >= 2 || !std::isfinite(norm[c]);
        anchor[c] = norm[c];
        running[c] = !(done || stuck || limit);
        any = any || running[c];
        if (running[c] || rank != 0) continue;
        reports_[c].iterations = iterations;
        reports_[c].residual = norm[c];
        reports_[c].outcome = done ? Outcome::converged : stuck ? Outcome::stagnated : Outcome::iteration_limit;
      }
      return any;
    };
    bool go = settle(options_.max_iterations == 0);

    each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double*) {
      std::fill(p() + begin, p() + end, Rows{});
    });
    Rows alpha{};
    Rows beta{};
    double rz_before[Width] = {};
    while (go) {
      double rz[Width];
      precondition(rank, rz);
      for (int c = 0; c < Width; ++c) {
        const bool moves = running[c] && rz_before[c] > 0.0;
        lanes(&beta)[c] = moves ? static_cast<Value>(rz[c] / rz_before[c]) : Value{0};
        rz_before[c] = rz[c];
      }
      each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double*) {
        step_direction<Value, Width>(begin, end, alpha, beta, z(), p(), x());
      });
      team_.meet();
      each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double* dot) {
        multiply<Value, Weight, Width>(a_, weight_, begin, end, p(), z(), dot);
      });
      double pq[Width];
      total(pq);
      for (int c = 0; c < Width; ++c) {
        lanes(&alpha)[c] = running[c] && pq[c] > 0.0 ? static_cast<Value>(rz[c] / pq[c]) : Value{0};
      }
      each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double* dot) {
        step_residual<Value, Width>(begin, end, alpha, r(), z(), dot);
      });
      double rr[Width];
      total(rr);
      ++iterations;
      ++since_update;

      bool low = true;
      for (int c = 0; c < Width; ++c) {
        const double goal = std::max(0.9 * options_.tolerance, kTrust * anchor[c]);
        low = low && (!running[c] || lanes(&alpha)[c] == Value{0} || std::sqrt(rr[c]) <= goal);
      }
      const bool limit = iterations >= options_.max_iterations;
      if (!low && !limit && since_update < kLongestRun) continue;
      each_chunk(rank, [&](std::int32_t begin, std::int32_t end, double*) {
        const Row<double, Width> step = widen<Value, Width>(alpha);
        for (std::int64_t k = begin; k < end; ++k) x()[k] += step * widen<Value, Width>(p()[k]);
      });
      team_.meet();
      alpha = Rows{};
      since_update = 0;
      if (kRefine || !low) {
        true_residual(rank, norm);
      } else {
        for (int c = 0; c < Width; ++c) norm[c] = std::sqrt(rr[c]);
      }
      go = settle(limit);
    }
    write_answer(rank);
  }

  // Mean zero on every component without ground.
  void centre_answer() {
    std::fill(mean_.begin(), mean_.end(), 0.0);
    std::vector<double> count(a_.singular.size(), 0.0);
    for (std::int64_t i = 0; i < a_.n; ++i) {
      const std::int32_t component = a_.component[i];
      if (!a_.singular[component]) continue;
      count[component] += 1.0;
      for (int c = 0; c < columns_.width; ++c) {
        mean_[component * Width + c] += columns_.x[i * columns_.stride + c];
      }
    }
    for (std::int64_t i = 0; i < a_.n; ++i) {
      const std::int32_t component = a_.component[i];
      if (!a_.singular[component]) continue;
      for (int c = 0; c < columns_.width; ++c) {
        columns_.x[i * columns_.stride + c] -= static_cast<Io>(mean_[component * Width + c] / count[component]);
      }
    }
  }

  Rows* r() const { return r_.template as<Rows>(); }
  Rows* p() const { return p_.template as<Rows>(); }
  Rows* z() const { return z_.template as<Rows>(); }
  Row<double, Width>* x() const { return x_.template as<Row<double, Width>>(); }

  const Matrix& a_;
  const Weight* weight_;
  const Preconditioner& preconditioner_;
  const SolveOptions& options_;
  Team team_;
  std::size_t size_;
  Buffer r_, p_, z_, x_;
  std::vector<double> partial_;
  std::vector<double> mean_;  // per component: of b in its null space
  double norm_[Width] = {};
  double inverse_norm_[Width] = {};
  bool active_[Width] = {};
  double shared_[Width] = {};
  Columns<Io> columns_{};
  ColumnReport* reports_ = nullptr;
};

// Blocks of `Width` columns. Several blocks share the threads out among them; a single one uses them all.
template <class Value, class Weight, class Io, int Width>
void solve_blocks(const Matrix& matrix, const Preconditioner& preconditioner, const Io* b, Io* x,
                  std::int64_t columns, const SolveOptions& options, ColumnReport* reports) {
  const std::int64_t blocks = (columns + Width - 1) / Width;
  const int outer = static_cast<int>(std::min<std::int64_t>(options.threads, blocks));
  parallel_for(outer, blocks, [&](std::int64_t k) {
    Block<Value, Weight, Io, Width> block(matrix, preconditioner, options, options.threads / outer);
    const std::int64_t first = k * Width;
    const auto width = static_cast<int>(std::min<std::int64_t>(Width, columns - first));
    block.solve({b + first, x + first, columns, width}, reports + first);
  });
}

template <class Value, class Weight, class Io>
void solve_columns(const Matrix& matrix, const Preconditioner& preconditioner, const Io* b, Io* x,
                   std::int64_t columns, const SolveOptions& options, ColumnReport* reports) {
  // A row of the widest block is one cache line.
  constexpr int kWidest = static_cast<int>(kLine / sizeof(Value));
  const auto solve = [&]<int Width>() {
    solve_blocks<Value, Weight, Io, Width>(matrix, preconditioner, b, x, columns, options, reports);
  };
  if (columns == 1) {
    solve.template operator()<1>();
  } else if (columns <= 4) {
    solve.template operator()<4>();
  } else if (columns <= 8) {
    solve.template operator()<8>();
  } else {
    solve.template operator()<kWidest>();
  }
}

}  // namespace

Matrix make_matrix(const CsrView& graph, const double* ground, std::vector<std::int32_t> order) {
  Matrix a;
  a.n = graph.n;
  a.order = std::move(order);
  const std::int64_t entries = graph.entries();
  double largest = 0.0;
  bool fits_float = true;
  for (std::int64_t e = 0; e < entries; ++e) largest = std::max(largest, graph.weights[e]);
  if (ground != nullptr) largest = std::max(largest, *std::max_element(ground, ground + graph.n));
  a.scale = largest > 0.0 ? std::exp2(-std::ilogb(largest)) : 1.0;
  for (std::int64_t e = 0; e < entries; ++e) {
    const double w = graph.weights[e] * a.scale;
    fits_float = fits_float && static_cast<double>(static_cast<float>(w)) == w;
  }

  std::vector<std::int32_t> number(a.n);
  for (std::int32_t k = 0; k < a.n; ++k) number[a.order[k]] = k;
  a.start.resize(static_cast<std::size_t>(a.n) + 1);
  a.index.resize(entries);
  a.inverse_diagonal.resize(a.n);
  if (ground != nullptr) a.ground.resize(a.n);
  if (fits_float) {
    a.weight = std::vector<float>(entries);
  } else {
    a.weight = std::vector<double>(entries);
  }
  std::visit(
      [&](auto& weight) {
        std::int64_t out = 0;
        for (std::int32_t k = 0; k < a.n; ++k) {
          const std::int32_t u = a.order[k];
          double diagonal = 0.0;
          if (ground != nullptr) diagonal = a.ground[k] = ground[u] * a.scale;
          for (std::int64_t e = graph.indptr[u]; e < graph.indptr[u + 1]; ++e, ++out) {
            const double w = graph.weights[e] * a.scale;
            a.index[out] = number[graph.indices[e]];
            weight[out] = static_cast<std::decay_t<decltype(weight[0])>>(w);
            diagonal += w;
          }
          a.inverse_diagonal[k] = diagonal > 0.0 ? 1.0 / diagonal : 0.0;
          a.start[k + 1] = out;
        }
      },
      a.weight);

  constexpr std::int64_t kChunkWork = 1 << 16;
  a.chunk.push_back(0);
  std::int64_t work = 0;
  for (std::int32_t k = 0; k < a.n; ++k) {
    work += a.start[k + 1] - a.start[k] + 8;
    if (work >= kChunkWork || k + 1 == a.n) {
      a.chunk.push_back(k + 1);
      work = 0;
    }
  }
  return a;
}

template <class Io>
std::vector<ColumnReport> pcg(const Matrix& matrix, const Preconditioner& preconditioner, const Io* b, Io* x,
                              std::int64_t columns, const SolveOptions& options) {
  std::vector<ColumnReport> reports(columns);
  const auto run = [&]<class Value, class Weight>() {
    solve_columns<Value, Weight, Io>(matrix, preconditioner, b, x, columns, options, reports.data());
  };
  const bool narrow = std::holds_alternative<std::vector<float>>(matrix.weight);
  const bool float_vectors = options.float_vectors && !std::holds_alternative<Factor<double>>(preconditioner);
  if (float_vectors) {
    narrow ? run.template operator()<float, float>() : run.template operator()<float, double>();
  } else {
    narrow ? run.template operator()<double, float>() : run.template operator()<double, double>();
  }
  return reports;
}

template std::vector<ColumnReport> pcg(const Matrix&, const Preconditioner&, const double*, double*, std::int64_t,
                                       const SolveOptions&);
template std::vector<ColumnReport> pcg(const Matrix&, const Preconditioner&, const float*, float*, std::int64_t,
                                       const SolveOptions&);

}  // namespace ohm
