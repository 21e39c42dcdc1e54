#include "sampling/thinning.hpp"

#include "graph/components.hpp"
#include "sampling/balanced_coins.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace ohm {
namespace {

constexpr int kAhead = 24;    // edges between the prefetch of a record and its use
constexpr std::int64_t kPiece = 1 << 16;  // edges that a thread takes at a time
constexpr std::int64_t kBlocks = 16;      // of nodes, see choose_rows
constexpr std::int64_t kBlockEdges = 1 << 12;  // edges between two blocks, at least on average

// Edges are grouped by powers of four of their leverage: group 0 has leverages of at least 1/4.
constexpr int kGroups = 11;
OHM_KERNEL void find_groups(std::span<const float> leverage, unsigned char* group) {
  const std::int64_t size = std::ssize(leverage);
  for (std::int64_t e = 0; e < size; ++e) {
    const int exponent = std::bit_cast<std::int32_t>(leverage[e]) >> 23;  // 125 means from 1/4 to 1/2
    group[e] = static_cast<unsigned char>(std::clamp((126 - exponent) / 2, 0, kGroups - 1));
  }
}

constexpr char kOpen = 2;  // not decided yet

// What is needed to decide about the edges of H. Plain pointers, so that kernels can keep them in registers.
struct Choice {
  const std::int64_t* start;  // of the rows of H
  const std::int32_t* other;
  const float* weight;
  const float* probability;
  std::uint64_t key;
  Balance* balance;
  std::int64_t* next;  // in each row, the first edge that has not been visited
  char* keep;
};

// The ends of the edge are given by their places in `balance`.
OHM_INLINE bool decide_edge(const Choice& c, const Tables& tables, std::int64_t e, std::int32_t a, std::int32_t b) {
  const float probability = c.probability[e];
  const Balance of_a = c.balance[a], of_b = c.balance[b];
  const Fate* fate = decide(tables, probability, draw(c.key, static_cast<std::uint64_t>(e)), of_a + of_b);
  if (fate == nullptr) return false;
  const float weight = c.weight[e] / probability;
  c.balance[a] = of_a + fate->sign * (weight * of_a[kBits]);
  c.balance[b] = of_b + fate->sign * (weight * of_b[kBits]);
  return fate->keep;
}

// Whether the weight that is to be balanced is not that of the two nodes.
OHM_INLINE bool leaves_cluster(const Embedding& embedding, std::int32_t u, std::int32_t v) {
  if (embedding.nodes[u].cluster == embedding.nodes[v].cluster) return false;
  const Sides sides = find_sides(embedding, u, v);
  return sides.vertex_u != u || sides.vertex_v != v;
}

// A walk through rows u..last-1.
struct Walk {
  std::int32_t u, last;
  std::int64_t e, row_end;
};

// Decides about the edges of rows first..last-1 to nodes below `end` that have not been visited.
//
// 1. Consecutive edges share a node, so one would wait for the other. Four walks, each through a quarter of the rows,
//    take turns instead. A walk starts at the first edge of its first row that has not been visited.
// 2. A walk goes to its next edge; if the row has none below `end`, it notes where the row is to continue, and enters
//    the next row.
// 3. An edge with probability 1 is kept. One that leaves a cluster with a small cut is left open. Of the others, the
//    bits of the probability are rounded such that the two ends stay balanced (balanced_coins.hpp).
OHM_KERNEL void decide_block(const Choice choice, const Embedding embedding, std::int32_t first, std::int32_t last,
                             std::int32_t end) {
  constexpr int kWalks = 4;
  const Choice c = choice;
  const Tables& tables = Tables::get();
  const bool has_clusters = !embedding.clusters.empty();
  const auto enter_row = [&](Walk& walk) {
    if (walk.u == walk.last) return;
    walk.e = c.next[walk.u];
    walk.row_end = c.start[walk.u + 1];
  };
  Walk walks[kWalks];  // 1
  for (int k = 0; k < kWalks; ++k) {
    const std::int32_t quarter = (last - first + kWalks - 1) / kWalks;
    walks[k] = {std::min(last, first + k * quarter), std::min(last, first + (k + 1) * quarter), 0, 0};
    enter_row(walks[k]);
  }
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (Walk& walk : walks) {
      // 2
      while (walk.u < walk.last && (walk.e == walk.row_end || c.other[walk.e] >= end)) {
        c.next[walk.u++] = walk.e;
        enter_row(walk);
      }
      if (walk.u == walk.last) continue;
      is_done = false;
      // 3
      const std::int64_t e = walk.e++;
      const std::int32_t v = c.other[e];
      if (c.probability[e] >= 1.0f) {
        c.keep[e] = 1;
      } else if (has_clusters && leaves_cluster(embedding, walk.u, v)) {
        c.keep[e] = kOpen;
      } else {
        c.keep[e] = static_cast<char>(decide_edge(c, tables, e, walk.u, v));
      }
    }
  }
}

// Decides about the edges that `decide_block` has left open.
void decide_clusters(const Triangle& h, const Choice& c, const Embedding& embedding, Crew& crew) {
  std::vector<std::vector<std::pair<std::int32_t, std::int64_t>>> found(count_row_pieces(h));
  for_row_pieces(h, crew, [&](std::int64_t piece, std::int32_t u, std::int32_t last) {
    const char* end = c.keep + h.start[last];
    for (const char* at = c.keep + h.start[u]; (at = std::find(at, end, kOpen)) != end; ++at) {
      while (h.start[u + 1] <= at - c.keep) ++u;
      found[piece].emplace_back(u, at - c.keep);
    }
  });
  for (const auto& part : found) {
    for (const auto& [u, e] : part) {
      const Sides sides = find_sides(embedding, u, c.other[e]);
      c.keep[e] = static_cast<char>(decide_edge(c, Tables::get(), e, sides.vertex_u, sides.vertex_v));
    }
  }
}

OHM_KERNEL void add_row_sketches(const Triangle& h, const Embedding& embedding, float factor, std::int32_t first,
                                 std::int32_t last, std::span<float> squares) {
  for (std::int32_t u = first; u < last; ++u) {
    for (std::int64_t e = h.start[u]; e < h.start[u + 1]; ++e) {
      if (e + kAhead < h.edges()) __builtin_prefetch(&embedding.nodes[h.other[e + kAhead]]);
      squares[e] += factor * sketch(embedding.nodes[u], embedding.nodes[h.other[e]]);
    }
  }
}

OHM_KERNEL LeverageSums some_leverages(const Triangle& h, const Embedding& embedding, std::span<const float> squares,
                                       float certain, std::int32_t first, std::int32_t last,
                                       std::span<float> leverage) {
  LeverageSums sums;
  for (std::int32_t u = first; u < last; ++u) {
    for (std::int64_t e = h.start[u]; e < h.start[u + 1]; ++e) {
      if (e + kAhead < h.edges()) __builtin_prefetch(&embedding.nodes[h.other[e + kAhead]]);
      const float w = h.weight[e];
      const Sides best = find_sides(embedding, u, h.other[e]);
      const float floor = resistance_floor(1.0f / best.inverse_cut_u - w, 1.0f / best.inverse_cut_v - w, w);
      const float square = squares.empty() ? sketch(embedding.nodes[u], embedding.nodes[h.other[e]]) : squares[e];
      leverage[e] = std::min(1.0f, w * resistance(square, floor, floor));
      const auto sketched = static_cast<double>(w * square);
      sums.estimates += static_cast<double>(leverage[e]);
      sums.sketch += sketched;
      sums.unexplained += square > kFar * floor && w * floor < certain ? sketched : 0.0;
    }
  }
  return sums;
}

}  // namespace

std::int64_t count_row_pieces(const Triangle& h) { return std::max<std::int64_t>(1, h.edges() / kPiece); }

void add_sketches(const Triangle& h, const Embedding& embedding, float factor, std::span<float> squares, Crew& crew) {
  for_row_pieces(h, crew, [&](std::int64_t, std::int32_t first, std::int32_t last) {
    add_row_sketches(h, embedding, factor, first, last, squares);
  });
}

LeverageSums row_leverages(const Triangle& h, const Embedding& embedding, std::span<const float> squares,
                           float certain, std::span<float> leverage, Crew& crew) {
  std::vector<LeverageSums> parts(count_row_pieces(h));
  for_row_pieces(h, crew, [&](std::int64_t piece, std::int32_t first, std::int32_t last) {
    parts[piece] = some_leverages(h, embedding, squares, certain, first, last, leverage);
  });
  LeverageSums sums;
  for (const LeverageSums& part : parts) {
    sums.estimates += part.estimates;
    sums.sketch += part.sketch;
    sums.unexplained += part.unexplained;
  }
  return sums;
}

void keep_forest(const Triangle& h, std::int32_t n_components, std::span<float> leverage, Crew& crew) {
  // In groups, because sorting all edges would gain little.
  Buffer<unsigned char> group(leverage.size());
  for_row_pieces(h, crew, [&](std::int64_t, std::int32_t first, std::int32_t last) {
    const std::int64_t begin = h.start[first];
    find_groups(leverage.subspan(begin, h.start[last] - begin), group.data() + begin);
  });
  std::vector<std::int32_t> parent = lone_nodes(h.n());
  std::int32_t missing = h.n() - n_components;
  for (unsigned char wanted = 0; wanted < kGroups && missing > 0; ++wanted) {
    visit_joining(h, group, wanted, parent, crew, [&](std::int32_t u, std::int32_t v, std::int64_t e) {
      if (join_sets(parent, u, v)) {
        leverage[e] = kCertain;
        --missing;
      }
      return missing > 0;
    });
  }
}

double fit_beta(std::span<const float> leverage, std::int64_t rows, Crew& crew) {
  const std::int64_t size = std::ssize(leverage);
  const std::int64_t pieces = (size + kPiece - 1) / kPiece;
  std::vector<std::int64_t> whole(pieces);
  std::vector<double> rest(pieces);
  double beta = 1.0 / static_cast<double>(kCertain);
  for (;;) {
    for_blocks(crew, size, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t piece = begin / kPiece;
      whole[piece] = 0;
      rest[piece] = 0.0;
      for (const float t : leverage.subspan(begin, end - begin)) {
        const bool cut = beta * static_cast<double>(t) >= 1.0;
        whole[piece] += cut;
        rest[piece] += cut ? 0.0 : static_cast<double>(t);
      }
    }, kPiece);
    const std::int64_t n_whole = std::accumulate(whole.begin(), whole.end(), std::int64_t{0});
    const double sum = std::accumulate(rest.begin(), rest.end(), 0.0);
    const double next = n_whole < rows ? static_cast<double>(rows - n_whole) / sum : beta;
    if (!(next > beta * (1.0 + 1e-12))) return beta;
    beta = next;
  }
}

// 1. All balances are zero; each vertex, node or cluster, brings the inverse cut to which its balance is relative.
// 2. Cut the nodes into blocks, as many as leave about kBlockEdges edges between two of them. Blocks i and j = i + apart
//    form a task: the edges between them.
// 3. For apart = 0, 1, ...: tasks share no block if i / apart is even for all of them, or odd for all. So these are two
//    groups of tasks that run at the same time. For each i, j ascends, as in a row, so a row is visited in its order.
// 4. One thread decides about the edges that were left open.
Buffer<char> choose_rows(const Triangle& h, const Embedding& embedding, std::span<const float> probability,
                         std::uint64_t key, Crew& crew) {
  // 1
  const Rows<float, 4> balance(std::ssize(embedding.nodes) + std::ssize(embedding.clusters));
  Balance* place = balance;
  for (const NodeRecord& node : embedding.nodes) *place++ = Balance{0.0f, 0.0f, 0.0f, node.inverse_degree};
  for (const Cluster& cluster : embedding.clusters) *place++ = Balance{0.0f, 0.0f, 0.0f, cluster.inverse_cut};
  std::vector<std::int64_t> next(h.start.begin(), h.start.end() - 1);
  Buffer<char> keep(h.edges());
  const Choice choice{h.start.data(), h.other.data(), h.weight.data(), probability.data(),
                      key,            balance,        next.data(),     keep.data()};
  std::int64_t blocks = 1;  // 2
  while (blocks < kBlocks && 2 * blocks * blocks * kBlockEdges <= h.edges()) blocks *= 2;
  const auto first_node = [&](std::int64_t block) {
    return static_cast<std::int32_t>(std::int64_t{h.n()} * block / blocks);
  };
  std::vector<std::int64_t> tasks;  // 3
  for (std::int64_t apart = 0; apart < blocks; ++apart) {
    for (const std::int64_t half : {0, 1}) {
      tasks.clear();
      for (std::int64_t i = 0; i + apart < blocks; ++i) {
        if ((apart == 0 ? 0 : i / apart % 2) == half) tasks.push_back(i);
      }
      crew.run(std::ssize(tasks), [&](std::int64_t task) {
        const std::int64_t i = tasks[task];
        decide_block(choice, embedding, first_node(i), first_node(i + 1), first_node(i + apart + 1));
      });
    }
  }
  if (!embedding.clusters.empty()) decide_clusters(h, choice, embedding, crew);  // 4
  return keep;
}

}  // namespace ohm
