#include "solver/ordering.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <limits>
#include <numeric>

namespace ohm {
namespace {

// Appends the unseen neighbours of a node.
void append_neighbours(const CsrView& graph, std::int32_t node, std::vector<bool>& seen,
                       std::vector<std::int32_t>& found) {
  for (std::int64_t e = graph.indptr[node]; e < graph.indptr[node + 1]; ++e) {
    const std::int32_t other = graph.indices[e];
    if (seen[other]) continue;
    seen[other] = true;
    found.push_back(other);
  }
}

}  // namespace

int ball_radius(const CsrView& graph) {
  const std::size_t enough = std::min<std::size_t>(graph.n / 64, 1 << 14);
  std::vector<bool> seen(graph.n, false);
  std::vector<std::int32_t> ball{graph.n / 2};
  seen[ball[0]] = true;
  int radius = 0;
  for (std::size_t head = 0; head < ball.size() && ball.size() < enough; ++radius) {
    for (const std::size_t level_end = ball.size(); head < level_end && ball.size() < enough; ++head) {
      append_neighbours(graph, ball[head], seen, ball);
    }
  }
  return radius;
}

bool numbers_are_scattered(const CsrView& graph) {
  // A mean distance of 2^15 numbers is 256 KiB of doubles: neighbours still meet in the L2 cache. A sample of rows is
  // enough to see it.
  std::int64_t most = 1 << 15;
  // Cells of nodes with near numbers are the start of a dissection.
  if (graph.n >= kLeastDissected) most = std::min<std::int64_t>(most, graph.n / 8);
  const std::int32_t step = std::max(1, graph.n / 20000);
  std::int64_t distance = 0;
  std::int64_t entries = 0;
  for (std::int64_t u = 0; u < graph.n; u += step) {
    for (std::int64_t e = graph.indptr[u]; e < graph.indptr[u + 1]; ++e) {
      distance += std::abs(graph.indices[e] - u);
      ++entries;
    }
  }
  return distance > most * entries;
}

std::vector<std::int32_t> bfs_order(const CsrView& graph) {
  std::vector<std::int32_t> order;
  order.reserve(graph.n);
  std::vector<bool> seen(graph.n, false);
  for (std::int32_t root = 0; root < graph.n; ++root) {
    if (seen[root]) continue;
    std::size_t head = order.size();
    seen[root] = true;
    order.push_back(root);
    while (head < order.size()) append_neighbours(graph, order[head++], seen, order);
  }
  return order;
}

void sort_by_length(const CsrView& graph, std::vector<std::int32_t>& order) {
  constexpr std::int64_t kWindow = 1 << 12;
  constexpr std::int64_t kLongest = 255;  // in longer rows a wrong guess does not matter
  const auto length = [&](std::int32_t node) {
    return std::min(kLongest, graph.indptr[node + 1] - graph.indptr[node]);
  };
  const std::vector<std::int32_t> before = order;
  for (std::int64_t begin = 0; begin < graph.n; begin += kWindow) {
    const std::int64_t end = std::min<std::int64_t>(graph.n, begin + kWindow);
    std::array<std::int64_t, kLongest + 2> place{begin};
    for (std::int64_t k = begin; k < end; ++k) ++place[length(before[k]) + 1];
    std::partial_sum(place.begin(), place.end(), place.begin());
    for (std::int64_t k = begin; k < end; ++k) order[place[length(before[k])]++] = before[k];
  }
}

namespace {

// Connected cells of at most kCell rows, and how many edges join them.
class Cells {
  struct Link {
    std::int32_t cell;
    std::int32_t edges;
  };

 public:
  static constexpr std::int32_t kCell = 64;
  static constexpr std::size_t kLeastMean = 8;  // rows in a cell; if there are fewer, the graph is not local, nor cut

  // Cells lie within blocks of rows, so threads can make them.
  Cells(const Matrix& a, Crew& crew) : cell_(a.n, -1) {
    constexpr std::int64_t kBlocks = 4;
    const std::int64_t block = a.n / kBlocks + 1;
    std::vector<std::int32_t> rows(a.n);  // by cell
    std::vector<std::vector<std::int32_t>> begin(kBlocks);
    crew.run(kBlocks, [&](std::int64_t b) {
      const auto first = static_cast<std::int32_t>(b * block);
      const auto last = static_cast<std::int32_t>(std::min<std::int64_t>(a.n, first + block));
      std::int32_t size = first;
      for (std::int32_t k = first; k < last; ++k) {
        if (cell_[k] >= 0) continue;
        const std::int32_t full = size + kCell;
        const auto append = [&](std::int32_t row) {
          cell_[row] = static_cast<std::int32_t>(begin[b].size()) - 1;
          rows[size++] = row;
        };
        begin[b].push_back(size);
        append(k);
        for (std::int32_t head = begin[b].back(); head < size && size < full; ++head) {
          for (std::int64_t e = a.start[rows[head]]; e < a.start[rows[head] + 1] && size < full; ++e) {
            const std::int32_t row = a.index[e];
            if (row >= first && row < last && cell_[row] < 0) append(row);
          }
        }
      }
    });
    std::vector<std::int32_t> first_cell{0}, begins;
    for (const auto& found : begin) {
      begins.insert(begins.end(), found.begin(), found.end());
      first_cell.push_back(static_cast<std::int32_t>(begins.size()));
    }
    begins.push_back(a.n);
    const std::size_t cells = begins.size() - 1;
    if (kLeastMean * cells > rows.size()) return;
    piece_.assign(cells, 1);
    rank_.resize(cells);
    for (std::size_t c = 0; c < cells; ++c) size_.push_back(begins[c + 1] - begins[c]);
    crew.run(kBlocks, [&](std::int64_t b) {
      for (std::int64_t k = b * block; k < std::min<std::int64_t>(a.n, (b + 1) * block); ++k) cell_[k] += first_cell[b];
    });
    std::vector<std::vector<Link>> links(kBlocks);
    start_.assign(cells + 1, 0);
    crew.run(kBlocks, [&](std::int64_t b) {
      std::vector<std::int64_t> found(cells, -1);  // the latest link to each cell
      for (std::int32_t c = first_cell[b]; c < first_cell[b + 1]; ++c) {
        const std::int64_t before = std::ssize(links[b]);
        for (std::int32_t k = begins[c]; k < begins[c + 1]; ++k) {
          for (std::int64_t e = a.start[rows[k]]; e < a.start[rows[k] + 1]; ++e) {
            const std::int32_t other = cell_[a.index[e]];
            if (found[other] < before) {
              found[other] = std::ssize(links[b]);
              links[b].push_back({other, 0});
            }
            ++links[b][found[other]].edges;
          }
        }
        start_[c + 1] = std::ssize(links[b]) - before;
      }
    });
    std::partial_sum(start_.begin(), start_.end(), start_.begin());
    for (const auto& some : links) links_.insert(links_.end(), some.begin(), some.end());
  }

  // Cuts the cells of a piece in two, down to pieces numbered `most` and above.
  void bisect(std::vector<std::int32_t> cells, std::int32_t piece, std::int32_t most) {
    if (piece >= most) return;
    cells = search(search(std::move(cells), piece), piece);  // the first search ends at the rim
    // The least cut near the middle.
    std::int64_t total = 0, sum = 0, cut = 0, least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t k = 0; k < cells.size(); ++k) {
      rank_[cells[k]] = static_cast<std::int32_t>(k);
      total += size_[cells[k]];
    }
    std::size_t best = 0;
    for (std::size_t k = 0; k < cells.size() && 20 * sum <= 11 * total; ++k) {
      if (20 * sum >= 9 * total && cut < least) {
        least = cut;
        best = k;
      }
      sum += size_[cells[k]];
      for (std::int64_t e = start_[cells[k]]; e < start_[cells[k] + 1]; ++e) {
        const auto [other, edges] = links_[e];
        if (piece_[other] != piece || other == cells[k]) continue;
        cut += rank_[other] > static_cast<std::int32_t>(k) ? edges : -edges;
      }
    }
    for (std::size_t k = 0; k < cells.size(); ++k) piece_[cells[k]] = 2 * piece + (k >= best);
    bisect({cells.begin(), cells.begin() + best}, 2 * piece, most);
    bisect({cells.begin() + best, cells.end()}, 2 * piece + 1, most);
  }

  std::int32_t piece(std::int64_t row) const { return piece_[cell_[row]]; }
  std::size_t size() const { return piece_.size(); }

 private:
  // The cells of a piece in breadth-first order, from the last of them.
  std::vector<std::int32_t> search(const std::vector<std::int32_t>& cells, std::int32_t piece) {
    std::vector<std::int32_t> found;
    found.reserve(cells.size());
    const auto append = [&](std::int32_t cell) {
      piece_[cell] = -piece;
      found.push_back(cell);
    };
    std::size_t head = 0;
    for (std::size_t k = cells.size(); k-- > 0;) {
      if (piece_[cells[k]] == piece) append(cells[k]);
      for (; head < found.size(); ++head) {
        for (std::int64_t e = start_[found[head]]; e < start_[found[head] + 1]; ++e) {
          if (piece_[links_[e].cell] == piece) append(links_[e].cell);
        }
      }
    }
    for (const std::int32_t cell : cells) piece_[cell] = piece;
    return found;
  }

  std::vector<std::int32_t> cell_;  // of each row
  std::vector<std::int32_t> size_;  // rows of each cell
  std::vector<std::int64_t> start_;
  std::vector<Link> links_;
  std::vector<std::int32_t> piece_;
  std::vector<std::int32_t> rank_;
};

}  // namespace

std::vector<std::int32_t> dissect(const Matrix& a, Crew& crew) {
  constexpr std::int32_t kLeafRows = kLeastDissected / 4;  // on average, at least
  constexpr std::int32_t kMostLeaves = 16;
  constexpr std::int64_t kSeparatorShare = 7;  // at most one in so many rows
  std::int32_t leaves = std::min(kMostLeaves, a.n / kLeafRows);
  leaves = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(leaves)));
  if (a.n < kLeastDissected || a.n > std::numeric_limits<std::int32_t>::max() / 2) return {};
  Cells cells(a, crew);
  if (cells.size() == 0) return {};
  std::vector<std::int32_t> all(cells.size());
  std::iota(all.begin(), all.end(), 0);
  cells.bisect(std::move(all), 1, leaves);
  // Of two neighbours that a separator is to separate, the one with the smaller piece goes there.
  std::vector<std::int32_t> tree(a.n);
  for_blocks(crew, a.n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int32_t own = cells.piece(k);
      std::uint32_t differ = 0;
      for (std::int64_t e = a.start[k]; e < a.start[k + 1]; ++e) {
        const std::int32_t other = cells.piece(a.index[e]);
        if (other > own) differ = std::max(differ, static_cast<std::uint32_t>(other ^ own));
      }
      tree[k] = own >> std::bit_width(differ);
    }
  });
  // Joins the lowest pieces while too many rows are in separators.
  std::vector<std::int64_t> rows(2 * leaves, 0);
  for (const std::int32_t piece : tree) ++rows[piece];
  std::int64_t separators = std::accumulate(rows.begin(), rows.begin() + leaves, std::int64_t{0});
  while (leaves > 1 && kSeparatorShare * separators > a.n) {
    leaves /= 2;
    separators -= std::accumulate(rows.begin() + leaves, rows.begin() + 2 * leaves, std::int64_t{0});
  }
  if (leaves == 1) return {};
  for (std::int32_t& piece : tree) {
    while (piece >= 2 * leaves) piece /= 2;
  }
  return tree;
}

}  // namespace ohm
