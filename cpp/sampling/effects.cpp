#include "sampling/effects.hpp"

#include <algorithm>

namespace ohm {
namespace {

constexpr float kOutweighs = 4.0f;           // times both cuts, see find_effects
constexpr std::int64_t kAhead = 16;          // candidates between the prefetch of a record and its use
constexpr std::int64_t kShare = 1 << 12;     // candidates for which a thread is worthwhile

// Until the table of pairs has been read, an effect holds the hash of its pair instead of vertices.
void hash_pairs(std::span<const Candidate> part, Effect* effect) {
  for (const Candidate& c : part) {
    const std::uint64_t bits = hash_pair(c.u, c.v);
    effect->vertex_u = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
    effect->vertex_v = static_cast<std::int32_t>(bits >> 32);
    ++effect;
  }
}

// Adds the pairs whose slots are in [first, last); more_u becomes the weight of the pair before.
void add_pairs(std::span<const std::vector<Candidate>> pieces, std::span<PairWeight> pairs, std::size_t first,
               std::size_t last, std::span<Effect> effects) {
  const auto slot_of = [&](std::int64_t k) {
    return static_cast<std::uint32_t>(effects[k].vertex_u) & (pairs.size() - 1);
  };
  std::int64_t k = 0;
  for (const std::vector<Candidate>& part : pieces) {
    for (const Candidate& c : part) {
      if (k + kAhead < std::ssize(effects)) __builtin_prefetch(&pairs[slot_of(k + kAhead)], 1);
      const std::size_t slot = slot_of(k);
      if (slot >= first && slot < last) {
        effects[k].more_u = add_to_pair(pairs[slot], static_cast<std::uint32_t>(effects[k].vertex_v), c.w);
      }
      ++k;
    }
  }
}

void find_part(const Embedding& h, std::span<const Candidate> part, Effect* effect) {
  const auto through = [](float weight, float share) {
    return weight > 0.0f ? weight / (1.0f + weight * share) : 0.0f;
  };
  for (std::int64_t k = 0; k < std::ssize(part); ++k, ++effect) {
    if (k + kAhead < std::ssize(part)) {
      __builtin_prefetch(&h.nodes[part[k + kAhead].u].share);
      __builtin_prefetch(&h.nodes[part[k + kAhead].v].share);
    }
    const Candidate& c = part[k];
    const NodeRecord& a = h.nodes[c.u];
    const NodeRecord& b = h.nodes[c.v];
    float share_a = a.share_now, share_b = b.share_now;
    climb(a.cluster, b.cluster, h.clusters,
          [&](std::int32_t k) { share_a = std::max(share_a, h.clusters[k].share_now); },
          [&](std::int32_t k) { share_b = std::max(share_b, h.clusters[k].share_now); });
    const float before = effect->more_u;
    const float w = before + c.w;
    const bool counts = !(w * std::min(share_a, share_b) > kOutweighs);
    const Sides sides = find_sides(h, c.u, c.v);
    *effect = {counts ? through(w, share_b) - through(before, share_b) : 0.0f,
               counts ? through(w, share_a) - through(before, share_a) : 0.0f,
               c.w * sides.share_u,
               c.w * sides.share_v,
               sides.vertex_u,
               sides.vertex_v};
  }
}

}  // namespace

void find_effects(Crew& crew, const Embedding& embedding, std::span<const std::vector<Candidate>> pieces,
                  std::span<PairWeight> pairs, Buffer<Effect>& effects) {
  std::vector<std::int64_t> start(pieces.size() + 1);
  for (std::size_t k = 0; k < pieces.size(); ++k) start[k + 1] = start[k] + std::ssize(pieces[k]);
  effects.resize(start.back());
  const std::int64_t n_pieces = std::ssize(pieces);
  if (!pairs.empty()) {
    crew.run(n_pieces, [&](std::int64_t k) { hash_pairs(pieces[k], effects.data() + start[k]); });
    // Each thread has some of the slots, and adds to them in the order of the candidates.
    const std::int64_t owners = std::clamp<std::int64_t>(start.back() / kShare, 1, crew.size());
    const std::size_t slots = pairs.size();
    crew.run(owners, [&](std::int64_t k) {
      add_pairs(pieces, pairs, slots * k / owners, slots * (k + 1) / owners, effects);
    });
  } else {
    std::fill(effects.begin(), effects.end(), Effect());
  }
  crew.run(n_pieces, [&](std::int64_t k) { find_part(embedding, pieces[k], effects.data() + start[k]); });
}

}  // namespace ohm
