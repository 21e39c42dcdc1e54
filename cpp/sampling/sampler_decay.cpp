// What a sampler with a half-life does in addition; decay.hpp explains it.
#include "base/parallel.hpp"
#include "sampling/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace ohm {
namespace {

constexpr std::int64_t kPiece = 1 << 14;  // edges whose weights a thread computes at a time
constexpr std::int64_t kMostPieces = 32;  // pieces per thread before the edges are taken in

}  // namespace

// Edges are taken in by chunks, and no chunk has edges of two epochs.
template <class Index, class Weight>
void Sampler::update(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                     std::span<const double> t) {
  if (!has_half_life()) throw std::invalid_argument("a sampler without a half-life takes no times");
  const double half_life = options_.half_life;
  const std::int64_t size = std::ssize(u);
  const std::int64_t most = kPiece * (options_.threads > 1 ? kMostPieces * options_.threads : 1);
  std::vector<float> weight(std::min(size, most));
  std::vector<Faded> found((std::ssize(weight) + kPiece - 1) / kPiece);
  for (std::int64_t begin = 0; begin < size;) {
    if (state_.latest == -std::numeric_limits<double>::infinity() ||
        t[begin] >= end_of_epoch(state_.epoch, half_life)) {
      enter_epoch(t[begin]);
    }
    const double at = end_of_epoch(state_.epoch, half_life);
    const double earliest = at - 2.0 * kFaded * half_life;  // 40 half-lives before the epoch
    std::int64_t count = std::min(size - begin, most);
    const auto fade = [&](std::int64_t from, std::int64_t to) {
      const auto weights = w.empty() ? w : w.subspan(begin + from, to - from);
      return fade_weights(weights, t.subspan(begin + from, to - from), at, earliest, half_life, weight.data() + from);
    };
    parallel_for(options_.threads, (count + kPiece - 1) / kPiece, [&](std::int64_t piece) {
      found[piece] = fade(piece * kPiece, std::min(count, (piece + 1) * kPiece));
    });
    double newest = state_.latest;
    std::int64_t n_faded = 0;
    for (std::int64_t piece = 0; piece * kPiece < count; ++piece) {
      if (found[piece].newest >= at) {  // the chunk ends inside this piece
        const auto* first = t.data() + begin + piece * kPiece;
        count = std::find_if(first, t.data() + begin + count, [&](double time) { return time >= at; }) -
                (t.data() + begin);
        found[piece] = fade(piece * kPiece, count);
      }
      newest = std::max(newest, found[piece].newest);
      n_faded += found[piece].count;
    }
    state_.latest = newest + 0.0;  // not -0, whose bits differ from those of 0
    take_in(u.subspan(begin, count), v.subspan(begin, count), std::span<const float>(weight).first(count),
            t.subspan(begin, count));
    state_.n_faded += n_faded;
    begin += count;
  }
}

// Moves to the epoch of a time that is later than all before.
void Sampler::enter_epoch(double time) {
  fade_rows(find_epoch(time, options_.half_life));
  state_.latest = time + 0.0;
  drop_faded_rows();
  if (state_.n_resamples == 0) return;
  // If the resample fails, no old estimate is left, and edges are kept for certain.
  forget_estimates();
  Crew crew(options_.threads);
  resample(crew);
}

void Sampler::fade_rows(std::int64_t epoch) {
  if (state_.latest > -std::numeric_limits<double>::infinity()) {
    const double factor = fading_factor(epoch - state_.epoch);
    for (float& w : state_.rows.w) w = static_cast<float>(factor * static_cast<double>(w));
    for (double& lane : state_.weight_seen) lane *= factor;
  }
  state_.epoch = epoch;
}

// Drops rows that have faded at the latest time.
void Sampler::drop_faded_rows() {
  const double earliest = state_.latest - kFaded * options_.half_life;
  EdgeRows& rows = state_.rows;
  std::int64_t left = 0, n_sorted = 0;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    rows.move(i, left);
    left += rows.time[i] >= earliest && rows.w[i] >= static_cast<float>(kSmallestWeight);
    if (i + 1 == state_.n_sorted) n_sorted = left;
  }
  rows.resize(left);
  state_.n_sorted = n_sorted;
  if (state_.n_resamples == 0) state_.n_expected = static_cast<double>(left - n_sorted);  // no coin has dropped any
}

// Makes all nodes as if they were new.
void Sampler::forget_estimates() {
  state_.clusters.clear();
  state_.pairs.clear();
  std::fill(state_.nodes.begin(), state_.nodes.end(), NodeRecord());
  std::fill(bound_.begin(), bound_.end(), NodeRecord::kInfinity);
}

double Sampler::scale_at(double at) const {
  if (!std::isfinite(state_.latest)) return 1.0;
  return std::exp2((end_of_epoch(state_.epoch, options_.half_life) - at) / options_.half_life);
}

Snapshot Sampler::snapshot(double at) const {
  const double earliest = at - kFaded * options_.half_life, scale = scale_at(at);
  Crew crew(options_.threads);
  Triangle h = gather(crew);
  std::int64_t left = 0, e = 0;
  for (std::int32_t u = 0; u < h.n(); ++u) {
    for (; e < h.start[u + 1]; ++e) {
      h.other[left] = h.other[e];
      h.weight[left] = h.weight[e];
      h.chance[left] = h.chance[e];
      h.time[left] = h.time[e];
      left += h.time[e] >= earliest && scale * static_cast<double>(h.weight[e]) >= kSmallestWeight;
    }
    h.start[u + 1] = left;
  }
  h.other.resize(left);
  h.weight.resize(left);
  h.chance.resize(left);
  h.time.resize(left);
  return thin_copy(crew, std::move(h));
}

#define OHM_INSTANTIATE(Index, Weight)                                                                    \
  template void Sampler::update(std::span<const Index>, std::span<const Index>, std::span<const Weight>, \
                                std::span<const double>);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
