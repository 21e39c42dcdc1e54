#include "sampling/sampler.hpp"

#include "base/huge_pages.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/simd.hpp"
#include "sampling/thinning.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace ohm {
namespace {

constexpr std::int64_t kPiece = 1 << 14;     // edges a thread tosses at a time
constexpr std::int64_t kMostPieces = 32;     // pieces per thread before the candidates are processed
constexpr std::int64_t kAhead = 16;          // candidates between the prefetch of a record and its use
constexpr double kRefreshes = 8.0;           // updates of degrees and cuts between two resamples
constexpr double kGrowth = 2.5;              // growth of H between two resamples
constexpr float kOutweighs = 4.0f;           // see grow_cuts
constexpr std::int64_t kSmallest = 1 << 12;  // rows below which resampling is not worth it
constexpr std::int64_t kLarge = 1 << 20;     // rows above which freed memory is returned to the system
constexpr std::uint64_t kResampleCoins = 0x7265736d706c65ull;

}  // namespace

Sampler::Sampler(std::int32_t n_nodes, const SamplerOptions& options) : options_(options) {
  state_.n_nodes = n_nodes;
  reserve_nodes(n_nodes);
  state_.capacity = capacity_for(most_rows());
}

Sampler::Sampler(State state, const SamplerOptions& options)
    : options_(options), state_(std::move(state)), bound_(bound_resistances(embedding())) {}

// Resizes `nodes` last: its size is the number of nodes with memory, also if an earlier resize throws.
void Sampler::reserve_nodes(std::int64_t n_nodes) {
  bound_.resize(n_nodes, NodeRecord::kInfinity);
  NodeRecord unknown;
  unknown.cluster = static_cast<std::int32_t>(state_.clusters.size());
  state_.nodes.resize(n_nodes, unknown);
}

// The rows at which H is resampled, if it has `rows` after a resample.
std::int64_t Sampler::capacity_for(double rows) const {
  if (options_.max_rows > 0) rows = most_rows();
  const auto grown = static_cast<std::int64_t>(std::min(0x1p62, kGrowth * rows));  // NaN gives 2^62
  return options_.max_rows > 0 ? grown : std::max(kSmallest, grown);
}

// The target, which is the most rows after a resample: leverages add up to less than n.
double Sampler::most_rows() const {
  if (options_.max_rows > 0) return static_cast<double>(std::min(options_.max_rows, kMostEdges));
  return beta_for(state_.n_nodes) * static_cast<double>(state_.n_nodes);
}

bool Sampler::all_fit(const Triangle& h) const { return static_cast<double>(h.edges()) <= most_rows(); }

double Sampler::beta_for(std::int64_t n) const {
  return options_.constant * (std::log(std::max<double>(2.0, static_cast<double>(n))) + options_.offset) /
         (options_.epsilon * options_.epsilon);
}

template <class Index, class Weight>
void Sampler::update(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w) {
  if (has_half_life()) throw std::invalid_argument("a sampler with a half-life needs the times of the edges");
  take_in(u, v, w, {});
}

// With a half-life, `t` are the times of the edges, and `w` their weights at the end of the epoch.
template <class Index, class Weight>
void Sampler::take_in(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                      std::span<const double> t) {
  const std::uint64_t key = mix(options_.seed);
  const std::int64_t size = std::ssize(u);
  const std::int64_t start = state_.position;
  std::int64_t pieces = options_.threads;  // tossed at once
  std::vector<std::vector<Candidate>> candidates;
  for (std::int64_t begin = 0; begin < size;) {
    // If an edge reaches the limit, later edges of this round are tossed again with new estimates.
    const double spacing = rows_between_refreshes();
    const double limit = (std::floor(state_.n_expected / spacing) + 1.0) * spacing;
    pieces = std::min((size - begin + kPiece - 1) / kPiece, pieces);
    candidates.resize(std::max<std::size_t>(candidates.size(), pieces));
    const std::int64_t end = std::min(size, begin + pieces * kPiece);
    std::int64_t last = -1;
    if (options_.grows) {
      last = find_last(u.data() + begin, v.data() + begin, end - begin);
      if (last >= std::ssize(state_.nodes)) reserve_nodes(last + 1);
    }
    parallel_for(options_.threads, pieces, [&](std::int64_t piece) {
      candidates[piece].clear();
      const std::int64_t from = begin + piece * kPiece;
      toss_edges(u, v, w, from, std::min(end, from + kPiece), start, key,
                 static_cast<float>(state_.correction * state_.beta), embedding(), bound_, candidates[piece]);
    });
    std::int64_t next = end;
    std::int64_t most = n_rows();
    for (std::int64_t piece = 0; piece < pieces; ++piece) most += std::ssize(candidates[piece]);
    reserve_rows(most);  // so that the following loop cannot fail
    std::int64_t rows = n_rows();
    resize_rows(most);
    for (std::int64_t piece = 0; piece < pieces && next == end; ++piece) {
      const std::span<const Candidate> part = candidates[piece];
      for (std::int64_t k = 0; k < std::ssize(part); ++k) {
        if (k + kAhead < std::ssize(part)) {
          __builtin_prefetch(&state_.nodes[part[k + kAhead].u].share, 1);
          __builtin_prefetch(&state_.nodes[part[k + kAhead].v].share, 1);
          prefetch_pair(state_.pairs, part[k + kAhead].u, part[k + kAhead].v);
        }
        grow_cuts(part[k]);
        state_.u[rows] = part[k].u;  // a row is written before it is known whether it stays
        state_.v[rows] = part[k].v;
        state_.w[rows] = part[k].certain ? part[k].w : 2.0f * part[k].w;
        state_.chance[rows] = part[k].chance;
        if (!t.empty()) state_.time[rows] = t[part[k].position - start];
        rows += is_kept(part[k]);
        state_.n_expected += part[k].certain ? 1.0 : 0.5;
        if (state_.n_expected >= limit) {
          next = part[k].position - start + 1;
          break;
        }
      }
    }
    resize_rows(rows);
    const Counts counts = count_edges(u.data() + begin, v.data() + begin, w.empty() ? nullptr : w.data() + begin,
                                      next - begin, state_.position, state_.weight_seen);
    state_.n_self_loops += counts.loops;
    state_.n_zero_weights += counts.zeros;
    state_.position += next - begin;
    if (last >= state_.n_nodes) {
      if (next < end) last = find_last(u.data() + begin, v.data() + begin, next - begin);
      state_.n_nodes = std::max(state_.n_nodes, static_cast<std::int32_t>(last + 1));
    }
    begin = next;
    pieces = options_.threads > 1 ? std::min<std::int64_t>(2 * pieces, kMostPieces * options_.threads) : 1;
    if (state_.n_expected < limit) continue;
    // Nodes may have appeared since the capacity was set.
    if (state_.n_resamples == 0) state_.capacity = std::max(state_.capacity, capacity_for(most_rows()));
    if (state_.n_expected >= (state_.n_resamples == 0 ? 1.0 : kRefreshes) * rows_between_refreshes()) {
      resample();
    } else if (state_.n_resamples > 0) {
      refresh();
    }
    pieces = options_.threads;
  }
}

// Reserves memory for this many rows, or for more, so that few calls move them.
void Sampler::reserve_rows(std::int64_t rows) {
  const std::size_t reserved =
      std::min({state_.u.capacity(), state_.v.capacity(), state_.w.capacity(), state_.chance.capacity(),
                has_half_life() ? state_.time.capacity() : state_.u.capacity()});
  if (rows <= static_cast<std::int64_t>(reserved)) return;
  const std::int64_t room = std::max(rows, std::min(state_.capacity, 2 * n_rows()));
  state_.u.reserve(room);
  state_.v.reserve(room);
  state_.w.reserve(room);
  state_.chance.reserve(room);
  if (has_half_life()) state_.time.reserve(room);
}

void Sampler::resize_rows(std::int64_t rows) {
  state_.u.resize(rows);
  state_.v.resize(rows);
  state_.w.resize(rows);
  state_.chance.resize(rows);
  if (has_half_life()) state_.time.resize(rows);
}

// Expected rows between two updates of degrees and cuts. Before the first resample there is nothing to update, and the
// result is the number of rows before that resample.
double Sampler::rows_between_refreshes() const {
  const auto rows = static_cast<double>(std::max<std::int64_t>(1, state_.capacity - state_.n_sorted));
  return state_.n_resamples == 0 ? rows : rows / kRefreshes;
}

// Whether a candidate is kept.
//
// Half of the candidates that are not certain are dropped, such that the weight at each node, or in the cut of its
// cluster, stays close to that of all candidates, as in choose_rows. Since the last resample, no candidate and no
// estimate has depended on which candidates were kept. So each candidate is kept with probability 1/2.
bool Sampler::is_kept(const Candidate& c) {
  if (c.certain) return true;
  const Sides sides = find_sides(embedding(), c.u, c.v);
  const auto balance_of = [&](std::int32_t vertex) -> float& {
    const std::int64_t cluster = vertex - std::ssize(state_.nodes);
    return cluster < 0 ? state_.nodes[vertex].balance : state_.clusters[cluster].balance;
  };
  float& balance_u = balance_of(sides.vertex_u);
  float& balance_v = balance_of(sides.vertex_v);
  const bool kept = balance_u + balance_v + (c.tie ? 1e-30f : -1e-30f) < 0.0f;
  const float signed_weight = kept ? c.w : -c.w;
  balance_u += signed_weight * sides.share_u;
  balance_v += signed_weight * sides.share_v;
  return kept;
}

// Adds a candidate to the degrees and cuts around its ends.
//
// An edge of weight w to v is in series with the cut c around v. The two together add w c / (w + c) to the cuts around
// u. Here w includes earlier edges between u and v. If w exceeds kOutweighs times both cuts, u and v belong to one
// cluster. The members of that cluster are known only after the next resample. Until then nothing is added, so
// resistances near it are overestimated.
void Sampler::grow_cuts(const Candidate& c) {
  NodeRecord& a = state_.nodes[c.u];
  NodeRecord& b = state_.nodes[c.v];
  std::span<Cluster> clusters(state_.clusters);
  float share_a = a.share_now, share_b = b.share_now;
  climb(a.cluster, b.cluster, clusters,
        [&](std::int32_t k) { share_a = std::max(share_a, clusters[k].share_now); },
        [&](std::int32_t k) { share_b = std::max(share_b, clusters[k].share_now); });
  const float before = state_.pairs.empty() ? 0.0f : add_to_pair(state_.pairs, c.u, c.v, c.w);
  const float w = before + c.w;
  if (w * std::min(share_a, share_b) > kOutweighs) return;
  const auto through = [](float weight, float share) {
    return weight > 0.0f ? weight / (1.0f + weight * share) : 0.0f;
  };
  const float more_a = through(w, share_b) - through(before, share_b);
  const float more_b = through(w, share_a) - through(before, share_a);
  a.degree_now += more_a;
  b.degree_now += more_b;
  climb(a.cluster, b.cluster, clusters, [&](std::int32_t k) { clusters[k].cut_now += more_a; },
        [&](std::int32_t k) { clusters[k].cut_now += more_b; });
}

// Updates the estimates with all candidates so far.
void Sampler::refresh() {
  for (NodeRecord& node : state_.nodes) node.share_now = 1.0f / node.degree_now;
  for (Cluster& cluster : state_.clusters) cluster.share_now = 1.0f / cluster.cut_now;
  bound_ = bound_resistances(embedding());
}

// Adds the rows and counters of another sampler, whose weights are multiplied by a power of two.
void Sampler::add(const State& other, double scale) {
  state_.n_nodes = std::max(state_.n_nodes, other.n_nodes);
  if (other.n_nodes > std::ssize(state_.nodes)) reserve_nodes(other.n_nodes);
  reserve_rows(n_rows() + std::ssize(other.u));
  state_.u.insert(state_.u.end(), other.u.begin(), other.u.end());
  state_.v.insert(state_.v.end(), other.v.begin(), other.v.end());
  for (const float w : other.w) state_.w.push_back(static_cast<float>(scale * static_cast<double>(w)));
  state_.chance.insert(state_.chance.end(), other.chance.begin(), other.chance.end());
  state_.time.insert(state_.time.end(), other.time.begin(), other.time.end());
  state_.position += other.position;
  state_.n_self_loops += other.n_self_loops;
  state_.n_zero_weights += other.n_zero_weights;
  state_.n_faded += other.n_faded;
  state_.latest = std::max(state_.latest, other.latest);
  state_.beta = std::min(state_.beta, other.beta);
  for (int lane = 0; lane < 8; ++lane) state_.weight_seen[lane] += scale * other.weight_seen[lane];
}

// Works on a copy, because merged rows cannot be separated again. That costs the memory of the rows and records of one
// sampler while the merged rows are embedded.
void Sampler::merge(std::span<const State* const> others) {
  Sampler merged(*this);
  for (const State* const other : others) {
    if (other->position > kMostEdges - merged.state_.position) {
      throw std::length_error("the sparsifiers have seen more than 2**60 edges");
    }
    if (std::isfinite(other->latest)) {  // it has a half-life
      const State& state = merged.state_;
      if (other->epoch > state.epoch || !std::isfinite(state.latest)) merged.fade_rows(other->epoch);
      merged.add(*other, fading_factor(state.epoch - other->epoch));
    } else {
      merged.add(*other, 1.0);
    }
  }
  if (std::isfinite(merged.state_.latest)) merged.drop_faded_rows();
  merged.resample();
  *this = std::move(merged);
}

Triangle Sampler::gather() const {
  return sort_edges(state_.n_nodes, state_.u, state_.v, state_.w, state_.n_sorted, state_.chance,
                    state_.time);
}

Snapshot Sampler::snapshot() const { return thin_copy(gather()); }

// Edges of H, thinned out as at a resample; the sampler is unchanged.
Snapshot Sampler::thin_copy(Triangle rows) const {
  if (std::isinf(state_.beta) && all_fit(rows)) return {std::move(rows), true};
  State state;  // without the rows, which may be most of the memory
  state.n_nodes = state_.n_nodes;
  state.nodes = state_.nodes;
  state.clusters = state_.clusters;  // records of nodes refer to them
  state.n_resamples = state_.n_resamples;
  state.beta = state_.beta;
  Sampler copy(std::move(state), options_);
  copy.thin(rows);
  return {copy.gather(), false};
}

// Computes the records of the nodes of H and its clusters.
Laplacian Sampler::embed(const Triangle& h, std::uint64_t key) {
  Laplacian laplacian(h);
  std::vector<PairWeight> pairs = make_pair_table(h.n());
  state_.clusters = laplacian.tree.clusters;  // the last step that may fail before the records match the clusters
  state_.pairs = std::move(pairs);
  record_nodes(laplacian, state_.nodes);
  sketch_nodes(h, laplacian, key, options_.threads, state_.nodes);
  bound_estimates();
  return laplacian;
}

void Sampler::bound_estimates() {
  measure_distances(state_.nodes);
  bound_ = bound_resistances(embedding());
}

// Leverages of the rows. Those of arriving edges are corrected by the same factor until the next resample.
std::vector<float> Sampler::find_leverages(const Triangle& h, const Laplacian& laplacian, std::uint64_t key) {
  const double beta = options_.max_rows > 0 ? static_cast<double>(options_.max_rows) / laplacian.rank()
                                            : beta_for(h.n());
  Leverages found = estimate_leverages(h, laplacian, static_cast<float>(1.0 / beta), key, options_.threads,
                                       state_.nodes);
  bound_estimates();  // there may be another sketch
  state_.correction = found.correction;
  return std::move(found.of_edges);
}

// The edges of H, which are moved, become the rows. Does not fail if state_.u has the capacity.
void Sampler::take_rows(Triangle& h) {
  state_.u.resize(h.edges());
  for (std::int32_t u = 0; u < h.n(); ++u) {
    std::fill(state_.u.begin() + h.start[u], state_.u.begin() + h.start[u + 1], u);
  }
  state_.v = std::move(h.other);
  state_.w = std::move(h.weight);
  state_.chance = std::move(h.chance);
  state_.time = std::move(h.time);
  state_.n_sorted = n_rows();
}

void Sampler::resample() {
  Triangle h = gather();
  if (state_.n_resamples == 0 && std::isinf(state_.beta) && all_fit(h)) {  // nothing was dropped, and nothing has to be
    take_rows(h);
    state_.n_expected = 0.0;
    return;
  }
  // To save memory, rows are stored only in `h` during the solve. Array u is reserved here, so that `take_rows` cannot
  // throw; it takes hardly any memory before it is written.
  std::vector<std::int32_t> reserved;
  reserved.reserve(h.edges());
  state_.u = std::move(reserved);
  state_.v = std::vector<std::int32_t>();
  state_.w = std::vector<float>();
  state_.chance = std::vector<float>();
  state_.time = std::vector<double>();
  state_.n_sorted = 0;
  try {
    thin(h);
  } catch (...) {
    take_rows(h);
    throw;
  }
  if (state_.capacity <= 4 * n_rows()) reserve_rows(state_.capacity);
}

// Decides for each edge of H whether it is kept, and stores the kept ones as rows.
void Sampler::thin(Triangle& h) {
  const std::int32_t n = state_.n_nodes;
  const std::uint64_t coins = hash(options_.seed ^ kResampleCoins, state_.n_resamples + 1);
  const bool large = h.edges() > kLarge;
  if (large) return_freed_memory();
  const Laplacian laplacian = embed(h, coins);
  const auto n_components = static_cast<std::int32_t>(laplacian.space.singular.size());
  if (large) return_freed_memory();
  ++state_.n_resamples;
  state_.n_expected = 0.0;
  std::vector<float> chance = find_leverages(h, laplacian, coins);
  if (!options_.retracts || all_fit(h)) {
    take_rows(h);
    if (options_.max_rows == 0) state_.beta = beta_for(n);
    state_.capacity = capacity_for(static_cast<double>(n_rows()));
    return;
  }
  if (options_.max_rows == 0 || options_.max_rows >= 2 * std::int64_t{n}) {  // otherwise there is no room for a forest
    keep_forest(h, n_components, chance);
  }
  // Under a budget beta never increases: edges dropped at a smaller beta cannot be recovered.
  state_.beta = options_.max_rows > 0 ? std::min(state_.beta, fit_beta(chance, options_.max_rows)) : beta_for(n);
  for (float& p : chance) p = static_cast<float>(std::min(1.0, state_.beta * static_cast<double>(p)));
  const std::vector<char> keep = choose_rows(h, embedding(), chance, coins);
  const auto left = static_cast<std::size_t>(std::count(keep.begin(), keep.end(), 1));
  // One extra slot: a row is written before it is known whether it is kept.
  std::vector<std::int32_t> from(left + 1), to(left + 1);
  std::vector<float> weight(left + 1), kept(left + 1);
  std::vector<double> time(has_half_life() ? left + 1 : 0);
  std::size_t row = 0;
  for (std::int32_t u = 0; u < n; ++u) {
    for (std::int64_t e = h.start[u]; e < h.start[u + 1]; ++e) {
      from[row] = u;
      to[row] = h.other[e];
      weight[row] = h.weight[e] / chance[e];
      kept[row] = h.chance[e] * chance[e];
      if (!time.empty()) time[row] = h.time[e];
      row += keep[e];
    }
  }
  from.pop_back();
  to.pop_back();
  weight.pop_back();
  kept.pop_back();
  if (!time.empty()) time.pop_back();
  state_.u = std::move(from);
  state_.v = std::move(to);
  state_.w = std::move(weight);
  state_.chance = std::move(kept);
  state_.time = std::move(time);
  state_.n_sorted = n_rows();
  state_.capacity = capacity_for(static_cast<double>(n_rows()));
}

#define OHM_INSTANTIATE(Index, Weight)                                                                    \
  template void Sampler::update(std::span<const Index>, std::span<const Index>, std::span<const Weight>); \
  template void Sampler::take_in(std::span<const Index>, std::span<const Index>, std::span<const Weight>, \
                                 std::span<const double>);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
