#include "sampling/sampler.hpp"

#include "base/huge_pages.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/simd.hpp"
#include "sampling/effects.hpp"
#include "sampling/thinning.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <type_traits>

namespace ohm {
namespace {

constexpr std::int64_t kPiece = 1 << 14;     // edges a thread tosses at a time
constexpr std::int64_t kMostPieces = 32;     // pieces per thread in a round
constexpr double kMostCandidates = 1 << 18;  // about as many in a round
constexpr std::int64_t kAhead = 16;          // candidates between the prefetch of a record and its use
constexpr double kRefreshes = 8.0;           // updates of degrees and cuts between two resamples
constexpr double kGrowth = 2.5;              // growth of H between two resamples
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
  Crew crew(options_.threads);
  const std::int64_t size = std::ssize(u);
  Round round;
  double rate = 1.0;  // of the expected rows per edge, in the last round
  for (std::int64_t begin = 0; begin < size;) {
    const double spacing = rows_between_refreshes();
    const double limit = (std::floor(state_.n_expected / spacing) + 1.0) * spacing;
    // A round ends at the edge that reaches the limit. Those after it are tossed again, with new estimates, so a round
    // should not be much longer.
    const double ahead = std::min((limit - state_.n_expected) / rate, kMostCandidates / rate);
    const auto wanted = static_cast<std::int64_t>(std::min(ahead, 0x1p40)) / kPiece + 1;
    const std::int64_t most = crew.size() == 1 ? 1 : kMostPieces * crew.size();
    const std::int64_t count = std::min(size - begin, kPiece * std::min(wanted, most));
    const auto part = [&](auto values) { return values.empty() ? values : values.subspan(begin, count); };
    const Batch<Index, Weight> batch{part(u), part(v), part(w), part(t)};
    std::int64_t last = -1;
    if (options_.grows) {
      last = find_last(batch.u, batch.v, crew);
      if (last >= std::ssize(state_.nodes)) reserve_nodes(last + 1);
    }
    const double before = state_.n_expected;
    const bool is_tossed = state_.n_resamples > 0;
    const std::int64_t taken = is_tossed ? toss_round(crew, batch, limit, round) : append_edges(crew, batch, limit);
    if (is_tossed && std::is_same_v<Weight, Unit>) {
      state_.n_self_loops += round.n_loops;
      state_.weight_seen[0] += static_cast<double>(taken - round.n_loops);  // as count_edges does
    } else {
      const Counts counts = count_edges(batch.u.data(), batch.v.data(), w.empty() ? nullptr : batch.w.data(), taken,
                                        state_.position, state_.weight_seen);
      state_.n_self_loops += counts.loops;
      state_.n_zero_weights += counts.zeros;
    }
    state_.position += taken;
    if (last >= state_.n_nodes) {
      if (taken < count) last = find_last(batch.u.first(taken), batch.v.first(taken), crew);
      state_.n_nodes = std::max(state_.n_nodes, static_cast<std::int32_t>(last + 1));
    }
    begin += taken;
    rate = std::max(1e-9, (state_.n_expected - before) / static_cast<double>(taken));
    if (state_.n_expected < limit) continue;
    // Nodes may have appeared since the capacity was set.
    if (state_.n_resamples == 0) state_.capacity = std::max(state_.capacity, capacity_for(most_rows()));
    if (state_.n_expected >= (state_.n_resamples == 0 ? 1.0 : kRefreshes) * rows_between_refreshes()) {
      resample(crew);
    } else if (state_.n_resamples > 0) {
      refresh();
    }
  }
}

// Before the first resample all edges are kept, up to the one that reaches the limit. Returns how many were read.
template <class Index, class Weight>
std::int64_t Sampler::append_edges(Crew& crew, const Batch<Index, Weight>& batch, double limit) {
  const std::int64_t size = std::ssize(batch.u);
  const std::int64_t pieces = (size + kPiece - 1) / kPiece;
  const auto counts = [&](std::int64_t i) {
    return batch.u[i] != batch.v[i] && static_cast<float>(weight_at(batch.w, i)) >= static_cast<float>(kSmallestWeight);
  };
  std::vector<std::int64_t> found(pieces);
  crew.run(pieces, [&](std::int64_t piece) {
    const std::int64_t end = std::min(size, (piece + 1) * kPiece);
    for (std::int64_t i = piece * kPiece; i < end; ++i) found[piece] += counts(i);
  });
  const auto missing = static_cast<std::int64_t>(std::ceil(limit - state_.n_expected));
  std::int64_t taken = size, more = 0, used = 0;
  std::vector<std::int64_t> start(pieces);
  for (; used < pieces && more < missing; ++used) {
    start[used] = n_rows() + more;
    more += found[used];
  }
  if (more >= missing) {  // the last edge is in the last piece
    more -= found[used - 1];
    for (taken = (used - 1) * kPiece; more < missing; ++taken) more += counts(taken);
  }
  reserve_rows(n_rows() + more);
  resize_rows(n_rows() + more);
  crew.run(used, [&](std::int64_t piece) {
    const std::int64_t end = std::min(taken, (piece + 1) * kPiece);
    std::int64_t row = start[piece];
    for (std::int64_t i = piece * kPiece; i < end; ++i) {
      if (!counts(i)) continue;
      state_.u[row] = static_cast<std::int32_t>(batch.u[i]);
      state_.v[row] = static_cast<std::int32_t>(batch.v[i]);
      state_.w[row] = static_cast<float>(weight_at(batch.w, i));
      state_.chance[row] = 1.0f;
      if (!batch.t.empty()) state_.time[row] = batch.t[i];
      ++row;
    }
  });
  state_.n_expected += static_cast<double>(more);
  return taken;
}

// Tosses coins for edges, up to the one that reaches the limit, and adds what they keep. Returns how many were tossed.
template <class Index, class Weight>
std::int64_t Sampler::toss_round(Crew& crew, const Batch<Index, Weight>& batch, double limit, Round& round) {
  const std::uint64_t key = mix(options_.seed);
  const std::int64_t size = std::ssize(batch.u);
  const std::int64_t pieces = (size + kPiece - 1) / kPiece;
  std::vector<std::vector<Candidate>>& candidates = round.candidates;
  candidates.resize(std::max<std::size_t>(candidates.size(), pieces));
  std::vector<double> expected(pieces);
  std::vector<std::int64_t> loops(pieces);
  const auto count_part = [&](std::int64_t first, std::int64_t last) {
    if (!std::is_same_v<Weight, Unit>) return std::int64_t{0};
    return count_loops(batch.u.subspan(first, last - first), batch.v.subspan(first, last - first));
  };
  const auto rows_of = [](const Candidate& c) { return c.certain ? 1.0 : 0.5; };
  crew.run(pieces, [&](std::int64_t piece) {
    std::vector<Candidate>& found = candidates[piece];
    found.clear();
    toss_edges(batch.u, batch.v, batch.w, piece * kPiece, std::min(size, (piece + 1) * kPiece), state_.position, key,
               static_cast<float>(state_.correction * state_.beta), embedding(), bound_, found);
    loops[piece] = count_part(piece * kPiece, std::min(size, (piece + 1) * kPiece));
    for (const Candidate& c : found) expected[piece] += rows_of(c);
  });
  // All sums are multiples of one half, and exact.
  std::int64_t used = 0, taken = size;
  double sum = state_.n_expected;
  for (; used < pieces && sum < limit; ++used) sum += expected[used];
  if (sum >= limit) {  // in the last piece
    std::vector<Candidate>& found = candidates[used - 1];
    sum -= expected[used - 1];
    std::size_t left = 0;
    while (sum < limit) sum += rows_of(found[left++]);
    found.resize(left);
    taken = found.back().position - state_.position + 1;
    loops[used - 1] = count_part((used - 1) * kPiece, taken);
  }
  round.n_loops = std::accumulate(loops.begin(), loops.begin() + used, std::int64_t{0});
  const std::span<const std::vector<Candidate>> kept(candidates.data(), used);
  std::int64_t most = n_rows();
  for (const std::vector<Candidate>& part : kept) most += std::ssize(part);
  reserve_rows(most);  // with that of the effects, the last memory that is needed
  find_effects(crew, embedding(), kept, state_.pairs, round.effects);
  add_candidates(kept, round.effects, batch.t);
  state_.n_expected = sum;
  return taken;
}

// Adds candidates in their order, with what they change. A candidate that is not certain is kept or dropped.
//
// Half of them are dropped, such that the weight at each node, or in the cut of its cluster, stays close to that of all
// candidates, as in choose_rows. Since the last resample, no candidate and no estimate has depended on which candidates
// were kept. So each candidate is kept with probability 1/2.
void Sampler::add_candidates(std::span<const std::vector<Candidate>> pieces, std::span<const Effect> effects,
                             std::span<const double> t) {
  const std::int64_t n_nodes = std::ssize(state_.nodes);
  const auto balance_of = [&](std::int32_t vertex) -> float& {
    return vertex < n_nodes ? state_.nodes[vertex].balance : state_.clusters[vertex - n_nodes].balance;
  };
  std::int64_t rows = n_rows();
  resize_rows(rows + std::ssize(effects));
  const Effect* effect = effects.data();
  for (const std::vector<Candidate>& part : pieces) {
    for (std::int64_t k = 0; k < std::ssize(part); ++k, ++effect) {
      if (k + kAhead < std::ssize(part)) {
        __builtin_prefetch(&state_.nodes[part[k + kAhead].u].share, 1);
        __builtin_prefetch(&state_.nodes[part[k + kAhead].v].share, 1);
      }
      const Candidate& c = part[k];
      NodeRecord& a = state_.nodes[c.u];
      NodeRecord& b = state_.nodes[c.v];
      a.degree_now += effect->more_u;
      b.degree_now += effect->more_v;
      climb(a.cluster, b.cluster, state_.clusters,
            [&](std::int32_t cluster) { state_.clusters[cluster].cut_now += effect->more_u; },
            [&](std::int32_t cluster) { state_.clusters[cluster].cut_now += effect->more_v; });
      bool kept = c.certain;
      if (!kept) {
        float& balance_u = balance_of(effect->vertex_u);
        float& balance_v = balance_of(effect->vertex_v);
        kept = balance_u + balance_v + (c.tie ? 1e-30f : -1e-30f) < 0.0f;
        balance_u += kept ? effect->gain_u : -effect->gain_u;
        balance_v += kept ? effect->gain_v : -effect->gain_v;
      }
      state_.u[rows] = c.u;  // a row is written before it is known whether it stays
      state_.v[rows] = c.v;
      state_.w[rows] = c.certain ? c.w : 2.0f * c.w;
      state_.chance[rows] = c.chance;
      if (!t.empty()) state_.time[rows] = t[c.position - state_.position];
      rows += kept;
    }
  }
  resize_rows(rows);
}

// Reserves memory for this many rows, or for more, so that few calls move them.
void Sampler::reserve_rows(std::int64_t rows) {
  const std::size_t reserved =
      std::min({state_.u.capacity(), state_.v.capacity(), state_.w.capacity(), state_.chance.capacity(),
                has_half_life() ? state_.time.capacity() : state_.u.capacity()});
  if (rows <= static_cast<std::int64_t>(reserved)) return;
  const std::int64_t room = std::max(rows, std::min(state_.capacity, 4 * n_rows()));
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
  Crew crew(options_.threads);
  merged.resample(crew);
  *this = std::move(merged);
}

Triangle Sampler::gather(Crew& crew) const {
  return sort_edges(state_.n_nodes, state_.u, state_.v, state_.w, state_.n_sorted, state_.chance, state_.time, crew);
}

Snapshot Sampler::snapshot() const {
  Crew crew(options_.threads);
  return thin_copy(crew, gather(crew));
}

// Edges of H, thinned out as at a resample; the sampler is unchanged.
Snapshot Sampler::thin_copy(Crew& crew, Triangle rows) const {
  if (std::isinf(state_.beta) && all_fit(rows)) return {std::move(rows), true};
  State state;  // without the rows, which may be most of the memory
  state.n_nodes = state_.n_nodes;
  state.nodes = state_.nodes;
  state.clusters = state_.clusters;  // records of nodes refer to them
  state.n_resamples = state_.n_resamples;
  state.beta = state_.beta;
  Sampler copy(std::move(state), options_);
  copy.thin(crew, rows);
  return {copy.gather(crew), false};
}

// Computes the records of the nodes of H and its clusters.
Laplacian Sampler::embed(Crew& crew, const Triangle& h, std::uint64_t key) {
  Laplacian laplacian(h, crew);
  std::vector<PairWeight> pairs = make_pair_table(h.n());
  state_.clusters = laplacian.tree.clusters;  // the last step that may fail before the records match the clusters
  state_.pairs = std::move(pairs);
  record_nodes(laplacian, state_.nodes);
  sketch_nodes(h, laplacian, key, crew, state_.nodes);
  bound_estimates();
  return laplacian;
}

void Sampler::bound_estimates() {
  measure_distances(state_.nodes);
  bound_ = bound_resistances(embedding());
}

// Leverages of the rows. Those of arriving edges are corrected by the same factor until the next resample.
Buffer<float> Sampler::find_leverages(Crew& crew, const Triangle& h, const Laplacian& laplacian,
                                      std::uint64_t key) {
  const double beta = options_.max_rows > 0 ? static_cast<double>(options_.max_rows) / laplacian.rank()
                                            : beta_for(h.n());
  Leverages found = estimate_leverages(h, laplacian, static_cast<float>(1.0 / beta), key, crew, state_.nodes);
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

void Sampler::resample(Crew& crew) {
  Triangle h = gather(crew);
  if (state_.n_resamples == 0 && std::isinf(state_.beta) && all_fit(h)) {  // nothing was dropped, and nothing has to be
    take_rows(h);
    state_.n_expected = 0.0;
    return;
  }
  // To save memory, rows are stored only in `h` during the solve. Array u is reserved here, so that `take_rows` cannot
  // throw; it takes hardly any memory before it is written.
  Buffer<std::int32_t> reserved;
  reserved.reserve(h.edges());
  state_.u = std::move(reserved);
  state_.v = Buffer<std::int32_t>();
  state_.w = Buffer<float>();
  state_.chance = Buffer<float>();
  state_.time = Buffer<double>();
  state_.n_sorted = 0;
  try {
    thin(crew, h);
  } catch (...) {
    take_rows(h);
    throw;
  }
  if (state_.capacity <= 4 * n_rows()) reserve_rows(state_.capacity);
}

// Decides for each edge of H whether it is kept, and stores the kept ones as rows.
void Sampler::thin(Crew& crew, Triangle& h) {
  const std::int32_t n = state_.n_nodes;
  const std::uint64_t coins = hash(options_.seed ^ kResampleCoins, state_.n_resamples + 1);
  const bool large = h.edges() > kLarge;
  if (large) return_freed_memory();
  Laplacian laplacian = embed(crew, h, coins);
  const auto n_components = static_cast<std::int32_t>(laplacian.space.singular.size());
  if (large) return_freed_memory();
  ++state_.n_resamples;
  state_.n_expected = 0.0;
  Buffer<float> chance = find_leverages(crew, h, laplacian, coins);
  laplacian.matrix = Matrix();  // as large as H itself
  if (!options_.retracts || all_fit(h)) {
    take_rows(h);
    if (options_.max_rows == 0) state_.beta = beta_for(n);
    state_.capacity = capacity_for(static_cast<double>(n_rows()));
    return;
  }
  if (options_.max_rows == 0 || options_.max_rows >= 2 * std::int64_t{n}) {  // otherwise there is no room for a forest
    keep_forest(h, n_components, chance, crew);
  }
  // Under a budget beta never increases: edges dropped at a smaller beta cannot be recovered.
  state_.beta = options_.max_rows > 0 ? std::min(state_.beta, fit_beta(chance, options_.max_rows, crew)) : beta_for(n);
  for_row_pieces(h, crew, [&](std::int64_t, std::int32_t first, std::int32_t last) {
    for (std::int64_t e = h.start[first]; e < h.start[last]; ++e) {
      chance[e] = static_cast<float>(std::min(1.0, state_.beta * static_cast<double>(chance[e])));
    }
  });
  store_chosen(crew, h, chance, choose_rows(h, embedding(), chance, coins, crew));
  state_.capacity = capacity_for(static_cast<double>(n_rows()));
}

// The edges that were chosen become the rows.
void Sampler::store_chosen(Crew& crew, const Triangle& h, std::span<const float> chance, const Buffer<char>& keep) {
  std::vector<std::int64_t> start(count_row_pieces(h) + 1);  // of the rows of each piece
  for_row_pieces(h, crew, [&](std::int64_t piece, std::int32_t first, std::int32_t last) {
    start[piece + 1] = std::count(keep.begin() + h.start[first], keep.begin() + h.start[last], 1);
  });
  std::partial_sum(start.begin(), start.end(), start.begin());
  const std::int64_t left = start.back();
  Buffer<std::int32_t> from(left), to(left);
  Buffer<float> weight(left), kept(left);
  Buffer<double> time(has_half_life() ? left : 0);
  for_row_pieces(h, crew, [&](std::int64_t piece, std::int32_t first, std::int32_t last) {
    std::int64_t row = start[piece];
    for (std::int32_t u = first; u < last; ++u) {
      for (std::int64_t e = h.start[u]; e < h.start[u + 1]; ++e) {
        if (keep[e] == 0) continue;
        from[row] = u;
        to[row] = h.other[e];
        weight[row] = h.weight[e] / chance[e];
        kept[row] = h.chance[e] * chance[e];
        if (!time.empty()) time[row] = h.time[e];
        ++row;
      }
    }
  });
  state_.u = std::move(from);
  state_.v = std::move(to);
  state_.w = std::move(weight);
  state_.chance = std::move(kept);
  state_.time = std::move(time);
  state_.n_sorted = n_rows();
}

#define OHM_INSTANTIATE(Index, Weight)                                                                    \
  template void Sampler::update(std::span<const Index>, std::span<const Index>, std::span<const Weight>); \
  template void Sampler::take_in(std::span<const Index>, std::span<const Index>, std::span<const Weight>, \
                                 std::span<const double>);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
