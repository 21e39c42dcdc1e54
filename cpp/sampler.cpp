#include "sampler.hpp"

#include "embedding.hpp"
#include "parallel.hpp"
#include "rng.hpp"
#include "simd.hpp"
#include "solver.hpp"

#include <algorithm>
#include <cmath>

namespace ohm {
namespace {

constexpr std::int64_t kPiece = 1 << 14;        // edges a thread tosses at a time
constexpr std::int64_t kSmallest = 1 << 12;     // rows below which resampling is not worth it
// A weak link between clusters is one slow mode among n: its share of a random right-hand side is tiny, and
// the links are lost where it is not resolved (seen at 1e-3 on three blocks with three bridges).
constexpr double kEmbeddingTolerance = 1e-4;
constexpr std::uint64_t kResampleCoins = 0x7265736d706c65ull;

std::uint64_t edge_key(std::int32_t u, std::int32_t v) {
  return static_cast<std::uint64_t>(u) << 32 | static_cast<std::uint32_t>(v);
}

// An estimate of R from both sides' records; du and dv are the degrees without the edge itself.
OHM_INLINE float estimate(const NodeRecord& a, const NodeRecord& b, float du, float dv, float w) {
  float sketch = 0.0f;
  for (int c = 0; c < Sampler::kColumns; ++c) {
    const float difference = a.z[c] - b.z[c];
    sketch += difference * difference;
  }
  const float floor = 1.0f / (w + du * dv / (du + dv));
  return std::max(sketch, floor);
}

struct Kept {
  std::int64_t at;  // in the batch
  std::int32_t u;
  std::int32_t v;
  float w;
};

// Tosses edges begin..end of a batch whose first has number `position` in the stream.
template <class Index, class Weight>
OHM_KERNEL void toss(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                     std::int64_t begin, std::int64_t end, std::int64_t position, std::uint64_t seed, float beta,
                     const NodeRecord* nodes, std::vector<Kept>& kept) {
  constexpr std::int64_t kAhead = 16;
  for (std::int64_t i = begin; i < end; ++i) {
    if (i + kAhead < end) {
      __builtin_prefetch(nodes + u[i + kAhead]);
      __builtin_prefetch(nodes + v[i + kAhead]);
    }
    float weight = 1.0f;
    if constexpr (!std::is_same_v<Weight, Unit>) weight = static_cast<float>(w[i]);
    if (u[i] == v[i] || !(weight > 0.0f)) continue;
    const NodeRecord& a = nodes[u[i]];
    const NodeRecord& b = nodes[v[i]];
    float p = 1.0f;
    if (a.component >= 0 && a.component == b.component) {
      p = std::min(1.0f, beta * weight * estimate(a, b, a.degree, b.degree, weight));
    }
    if (p < 1.0f) {
      const auto coin = static_cast<float>(hash(seed, static_cast<std::uint64_t>(position + i)) >> 40) * 0x1.0p-24f;
      if (coin >= p) continue;
      weight /= p;
    }
    kept.push_back({i, static_cast<std::int32_t>(u[i]), static_cast<std::int32_t>(v[i]), weight});
  }
}

}  // namespace

template <class Index, class Weight>
std::optional<EdgeFault> find_fault(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                                    std::int64_t limit) {
  using Kind = EdgeFault::Kind;
  for (std::size_t i = 0; i < u.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (u[i] < 0 || u[i] >= limit) return EdgeFault{Kind::node_u, at, static_cast<std::int64_t>(u[i])};
    if (v[i] < 0 || v[i] >= limit) return EdgeFault{Kind::node_v, at, static_cast<std::int64_t>(v[i])};
    if constexpr (!std::is_same_v<Weight, Unit>) {
      const auto weight = static_cast<double>(w[i]);
      if (!(weight >= 0.0 && weight <= std::numeric_limits<float>::max())) {
        return EdgeFault{Kind::weight, at, 0, weight};
      }
    }
  }
  return std::nullopt;
}

Sampler::Sampler(std::int32_t n_nodes, const SamplerOptions& options) : options_(options) {
  state_.nodes.resize(n_nodes);
  state_.capacity = options.max_rows > 0 ? 2 * options.max_rows : kSmallest;
  if (options.max_rows == 0 && n_nodes > 1) {
    state_.capacity = std::max(kSmallest, static_cast<std::int64_t>(2.0 * beta_for(n_nodes) * n_nodes));
  }
}

double Sampler::beta_for(std::int64_t n) const {
  return options_.constant * (std::log(std::max<double>(2.0, static_cast<double>(n))) + options_.offset) /
         (options_.epsilon * options_.epsilon);
}

template <class Index, class Weight>
void Sampler::update(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w) {
  std::int64_t largest = -1;
  for (const Index node : u) largest = std::max<std::int64_t>(largest, node);
  for (const Index node : v) largest = std::max<std::int64_t>(largest, node);
  if (largest >= std::ssize(state_.nodes)) state_.nodes.resize(largest + 1);

  const std::int64_t size = std::ssize(u);
  std::vector<std::vector<Kept>> kept;
  for (std::int64_t begin = 0; begin < size;) {
    // As many edges as keep the threads busy; where the rows reach the capacity among them, the tosses
    // behind that edge are forgotten and made anew after the resample.
    const std::int64_t end = std::min(size, begin + kPiece * std::max(1, options_.threads) * 4);
    const std::int64_t pieces = (end - begin + kPiece - 1) / kPiece;
    kept.resize(std::max<std::size_t>(kept.size(), pieces));
    parallel_for(options_.threads, pieces, [&](std::int64_t piece) {
      kept[piece].clear();
      const std::int64_t from = begin + piece * kPiece;
      toss<Index, Weight>(u, v, w, from, std::min(end, from + kPiece), state_.position, options_.seed,
                          static_cast<float>(state_.beta), state_.nodes.data(), kept[piece]);
    });
    std::int64_t next = end;
    for (std::int64_t piece = 0; piece < pieces && next == end; ++piece) {
      for (const Kept& row : kept[piece]) {
        state_.u.push_back(row.u);
        state_.v.push_back(row.v);
        state_.w.push_back(row.w);
        if (n_rows() >= state_.capacity) {
          next = row.at + 1;
          break;
        }
      }
    }
    begin = next;
    if (n_rows() >= state_.capacity) resample();
  }
  for (std::int64_t i = 0; i < size; ++i) {
    const double weight = [&] {
      if constexpr (std::is_same_v<Weight, Unit>) return 1.0;
      else return static_cast<double>(w[i]);
    }();
    if (u[i] == v[i]) {
      ++state_.n_self_loops;
    } else if (weight == 0.0) {
      ++state_.n_zero_weights;
    } else {
      state_.weight_seen[(state_.position + i) % 8] += weight;
    }
  }
  state_.position += size;
}

void Sampler::merge(const State& other) {
  if (other.nodes.size() > state_.nodes.size()) state_.nodes.resize(other.nodes.size());
  state_.u.insert(state_.u.end(), other.u.begin(), other.u.end());
  state_.v.insert(state_.v.end(), other.v.begin(), other.v.end());
  state_.w.insert(state_.w.end(), other.w.begin(), other.w.end());
  state_.position += other.position;
  state_.n_self_loops += other.n_self_loops;
  state_.n_zero_weights += other.n_zero_weights;
  state_.beta = std::min(state_.beta, other.beta);
  for (int lane = 0; lane < 8; ++lane) state_.weight_seen[lane] += other.weight_seen[lane];
  resample();
}

Csr Sampler::snapshot() const {
  Sampler copy(state_, options_);
  copy.resample();
  auto built = build_csr<std::int32_t, float>(static_cast<std::int32_t>(copy.state_.nodes.size()), copy.state_.u,
                                              copy.state_.v, copy.state_.w);
  return std::move(std::get<BuiltCsr>(built).csr);
}

void Sampler::resample() {
  const auto n = static_cast<std::int32_t>(state_.nodes.size());
  ++state_.n_resamples;
  auto built = build_csr<std::int32_t, float>(n, state_.u, state_.v, state_.w);
  const Csr csr = std::move(std::get<BuiltCsr>(built).csr);
  const CsrView graph{n, csr.indptr.data(), csr.indices.data(), csr.weights.data()};
  const std::uint64_t coins = hash(options_.seed ^ kResampleCoins, state_.n_resamples);

  // Embedding.
  std::vector<double> y(static_cast<std::size_t>(n) * kColumns);
  std::vector<double> z(y.size(), 0.0);
  sketch_right_hand_sides<kColumns>(graph, coins, 0, options_.threads, y.data());
  Solver solver(graph, nullptr, SolverOptions{Method::automatic, coins, options_.threads});
  solver.solve(Columns{y.data(), z.data(), kColumns, kColumns}, kEmbeddingTolerance, 1000);
  const double unit = 1.0 / std::sqrt(static_cast<double>(kColumns));
  for (std::int32_t i = 0; i < n; ++i) {
    NodeRecord& node = state_.nodes[i];
    double degree = 0.0;
    for (std::int64_t e = csr.indptr[i]; e < csr.indptr[i + 1]; ++e) degree += csr.weights[e];
    node.degree = static_cast<float>(degree);
    node.component = csr.indptr[i] == csr.indptr[i + 1] ? -1 : solver.null_space().component[i];
    for (int c = 0; c < kColumns; ++c) {
      node.z[c] = static_cast<float>(unit * z[static_cast<std::size_t>(i) * kColumns + c]);
    }
  }

  // Leverages of the rows, each edge once.
  std::vector<float> leverage;
  leverage.reserve(csr.indices.size() / 2);
  state_.u.clear();
  state_.v.clear();
  state_.w.clear();
  for (std::int32_t i = 0; i < n; ++i) {
    for (std::int64_t e = csr.indptr[i]; e < csr.indptr[i + 1]; ++e) {
      const std::int32_t j = csr.indices[e];
      if (j < i) continue;
      const auto w = static_cast<float>(csr.weights[e]);
      const NodeRecord& a = state_.nodes[i];
      const NodeRecord& b = state_.nodes[j];
      const float du = std::max(0.0f, a.degree - w);
      const float dv = std::max(0.0f, b.degree - w);
      const float r = du > 0.0f && dv > 0.0f ? estimate(a, b, du, dv, w) : 1.0f / w;
      leverage.push_back(std::min(1.0f, w * r));
      state_.u.push_back(i);
      state_.v.push_back(j);
      state_.w.push_back(w);
    }
  }
  if (!options_.retracts) {
    state_.beta = beta_for(n);
    state_.capacity = std::max(kSmallest, 2 * n_rows());
    return;
  }
  // beta, never increasing under a budget.
  if (options_.max_rows > 0) {
    const auto rows_at = [&](double beta) {
      double sum = 0.0;
      for (const float t : leverage) sum += std::min(1.0, beta * static_cast<double>(t));
      return sum;
    };
    if (std::ssize(leverage) <= options_.max_rows) return;  // all fit: nothing is tossed
    if (rows_at(std::min(state_.beta, 1e30)) > static_cast<double>(options_.max_rows)) {
      double low = 0.0;
      double high = std::min(state_.beta, 1e6);
      for (int step = 0; step < 60; ++step) {
        const double middle = 0.5 * (low + high);
        (rows_at(middle) > static_cast<double>(options_.max_rows) ? high : low) = middle;
      }
      state_.beta = low;
    }
  } else {
    state_.beta = beta_for(n);
  }
  std::size_t left = 0;
  for (std::size_t e = 0; e < leverage.size(); ++e) {
    const double p = state_.beta * static_cast<double>(leverage[e]);
    if (p < 1.0) {
      if (uniform(hash(coins, edge_key(state_.u[e], state_.v[e]))) >= p) continue;
      state_.w[e] = static_cast<float>(static_cast<double>(state_.w[e]) / p);
    }
    state_.u[left] = state_.u[e];
    state_.v[left] = state_.v[e];
    state_.w[left] = state_.w[e];
    ++left;
  }
  state_.u.resize(left);
  state_.v.resize(left);
  state_.w.resize(left);
  state_.capacity = options_.max_rows > 0 ? 2 * options_.max_rows
                                          : std::max(kSmallest, 2 * static_cast<std::int64_t>(left));
}

#define OHM_INSTANTIATE(Index, Weight)                                                                       \
  template std::optional<EdgeFault> find_fault(std::span<const Index>, std::span<const Index>,               \
                                               std::span<const Weight>, std::int64_t);                       \
  template void Sampler::update(std::span<const Index>, std::span<const Index>, std::span<const Weight>);
OHM_INSTANTIATE(std::int32_t, Unit)
OHM_INSTANTIATE(std::int32_t, float)
OHM_INSTANTIATE(std::int32_t, double)
OHM_INSTANTIATE(std::int64_t, Unit)
OHM_INSTANTIATE(std::int64_t, float)
OHM_INSTANTIATE(std::int64_t, double)
#undef OHM_INSTANTIATE

}  // namespace ohm
