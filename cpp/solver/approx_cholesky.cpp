#include "solver/approx_cholesky.hpp"

#include "base/huge_pages.hpp"
#include "base/rng.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

namespace ohm {
namespace {

// Buckets of nodes by degree: one per degree below 64, then eight per doubling. Entries are lazy: a node is queued
// again when its degree falls, and an outdated entry is detected when it is popped.
class DegreeQueue {
 public:
  DegreeQueue() : buckets_(64 + 8 * 32), heads_(buckets_.size(), 0) {}

  static std::int32_t bucket_of(std::int32_t degree) {
    if (degree < 64) return degree;
    const int octave = std::bit_width(static_cast<std::uint32_t>(degree)) - 7;
    return 64 + 8 * octave + ((degree >> (octave + 3)) & 7);
  }

  void push(std::int32_t node, std::int32_t bucket) {
    buckets_[bucket].push_back(node);
    lowest_ = std::min(lowest_, bucket);
  }

  // Next (node, bucket); the caller checks that the entry is not stale. False when all are empty.
  bool pop(std::int32_t& node, std::int32_t& bucket) {
    for (; lowest_ < static_cast<std::int32_t>(buckets_.size()); ++lowest_) {
      auto& queue = buckets_[lowest_];
      auto& head = heads_[lowest_];
      if (head < queue.size()) {
        node = queue[head++];
        bucket = lowest_;
        return true;
      }
      queue.clear();
      head = 0;
    }
    return false;
  }

  // The node `distance` places behind the one popped last; if there is none, any node.
  std::int32_t upcoming(std::size_t distance) const {
    const auto& queue = buckets_[lowest_];
    const std::size_t at = heads_[lowest_] - 1 + distance;
    return at < queue.size() ? queue[at] : queue.back();
  }

 private:
  std::vector<std::vector<std::int32_t>> buckets_;
  std::vector<std::size_t> heads_;
  std::int32_t lowest_ = 0;
};

// What eliminated rows leave between two others; a ground if u = v.
template <class Real>
struct Fill {
  std::int32_t u;
  std::int32_t v;
  Real weight;
};

// What is known of the pieces.
template <class Real>
struct Pieces {
  const Matrix& matrix;
  std::span<const std::int32_t> tree;  // the piece of each row; empty if all are in piece 1
  std::vector<std::int32_t> owner;     // the same, except that rows of high degree have moved up
  std::vector<std::int32_t> place;     // of each row among those of its piece
  std::vector<std::vector<std::int32_t>> rows;  // of each piece: its own, then those that have moved there
  std::vector<std::int64_t> own;                // number of its own rows
  std::vector<std::vector<Fill<Real>>> fill;    // what the pieces below have left
  std::atomic<std::int64_t> slots;             // where the halo of the next piece begins
};

// What the elimination of a piece leaves.
template <class Real>
struct Left {
  std::vector<std::int32_t> rows;
  std::vector<Fill<Real>> fill;
};

// Nodes are the rows of the piece, then those of its halo, which are not eliminated.
template <class Real>
class Elimination {
 public:
  Elimination(Pieces<Real>& pieces, std::int32_t piece, const EliminationOptions& options)
      : rows_(pieces.rows[piece]), size_(static_cast<std::int32_t>(rows_.size())), options_(options) {
    const auto fill = std::move(pieces.fill[piece]);  // frees its memory
    std::visit([&](const auto& weight) { load(pieces, piece, fill, weight.data()); }, pieces.matrix.weight);
  }

  // Nodes of a degree above `most` are left.
  FactorPiece<Real> run(std::int32_t most, std::atomic<std::int64_t>& slots, Left<Real>& left) {
    const std::int64_t entries = std::ssize(pool_);
    factor_.order.reserve(size_);
    factor_.count.reserve(size_);
    factor_.inverse_diagonal.reserve(size_);
    const auto guess = static_cast<std::size_t>(entries * 3 / 5 + size_);
    reserve_huge(factor_.row, guess);
    reserve_huge(factor_.coefficient, guess);

    std::int32_t v = 0;
    std::int32_t bucket = 0;
    while (queue_.pop(v, bucket) && bucket <= DegreeQueue::bucket_of(most)) {
      fetch_ahead();
      Node& node = nodes_[v];
      if (node.degree < 0 || node.queued != bucket) continue;
      const std::int32_t now = DegreeQueue::bucket_of(node.degree);
      if (now > bucket) {
        node.queued = now;
        queue_.push(v, now);
        continue;
      }
      eliminate(v);
      factor_.order.push_back(rows_[v]);
    }
    const auto row_of = [&](std::int32_t k) { return k < size_ ? rows_[k] : factor_.halo[k - size_]; };
    for (std::int32_t k = 0; k < std::ssize(nodes_); ++k) {
      const Node& node = nodes_[k];
      if (node.degree < 0) continue;
      if (k < size_) left.rows.push_back(rows_[k]);
      if (node.ground > 0) left.fill.push_back({row_of(k), row_of(k), node.ground});
      for (std::int32_t e = 0; e < node.size; ++e) {
        const auto [other, weight] = pool_[node.begin + e];
        if (other > k && nodes_[other].degree >= 0) left.fill.push_back({row_of(k), row_of(other), weight});
      }
    }
    factor_.slot = static_cast<std::int32_t>(slots.fetch_add(std::ssize(factor_.halo)));
    for (std::int32_t& row : factor_.row) row = row < size_ ? rows_[row] : factor_.slot + row - size_;
    return std::move(factor_);
  }

 private:
  using Coefficient = typename FactorPiece<Real>::Coefficient;
  struct Entry {
    std::int32_t node;
    Real weight;
  };
  // Counts of entries have 32 bits, which keeps a node in half a cache line. `room_for` checks that the capacity fits,
  // and size <= capacity, degree <= size, and the parallel edges to one neighbour are no more than the entries.
  struct Node {
    std::int64_t begin;       // of its entries in the pool
    std::int32_t size = 0;    // entries, some of them to eliminated nodes
    std::int32_t capacity;
    std::int32_t degree;      // live entries, parallel ones counted; -1 once eliminated
    std::int32_t mark = -1;   // position among the neighbours being gathered
    std::int32_t queued = -1;  // bucket where the node waits; -1: it is not eliminated
    Real ground = 0;
  };
  struct Neighbour {
    std::int32_t node;
    std::int32_t count;  // parallel edges merged
    double weight;
  };
  struct Item {
    std::int32_t neighbour;
    double weight;
  };

  // In longer lists a dead entry is not searched for; the next clean-up removes it.
  static constexpr std::int32_t kSearchLimit = 48;

  template <class Weight>
  void load(const Pieces<Real>& pieces, std::int32_t piece, std::span<const Fill<Real>> fill, const Weight* weight) {
    const Matrix& a = pieces.matrix;
    const bool whole = pieces.tree.empty();
    std::vector<std::int32_t>& halo = factor_.halo;
    const auto is_own = [&](std::int32_t row) { return whole || pieces.owner[row] == piece; };
    const auto node_of = [&](std::int32_t row) {
      if (is_own(row)) return whole ? row : pieces.place[row];
      return size_ + static_cast<std::int32_t>(std::lower_bound(halo.begin(), halo.end(), row) - halo.begin());
    };
    // Calls f(node, row of the other, weight, copies) for all edges, from those of their ends that are in the piece.
    const auto each_entry = [&](auto&& f) {
      for (std::int32_t k = 0; k < pieces.own[piece]; ++k) {
        for (std::int64_t e = a.start[rows_[k]]; e < a.start[rows_[k] + 1]; ++e) {
          if (!whole && pieces.tree[a.index[e]] > piece) continue;  // a piece below has seen it
          f(k, a.index[e], static_cast<Real>(static_cast<double>(weight[e]) / options_.copies), options_.copies);
        }
      }
      for (const Fill<Real>& edge : fill) {
        if (edge.u == edge.v) continue;
        if (is_own(edge.u)) f(pieces.place[edge.u], edge.v, edge.weight, 1);
        if (is_own(edge.v)) f(pieces.place[edge.v], edge.u, edge.weight, 1);
      }
    };
    std::vector<std::int64_t> degree(size_, 0);
    std::vector<std::int32_t> others;  // ends outside of the piece
    each_entry([&](std::int32_t k, std::int32_t row, Real, int copies) {
      degree[k] += copies;
      if (!is_own(row)) others.insert(others.end(), copies, row);
    });
    std::sort(others.begin(), others.end());
    for (std::size_t k = 0; k < others.size(); ++k) {
      if (k == 0 || others[k] != others[k - 1]) {
        halo.push_back(others[k]);
        degree.push_back(0);
      }
      ++degree.back();
    }
    resize_huge(nodes_, degree.size());
    std::int64_t room = 0;
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
      nodes_[k].begin = room;
      nodes_[k].capacity = room_for(degree[k] + degree[k] / 4 + 2);
      nodes_[k].degree = static_cast<std::int32_t>(degree[k]);
      room += nodes_[k].capacity;
    }
    reserve_huge(pool_, room + room / 4);
    pool_.resize(room);
    each_entry([&](std::int32_t k, std::int32_t row, Real weight_of_one, int copies) {
      const std::int32_t other = node_of(row);
      for (int c = 0; c < copies; ++c) {
        pool_[nodes_[k].begin + nodes_[k].size++] = {other, weight_of_one};
        if (other >= size_) pool_[nodes_[other].begin + nodes_[other].size++] = {k, weight_of_one};
      }
    });
    for (std::int32_t k = 0; k < size_; ++k) {
      if (!a.ground.empty() && k < pieces.own[piece]) nodes_[k].ground = static_cast<Real>(a.ground[rows_[k]]);
      nodes_[k].queued = DegreeQueue::bucket_of(nodes_[k].degree);
      queue_.push(k, nodes_[k].queued);
    }
    for (const Fill<Real>& edge : fill) {
      if (edge.u == edge.v) nodes_[pieces.place[edge.u]].ground += edge.weight;
    }
  }

  std::int32_t room_for(std::int64_t entries) const {
    if (entries > options_.most_entries) {
      throw std::length_error("a node needs room for " + std::to_string(entries) +
                              " entries of the approximate Cholesky factor, more than " +
                              std::to_string(options_.most_entries) + "; use method=\"diagonal\"");
    }
    return static_cast<std::int32_t>(entries);
  }

  // Elimination is bound by cache misses; the queue shows which nodes come next.
  void fetch_ahead() {
    __builtin_prefetch(&nodes_[queue_.upcoming(6)]);
    const Node& soon = nodes_[queue_.upcoming(4)];
    __builtin_prefetch(pool_.data() + soon.begin);
    __builtin_prefetch(pool_.data() + soon.begin + soon.size);
    const Node& next = nodes_[queue_.upcoming(2)];
    if (next.degree < 0 || next.size > kSearchLimit) return;
    for (std::int32_t e = 0; e < next.size; ++e) {
      __builtin_prefetch(&nodes_[pool_[next.begin + e].node]);
    }
  }

  void gather(Node& node) {
    neighbours_.clear();
    const Entry* entries = pool_.data() + node.begin;
    for (std::int32_t e = 0; e < node.size; ++e) {
      Node& other = nodes_[entries[e].node];
      if (other.degree < 0) continue;
      if (other.mark < 0) {
        other.mark = static_cast<std::int32_t>(neighbours_.size());
        __builtin_prefetch(pool_.data() + other.begin);  // searched when edges are attached
        __builtin_prefetch(pool_.data() + other.begin + other.size);
        neighbours_.push_back({entries[e].node, 1, static_cast<double>(entries[e].weight)});
      } else {
        Neighbour& known = neighbours_[other.mark];
        known.weight += static_cast<double>(entries[e].weight);
        ++known.count;
      }
    }
    for (const Neighbour& j : neighbours_) nodes_[j.node].mark = -1;
    const auto lighter = [](const Neighbour& a, const Neighbour& b) {
      return a.weight < b.weight || (a.weight == b.weight && a.node < b.node);
    };
    if (neighbours_.size() > 24) {
      std::sort(neighbours_.begin(), neighbours_.end(), lighter);
      return;
    }
    for (std::size_t i = 1; i < neighbours_.size(); ++i) {
      const Neighbour moving = neighbours_[i];
      std::size_t at = i;
      for (; at > 0 && lighter(moving, neighbours_[at - 1]); --at) neighbours_[at] = neighbours_[at - 1];
      neighbours_[at] = moving;
    }
  }

  void eliminate(std::int32_t v) {
    Node& node = nodes_[v];
    gather(node);
    node.degree = -1;
    const double ground = static_cast<double>(node.ground);
    double total = ground;
    for (const Neighbour& j : neighbours_) total += j.weight;
    emit_column(ground, total);
    if (total > 0.0) {
      for (const Neighbour& j : neighbours_) {
        Node& other = nodes_[j.node];
        other.degree -= j.count;
        if (ground > 0.0) other.ground = static_cast<Real>(other.ground + j.weight * (ground / total));
      }
      sample_tree(v, total);
      for (const Neighbour& j : neighbours_) requeue(j.node);
    }
  }

  void emit_column(double ground, double total) {
    const std::size_t d = neighbours_.size();
    if (total > 0.0) {
      const double fraction = ground / total;
      for (std::size_t i = 0; i < d; ++i) {
        const double a = neighbours_[i].weight / total;
        const bool implied = i + 1 == d && fraction <= 0.5;
        factor_.row.push_back(neighbours_[i].node);
        factor_.coefficient.push_back(Coefficient(static_cast<Real>(implied ? -fraction : a)));
      }
    }
    factor_.count.push_back(total > 0.0 ? static_cast<std::int32_t>(d) : 0);
    factor_.inverse_diagonal.push_back(static_cast<Real>(total > 0.0 ? 1.0 / total : 0.0));
  }

  // Item i, in increasing weight, is joined to a later item j drawn in proportion to weight; the edge gets i's whole
  // part of the clique with later items, w_i * (sum of later weights) / total.
  void sample_tree(std::int32_t v, double total) {
    const std::size_t n_neighbours = neighbours_.size();
    items_.clear();
    for (std::size_t i = 0; i < n_neighbours; ++i) {
      const int copies = std::min(neighbours_[i].count, options_.copies);
      for (int c = 0; c < copies; ++c) {
        items_.push_back({static_cast<std::int32_t>(i), neighbours_[i].weight / copies});
      }
    }
    const std::size_t d = items_.size();
    if (d < 2) {
      if (d == 1) forget(v, nodes_[neighbours_[0].node]);
      return;
    }
    later_.resize(d);
    double sum = 0.0;
    for (std::size_t i = d; i-- > 0;) {
      later_[i] = sum;
      sum += items_[i].weight;
    }
    freed_.assign(neighbours_.size(), false);
    std::uint64_t stream = hash(options_.seed, static_cast<std::uint64_t>(rows_[v]));
    for (std::size_t i = 0; i + 1 < d; ++i) {
      stream += 0x9e3779b97f4a7c15u;
      const double target = uniform(mix(stream)) * later_[i];
      // later_ falls; the item drawn is the last j with target < later_[j - 1], the heavy end first.
      std::size_t j = d - 1;
      if (d > 64) {
        j = std::partition_point(later_.begin() + i, later_.end(), [&](double s) { return s > target; }) -
            later_.begin();
      } else {
        while (j > i + 1 && later_[j - 1] <= target) --j;
      }
      const std::int32_t a = items_[i].neighbour;
      const std::int32_t b = items_[j].neighbour;
      if (a == b) continue;
      const auto weight = static_cast<Real>(items_[i].weight * (later_[i] / total));
      if (!(weight > 0)) continue;
      attach(v, a, neighbours_[b].node, weight);
      attach(v, b, neighbours_[a].node, weight);
    }
    for (std::size_t i = 0; i < neighbours_.size(); ++i) {
      if (!freed_[i]) forget(v, nodes_[neighbours_[i].node]);
    }
  }

  // Adds an entry to a neighbour of v, in the place of its entry to v when that is still there.
  void attach(std::int32_t v, std::int32_t neighbour, std::int32_t other, Real weight) {
    const std::int32_t u = neighbours_[neighbour].node;
    Node& node = nodes_[u];
    ++node.degree;
    if (!freed_[neighbour]) {
      freed_[neighbour] = true;
      if (Entry* dead = find(node, v)) {
        *dead = {other, weight};
        return;
      }
    }
    if (node.size == node.capacity) make_room(node);
    pool_[node.begin + node.size++] = {other, weight};
  }

  void forget(std::int32_t v, Node& node) {
    if (Entry* dead = find(node, v)) *dead = pool_[node.begin + --node.size];
  }

  Entry* find(const Node& node, std::int32_t v) {
    if (node.size > kSearchLimit) return nullptr;
    Entry* entries = pool_.data() + node.begin;
    for (std::int32_t e = 0; e < node.size; ++e) {
      if (entries[e].node == v) return entries + e;
    }
    return nullptr;
  }

  // Moves a full list to the end of the pool. In a long list, where dead entries are not searched for, they are dropped
  // first. A short list has hardly any, and looking for them would cost a cache miss each.
  void make_room(Node& node) {
    if (node.size > kSearchLimit) {
      Entry* entries = pool_.data() + node.begin;
      const Entry* live = std::remove_if(entries, entries + node.size,
                                         [&](const Entry& entry) { return nodes_[entry.node].degree < 0; });
      node.size = static_cast<std::int32_t>(live - entries);
      if (node.size <= node.capacity - node.capacity / 4) return;
    }
    const std::int32_t capacity = room_for(std::int64_t{node.capacity} + std::max(4, node.capacity / 2));
    if (pool_.size() + capacity > pool_.capacity()) pack(capacity);
    const auto begin = static_cast<std::int64_t>(pool_.size());
    pool_.resize(pool_.size() + capacity);
    std::copy_n(pool_.begin() + node.begin, node.size, pool_.begin() + begin);
    node.begin = begin;
    node.capacity = capacity;
  }

  // Copies the lists of nodes that are left to a new pool with room for `more` entries. Lists that were moved, and those
  // of eliminated nodes, leave gaps, which would make the pool several times as large.
  void pack(std::int64_t more) {
    std::int64_t room = more;
    for (const Node& node : nodes_) room += node.degree < 0 ? 0 : node.capacity;
    std::vector<Entry> packed;
    reserve_huge(packed, room + std::max<std::int64_t>(room / 2, std::ssize(nodes_)));
    for (Node& node : nodes_) {
      if (node.degree < 0) {
        node.begin = node.size = 0;
        continue;
      }
      const std::int64_t begin = std::ssize(packed);
      packed.insert(packed.end(), pool_.begin() + node.begin, pool_.begin() + node.begin + node.size);
      packed.resize(begin + node.capacity);
      node.begin = begin;
    }
    pool_ = std::move(packed);
  }

  void requeue(std::int32_t u) {
    Node& node = nodes_[u];
    const std::int32_t bucket = DegreeQueue::bucket_of(node.degree);
    if (bucket < node.queued) {
      node.queued = bucket;
      queue_.push(u, bucket);
    }
  }

  std::span<const std::int32_t> rows_;
  std::int32_t size_;
  EliminationOptions options_;
  std::vector<Node> nodes_;
  std::vector<Entry> pool_;
  DegreeQueue queue_;
  FactorPiece<Real> factor_;
  std::vector<Neighbour> neighbours_;
  std::vector<Item> items_;
  std::vector<double> later_;
  std::vector<char> freed_;
};

}  // namespace

template <class Real>
Factor<Real> approximate_cholesky(const Matrix& matrix, std::span<const std::int32_t> tree,
                                  const EliminationOptions& options, Crew& crew) {
  const std::int32_t last = tree.empty() ? 1 : *std::max_element(tree.begin(), tree.end());
  Pieces<Real> pieces{.matrix = matrix,
                      .tree = tree,
                      .owner = {tree.begin(), tree.end()},
                      .place = std::vector<std::int32_t>(tree.size()),
                      .rows = std::vector<std::vector<std::int32_t>>(last + 1),
                      .own = {},
                      .fill = std::vector<std::vector<Fill<Real>>>(last + 1),
                      .slots = matrix.n};
  const auto append = [&](std::int32_t row, std::int32_t piece) {
    if (!tree.empty()) pieces.place[row] = static_cast<std::int32_t>(pieces.rows[piece].size());
    pieces.rows[piece].push_back(row);
  };
  for (std::int32_t k = 0; k < matrix.n; ++k) append(k, tree.empty() ? 1 : tree[k]);
  for (const auto& rows : pieces.rows) pieces.own.push_back(std::ssize(rows));
  Factor<Real> factor;
  factor.level.push_back(0);
  // Rows of high degree wait, as when all are eliminated in the order of degrees. Without it, iterations are four times
  // as many on graphs with hubs, and half as many again on roads, and there are more entries on meshes in space.
  const double degree = static_cast<double>(matrix.index.size()) / std::max(1, matrix.n);
  const auto high = static_cast<std::int32_t>(std::min(1e9, options.copies * degree * std::min(degree, 5.0)));
  for (auto begin = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(last))); begin > 0; begin /= 2) {
    const std::int32_t most = begin == 1 ? std::numeric_limits<std::int32_t>::max() : high;
    std::vector<Left<Real>> left(begin);
    factor.pieces.resize(factor.pieces.size() + begin);
    FactorPiece<Real>* found = factor.pieces.data() + factor.level.back();
    crew.run(begin, [&](std::int64_t k) {
      const auto piece = static_cast<std::int32_t>(begin + k);
      if (begin > 1 && (piece > last || pieces.rows[piece].empty())) return;
      found[k] = Elimination<Real>(pieces, piece, options).run(most, pieces.slots, left[k]);
    });
    for (std::int32_t k = 0; k < begin; ++k) {
      for (const std::int32_t row : left[k].rows) append(row, pieces.owner[row] = (begin + k) / 2);
    }
    for (auto& each : left) {
      for (const Fill<Real>& edge : std::exchange(each.fill, {})) {
        pieces.fill[std::max(pieces.owner[edge.u], pieces.owner[edge.v])].push_back(edge);
      }
    }
    factor.level.push_back(factor.pieces.size());
  }
  factor.slots = pieces.slots - matrix.n;
  return factor;
}

template Factor<float> approximate_cholesky(const Matrix&, std::span<const std::int32_t>, const EliminationOptions&,
                                            Crew&);
template Factor<double> approximate_cholesky(const Matrix&, std::span<const std::int32_t>, const EliminationOptions&,
                                             Crew&);

}  // namespace ohm
