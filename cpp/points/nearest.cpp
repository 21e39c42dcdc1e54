#include "points/nearest.hpp"

#include "base/parallel.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <span>

namespace ohm {
namespace {

constexpr std::int64_t kSlack = 8;           // candidates beyond k
constexpr std::int64_t kBlockPanels = 64;    // at most this many panels in a block
constexpr std::int64_t kCached = 256 << 10;  // bytes of panels that stay in cache while others pass by
constexpr double kPart = 1.5e10;             // multiplications per thread between two looks at the clock
constexpr float kNothing = std::numeric_limits<float>::max();  // the limit before k + kSlack values are known

std::uint64_t make_key(float value, std::int32_t index) {
  // Values below 0 are distances of 0. Bits of positive floats have the order of the floats.
  const float positive = value > 0.0f ? value : 0.0f;
  return static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(positive)) << 32 | static_cast<std::uint32_t>(index);
}
float value_of(std::uint64_t key) { return std::bit_cast<float>(static_cast<std::uint32_t>(key >> 32)); }
std::int32_t index_of(std::uint64_t key) { return static_cast<std::int32_t>(key & 0xffffffffu); }

template <class Key>
void replace_top(Key* heap, std::int64_t size, Key key) {
  std::int64_t at = 0;
  for (std::int64_t child = 1; child < size; child = 2 * at + 1) {
    child += child + 1 < size && heap[child] < heap[child + 1];
    if (!(key < heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = key;
}

using Found = std::pair<double, std::int32_t>;

// Some points whose neighbours are searched for: step 3, and points that are not in the panels.
template <class Value>
struct Wanted {
  std::vector<const Value*> rows;  // at most kPanel
  std::vector<std::int32_t> own;   // index of the point itself, or -1
  alignas(64) float limits[kPanel];
};

// Calls take(r, values, indices) for the points of each panel whose value is within the limit of row r. Returns false
// if float32 cannot hold the rows.
template <class Value, class Take>
bool scan_panels(const Panels& panels, Wanted<Value>& wanted, const Take& take) {
  const std::size_t count = wanted.rows.size();
  QueryPanel query(panels);
  if (!query.template fill<Value>(wanted.rows)) return false;
  std::fill(wanted.limits + count, wanted.limits + kPanel, -1.0f);
  alignas(64) float never[kPanel];
  std::fill(never, never + kPanel, -1.0f);
  Tile tile;
  std::vector<float> values;
  std::vector<std::int32_t> indices;
  for (std::int64_t panel = 0; panel < panels.count(); ++panel) {
    const float most = *std::max_element(wanted.limits, wanted.limits + count);
    if (query.apart(panel) > most) continue;
    const PanelView all = query.view(wanted.limits);
    PanelView columns = panels.view(panel, nullptr);
    columns.limit = never;
    for (std::size_t first = 0; first < count; first += kTileRows) {
      if (!compare_tile({all.x + first, all.square + first, all.limit + first}, columns, panels.dims(), tile)) continue;
      for (std::size_t r = first; r < std::min(count, first + kTileRows); ++r) {
        values.clear();
        indices.clear();
        for (int column = 0; column < kPanel; ++column) {
          const std::int32_t index = panels.point(panel * kPanel + column);
          if (index < 0 || index == wanted.own[r] || !(tile.rows[column] >> (r - first) & 1)) continue;
          values.push_back(tile.value[r - first][column]);
          indices.push_back(index);
        }
        if (!indices.empty()) take(r, values, indices);
      }
    }
  }
  return true;
}

// The k nearest points for each of the wanted ones, one after the other in `heaps`, nearest first. All points whose
// value is within the limit are measured in double.
template <class Value>
void measure_panels(const Panels& panels, const Value* x, Wanted<Value>& wanted, std::int64_t k,
                    std::vector<Found>& heaps) {
  const std::int64_t dims = panels.dims();
  const std::size_t count = wanted.rows.size();
  heaps.assign(count * k, {std::numeric_limits<double>::infinity(), std::numeric_limits<std::int32_t>::max()});
  std::vector<const Value*> others;
  double squares[kPanel];
  const auto take = [&](std::size_t r, const std::vector<float>&, const std::vector<std::int32_t>& indices) {
    others.clear();
    for (const std::int32_t index : indices) others.push_back(x + index * dims);
    exact_squares<Value>(wanted.rows[r], others, dims, squares);
    Found* heap = heaps.data() + r * k;
    for (std::size_t e = 0; e < indices.size(); ++e) {
      const Found found(squares[e], indices[e]);
      if (found < heap[0]) replace_top(heap, k, found);
    }
    wanted.limits[r] = std::min(wanted.limits[r], panels.rounding().limit(heap[0].first));
  };
  if (!scan_panels(panels, wanted, take)) {
    for (std::size_t r = 0; r < count; ++r) {
      for (std::int64_t index = 0; index < panels.n(); ++index) {
        if (index != wanted.own[r]) take(r, {}, {static_cast<std::int32_t>(index)});
      }
    }
  }
  for (std::size_t r = 0; r < count; ++r) std::sort(heaps.begin() + r * k, heaps.begin() + (r + 1) * k);
}

// Step 2 for one point: `nearest` becomes the k nearest of the candidates in a heap of keys. Returns whether no other
// point can be among them.
template <class Value>
bool settle(const Panels& panels, const Value* points, const Value* x, bool is_exact,
            std::span<const std::uint64_t> heap, std::int64_t k, std::int64_t n_others, std::vector<Found>& nearest) {
  const std::int64_t dims = panels.dims();
  const std::size_t kept = heap.size();
  std::vector<const Value*> others(kept);
  std::vector<double> squares(kept);
  nearest.resize(kept);
  for (std::size_t e = 0; e < kept; ++e) others[e] = points + index_of(heap[e]) * dims;
  exact_squares<Value>(x, others, dims, squares.data());
  for (std::size_t e = 0; e < kept; ++e) nearest[e] = {squares[e], index_of(heap[e])};
  std::sort(nearest.begin(), nearest.end());
  nearest.resize(k);
  if (static_cast<std::int64_t>(kept) == n_others) return true;
  const auto [square, index] = nearest[k - 1];
  const float least = value_of(heap[0]);  // of all others, whose index is larger if they have the same value
  const float limit = is_exact ? static_cast<float>(square) : square == 0.0 ? 0.0f : panels.rounding().limit(square);
  return least > limit || (least == limit && index_of(heap[0]) >= index);
}

void store(std::span<const Found> nearest, std::int64_t i, Neighbours& found) {
  const std::int64_t k = std::ssize(nearest);
  for (std::int64_t e = 0; e < k; ++e) {
    found.square[i * k + e] = nearest[e].first;
    found.index[i * k + e] = nearest[e].second;
  }
}

}  // namespace

template <class Value>
Nearest<Value>::Nearest(const Value* x, std::int64_t n, std::int64_t dims, std::int64_t k, int threads)
    : x_(x),
      k_(k),
      panels_(x, n, dims, threads),
      limits_(panels_.count() * kPanel / 16),
      boxes_(0) {
  kept_ = panels_.rounding().is_exact ? k : std::min(k + kSlack, n - 1);
  heaps_.assign(panels_.count() * kPanel * kept_, make_key(kNothing, std::numeric_limits<std::int32_t>::max()));
  std::fill_n(floats(limits_), panels_.count() * kPanel, kNothing);
  std::fill_n(floats(limits_) + n, panels_.count() * kPanel - n, -1.0f);  // padding has no neighbours
  plan_rounds(threads);
}

// Blocks b and b + offset meet, for each offset from 0 on, so that near blocks meet first. With the number of blocks a
// power of two and 2^a the largest one that divides the offset, those b whose bit a is 0 can meet at the same time, and
// then those whose bit is 1.
template <class Value>
void Nearest<Value>::plan_rounds(int threads) {
  const std::int64_t wanted = std::max<std::int64_t>(8 * threads, panels_.count() / kBlockPanels + 1);
  const auto count = std::bit_floor(
      static_cast<std::uint64_t>(std::min(panels_.count(), 2 * wanted - 1)));  // a power of two >= wanted, if possible
  const auto blocks = static_cast<std::int32_t>(count);
  const std::int64_t padded = panels_.padded();
  boxes_ = FloatRows(blocks * 2 * padded / 16);
  for (std::int32_t b = 0; b < blocks; ++b) {
    const Block block{b * panels_.count() / blocks, (b + 1) * panels_.count() / blocks};
    blocks_.push_back(block);
    float* box = floats(boxes_) + b * 2 * padded;
    std::copy_n(panels_.box(block.begin).low, 2 * padded, box);
    largest_.push_back(0.0f);
    for (std::int64_t p = block.begin; p < block.end; ++p) {
      for (std::int64_t c = 0; c < padded; ++c) {
        box[c] = std::min(box[c], panels_.box(p).low[c]);
        box[padded + c] = std::max(box[padded + c], panels_.box(p).high[c]);
      }
      largest_[b] = std::max(largest_[b], panels_.largest(p));
    }
  }
  rounds_.emplace_back();
  for (std::int32_t b = 0; b < blocks; ++b) rounds_[0].emplace_back(b, b);
  for (std::int32_t offset = 1; offset <= blocks / 2; ++offset) {
    const std::int32_t bit = offset & -offset;
    for (const std::int32_t side : {0, bit}) {
      if (side != 0 && 2 * offset == blocks) break;  // these have met
      rounds_.emplace_back();
      for (std::int32_t b = 0; b < blocks; ++b) {
        if ((b & bit) == side) rounds_.back().emplace_back(b, (b + offset) % blocks);
      }
    }
  }
  total_ = static_cast<double>(blocks) * (blocks + 1) / 2.0 * 1.02;  // steps 2 and 3 are the rest
}

template <class Value>
float Nearest<Value>::limit_of(std::int64_t begin, std::int64_t end) const {
  const float* limits = floats(limits_);
  float lane[16];
  std::copy_n(limits + begin * kPanel, 16, lane);
  for (std::int64_t at = begin * kPanel; at < end * kPanel; at += 16) {
    for (int l = 0; l < 16; ++l) lane[l] = std::max(lane[l], limits[at + l]);
  }
  return *std::max_element(lane, lane + 16);
}

template <class Value>
void Nearest<Value>::offer(std::int64_t position, float value, std::int32_t index) {
  Key* heap = heaps_.data() + position * kept_;
  const Key key = make_key(value, index);
  if (!(key < heap[0])) return;
  replace_top(heap, kept_, key);
  floats(limits_)[position] = value_of(heap[0]);
}

template <class Value>
void Nearest<Value>::compare_panels(std::int64_t p, std::int64_t q, Tile& tile) {
  const PanelView rows = panels_.view(p, floats(limits_));
  const PanelView columns = panels_.view(q, floats(limits_));
  const float* limits = floats(limits_);
  for (int first = 0; first < kPanel; first += kTileRows) {
    if (!compare_tile({rows.x + first, rows.square + first, rows.limit + first}, columns, panels_.dims(), tile)) {
      continue;
    }
    for (int column = 0; column < kPanel; ++column) {
      for (std::uint32_t bits = tile.rows[column]; bits != 0; bits &= bits - 1) {
        const int r = std::countr_zero(bits);
        const std::int64_t i = p * kPanel + first + r;
        const std::int64_t j = q * kPanel + column;
        if (p == q && i >= j) continue;  // the point itself, and pairs that come twice
        const float value = tile.value[r][column];
        if (value <= limits[i]) offer(i, value, panels_.point(j));
        if (value <= limits[j]) offer(j, value, panels_.point(i));
      }
    }
  }
}

template <class Value>
void Nearest<Value>::compare_blocks(std::int64_t a, std::int64_t b) {
  const std::int64_t padded = panels_.padded();
  const auto box_of = [&](std::int64_t block) {
    const float* low = floats(boxes_) + block * 2 * padded;
    return Box{low, low + padded};
  };
  const Block rows = blocks_[a];
  const Block columns = blocks_[b];
  const float limit_a = limit_of(rows.begin, rows.end);
  const float limit_b = limit_of(columns.begin, columns.end);
  if (a != b && panels_.apart(box_of(a), largest_[a], box_of(b), largest_[b]) > std::max(limit_a, limit_b)) return;
  const std::int64_t group = std::max<std::int64_t>(1, kCached / (panels_.dims() * kPanel * 4));
  Tile tile;
  for (std::int64_t first = rows.begin; first < rows.end; first += group) {
    const std::int64_t last = std::min(rows.end, first + group);
    for (std::int64_t q = a == b ? first : columns.begin; q < columns.end; ++q) {
      const Box box = panels_.box(q);
      float limit = limit_of(q, q + 1);
      if (a != b && panels_.apart(box_of(a), largest_[a], box, panels_.largest(q)) > std::max(limit_a, limit)) continue;
      for (std::int64_t p = first; p < (a == b ? std::min(last, q + 1) : last); ++p) {
        if (panels_.apart(panels_.box(p), panels_.largest(p), box, panels_.largest(q)) >
            std::max(limit_of(p, p + 1), limit)) {
          continue;
        }
        compare_panels(p, q, tile);
        limit = limit_of(q, q + 1);
      }
    }
  }
}

// Does the next part of the first step that is not done; a part takes about a second. Steps as in the header:
//
// 1. Take the next pairs of blocks of the present round. They are disjoint, so each pair has a task, which compares all
//    panels of one block with those of the other. When the round is done, enter the next.
// 2. Take the next points. Compute the distances of their candidates in double, and keep the k nearest. If the heap of a
//    point cannot have missed a nearer one, it is settled; otherwise note it.
// 3. Take the next points that were noted, a panel at a time. Their k-th distances so far limit which values matter.
//    Compute the distances in double of all points within the limit.
//
// Parts are sized by their cost, in multiplications, so the caller can show progress and be interrupted.
template <class Value>
bool Nearest<Value>::advance(int threads) {
  if (is_done_) return false;
  if (round_ < rounds_.size()) {  // 1
    const auto& pairs = rounds_[round_];
    const double panels = static_cast<double>(panels_.count()) / static_cast<double>(blocks_.size());
    const double cost = panels * panels * kPanel * kPanel * static_cast<double>(panels_.dims() + 8);
    const auto part = static_cast<std::size_t>(std::clamp(kPart / cost, 1.0, 1e6)) * threads;
    const std::size_t count = std::min(pairs.size() - pair_, part);
    parallel_for(threads, static_cast<std::int64_t>(count), [&](std::int64_t task) {
      compare_blocks(pairs[pair_ + task].first, pairs[pair_ + task].second);
    });
    done_ += static_cast<double>(count);
    pair_ += count;
    if (pair_ == pairs.size()) {
      ++round_;
      pair_ = 0;
    }
    return true;
  }
  const std::int64_t n = panels_.n();
  if (settled_ < n) {  // 2
    found_.index.resize(n * k_);
    found_.square.resize(n * k_);
    const double cost = static_cast<double>(kept_ * panels_.dims()) * 4.0;
    const std::int64_t part = static_cast<std::int64_t>(std::clamp(kPart / cost, 64.0, 1e9));
    const std::int64_t end = std::min(n, settled_ + part * threads);
    constexpr std::int64_t kChunk = 64;
    std::vector<std::vector<std::int64_t>> failed((end - settled_ + kChunk - 1) / kChunk);
    parallel_for(threads, std::ssize(failed), [&](std::int64_t task) {
      const std::int64_t first = settled_ + task * kChunk;
      std::vector<Found> nearest;
      for (std::int64_t at = first; at < std::min(end, first + kChunk); ++at) {
        const std::int32_t i = panels_.point(at);
        const std::span<const Key> heap(heaps_.data() + at * kept_, static_cast<std::size_t>(kept_));
        if (!settle(panels_, x_, x_ + i * panels_.dims(), panels_.rounding().is_exact, heap, k_, n - 1, nearest)) {
          failed[task].push_back(at);
        }
        store(nearest, i, found_);
      }
    });
    for (const auto& some : failed) failed_.insert(failed_.end(), some.begin(), some.end());
    settled_ = end;
    return true;
  }
  if (redone_ < failed_.size()) {  // 3
    const double cost = static_cast<double>(n) * kPanel * static_cast<double>(panels_.dims() + 8);
    const auto part = static_cast<std::size_t>(std::clamp(kPart / cost, 1.0, 1e6)) * threads * kPanel;
    const std::size_t end = std::min(failed_.size(), redone_ + part);
    const std::int64_t tasks = static_cast<std::int64_t>((end - redone_ + kPanel - 1) / kPanel);
    parallel_for(threads, tasks, [&](std::int64_t task) {
      const std::size_t first = redone_ + task * kPanel;
      Wanted<Value> wanted;
      for (std::size_t at = first; at < std::min(end, first + kPanel); ++at) {
        const std::int32_t i = panels_.point(failed_[at]);
        wanted.limits[at - first] = panels_.rounding().limit(found_.square[i * k_ + k_ - 1]);
        wanted.rows.push_back(x_ + i * panels_.dims());
        wanted.own.push_back(i);
      }
      std::vector<Found> heaps;
      measure_panels(panels_, x_, wanted, k_, heaps);
      for (std::size_t r = 0; r < wanted.rows.size(); ++r) {
        store({heaps.data() + r * k_, static_cast<std::size_t>(k_)}, wanted.own[r], found_);
      }
    });
    redone_ = end;
    return true;
  }
  is_done_ = true;
  return false;
}

template <class Value>
Neighbours nearest_of(const Panels& panels, const Value* points, const Value* queries, std::int64_t count,
                      std::int64_t k, int threads) {
  const std::int64_t kept = std::min(k + kSlack, panels.n());
  Neighbours found{std::vector<std::int32_t>(count * k), std::vector<double>(count * k)};
  parallel_for(threads, (count + kPanel - 1) / kPanel, [&](std::int64_t task) {
    Wanted<Value> wanted;
    const std::int64_t first = task * kPanel;
    for (std::int64_t i = first; i < std::min(count, first + kPanel); ++i) {
      wanted.limits[i - first] = kNothing;
      wanted.rows.push_back(queries + i * panels.dims());
      wanted.own.push_back(-1);
    }
    // Steps 1 and 2, as for points of the panels.
    std::vector<std::uint64_t> heaps(wanted.rows.size() * kept,
                                     make_key(kNothing, std::numeric_limits<std::int32_t>::max()));
    const auto offer = [&](std::size_t r, const std::vector<float>& values, const std::vector<std::int32_t>& indices) {
      std::uint64_t* heap = heaps.data() + r * kept;
      for (std::size_t e = 0; e < values.size(); ++e) {
        const std::uint64_t key = make_key(values[e], indices[e]);
        if (key < heap[0]) replace_top(heap, kept, key);
      }
      wanted.limits[r] = value_of(heap[0]);
    };
    const bool fits = scan_panels(panels, wanted, offer);
    std::vector<Found> nearest;
    Wanted<Value> failed;
    std::vector<std::int64_t> places;
    for (std::size_t r = 0; r < wanted.rows.size(); ++r) {
      const std::span<const std::uint64_t> heap(heaps.data() + r * kept, static_cast<std::size_t>(kept));
      if (fits && settle(panels, points, wanted.rows[r], false, heap, k, panels.n(), nearest)) {
        store(nearest, first + static_cast<std::int64_t>(r), found);
        continue;
      }
      failed.limits[places.size()] = fits ? panels.rounding().limit(nearest[k - 1].first) : kNothing;
      failed.rows.push_back(wanted.rows[r]);
      failed.own.push_back(-1);
      places.push_back(first + static_cast<std::int64_t>(r));
    }
    if (places.empty()) return;
    std::vector<Found> measured;  // step 3
    measure_panels(panels, points, failed, k, measured);
    for (std::size_t r = 0; r < places.size(); ++r) {
      store({measured.data() + r * k, static_cast<std::size_t>(k)}, places[r], found);
    }
  });
  return found;
}

template class Nearest<float>;
template class Nearest<double>;
template class Nearest<std::uint8_t>;
template Neighbours nearest_of(const Panels&, const float*, const float*, std::int64_t, std::int64_t, int);
template Neighbours nearest_of(const Panels&, const double*, const double*, std::int64_t, std::int64_t, int);
template Neighbours nearest_of(const Panels&, const std::uint8_t*, const std::uint8_t*, std::int64_t, std::int64_t,
                               int);

}  // namespace ohm
