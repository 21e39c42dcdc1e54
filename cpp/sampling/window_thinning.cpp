#include "sampling/window_thinning.hpp"

#include "base/rng.hpp"
#include "graph/components.hpp"
#include "sampling/balanced_coins.hpp"
#include "sampling/leverages.hpp"
#include "sampling/thinning.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace ohm {
namespace {

constexpr double kGroupGrowth = 1.5;   // of the weight of the newer rows, from one group to the next
constexpr double kLeastGroup = 0.15;   // rows of a group, relative to the newer ones, so that there are few groups
constexpr double kFirst = 0.5;         // times beta rows a node: the newest rows, which are all kept
constexpr double kPairs = 1.0;         // times beta pairs a node, half as many as one sparsifier has; see is_new_pair
constexpr float kMostFall = 0.5f;      // of a floor until the graph is embedded again, see find_probability
constexpr double kMostSurplus = 0.25;  // rows kept because of too large estimates, relative to all that are kept
constexpr double kCut = 0.08;          // of these, or times beta surplus rows a node, after which a group ends
constexpr double kGroupBeta = 1.0;     // below, little more than a forest is kept: no group ends early
constexpr std::int64_t kAhead = 16;    // rows between the prefetch of a record and its use

// Edges, the first of which are in order, each once and with u < v; see sort_edges.
struct Edges {
  Buffer<std::int32_t> u, v;
  Buffer<float> w;
  std::int64_t n_sorted = 0;

  void add(std::int32_t a, std::int32_t b, float weight) {
    u.push_back(a);
    v.push_back(b);
    w.push_back(weight);
  }

  Triangle sorted(std::int32_t n, Crew& crew) const { return sort_edges(n, u, v, w, n_sorted, {}, {}, crew); }

  // Brings all edges into order.
  void sort(std::int32_t n, Crew& crew) {
    Triangle h = sorted(n, crew);
    u.resize(h.edges());
    for (std::int32_t i = 0; i < n; ++i) std::fill(u.begin() + h.start[i], u.begin() + h.start[i + 1], i);
    v = std::move(h.other);
    w = std::move(h.weight);
    n_sorted = std::ssize(u);
  }

  void drop_unsorted() {
    u.resize(n_sorted);
    v.resize(n_sorted);
    w.resize(n_sorted);
  }
};

class Thinning {
 public:
  Thinning(const EdgeRows& rows, std::int64_t oldest, std::int32_t n, double beta, std::int64_t most,
           std::uint64_t key, int threads)
      : rows_(rows), oldest_(oldest), n_(n), beta_(beta), most_(most), key_(key), crew_(threads),
        parent_(lone_nodes(n)), most_pairs_(std::min(most, static_cast<std::int64_t>(kPairs * beta * n))), nodes_(n),
        balance_(0), pair_balance_(0), inverse_degree_(n, NodeRecord::kInfinity) {}

  // Decides about all rows.
  void run() {
    const auto first = std::min(most_, static_cast<std::int64_t>(std::max(1.0, kFirst * beta_ * n_)));
    begin_ = std::max(oldest_, rows_.size() - first);
    if (begin_ <= oldest_) return;
    probability_.resize(begin_ - oldest_, 1.0f);
    keep_.resize(begin_ - oldest_, 1);
    for (std::int64_t i = rows_.size() - 1; i >= begin_; --i) {
      newer_.add(rows_.u[i], rows_.v[i], rows_.w[i]);
      join_sets(parent_, rows_.u[i], rows_.v[i]);
    }
    newer_.sort(n_, crew_);
    n_kept_ = static_cast<double>(rows_.size() - begin_);
    embed(begin_);
    while (begin_ > oldest_) decide_group();
  }

  // Makes the rows what has been decided. Cannot fail.
  void write(EdgeRows& rows) const {
    std::int64_t left = oldest_;
    for (std::int64_t i = oldest_; i < rows.size(); ++i) {
      const std::int64_t at = i - oldest_;
      if (at < std::ssize(keep_) && keep_[at] == 0) continue;
      const float p = at < std::ssize(keep_) ? probability_[at] : 1.0f;
      rows.set(left, rows.u[i], rows.v[i], rows.w[i] / p, rows.probability[i] * p);
      rows.time[left++] = rows.time[i];
    }
    rows.resize(left);
  }

  double newest() const { return newest_; }

 private:
  // Embeds the graph of the newer rows and of rows `begin_` to `end`. The rows before these become the next group.
  void embed(std::int64_t end) {
    key_now_ = hash(key_, n_embedded_++);
    for (std::int64_t i = begin_; i < end; ++i) newer_.add(rows_.u[i], rows_.v[i], rows_.w[i]);
    h_ = newer_.sorted(n_, crew_);
    const double total = std::accumulate(newer_.w.begin(), newer_.w.end(), 0.0);
    newer_.drop_unsorted();
    const auto least = static_cast<std::int64_t>(kLeastGroup * static_cast<double>(h_.edges()));
    next_ = begin_;
    for (double sum = total; next_ > oldest_ && (sum < kGroupGrowth * total || begin_ - next_ < least);) {
      sum += static_cast<double>(rows_.w[--next_]);
    }
    Laplacian laplacian(h_, crew_);
    record_nodes(laplacian, nodes_);
    sketch_nodes(h_, laplacian, key_now_, crew_, nodes_);
    clusters_ = laplacian.tree.clusters;
    squares_.assign(end - next_, 0.0f);
    correction_ = estimate_leverages(h_, laplacian, static_cast<float>(1.0 / beta_), key_now_, crew_, nodes_,
                                     [&](float part) { add_squares(part); }, sum_unexplained())
                      .correction;
  }

  // Sketches of the rows of the group and of the next one.
  void add_squares(float part) {
    for (std::int64_t at = 0; at < std::ssize(squares_); ++at) {
      squares_[at] += part * sketch(nodes_[rows_.u[next_ + at]], nodes_[rows_.v[next_ + at]]);
    }
  }

  // Of the next group, see estimate_leverages.
  double sum_unexplained() const {
    double sum = 0.0;
    for (std::int64_t i = next_; i < begin_; ++i) {
      const std::int32_t a = rows_.u[i], b = rows_.v[i];
      if (!are_connected(a, b)) continue;
      const Sides sides = find_sides({nodes_, clusters_}, a, b);
      const float square = sketch(nodes_[a], nodes_[b]);
      if (square <= kFar * (sides.inverse_cut_u + sides.inverse_cut_v)) continue;
      sum += std::min(1.0, static_cast<double>(rows_.w[i] * square));
    }
    return sum;
  }

  bool are_connected(std::int32_t a, std::int32_t b) const {
    return nodes_[a].component == nodes_[b].component && nodes_[a].component >= 0;
  }

  // Decides about the rows of the next group, from the newest to the oldest.
  //
  // 1. The probability of each row comes from the graph that was embedded last, which has only rows of newer groups:
  //      p = min(1, beta * correction * w * (floor_now + more * max(0, square - 1.5 floor))), see find_probability.
  //    That graph lacks rows of the group, so p is rather too large.
  // 2. Embed the graph with the group, for the next group, and for another probability `less` of each row, which may be
  //    too small: this graph has older rows of the group, too. The surplus is the sum of max(0, p - less).
  // 3. For each row:
  //    a. the newest row of a pair of nodes is certain, while the rows visited have few pairs;
  //    b. if the surplus of all groups is too large a part of the rows kept, the row has the smaller of both
  //       probabilities;
  //    c. if that of this group is too large, the group ends before the row, unless beta is tiny;
  //    d. toss the coin: decide_row.
  // 4. If the group has ended early, embed the graph without the rows that are left, which the next group begins with.
  // 5. The rows kept, with weights w / p, are newer rows for the next group.
  void decide_group() {
    const std::int64_t end = begin_, first = next_;
    // 1.
    start_cuts();
    for (std::int64_t i = end - 1; i >= first; --i) {
      prefetch(i, first);
      probability_[i - oldest_] = find_probability(i, false);
    }
    // 2.
    begin_ = first;
    embed(end);
    start_cuts();
    start_balance();
    start_pairs();
    const std::uint64_t key = key_now_;
    const double most = surplus_ + std::max(1.0, kCut * std::max(beta_ * n_, kMostSurplus * n_kept_));
    // 3.
    for (begin_ = end; begin_ > first; --begin_) {
      const std::int64_t i = begin_ - 1;
      prefetch(i, first);
      float& p = probability_[i - oldest_];
      const float less = find_probability(i, true);
      const double surplus = surplus_ + std::max(0.0, static_cast<double>(p - less));
      if (is_new_pair(rows_.u[i], rows_.v[i])) {
        p = 1.0f;
      } else if (surplus > kMostSurplus * n_kept_) {
        p = std::min(p, less);
      } else if (surplus > most && beta_ >= kGroupBeta) {
        break;
      } else {
        surplus_ = surplus;
      }
      decide_row(i, draw(key, static_cast<std::uint64_t>(i)));
    }
    // 4.
    if (begin_ > first) embed(end);
    // 5.
    for (std::int64_t i = end - 1; i >= begin_; --i) {
      const std::int64_t at = i - oldest_;
      if (keep_[at] == 0) continue;
      newer_.add(rows_.u[i], rows_.v[i], rows_.w[i] / probability_[at]);
      ++n_kept_;
    }
    newer_.sort(n_, crew_);
  }

  void prefetch(std::int64_t i, std::int64_t first) const {
    const std::int64_t ahead = std::max(first, i - kAhead);
    __builtin_prefetch(&nodes_[rows_.u[ahead]].inverse_degree, 1);
    __builtin_prefetch(&nodes_[rows_.v[ahead]].inverse_degree, 1);
  }

  // The edge of the embedded graph between two nodes.
  std::int64_t find_pair(std::int32_t a, std::int32_t b) const {
    if (a > b) std::swap(a, b);
    const auto row = h_.other.begin();
    return std::lower_bound(row + h_.start[a], row + h_.start[a + 1], b) - row;
  }

  // Rows between the same nodes are balanced among themselves, too: if few pairs come again and again, balanced degrees
  // leave the weight of a pair open.
  void start_pairs() {
    pair_balance_ = Rows<float, 4>(h_.edges());
    for (std::int64_t e = 0; e < h_.edges(); ++e) pair_balance_[e] = Balance{};
    if (n_pairs_ > most_pairs_) return;
    is_seen_.assign(h_.edges(), 0);
    n_pairs_ = 0;
    for (std::int64_t e = 0; e < newer_.n_sorted; ++e) is_new_pair(newer_.u[e], newer_.v[e]);
  }

  // Whether a row is the newest between its ends, while the rows visited have few enough pairs. Such rows are certain:
  // where one sparsifier could keep every pair of a window, no pair is lost.
  bool is_new_pair(std::int32_t a, std::int32_t b) {
    if (n_pairs_ > most_pairs_) return false;
    const std::int64_t e = find_pair(a, b);
    const bool is_new = is_seen_[e] == 0 && ++n_pairs_ <= most_pairs_;
    is_seen_[e] = 1;
    return is_new;
  }

  // Degrees and cuts of the newer rows, to which `find_probability` adds those of the group one after the other.
  void start_cuts() {
    for (NodeRecord& node : nodes_) node.degree_now = 0.0f;
    for (Cluster& cluster : clusters_) cluster.cut_now = 0.0f;
    for (std::int64_t e = 0; e < newer_.n_sorted; ++e) add_to_cuts(newer_.u[e], newer_.v[e], newer_.w[e]);
  }

  void add_to_cuts(std::int32_t a, std::int32_t b, float w) {
    nodes_[a].degree_now += w;
    nodes_[b].degree_now += w;
    const auto add = [&](std::int32_t k) { clusters_[k].cut_now += w; };
    climb(nodes_[a].cluster, nodes_[b].cluster, clusters_, add, add);
  }

  // Balances are relative to degrees, which have changed. Those of clusters, which may be others now, start from zero.
  void start_balance() {
    Rows<float, 4> started(n_ + std::ssize(clusters_));
    Balance* next = started;
    for (std::int32_t i = 0; i < n_; ++i, ++next) {
      const float now = nodes_[i].inverse_degree;
      *next = std::isfinite(inverse_degree_[i]) ? balance_[i] * (now / inverse_degree_[i]) : Balance{};
      (*next)[kBits] = inverse_degree_[i] = now;
    }
    for (const Cluster& cluster : clusters_) *next++ = Balance{0.0f, 0.0f, 0.0f, cluster.inverse_cut};
    balance_ = std::move(started);
  }

  // The probability of row i in the graph of the rows that are not older, and adds the row to the cuts.
  //
  // `square` and `floor` are the sketch and its floor in the embedded graph, `floor_now` is the floor with the cuts of
  // the rows that are not older (estimates.hpp). If the embedded graph does not have the row, it has fewer rows than it
  // should, and resistances are too large. Cuts that grow lower the floor, but to half at most: below, the part of the
  // sketch above the floor, the difference of two large numbers, would decide alone. If the embedded graph has the row
  // (`is_in`), it has older rows, too, and `more` is the factor by which they raise the degrees of the ends.
  float find_probability(std::int64_t i, bool is_in) {
    const std::int32_t a = rows_.u[i], b = rows_.v[i];
    const float w = rows_.w[i];
    add_to_cuts(a, b, w);
    if (!are_connected(a, b)) return 1.0f;
    const Sides sides = find_sides({nodes_, clusters_}, a, b);
    float cut_a = nodes_[a].degree_now, cut_b = nodes_[b].degree_now;
    climb(nodes_[a].cluster, nodes_[b].cluster, clusters_,
          [&](std::int32_t k) { cut_a = std::min(cut_a, clusters_[k].cut_now); },
          [&](std::int32_t k) { cut_b = std::min(cut_b, clusters_[k].cut_now); });
    const float own = is_in ? w : 0.0f;
    const float floor = resistance_floor(1.0f / sides.inverse_cut_u - own, 1.0f / sides.inverse_cut_v - own, own);
    const float least = is_in ? 0.0f : kMostFall * floor;
    const float floor_now = std::max(least, resistance_floor(cut_a - w, cut_b - w, w));
    const auto growth = [&](const NodeRecord& node) { return 1.0f / (node.inverse_degree * node.degree_now); };
    const float more = is_in ? std::max({1.0f, growth(nodes_[a]), growth(nodes_[b])}) : 1.0f;
    const float square = squares_[i - next_];
    const float r = floor_now + more * std::max(0.0f, square - 1.5f * floor);
    const double probability = beta_ * correction_ * static_cast<double>(w * r);
    return probability < 1.0 ? static_cast<float>(probability) : 1.0f;
  }

  // 1. A row that joins two trees of the forest is certain.
  // 2. A row that is certain is kept as it is: it changes no balance.
  // 3. Otherwise windows that contain the row are not whole any more.
  // 4. Round p to 0 or 1 with the coin, such that the weights of both sides, the smallest cuts between the ends, stay
  //    balanced (balanced_coins.hpp). A row that is kept weighs w / p from now on.
  // 5. Add to the balances what the sides have gained or lost, relative to their cuts.
  void decide_row(std::int64_t i, std::uint64_t random) {
    const std::int32_t a = rows_.u[i], b = rows_.v[i];
    const float w = rows_.w[i];
    float& p = probability_[i - oldest_];
    if (join_sets(parent_, a, b)) p = 1.0f;      // 1.
    if (!(p < 1.0f)) return;                     // 2.
    newest_ = std::max(newest_, rows_.time[i]);  // 3.
    // 4.
    const Sides sides = find_sides({nodes_, clusters_}, a, b);
    Balance& of_a = balance_[sides.vertex_u];
    Balance& of_b = balance_[sides.vertex_v];
    const std::int64_t e = find_pair(a, b);
    Balance& of_pair = pair_balance_[e];
    const Fate* fate = decide(Tables::get(), p, random, of_a + of_b + of_pair);
    keep_[i - oldest_] = static_cast<char>(fate != nullptr && fate->keep);
    if (fate == nullptr) return;
    // 5.
    of_a += fate->sign * (w / p * of_a[kBits]);
    of_b += fate->sign * (w / p * of_b[kBits]);
    of_pair += fate->sign * (w / p / h_.weight[e]);
  }

  const EdgeRows& rows_;
  const std::int64_t oldest_;
  const std::int32_t n_;
  const double beta_;
  const std::int64_t most_;
  const std::uint64_t key_;
  Crew crew_;
  std::int64_t begin_ = 0;  // the oldest row visited
  std::int64_t next_ = 0;   // the oldest row of the next group
  Edges newer_;             // the rows visited that are kept
  std::vector<std::int32_t> parent_;  // of the forest
  std::vector<float> probability_;    // of the rows from the oldest on; the newest are certain and have no entry
  std::vector<char> keep_;
  double newest_ = -std::numeric_limits<double>::infinity();
  double n_kept_ = 0.0;   // rows visited that are kept
  double surplus_ = 0.0;  // how many more they are than by step 2 of decide_group
  const std::int64_t most_pairs_;
  std::int64_t n_pairs_ = 0;  // of rows visited
  std::vector<char> is_seen_;  // each edge of h_
  // Of the graph that was embedded last.
  Triangle h_;
  std::uint64_t n_embedded_ = 0;
  std::uint64_t key_now_ = 0;
  double correction_ = 1.0;
  std::vector<NodeRecord> nodes_;
  std::vector<Cluster> clusters_;
  std::vector<float> squares_;  // sketches of its rows and of those of the next group, from row next_ on
  Rows<float, 4> balance_;
  Rows<float, 4> pair_balance_;  // of each edge of h_, relative to its weight
  std::vector<float> inverse_degree_;  // of each node, to which its balance is relative
};

}  // namespace

double thin_rows(EdgeRows& rows, std::int64_t oldest, std::int32_t n_nodes, double beta, std::int64_t most,
                 std::uint64_t key, int threads) {
  Thinning thinning(rows, oldest, n_nodes, beta, most, key, threads);
  thinning.run();
  thinning.write(rows);
  return thinning.newest();
}

}  // namespace ohm
