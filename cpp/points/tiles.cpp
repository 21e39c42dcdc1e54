#include "points/tiles.hpp"

#include "base/simd.hpp"

#include <bit>

namespace ohm {

namespace plain {
constexpr int kLanes = 4, kHeight = 4, kWidth = 2;
#include "points/compare_tile.ipp"
}  // namespace plain

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8, kHeight = 4, kWidth = 2;
#include "points/compare_tile.ipp"
}  // namespace v3
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16, kHeight = 8, kWidth = 2;
#include "points/compare_tile.ipp"
}  // namespace v4
#pragma GCC pop_options

namespace {
const auto chosen = __builtin_cpu_supports("x86-64-v4")   ? v4::compare
                    : __builtin_cpu_supports("x86-64-v3") ? v3::compare
                                                          : plain::compare;
}  // namespace
#else
namespace {
const auto chosen = plain::compare;
}  // namespace
#endif

bool compare_tile(PanelView rows, PanelView columns, std::int64_t dims, Tile& tile) {
  return chosen(rows, columns, dims, tile);
}

}  // namespace ohm
