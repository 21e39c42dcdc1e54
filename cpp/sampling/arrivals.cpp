// From an edge of the stream to a row of H.
//
//   for each round of the batch (take_in_rounds):
//     before the first resample: keep all edges (append_edges)
//     afterwards (toss_round):
//       threads toss the coins of pieces of the round: an edge that passes is a candidate (coins.hpp)
//       threads find what the candidates change: degrees, cuts, balances (find_effects)
//       one thread adds the candidates in their order; of those that are not certain it drops half (add_candidates)
//     when enough rows are expected: resample, or update the estimates
//
// The coins of the next round do not depend on which candidates are added, unless the estimates are updated in between.
// So the candidates of a round wait until they can be added while other threads toss the next coins.
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "sampling/balanced_coins.hpp"
#include "sampling/coins.hpp"
#include "sampling/recent_pairs.hpp"
#include "sampling/sampler.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace ohm {
namespace {

// These change only the speed.
constexpr std::int64_t kPiece = 1 << 14;     // edges a thread tosses at a time
constexpr std::int64_t kFewestPieces = 2;    // per thread in a round of several threads
constexpr std::int64_t kMostPieces = 8;      // likewise
constexpr double kMostCandidates = 1 << 18;  // about as many in a round
constexpr std::int64_t kAhead = 16;          // candidates between the prefetch of a record and its use
constexpr std::int64_t kPerThread = 1 << 12;     // candidates for which a thread is worthwhile

// An edge that is heavier than so many times both cuts makes one cluster of its ends, see find_effects. Measured on
// CONTRASTS of benchmarks/families.py with epsilon = 0.8: 1, 4 and 16 give the same errors and numbers of rows; without
// a limit, epsilon reaches 2.
constexpr float kOutweighs = 4.0f;

// What a candidate changes.
struct Effect {
  float more_u;  // what the degree of u and the cuts around it gain; at first, the weight of the pair before
  float more_v;
  float gain_u;  // the weight, relative to the cut of the vertex of `Sides`
  float gain_v;
  union {
    std::uint64_t pair;  // its hash, until the table of pairs has been read
    struct {
      std::int32_t u, v;
    } vertex;  // of `Sides`, afterwards
  };
};

// Adds the pairs whose slots are in [first, last); more_u becomes the weight of the pair before.
void add_pairs(std::span<const std::vector<Candidate>> pieces, std::span<PairWeight> pairs, std::size_t first,
               std::size_t last, std::span<Effect> effects) {
  const auto slot_of = [&](std::int64_t k) { return effects[k].pair & (pairs.size() - 1); };
  std::int64_t k = 0;
  for (const std::vector<Candidate>& part : pieces) {
    for (const Candidate& c : part) {
      if (k + kAhead < std::ssize(effects)) __builtin_prefetch(&pairs[slot_of(k + kAhead)], 1);
      const std::size_t slot = slot_of(k);
      if (slot >= first && slot < last) {
        effects[k].more_u = add_to_pair(pairs[slot], static_cast<std::uint32_t>(effects[k].pair >> 32), c.w);
      }
      ++k;
    }
  }
}

void find_part(const Embedding& h, std::span<const Candidate> part, Effect* effect) {
  const auto through = [](float weight, float inverse_cut) {
    return weight > 0.0f ? weight / (1.0f + weight * inverse_cut) : 0.0f;
  };
  for (std::int64_t k = 0; k < std::ssize(part); ++k, ++effect) {
    if (k + kAhead < std::ssize(part)) {
      __builtin_prefetch(&h.nodes[part[k + kAhead].u].inverse_degree);
      __builtin_prefetch(&h.nodes[part[k + kAhead].v].inverse_degree);
    }
    const Candidate& c = part[k];
    const NodeRecord& a = h.nodes[c.u];
    const NodeRecord& b = h.nodes[c.v];
    float inverse_cut_a = a.inverse_degree_now, inverse_cut_b = b.inverse_degree_now;
    climb(a.cluster, b.cluster, h.clusters,
          [&](std::int32_t at) { inverse_cut_a = std::max(inverse_cut_a, h.clusters[at].inverse_cut_now); },
          [&](std::int32_t at) { inverse_cut_b = std::max(inverse_cut_b, h.clusters[at].inverse_cut_now); });
    const float before = effect->more_u;
    const float w = before + c.w;
    const bool counts = w * std::min(inverse_cut_a, inverse_cut_b) <= kOutweighs;
    const Sides sides = find_sides(h, c.u, c.v);
    *effect = {.more_u = counts ? through(w, inverse_cut_b) - through(before, inverse_cut_b) : 0.0f,
               .more_v = counts ? through(w, inverse_cut_a) - through(before, inverse_cut_a) : 0.0f,
               .gain_u = c.w * sides.inverse_cut_u,
               .gain_v = c.w * sides.inverse_cut_v,
               .vertex = {sides.vertex_u, sides.vertex_v}};
  }
}

// Finds the effects of candidates, which are given in pieces, and adds their weights to the table of recent pairs.
//
// An edge of weight w to v is in series with the cut c around v. The two together add w c / (w + c) to the cuts around
// u. Here w includes earlier edges between u and v. If w exceeds kOutweighs times both cuts, u and v are one cluster.
// The members of that cluster are known only after the next resample. Until then nothing is added, so resistances near
// it are overestimated.
void find_effects(Crew& crew, const Embedding& embedding, std::span<const std::vector<Candidate>> pieces,
                  std::span<PairWeight> pairs, Buffer<Effect>& effects) {
  std::vector<std::int64_t> start(pieces.size() + 1);
  for (std::size_t k = 0; k < pieces.size(); ++k) start[k + 1] = start[k] + std::ssize(pieces[k]);
  effects.resize(start.back());
  const std::int64_t n_pieces = std::ssize(pieces);
  if (!pairs.empty()) {
    crew.run(n_pieces, [&](std::int64_t k) {
      Effect* effect = effects.data() + start[k];
      for (const Candidate& c : pieces[k]) (effect++)->pair = hash_pair(c.u, c.v);
    });
    // Each thread has some of the slots, and adds to them in the order of the candidates.
    const std::int64_t owners = std::clamp<std::int64_t>(start.back() / kPerThread, 1, crew.size());
    const std::size_t slots = pairs.size();
    crew.run(owners, [&](std::int64_t k) {
      add_pairs(pieces, pairs, slots * k / owners, slots * (k + 1) / owners, effects);
    });
  } else {
    std::fill(effects.begin(), effects.end(), Effect());
  }
  crew.run(n_pieces, [&](std::int64_t k) { find_part(embedding, pieces[k], effects.data() + start[k]); });
}

}  // namespace

// Edges that are tossed together; the memory is used again.
struct Sampler::Round {
  std::vector<std::vector<Candidate>> candidates;  // in pieces
  std::int64_t n_pieces = 0;                       // of candidates that are to be added
  Buffer<Effect> effects;                          // of these candidates
  std::int64_t position = 0;                       // of the first edge in the stream
  std::span<const double> t;                       // of the edges
};

template <class Index, class Weight>
void Sampler::update(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w) {
  if (has_half_life()) throw std::invalid_argument("a sampler with a half-life needs the times of the edges");
  take_in(u, v, w, {});
}

// With a half-life, `t` are the times of the edges, and `w` their weights at the end of the epoch.
template <class Index, class Weight>
void Sampler::take_in(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                      std::span<const double> t) {
  const RecyclePages recycle;
  Crew crew(options_.threads);
  Round rounds[2];
  try {
    take_in_rounds(crew, EdgeBatch<Index, Weight>{u, v, w, t}, rounds[0], rounds[1]);
  } catch (...) {
    for (Round& round : rounds) add_candidates(round);  // of the edges that count as seen
    throw;
  }
}

// Takes in a batch, round by round.
//
// 1. Find the limit: the number of expected rows at which the estimates are updated next.
// 2. Choose the edges of the round. With several threads, about half the edges that lead to the limit, within
//    kFewestPieces and kMostPieces; so the last round, whose candidates cannot wait, is short. One thread takes one
//    piece.
// 3. Make room for new nodes.
// 4. Keep all edges, if there was no resample yet, or toss their coins, while the candidates of the round before are
//    added. `taken` edges were needed to reach the limit.
// 5. Count these edges, and the nodes that are new.
// 6. Below the limit, the candidates of several threads wait for the next round. Otherwise they are added now.
// 7. At the limit, resample or update the estimates.
//
// Limits are exact positions in the stream, and rounds between them change nothing but the speed.
template <class Index, class Weight>
void Sampler::take_in_rounds(Crew& crew, const EdgeBatch<Index, Weight>& all, Round& round, Round& waiting) {
  const std::int64_t size = std::ssize(all.u);
  const bool grows = options_.grows && find_last(all.u, all.v, crew) >= state_.n_nodes;
  double rate = 1.0;  // of the expected rows per edge, in the last round
  for (std::int64_t begin = 0; begin < size;) {
    const double spacing = rows_between_refreshes();  // 1
    const double limit = (std::floor(state_.n_expected / spacing) + 1.0) * spacing;
    // 2
    const double ahead = std::min(0.5 * (limit - state_.n_expected) / rate, kMostCandidates / rate);
    const auto wanted = static_cast<std::int64_t>(std::min(ahead, 0x1p40)) / kPiece;
    const std::int64_t threads = crew.size();
    const std::int64_t pieces = threads == 1 ? 1 : std::clamp(wanted, kFewestPieces * threads, kMostPieces * threads);
    const std::int64_t count = std::min(size - begin, kPiece * pieces);
    const auto part = [&](auto values) { return values.empty() ? values : values.subspan(begin, count); };
    const EdgeBatch<Index, Weight> batch{part(all.u), part(all.v), part(all.w), part(all.t)};
    std::int64_t last = -1;
    if (grows) {  // 3
      last = find_last(batch.u, batch.v, crew);
      if (last >= std::ssize(state_.nodes)) {
        add_candidates(waiting);  // which refers to clusters by numbers after those of the nodes
        reserve_nodes(last + 1);
      }
    }
    const double before = state_.n_expected;  // 4
    const std::int64_t taken = state_.n_resamples > 0 ? toss_round(crew, batch, limit, round, waiting)
                                                      : append_edges(crew, batch, limit);
    state_.count(batch.u.first(taken), batch.v.first(taken), batch.w.first(batch.w.empty() ? 0 : taken), crew);  // 5
    if (last >= state_.n_nodes) {
      if (taken < count) last = find_last(batch.u.first(taken), batch.v.first(taken), crew);
      state_.n_nodes = std::max(state_.n_nodes, static_cast<std::int32_t>(last + 1));
    }
    begin += taken;
    rate = std::max(1e-9, (state_.n_expected - before) / static_cast<double>(taken));
    if (state_.n_expected < limit && crew.size() > 1) {  // 6
      std::swap(round, waiting);
      continue;
    }
    add_candidates(round);
    if (state_.n_expected < limit) continue;
    // 7. Nodes may have appeared since the capacity was set.
    if (state_.n_resamples == 0) state_.capacity = std::max(state_.capacity, capacity_for(most_rows()));
    if (is_full()) {
      resample(crew);
    } else if (state_.n_resamples > 0) {
      refresh();
    }
  }
  add_candidates(waiting);
}

// Before the first resample all edges are kept, up to the one that reaches the limit. Returns how many were read.
template <class Index, class Weight>
std::int64_t Sampler::append_edges(Crew& crew, const EdgeBatch<Index, Weight>& batch, double limit) {
  const std::int64_t size = std::ssize(batch.u);
  const std::int64_t pieces = (size + kPiece - 1) / kPiece;
  const auto counts = [&](std::int64_t i) {
    return batch.u[i] != batch.v[i] && batch.weight(i) >= static_cast<float>(kSmallestWeight);
  };
  std::vector<std::int64_t> found(pieces);
  crew.run(pieces, [&](std::int64_t piece) {
    const std::int64_t end = std::min(size, (piece + 1) * kPiece);
    std::int64_t count = 0;
    for (std::int64_t i = piece * kPiece; i < end; ++i) count += counts(i);
    found[piece] = count;
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
  state_.rows.resize(n_rows() + more);
  crew.run(used, [&](std::int64_t piece) {
    const std::int64_t end = std::min(taken, (piece + 1) * kPiece);
    std::int64_t row = start[piece];
    for (std::int64_t i = piece * kPiece; i < end; ++i) {
      if (!counts(i)) continue;
      state_.rows.set(row, static_cast<std::int32_t>(batch.u[i]), static_cast<std::int32_t>(batch.v[i]),
                      batch.weight(i), 1.0f);
      if (!batch.t.empty()) state_.rows.time[row] = batch.t[i];
      ++row;
    }
  });
  state_.n_expected += static_cast<double>(more);
  return taken;
}

// Tosses coins for edges, up to the one that reaches the limit, and finds what they change. Returns how many edges were
// tossed.
//
// 1. As tasks of several threads: one adds the candidates of the round before, which are waiting; each of the others
//    tosses the coins of a piece of edges.
// 2. The first `used` pieces, all tossed, lead to `sum` rows: one for a candidate that is certain, half a row for
//    another. All sums are multiples of one half, and exact. As soon as they reach the limit, no other piece is needed.
// 3. The edge that reaches the limit is in the last of these pieces. Candidates after it are dropped; their coins are
//    tossed again in the next round, with the same numbers but other estimates.
// 4. Reserve the rows, and find the effects. Nothing fails after that.
template <class Index, class Weight>
std::int64_t Sampler::toss_round(Crew& crew, const EdgeBatch<Index, Weight>& batch, double limit, Round& round,
                                 Round& waiting) {
  const Coins coins{mix(options_.seed), state_.position, static_cast<float>(state_.correction * state_.beta),
                    embedding(), bound_};
  const std::int64_t size = std::ssize(batch.u);
  const std::int64_t pieces = (size + kPiece - 1) / kPiece;
  std::vector<std::vector<Candidate>>& candidates = round.candidates;
  candidates.resize(std::max<std::size_t>(candidates.size(), pieces));
  std::vector<double> expected(pieces);
  const auto rows_of = [](const Candidate& c) { return c.certain ? 1.0 : 0.5; };
  std::vector<char> is_tossed(pieces);
  std::int64_t used = 0;
  double sum = state_.n_expected;
  std::mutex guard;
  std::atomic<bool> is_enough = false;
  const std::int64_t adds = waiting.n_pieces > 0 ? 1 : 0;
  crew.run(adds + pieces, [&](std::int64_t task) {  // 1
    const std::int64_t piece = task - adds;
    if (piece < 0) return add_candidates(waiting);
    if (is_enough) return;
    std::vector<Candidate> found = std::move(candidates[piece]);  // apart from those that other threads write
    found.clear();
    toss_edges(batch, piece * kPiece, std::min(size, (piece + 1) * kPiece), coins, found);
    double rows = 0.0;
    for (const Candidate& c : found) rows += rows_of(c);
    const std::lock_guard lock(guard);  // 2
    candidates[piece] = std::move(found);
    expected[piece] = rows;
    is_tossed[piece] = 1;
    for (; used < pieces && is_tossed[used] != 0 && sum < limit; ++used) sum += expected[used];
    is_enough = sum >= limit;
  });
  std::int64_t taken = size;
  if (sum >= limit) {  // 3
    std::vector<Candidate>& found = candidates[used - 1];
    sum -= expected[used - 1];
    std::size_t left = 0;
    while (sum < limit) sum += rows_of(found[left++]);
    found.resize(left);
    taken = found.back().position - state_.position + 1;
  }
  // 4
  const std::span<const std::vector<Candidate>> kept(candidates.data(), used);
  std::int64_t most = n_rows();
  for (const std::vector<Candidate>& part : kept) most += std::ssize(part);
  reserve_rows(most);
  find_effects(crew, embedding(), kept, state_.pairs, round.effects);
  round.n_pieces = used;
  round.position = state_.position;
  round.t = batch.t;
  state_.n_expected = sum;
  return taken;
}

// Adds the candidates of a round in their order, with what they change, and empties the round. A candidate that is not
// certain is kept or dropped. Memory is reserved, so this does not fail.
//
// Half of them are dropped, such that the weight at each node, or in the cut of its cluster, stays close to that of all
// candidates, as in choose_rows. Each is kept with probability exactly 1/2, by symmetry: balances are 0 after a
// resample, and since then no candidate, estimate or gain has depended on which candidates were kept. So if all ties
// were the other way round, all balances would have the opposite sign, and all decisions would be reversed. Ties are
// fair coins.
void Sampler::add_candidates(Round& round) {
  if (round.n_pieces == 0) return;
  const std::int64_t n_nodes = std::ssize(state_.nodes);
  const auto balance_of = [&](std::int32_t vertex) -> float& {
    return vertex < n_nodes ? state_.nodes[vertex].balance : state_.clusters[vertex - n_nodes].balance;
  };
  std::int64_t rows = n_rows();
  state_.rows.resize(rows + std::ssize(round.effects));
  const Effect* effect = round.effects.data();
  for (const std::vector<Candidate>& part : std::span(round.candidates).first(round.n_pieces)) {
    for (std::int64_t k = 0; k < std::ssize(part); ++k, ++effect) {
      if (k + kAhead < std::ssize(part)) {
        __builtin_prefetch(&state_.nodes[part[k + kAhead].u].inverse_degree, 1);
        __builtin_prefetch(&state_.nodes[part[k + kAhead].v].inverse_degree, 1);
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
        float& balance_u = balance_of(effect->vertex.u);
        float& balance_v = balance_of(effect->vertex.v);
        kept = balance_u + balance_v + (c.tie ? kTie : -kTie) < 0.0f;
        balance_u += kept ? effect->gain_u : -effect->gain_u;
        balance_v += kept ? effect->gain_v : -effect->gain_v;
      }
      state_.rows.set(rows, c.u, c.v, c.certain ? c.w : 2.0f * c.w, c.probability);  // overwritten if not kept
      if (!round.t.empty()) state_.rows.time[rows] = round.t[c.position - round.position];
      rows += kept;
    }
  }
  state_.rows.resize(rows);
  round.n_pieces = 0;
}

#define OHM_INSTANTIATE(Index, Weight)                                                                    \
  template void Sampler::update(std::span<const Index>, std::span<const Index>, std::span<const Weight>); \
  template void Sampler::take_in(std::span<const Index>, std::span<const Index>, std::span<const Weight>, \
                                 std::span<const double>);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
