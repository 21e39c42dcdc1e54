#include "points/points.hpp"

#include <algorithm>

namespace ohm {
namespace {

template <Metric metric, class V>
OHM_INLINE V term(V x, V y) {
  if constexpr (metric == Metric::product) return x * y;
  const V difference = x - y;
  if constexpr (metric == Metric::squared) return difference * difference;
  const V opposite = y - x;
  return difference > opposite ? difference : opposite;
}

// Tiles 0..tiles-1 of `rows` against panels begin..end-1 of `packed`.
template <Metric metric, class Value>
OHM_KERNEL void fill_tiles(const Value* rows, std::int64_t tiles, const Row<Value, 64 / sizeof(Value)>* packed,
                           std::int64_t begin, std::int64_t end, std::int64_t dims, Value* out, std::int64_t stride) {
  constexpr int kTile = Points<Value>::kTile;
  constexpr int kLanes = Points<Value>::kLanes;
  using V = Row<Value, kLanes>;
  for (std::int64_t panel = begin; panel < end; ++panel) {
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const V* column = packed + panel * dims * 2;
      const Value* row = rows + tile * dims * kTile;
      V sum[kTile][2] = {};
      for (std::int64_t c = 0; c < dims; ++c, column += 2, row += kTile) {
        for (int r = 0; r < kTile; ++r) {
          const V x = row[r] - V{};
          sum[r][0] += term<metric>(x, column[0]);
          sum[r][1] += term<metric>(x, column[1]);
        }
      }
      for (int r = 0; r < kTile; ++r) {
        V* to = reinterpret_cast<V*>(out + (tile * kTile + r) * stride) + panel * 2;
        to[0] = sum[r][0];
        to[1] = sum[r][1];
      }
    }
  }
}

}  // namespace

template <class Value>
Points<Value>::Points(const Value* x, std::int64_t n, std::int64_t dims)
    : n_(n), dims_(dims), panels_((n + kPanel - 1) / kPanel), packed_(panels_ * dims * 2) {
  Value* to = reinterpret_cast<Value*>(static_cast<Row<Value, kLanes>*>(packed_));
  for (std::int64_t panel = 0; panel < panels_; ++panel) {
    const std::int64_t points = std::min<std::int64_t>(kPanel, n - panel * kPanel);
    for (std::int64_t c = 0; c < dims; ++c, to += kPanel) {
      for (std::int64_t i = 0; i < points; ++i) to[i] = x[(panel * kPanel + i) * dims + c];
      std::fill(to + points, to + kPanel, Value{0});
    }
  }
}

template <class Value>
void Points<Value>::distances(Metric metric, std::int64_t first, std::int64_t count, std::int64_t from,
                              Workspace& space) const {
  const Row<Value, kLanes>* packed = packed_;
  const Value* values = reinterpret_cast<const Value*>(packed);
  const std::int64_t tiles = (count + kTile - 1) / kTile;
  for (std::int64_t r = 0; r < tiles * kTile; ++r) {
    const std::int64_t i = std::min(first + r, n_ - 1);  // the last tile may be filled with any point
    const Value* point = values + i / kPanel * dims_ * kPanel + i % kPanel;
    Value* to = space.rows() + r / kTile * dims_ * kTile + r % kTile;
    for (std::int64_t c = 0; c < dims_; ++c) to[c * kTile] = point[c * kPanel];
  }
  const auto fill = [&]<Metric chosen>() {
    fill_tiles<chosen, Value>(space.rows(), tiles, packed, from / kPanel, panels_, dims_, space.row(0), stride());
  };
  if (metric == Metric::squared) fill.template operator()<Metric::squared>();
  if (metric == Metric::manhattan) fill.template operator()<Metric::manhattan>();
  if (metric == Metric::product) fill.template operator()<Metric::product>();
}

template class Points<float>;
template class Points<double>;

}  // namespace ohm
