// Squared distances of tiles of points in float32, compared with limits while they are in registers.
//
// This is the inner loop of the search for neighbours (nearest.hpp), which computes the few distances that matter again
// in double. So here, and only here, the bits may depend on the machine: sums use FMA where there is one.
#pragma once

#include <cstdint>

namespace ohm {

inline constexpr int kPanel = 32;    // points stored side by side, coordinate after coordinate
inline constexpr int kTileRows = 8;  // points that are compared with a panel at once

// The values of a tile: row r is that of point r against the points of the panel.
struct alignas(64) Tile {
  float value[kTileRows][kPanel];
  std::uint32_t rows[kPanel];  // bit r: value[r][column] is at most the limit of row r or that of the column
};

// Points of a panel as the tiles need them: coordinates, values of |x|^2, and limits. Pointers are to kPanel values, of
// which a tile takes rows from the first kTileRows.
struct PanelView {
  const float* x;
  const float* square;
  const float* limit;
};

// Sets the tile to square_i + square_j - 2 x_i'x_j. If no value is within a limit, it returns false, and `value` is
// undefined.
bool compare_tile(PanelView rows, PanelView columns, std::int64_t dims, Tile& tile);

}  // namespace ohm
