#include "sampling/window_thinning.hpp"

#include "base/rng.hpp"
#include "graph/components.hpp"
#include "sampling/balanced_coins.hpp"
#include "sampling/leverages.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

namespace ohm {
namespace {

constexpr double kGroupGrowth = 1.5;   // of the weight of the newer rows, from one group to the next
constexpr double kLeastGroup = 0.15;   // rows of a group, relative to the newer ones, so that there are few groups
constexpr double kFirst = 0.5;         // times beta rows a node: the newest rows, which are all kept
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
  Thinning(const TimedRows& rows, std::int64_t oldest, std::int32_t n, double beta, std::int64_t most,
           std::uint64_t key, int threads)
      : rows_(rows), oldest_(oldest), n_(n), beta_(beta), most_(most), key_(key), crew_(threads), parent_(lone_nodes(n)),
        nodes_(n), balance_(0), share_(n, NodeRecord::kInfinity) {}

  // Decides about all rows.
  void run() {
    const auto first = std::min(most_, static_cast<std::int64_t>(std::max(1.0, kFirst * beta_ * n_)));
    begin_ = std::max(oldest_, rows_.size() - first);
    if (begin_ <= oldest_) return;
    chance_.resize(begin_ - oldest_, 1.0f);
    keep_.resize(begin_ - oldest_, 1);
    for (std::int64_t i = rows_.size() - 1; i >= begin_; --i) {
      newer_.add(rows_.u[i], rows_.v[i], rows_.w[i]);
      join_sets(parent_, rows_.u[i], rows_.v[i]);
    }
    newer_.sort(n_, crew_);
    for (std::uint64_t group = 0; begin_ > oldest_; ++group) decide_group(hash(key_, group));
  }

  // Makes the rows what has been decided. Cannot fail.
  void write(TimedRows& rows) const {
    std::int64_t left = oldest_;
    for (std::int64_t i = oldest_; i < rows.size(); ++i) {
      const std::int64_t at = i - oldest_;
      if (at < std::ssize(keep_) && keep_[at] == 0) continue;
      const float p = at < std::ssize(keep_) ? chance_[at] : 1.0f;
      rows.u[left] = rows.u[i];
      rows.v[left] = rows.v[i];
      rows.w[left] = rows.w[i] / p;
      rows.chance[left] = rows.chance[i] * p;
      rows.time[left] = rows.time[i];
      ++left;
    }
    rows.resize(left);
  }

  double newest() const { return newest_; }

 private:
  void decide_group(std::uint64_t key) {
    const std::int64_t end = begin_;
    const double weight = std::accumulate(newer_.w.begin(), newer_.w.end(), 0.0);
    const auto least = static_cast<std::int64_t>(kLeastGroup * static_cast<double>(newer_.n_sorted));
    double total = weight;
    while (begin_ > oldest_ && (total < kGroupGrowth * weight || end - begin_ < least)) {
      --begin_;
      total += static_cast<double>(rows_.w[begin_]);
      newer_.add(rows_.u[begin_], rows_.v[begin_], rows_.w[begin_]);
    }
    const Triangle h = newer_.sorted(n_, crew_);
    newer_.drop_unsorted();
    Laplacian laplacian(h, crew_);
    record_nodes(laplacian, nodes_);
    sketch_nodes(h, laplacian, key, crew_, nodes_);
    squares_.assign(end - begin_, 0.0f);
    const Leverages leverages = estimate_leverages(
        h, laplacian, static_cast<float>(1.0 / beta_), key, crew_, nodes_,
        [&](float part) { add_squares(end, part); });
    clusters_ = std::move(laplacian.tree.clusters);
    start_cuts();
    start_balance();
    double so_far = weight;
    for (std::int64_t i = end - 1; i >= begin_; --i) {
      const std::int64_t ahead = std::max(begin_, i - kAhead);
      __builtin_prefetch(&nodes_[rows_.u[ahead]].share, 1);
      __builtin_prefetch(&nodes_[rows_.v[ahead]].share, 1);
      so_far += static_cast<double>(rows_.w[i]);
      decide_row(i, leverages.correction, static_cast<float>(total / so_far), draw(key, static_cast<std::uint64_t>(i)));
    }
    newer_.sort(n_, crew_);
  }

  void add_squares(std::int64_t end, float part) {
    for (std::int64_t i = begin_; i < end; ++i) {
      squares_[i - begin_] += part * sketch(nodes_[rows_.u[i]], nodes_[rows_.v[i]]);
    }
  }

  // Degrees and cuts of the newer rows, to which `decide_row` adds those of the group one after the other.
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
      *next = std::isfinite(share_[i]) ? balance_[i] * (nodes_[i].share / share_[i]) : Balance{};
      (*next)[kBits] = share_[i] = nodes_[i].share;
    }
    for (const Cluster& cluster : clusters_) *next++ = Balance{0.0f, 0.0f, 0.0f, cluster.share};
    balance_ = std::move(started);
  }

  // `more` is the weight of the graph that was embedded over that of the rows that are not older than this one.
  void decide_row(std::int64_t i, double correction, float more, std::uint64_t random) {
    const std::int32_t a = rows_.u[i], b = rows_.v[i];
    const float w = rows_.w[i];
    add_to_cuts(a, b, w);
    const Sides sides = find_sides({nodes_, clusters_}, a, b);
    float cut_a = nodes_[a].degree_now, cut_b = nodes_[b].degree_now;
    climb(nodes_[a].cluster, nodes_[b].cluster, clusters_,
          [&](std::int32_t k) { cut_a = std::min(cut_a, clusters_[k].cut_now); },
          [&](std::int32_t k) { cut_b = std::min(cut_b, clusters_[k].cut_now); });
    const float then = resistance_floor(1.0f / sides.share_u - w, 1.0f / sides.share_v - w, w);
    const float now = resistance_floor(cut_a - w, cut_b - w, w);
    const float r = now + more * std::max(0.0f, squares_[i - begin_] - 1.5f * then);
    const double leverage = correction * static_cast<double>(w * r);
    const bool joins = join_sets(parent_, a, b);
    float& p = chance_[i - oldest_];
    p = joins || !(beta_ * leverage < 1.0) ? 1.0f : static_cast<float>(beta_ * leverage);
    if (p < 1.0f) {
      newest_ = std::max(newest_, rows_.time[i]);
      Balance& of_a = balance_[sides.vertex_u];
      Balance& of_b = balance_[sides.vertex_v];
      const Fate* fate = decide(Tables::get(), p, random, of_a + of_b);
      keep_[i - oldest_] = static_cast<char>(fate != nullptr && fate->keep);
      if (fate != nullptr) {
        of_a += fate->sign * (w / p * of_a[kBits]);
        of_b += fate->sign * (w / p * of_b[kBits]);
      }
    }
    if (keep_[i - oldest_] != 0) newer_.add(a, b, w / p);
  }

  const TimedRows& rows_;
  const std::int64_t oldest_;
  const std::int32_t n_;
  const double beta_;
  const std::int64_t most_;
  const std::uint64_t key_;
  Crew crew_;
  std::int64_t begin_ = 0;  // the oldest row visited
  Edges newer_;             // the rows visited that are kept
  std::vector<std::int32_t> parent_;  // of the forest
  std::vector<float> chance_;         // of the rows from the oldest on; the newest are certain and have no entry
  std::vector<char> keep_;
  double newest_ = -std::numeric_limits<double>::infinity();
  // Of the group.
  std::vector<NodeRecord> nodes_;
  std::vector<Cluster> clusters_;
  std::vector<float> squares_;  // sketches of its rows
  Rows<float, 4> balance_;
  std::vector<float> share_;  // of each node, to which its balance is relative
};

}  // namespace

void TimedRows::reserve(std::int64_t rows) {
  u.reserve(rows);
  v.reserve(rows);
  w.reserve(rows);
  chance.reserve(rows);
  time.reserve(rows);
}

void TimedRows::resize(std::int64_t rows) {
  u.resize(rows);
  v.resize(rows);
  w.resize(rows);
  chance.resize(rows);
  time.resize(rows);
}

void TimedRows::append(const TimedRows& other) {
  reserve(size() + other.size());
  u.insert(u.end(), other.u.begin(), other.u.end());
  v.insert(v.end(), other.v.begin(), other.v.end());
  w.insert(w.end(), other.w.begin(), other.w.end());
  chance.insert(chance.end(), other.chance.begin(), other.chance.end());
  time.insert(time.end(), other.time.begin(), other.time.end());
}

void TimedRows::sort(double earliest) {
  if (!std::is_sorted(time.begin(), time.end())) {
    std::vector<std::pair<double, std::int64_t>> order(size());
    for (std::int64_t i = 0; i < size(); ++i) order[i] = {time[i], i};
    std::sort(order.begin(), order.end());
    const auto reordered = [&](const auto& column) {
      std::remove_cvref_t<decltype(column)> sorted(column.size());
      for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i].second];
      return sorted;
    };
    *this = {reordered(u), reordered(v), reordered(w), reordered(chance), reordered(time)};
  }
  const std::int64_t old = std::lower_bound(time.begin(), time.end(), earliest) - time.begin();
  const auto drop = [&](auto& column) { column.erase(column.begin(), column.begin() + old); };
  drop(u);
  drop(v);
  drop(w);
  drop(chance);
  drop(time);
}

double thin_rows(TimedRows& rows, std::int64_t oldest, std::int32_t n_nodes, double beta, std::int64_t most,
                 std::uint64_t key, int threads) {
  Thinning thinning(rows, oldest, n_nodes, beta, most, key, threads);
  thinning.run();
  thinning.write(rows);
  return thinning.newest();
}

}  // namespace ohm
