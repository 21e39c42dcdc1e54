#include "graph/edge_products.hpp"

#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "graph/product.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace ohm {
namespace {

constexpr std::int64_t kFewColumns = 15;       // up to here, edges are added one by one
constexpr int kParts = 64;                     // bits of a mask
constexpr std::int64_t kLeastSlots = 1 << 8;   // of a part
constexpr std::int64_t kMostSlots = 1 << 15;   // 512 KiB
constexpr std::int64_t kPending = 128;         // entries that a part collects before it looks them up
constexpr std::int64_t kThreadEdges = 1 << 14;  // fewer edges than this per thread are not worthwhile
constexpr int kWidth = 16;                     // columns that are multiplied together
constexpr int kLine = 8;                       // doubles in a line of the cache
constexpr std::int64_t kAhead = 12;            // entries between a prefetch and its use
constexpr std::uint32_t kNone = ~std::uint32_t{0};

struct Entry {
  std::uint32_t node = 0;  // within its part
  std::uint32_t neighbour = kNone;
  double weight = 0.0;
};

std::uint32_t hash(std::uint32_t node, std::uint32_t neighbour) {
  std::uint64_t key = (static_cast<std::uint64_t>(node) << 32 | neighbour) * 0x9e3779b97f4a7c15;
  key ^= key >> 32;
  return static_cast<std::uint32_t>((key * 0xd6e8feb86659fd93) >> 32);
}

// As many slots as x has entries, divided by 2: the tables take no more memory than x.
std::int64_t slots_of_part(std::int32_t n, std::int64_t columns) {
  if (columns <= kFewColumns) return 0;
  return std::clamp<std::int64_t>(n * columns / 2 / kParts, kLeastSlots, kMostSlots);
}

std::int64_t most_entries(std::int64_t slots) { return slots / 4 * 3; }

std::int64_t rows_of_part(std::int32_t n, int part) { return (n - part + kParts - 1) / kParts; }

// Some columns of a row of x, which need not be aligned.
typedef double Columns __attribute__((vector_size(kWidth * sizeof(double)), aligned(sizeof(double)), may_alias));

// Adds the products of entries sorted by node, for kWidth columns from x on; `ends[row]` is the end of the entries of a
// row. The first `skip` of the columns are left out of y.
OHM_KERNEL void add_rows(const Entry* entries, const std::uint32_t* ends, std::int64_t rows, int part, const double* x,
                         std::int64_t stride, double* y, int skip) {
  std::int64_t at = 0;
  const std::int64_t last = rows == 0 ? 0 : ends[rows - 1];
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t end = ends[row];
    if (at == end) continue;
    const std::int64_t node = row * kParts + part;
    const Columns xi = *reinterpret_cast<const Columns*>(x + node * stride);
    Columns sum = {};
    for (; at < end; ++at) {
      const double* ahead = x + entries[std::min(at + kAhead, last - 1)].neighbour * stride;
      for (int c = 0; c < kWidth; c += kLine) __builtin_prefetch(ahead + c);
      __builtin_prefetch(ahead + kWidth - 1);
      sum += entries[at].weight * (xi - *reinterpret_cast<const Columns*>(x + entries[at].neighbour * stride));
    }
    for (int c = skip; c < kWidth; ++c) y[node * stride + c] += sum[c];
  }
}

}  // namespace

struct EdgeProducts::Tables : std::vector<Entry> {};

struct EdgeProducts::Part {
  int number = 0;
  std::int64_t used = 0;  // slots
  std::int64_t n_pending = 0;
  Entry* table = nullptr;
  std::array<Entry, kPending> pending;
};

struct EdgeProducts::Scratch {
  std::unique_ptr<Entry[]> sorted;
  std::vector<std::uint32_t> ends;
};

EdgeProducts::EdgeProducts(std::int32_t n, const double* x, std::int64_t columns, int threads, double* y)
    : n_(n), x_(x), columns_(columns), threads_(std::min(threads, kParts)), y_(y), slots_(slots_of_part(n, columns)) {
  if (slots_ == 0) return;
  tables_ = std::make_unique<Tables>();
  resize_huge(*tables_, kParts * slots_);
  parts_.resize(kParts);
  for (int number = 0; number < kParts; ++number) {
    parts_[number].number = number;
    parts_[number].table = tables_->data() + number * slots_;
  }
  scratch_.resize(threads_);
  for (Scratch& scratch : scratch_) {
    scratch.sorted = std::make_unique_for_overwrite<Entry[]>(most_entries(slots_));
    scratch.ends.resize(rows_of_part(n, 0));
  }
}

EdgeProducts::~EdgeProducts() = default;

template <class Index, class Weight>
void EdgeProducts::add(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w) {
  if (slots_ == 0) {
    add_edge_products(u, v, w, n_, x_, columns_, threads_, y_);
    return;
  }
  const std::int64_t edges = std::ssize(u);
  const std::int64_t groups = std::clamp<std::int64_t>(edges / kThreadEdges, 1, threads_);
  parallel_for(threads_, groups, [&](std::int64_t group) {
    std::uint64_t mine = 0;
    for (std::int64_t part = group; part < kParts; part += groups) mine |= std::uint64_t{1} << part;
    Scratch& scratch = scratch_[group];
    for (std::int64_t e = 0; e < edges; ++e) {
      const std::int64_t a = u[e];
      const std::int64_t b = v[e];
      if (a >= n_ || b >= n_ || a == b) continue;
      const double weight = weight_at(w, e);
      const auto put = [&](std::int64_t node, std::int64_t neighbour) {
        if ((mine >> (node % kParts) & 1) == 0) return;
        Part& part = parts_[node % kParts];
        part.pending[part.n_pending++] = {static_cast<std::uint32_t>(node / kParts),
                                          static_cast<std::uint32_t>(neighbour), weight};
        if (part.n_pending == kPending) empty_pending(part, scratch);
      };
      put(a, b);
      put(b, a);
    }
  });
}

void EdgeProducts::finish() {
  if (slots_ == 0) return;
  parallel_for(threads_, threads_, [&](std::int64_t group) {
    for (std::int64_t part = group; part < kParts; part += threads_) {
      empty_pending(parts_[part], scratch_[group]);
      empty_table(parts_[part], scratch_[group]);
    }
  });
}

void EdgeProducts::empty_pending(Part& part, Scratch& scratch) {
  const std::int64_t most = most_entries(slots_);
  Entry* table = part.table;
  std::array<std::int64_t, kPending> starts;
  for (std::int64_t i = 0; i < part.n_pending; ++i) {
    const Entry& entry = part.pending[i];
    starts[i] = static_cast<std::int64_t>(hash(entry.node, entry.neighbour)) * slots_ >> 32;
    __builtin_prefetch(&table[starts[i]], 1);
  }
  for (std::int64_t i = 0; i < part.n_pending; ++i) {
    const Entry& entry = part.pending[i];
    if (part.used == most) empty_table(part, scratch);
    std::int64_t slot = starts[i];
    while (table[slot].neighbour != kNone &&
           (table[slot].neighbour != entry.neighbour || table[slot].node != entry.node)) {
      slot = slot + 1 == slots_ ? 0 : slot + 1;
    }
    if (table[slot].neighbour == kNone) {
      table[slot] = entry;
      ++part.used;
    } else {
      table[slot].weight += entry.weight;
    }
  }
  part.n_pending = 0;
}

void EdgeProducts::empty_table(Part& part, Scratch& scratch) {
  if (part.used == 0) return;
  const std::span<Entry> table(part.table, slots_);
  // Counting sort: the starts of the rows become their ends as entries are placed.
  std::vector<std::uint32_t>& ends = scratch.ends;
  std::ranges::fill(ends, 0);
  for (const Entry& entry : table) {
    if (entry.neighbour != kNone) ++ends[entry.node];
  }
  std::uint32_t before = 0;
  for (std::uint32_t& count : ends) before += std::exchange(count, before);
  for (Entry& entry : table) {
    if (entry.neighbour == kNone) continue;
    scratch.sorted[ends[entry.node]++] = entry;
    entry.neighbour = kNone;
  }
  part.used = 0;
  const std::int64_t rows = rows_of_part(n_, part.number);
  for (std::int64_t done = 0; done < columns_; done += kWidth) {
    const std::int64_t first = std::min(done, columns_ - kWidth);  // the last ones may be multiplied twice
    add_rows(scratch.sorted.get(), ends.data(), rows, part.number, x_ + first, columns_, y_ + first,
             static_cast<int>(done - first));
  }
}

std::int64_t EdgeProducts::bytes(std::int32_t n, std::int64_t columns, int threads) {
  const std::int64_t slots = slots_of_part(n, columns);
  if (slots == 0) return 0;
  const std::int64_t tables = kParts * (slots * sizeof(Entry) + sizeof(Part));
  const std::int64_t sorting = most_entries(slots) * sizeof(Entry) + rows_of_part(n, 0) * sizeof(std::uint32_t);
  return tables + std::min(threads, kParts) * sorting;
}

#define OHM_INSTANTIATE(Index, Weight) \
  template void EdgeProducts::add(std::span<const Index>, std::span<const Index>, std::span<const Weight>);
OHM_FOR_EDGE_TYPES(OHM_INSTANTIATE)
#undef OHM_INSTANTIATE

}  // namespace ohm
