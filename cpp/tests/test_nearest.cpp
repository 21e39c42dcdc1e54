#include "points/nearest.hpp"

#include "base/rng.hpp"
#include "check.hpp"
#include "points/knn.hpp"
#include "points/sparse_nearest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace {

using Found = std::pair<double, std::int32_t>;

template <class Value>
struct Cloud {
  std::int64_t n, dims;
  std::vector<Value> x;
  const Value* row(std::int64_t i) const { return x.data() + i * dims; }
};

template <class Value, class Make>
Cloud<Value> make_cloud(std::int64_t n, std::int64_t dims, const Make& make) {
  Cloud<Value> cloud{n, dims, std::vector<Value>(n * dims)};
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t c = 0; c < dims; ++c) cloud.x[i * dims + c] = static_cast<Value>(make(i, c));
  }
  return cloud;
}

double random(std::int64_t i, std::int64_t c) { return ohm::uniform(ohm::hash(11, i * 1000 + c)); }

template <class Value>
double squared(const Value* x, const Value* y, std::int64_t dims) {
  double sum = 0.0;
  for (std::int64_t c = 0; c < dims; ++c) {
    const double difference = static_cast<double>(x[c]) - static_cast<double>(y[c]);
    sum += difference * difference;
  }
  return sum;
}

// The k nearest of a query by sorting all pairs (distance, index); `own` is left out.
template <class Value>
std::vector<Found> brute_force(const Cloud<Value>& cloud, const Value* query, std::int64_t own, std::int64_t k) {
  std::vector<Found> all;
  for (std::int64_t j = 0; j < cloud.n; ++j) {
    if (j != own) all.emplace_back(squared(query, cloud.row(j), cloud.dims), static_cast<std::int32_t>(j));
  }
  std::sort(all.begin(), all.end());
  all.resize(k);
  return all;
}

bool same(const ohm::Neighbours& found, std::int64_t i, const std::vector<Found>& expected) {
  const auto k = std::ssize(expected);
  for (std::int64_t e = 0; e < k; ++e) {
    if (found.index[i * k + e] != expected[e].second || found.square[i * k + e] != expected[e].first) return false;
  }
  return true;
}

template <class Value>
ohm::Neighbours find_all(const Cloud<Value>& cloud, std::int64_t k, int threads, std::int64_t* redone = nullptr) {
  ohm::Nearest<Value> search(cloud.x.data(), cloud.n, cloud.dims, k, threads);
  CHECK(search.fraction() < 1.0);
  double before = 0.0;
  while (search.advance(threads)) {
    CHECK(search.fraction() >= before);
    before = search.fraction();
  }
  CHECK(search.fraction() == 1.0);
  if (redone != nullptr) *redone = search.n_redone();
  return search.take();
}

template <class Value>
ohm::Neighbours find_sparse(const Cloud<Value>& cloud, std::int64_t k, int threads) {
  std::vector<std::int64_t> offset{0};
  std::vector<std::int32_t> column;
  std::vector<Value> value;
  for (std::int64_t i = 0; i < cloud.n; ++i) {
    for (std::int64_t c = 0; c < cloud.dims; ++c) {
      if (cloud.row(i)[c] == Value{0}) continue;
      column.push_back(static_cast<std::int32_t>(c));
      value.push_back(cloud.row(i)[c]);
    }
    offset.push_back(std::ssize(column));
  }
  const ohm::SparseRows<Value> rows{offset, column, value};
  return ohm::SparseNearest<Value>(rows, cloud.dims).find(rows, k, true, 0, cloud.n, threads);
}

// Returns how many points were searched again.
template <class Value>
std::int64_t compare(const Cloud<Value>& cloud, std::int64_t k) {
  std::int64_t redone = 0;
  const ohm::Neighbours found = find_all(cloud, k, 1, &redone);
  for (std::int64_t i = 0; i < cloud.n; ++i) CHECK(same(found, i, brute_force(cloud, cloud.row(i), i, k)));
  const ohm::Neighbours threaded = find_all(cloud, k, 3);
  CHECK(found.index == threaded.index && found.square == threaded.square);
  if constexpr (!std::is_same_v<Value, std::uint8_t>) {
    const ohm::Neighbours sparse = find_sparse(cloud, k, 2);
    CHECK(found.index == sparse.index && found.square == sparse.square);
  }
  // Points as queries are their own nearest neighbours, unless a copy has a smaller index.
  const ohm::Panels panels(cloud.x.data(), cloud.n, cloud.dims, 2);
  const std::int64_t count = std::min<std::int64_t>(cloud.n, 37);
  const ohm::Neighbours near = ohm::nearest_of(panels, cloud.x.data(), cloud.x.data(), count, k, 2);
  for (std::int64_t i = 0; i < count; ++i) CHECK(same(near, i, brute_force(cloud, cloud.row(i), -1, k)));
  return redone;
}

TEST(nearest_are_those_of_brute_force) {
  CHECK(compare(make_cloud<double>(2, 1, random), 1) == 0);
  CHECK(compare(make_cloud<double>(700, 3, random), 5) == 0);
  CHECK(compare(make_cloud<float>(500, 20, random), 10) == 0);
  CHECK(compare(make_cloud<float>(300, 300, random), 3) == 0);
  CHECK(compare(make_cloud<double>(65, 2, random), 64) == 0);
  compare(make_cloud<std::uint8_t>(400, 100, [](auto i, auto c) { return 255.0 * random(i, c); }), 7);
}

TEST(nearest_with_ties_and_copies) {
  const auto level = [](double levels) {
    return [=](std::int64_t i, std::int64_t c) { return std::floor(levels * random(i, c)); };
  };
  CHECK(compare(make_cloud<double>(600, 3, level(3)), 8) == 0);  // small integers are compared exactly
  CHECK(compare(make_cloud<std::uint8_t>(600, 4, level(4)), 20) == 0);
  CHECK(compare(make_cloud<float>(400, 2, level(1)), 9) == 0);  // all equal
  const auto tenths = [](std::int64_t i, std::int64_t c) { return 0.1 * std::floor(3 * random(i, c)); };
  CHECK(compare(make_cloud<double>(600, 3, tenths), 30) > 0);  // ties that rounding would decide
}

TEST(nearest_of_points_that_float_cannot_tell_apart) {
  const auto at = [](double offset, double spread) {
    return [=](std::int64_t i, std::int64_t c) { return offset + spread * random(i, c); };
  };
  CHECK(compare(make_cloud<double>(300, 4, at(1e8, 1.0)), 5) == 0);  // centred
  CHECK(compare(make_cloud<double>(300, 4, at(0.0, 1e30)), 5) == 0);
  CHECK(compare(make_cloud<float>(300, 4, at(0.0, 1e30)), 5) == 0);
  CHECK(compare(make_cloud<double>(300, 4, at(0.0, 1e-30)), 5) == 0);
  compare(make_cloud<double>(300, 2, at(0.0, 1e-200)), 5);  // all squares are 0
  compare(make_cloud<double>(300, 2, at(0.0, 3e-162)), 5);  // some are
  const auto clusters = [](std::int64_t i, std::int64_t c) { return (i % 2 == 0 ? 0.0 : 1e9) + random(i, c); };
  CHECK(compare(make_cloud<double>(300, 3, clusters), 5) >= 150);
  const auto outlier = [](std::int64_t i, std::int64_t c) { return i == 7 ? 1e12 : random(i, c); };
  CHECK(compare(make_cloud<double>(300, 3, outlier), 5) <= 1);
}

TEST(queries_far_from_all_points) {
  const auto cloud = make_cloud<double>(200, 3, [](auto i, auto c) { return std::floor(9 * random(i, c)); });
  const ohm::Panels panels(cloud.x.data(), cloud.n, cloud.dims, 1);
  CHECK(panels.rounding().is_exact);
  const std::vector<double> queries{0.5, 0.25, 7.1, 1e40, -1e40, 0.0, 3e6, 5.0, 5.0, 4.0, 4.0, 4.0};
  const ohm::Neighbours near = ohm::nearest_of(panels, cloud.x.data(), queries.data(), 4, 6, 1);
  for (std::int64_t q = 0; q < 4; ++q) CHECK(same(near, q, brute_force(cloud, queries.data() + 3 * q, -1, 6)));
}

TEST(values_of_tiles_are_lower_bounds) {
  const std::int64_t n = 96, dims = 513;
  const auto cloud =
      make_cloud<double>(n, dims, [](auto i, auto c) { return 3.0 + random(i, c) - 4.0 * random(c, i % 5); });
  const ohm::Panels panels(cloud.x.data(), n, dims, 1);
  std::vector<float> all(n + 16, std::numeric_limits<float>::max());
  float* limits = all.data();
  while (reinterpret_cast<std::uintptr_t>(limits) % 64 != 0) ++limits;
  ohm::Tile tile;
  double closest = 1.0;
  for (std::int64_t p = 0; p < panels.count(); ++p) {
    for (std::int64_t q = 0; q < panels.count(); ++q) {
      const double apart = panels.apart(panels.box(p), panels.largest(p), panels.box(q), panels.largest(q));
      for (int first = 0; first < ohm::kPanel; first += ohm::kTileRows) {
        ohm::PanelView rows = panels.view(p, limits);
        rows = {rows.x + first, rows.square + first, rows.limit + first};
        CHECK(ohm::compare_tile(rows, panels.view(q, limits), dims, tile));
        for (int r = 0; r < ohm::kTileRows; ++r) {
          for (int c = 0; c < ohm::kPanel; ++c) {
            const double square = std::ldexp(squared(cloud.row(panels.point(p * ohm::kPanel + first + r)),
                                                     cloud.row(panels.point(q * ohm::kPanel + c)), dims),
                                             2 * panels.rounding().exponent);
            CHECK(tile.value[r][c] <= square && apart <= square);
            if (square > 0.0) closest = std::min(closest, (square - tile.value[r][c]) / square);
          }
        }
      }
    }
  }
  CHECK(closest < 1e-3);  // and not far below
}

TEST(neighbours_are_joined_once) {
  const std::vector<std::int32_t> index{1, 2, 0, -1, 0, 1};
  const std::vector<double> square{1.0, 4.0, 1.0, 0.0, 4.0, 9.0};
  const ohm::NeighbourGraph graph = ohm::join_neighbours(index, square, std::vector<double>{1.0, 1.0, 2.0}, 3, 2);
  CHECK((graph.offset == std::vector<std::int64_t>{0, 2, 3, 3}));
  CHECK((graph.v == std::vector<std::int32_t>{1, 2, 2}));
  const double expected[] = {1.0, 2.0, 4.5};
  for (int e = 0; e < 3; ++e) CHECK(std::abs(graph.w[e] - std::exp(-expected[e])) < 1e-6);
}

}  // namespace
