#include "sampling/sampler.hpp"

#include "base/huge_pages.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "sampling/thinning.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ohm {
namespace {

// Updates of degrees and cuts between two resamples. Measured on CONTRASTS of benchmarks/families.py: with 1, 8 and 32,
// 2.6, 2.05 and 1.98 resamples per stream, at nearly the same epsilon.
constexpr double kRefreshes = 8.0;
constexpr std::uint64_t kResampleCoins = 0x7265736d706c65ull;

// Leaves the edges that were chosen. Without a branch on them, which would be mispredicted.
void drop_others(Triangle& h, std::span<const float> probability, std::span<const char> chosen) {
  std::int64_t left = 0, e = 0;
  for (std::int32_t u = 0; u < h.n(); h.start[++u] = left) {
    for (; e < h.start[u + 1]; left += chosen[e++]) {
      h.other[left] = h.other[e];
      h.weight[left] = h.weight[e] / probability[e];
      h.probability[left] = h.probability[e] * probability[e];
      if (!h.time.empty()) h.time[left] = h.time[e];
    }
  }
  const auto shorten = [&](auto& column) { column.resize(left), drop_tail(column); };
  shorten(h.other), shorten(h.weight), shorten(h.probability);
  if (!h.time.empty()) shorten(h.time);
}

}  // namespace

Sampler::Sampler(std::int32_t n_nodes, const SamplerOptions& options) : options_(options) {
  state_.n_nodes = n_nodes;
  state_.rows.has_times = has_half_life();
  reserve_nodes(n_nodes);
  state_.capacity = capacity_for(most_rows());
}

Sampler::Sampler(State state, const SamplerOptions& options)
    : options_(options), state_(std::move(state)), bound_(bound_resistances(embedding())) {
  state_.rows.has_times = has_half_life();
}

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
  return options_.max_rows > 0 ? grow(rows) : std::max(kSmallest, grow(rows));
}

// The target, which is the most rows after a resample: leverages add up to less than n.
double Sampler::most_rows() const {
  if (options_.max_rows > 0) return static_cast<double>(std::min(options_.max_rows, kMostEdges));
  return usual_beta(options_, state_.n_nodes) * static_cast<double>(state_.n_nodes);
}

bool Sampler::all_fit(const Triangle& h) const { return static_cast<double>(h.edges()) <= most_rows(); }

// Reserves memory for this many rows, or for more, so that few calls move them.
void Sampler::reserve_rows(std::int64_t rows) {
  if (rows > state_.rows.capacity()) state_.rows.reserve(std::max(rows, std::min(state_.capacity, 4 * n_rows())));
}

// Expected rows between two updates of degrees and cuts. Before the first resample there is nothing to update, and the
// result is the number of rows before that resample.
double Sampler::rows_between_refreshes() const {
  const auto rows = static_cast<double>(std::max<std::int64_t>(1, state_.capacity - state_.n_sorted));
  return state_.n_resamples == 0 ? rows : rows / kRefreshes;
}

// Whether as many rows are expected as are resampled.
bool Sampler::is_full() const {
  return state_.n_expected >= (state_.n_resamples == 0 ? 1.0 : kRefreshes) * rows_between_refreshes();
}

// Updates the estimates with all candidates so far.
void Sampler::refresh() {
  for (NodeRecord& node : state_.nodes) node.inverse_degree_now = 1.0f / node.degree_now;
  for (Cluster& cluster : state_.clusters) cluster.inverse_cut_now = 1.0f / cluster.cut_now;
  bound_ = bound_resistances(embedding());
}

// Adds the rows and counters of another sampler, whose weights are multiplied by a power of two.
void Sampler::add(const State& other, double scale) {
  if (other.n_nodes > std::ssize(state_.nodes)) reserve_nodes(other.n_nodes);
  reserve_rows(n_rows() + other.rows.size());
  state_.add(other, scale);
  state_.n_faded += other.n_faded;
}

// Works on a copy, because merged rows cannot be separated again. That costs the memory of the rows and records of one
// sampler while the merged rows are embedded.
void Sampler::merge(std::span<const State* const> others) {
  const RecyclePages recycle;
  Sampler merged(*this);
  for (const State* const other : others) {
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
  const EdgeRows& rows = state_.rows;
  return sort_edges(state_.n_nodes, rows.u, rows.v, rows.w, state_.n_sorted, rows.probability, rows.time, crew);
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
  state.n_resamples = state_.n_resamples;
  state.beta = state_.beta;
  Sampler copy(std::move(state), options_);
  copy.thin(crew, rows);
  return {std::move(rows), false};
}

// Computes the records of the nodes of H and its clusters.
Laplacian Sampler::embed(Crew& crew, Triangle& h, std::uint64_t key) {
  Laplacian laplacian(h, crew);
  sketch_nodes(h, laplacian, key, crew, state_.nodes);
  state_.clusters = laplacian.tree.clusters;  // the last step that may fail before the records match the clusters
  record_nodes(laplacian, state_.nodes);
  bound_estimates();
  return laplacian;
}

void Sampler::bound_estimates() {
  measure_distances(state_.nodes);
  bound_ = bound_resistances(embedding());
}

// Leverages of the rows. Those of arriving edges are corrected by the same factor until the next resample.
Buffer<float> Sampler::find_leverages(Crew& crew, Triangle& h, const Laplacian& laplacian, std::uint64_t key) {
  const double beta = options_.max_rows > 0 ? static_cast<double>(options_.max_rows) / laplacian.rank()
                                            : usual_beta(options_, h.n());
  Leverages found = estimate_leverages(h, laplacian, static_cast<float>(1.0 / beta), key, crew, state_.nodes);
  bound_estimates();  // there may be another sketch
  state_.correction = found.correction;
  return std::move(found.of_edges);
}

// The edges of H, which are moved, become the rows. Does not fail if column u has the capacity.
void Sampler::take_rows(Triangle& h) {
  EdgeRows& rows = state_.rows;
  rows.u.resize(h.edges());
  for (std::int32_t u = 0; u < h.n(); ++u) std::fill(rows.u.begin() + h.start[u], rows.u.begin() + h.start[u + 1], u);
  rows.v = std::move(h.other);
  rows.w = std::move(h.weight);
  rows.probability = std::move(h.probability);
  rows.time = std::move(h.time);
  state_.n_sorted = n_rows();
}

void Sampler::resample(Crew& crew) {
  Triangle h = gather(crew);
  if (state_.n_resamples == 0 && std::isinf(state_.beta) && all_fit(h)) {  // nothing was dropped, and nothing has to be
    take_rows(h);
    state_.n_expected = 0.0;
    return;
  }
  // To save memory, rows are stored only in `h` during the solve. Column u stays reserved, so that `take_rows` cannot
  // throw; without its pages it takes no memory before it is written.
  EdgeRows reserved{.u = std::move(state_.rows.u), .has_times = has_half_life()};
  reserved.u.clear();
  drop_tail(reserved.u);
  state_.rows = std::move(reserved);
  state_.n_sorted = 0;
  state_.pairs.clear();
  try {
    thin(crew, h);
  } catch (...) {
    take_rows(h);
    throw;
  }
  take_rows(h);
  drop_tail(state_.rows.u);
  state_.capacity = capacity_for(static_cast<double>(n_rows()));
  state_.pairs = make_pair_table(state_.n_nodes);
  if (state_.capacity <= 4 * n_rows()) reserve_rows(state_.capacity);
}

// Decides for each edge of H whether it is kept, and leaves those in `h`.
void Sampler::thin(Crew& crew, Triangle& h) {
  const std::int32_t n = state_.n_nodes;
  const std::uint64_t coins = hash(options_.seed ^ kResampleCoins, state_.n_resamples + 1);
  Laplacian laplacian = embed(crew, h, coins);
  const auto n_components = static_cast<std::int32_t>(laplacian.space.singular.size());
  ++state_.n_resamples;
  state_.n_expected = 0.0;
  Buffer<float> probability = find_leverages(crew, h, laplacian, coins);
  if (!options_.retracts || all_fit(h)) {
    if (options_.max_rows == 0) state_.beta = usual_beta(options_, n);
    return;
  }
  if (options_.max_rows == 0 || options_.max_rows >= 2 * std::int64_t{n}) {  // otherwise there is no room for a forest
    keep_forest(h, n_components, probability, crew);
  }
  // Under a budget beta never increases: edges dropped at a smaller beta cannot be recovered.
  state_.beta = options_.max_rows > 0 ? std::min(state_.beta, fit_beta(probability, options_.max_rows, crew))
                                      : usual_beta(options_, n);
  for_row_pieces(h, crew, [&](std::int64_t, std::int32_t first, std::int32_t last) {
    for (std::int64_t e = h.start[first]; e < h.start[last]; ++e) {
      probability[e] = static_cast<float>(std::min(1.0, state_.beta * static_cast<double>(probability[e])));
    }
  });
  drop_others(h, probability, choose_rows(h, embedding(), probability, coins, crew));
}

}  // namespace ohm
