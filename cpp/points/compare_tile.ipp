// Included by tiles.cpp for each x86-64 level, in a namespace of its own. A part of a tile, kHeight rows against kWidth
// vectors of columns, has as many sums as there are registers for.
using Floats = Row<float, kLanes>;
using Bits = Row<std::int32_t, kLanes>;

// Returns whether a value is within a limit.
inline bool compare_part(PanelView rows, PanelView columns, std::int64_t dims, int first_row, int first_column,
                         Tile& tile) {
  Floats sum[kHeight][kWidth] = {};
  const float* row = rows.x + first_row;
  const float* column = columns.x + first_column;
  for (std::int64_t c = 0; c < dims; ++c, row += kPanel, column += kPanel) {
    const Floats* y = reinterpret_cast<const Floats*>(column);
    for (int r = 0; r < kHeight; ++r) {
      const Floats x = row[r] - Floats{};
      for (int v = 0; v < kWidth; ++v) sum[r][v] += x * y[v];
    }
  }
  Bits near[kWidth] = {};
  for (int v = 0; v < kWidth; ++v) {
    const Floats square = *reinterpret_cast<const Floats*>(columns.square + first_column + v * kLanes);
    const Floats limit = *reinterpret_cast<const Floats*>(columns.limit + first_column + v * kLanes);
    for (int r = 0; r < kHeight; ++r) {
      const Floats own = rows.limit[first_row + r] - Floats{};
      sum[r][v] = (rows.square[first_row + r] + square) - 2.0f * sum[r][v];
      near[v] |= (sum[r][v] <= (own > limit ? own : limit)) & (1 << r);
    }
  }
  std::uint64_t any = 0;
  for (int v = 0; v < kWidth; ++v) {
    Bits* to = reinterpret_cast<Bits*>(tile.rows + first_column + v * kLanes);
    *to = first_row == 0 ? near[v] : *to | near[v] << first_row;
    const auto pairs = std::bit_cast<Row<std::uint64_t, kLanes / 2>>(near[v]);
    for (int l = 0; l < kLanes / 2; ++l) any |= pairs[l];
  }
  if (any == 0) return false;
  for (int r = 0; r < kHeight; ++r) {
    for (int v = 0; v < kWidth; ++v) {
      *reinterpret_cast<Floats*>(tile.value[first_row + r] + first_column + v * kLanes) = sum[r][v];
    }
  }
  return true;
}

inline bool compare(PanelView rows, PanelView columns, std::int64_t dims, Tile& tile) {
  bool any = false;
  for (int r = 0; r < kTileRows; r += kHeight) {
    for (int v = 0; v < kPanel; v += kWidth * kLanes) any |= compare_part(rows, columns, dims, r, v, tile);
  }
  return any;
}
