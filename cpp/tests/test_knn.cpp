#include "points/knn.hpp"

#include "base/rng.hpp"
#include "base/exponential.hpp"
#include "points/kernel_edges.hpp"
#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace {

// Points on a coarse grid, so that there are ties and copies; all sums are exact.
template <class Value>
std::vector<Value> grid_points(std::int64_t n, std::int64_t dims, std::uint64_t levels) {
  std::vector<Value> x(n * dims);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<Value>(ohm::hash(7, i) % levels);
  return x;
}

template <class Value>
Value squared(const std::vector<Value>& x, std::int64_t dims, std::int64_t i, std::int64_t j) {
  Value sum = 0;
  for (std::int64_t c = 0; c < dims; ++c) {
    const Value difference = x[i * dims + c] - x[j * dims + c];
    sum += difference * difference;
  }
  return sum;
}

template <class Value>
void compare_with_brute_force(std::int64_t n, std::int64_t dims, std::int64_t k, std::uint64_t levels) {
  const auto x = grid_points<Value>(n, dims, levels);
  std::set<std::pair<std::int32_t, std::int32_t>> expected;
  for (std::int32_t i = 0; i < n; ++i) {
    std::vector<std::pair<Value, std::int32_t>> others;
    for (std::int32_t j = 0; j < n; ++j) {
      if (j != i) others.emplace_back(squared(x, dims, i, j), j);
    }
    std::sort(others.begin(), others.end());
    for (std::int64_t e = 0; e < k; ++e) expected.emplace(std::min(i, others[e].second), std::max(i, others[e].second));
  }
  const ohm::Points<Value> points(x.data(), n, dims);
  const auto reach = ohm::find_reach(points, k, 0, n, 2);
  std::vector<std::pair<std::int32_t, std::int32_t>> found;
  for (std::int64_t begin = 0; begin < n; begin += 19) {
    const auto block = ohm::neighbour_edges<Value>(points, reach.distance, reach.index, {}, begin,
                                                   std::min(n, begin + 19), 2);
    for (std::size_t e = 0; e < block.u.size(); ++e) found.emplace_back(block.u[e], block.v[e]);
  }
  CHECK(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
}

TEST(neighbours_are_those_of_brute_force) {
  compare_with_brute_force<double>(2, 1, 1, 5);
  compare_with_brute_force<double>(300, 2, 7, 6);
  compare_with_brute_force<double>(300, 2, 299, 6);
  compare_with_brute_force<float>(257, 3, 100, 1000);
  compare_with_brute_force<float>(100, 40, 3, 2);
  compare_with_brute_force<float>(150, 1, 60, 1);  // all equal
}

TEST(distances_have_the_same_bits_both_ways) {
  const std::int64_t n = 90;
  std::vector<float> x(n * 33);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(ohm::uniform(ohm::hash(1, i)) - 0.5);
  const ohm::Points<float> points(x.data(), n, 33);
  ohm::Points<float>::Workspace space(points);
  std::vector<float> d(n * n);
  for (std::int64_t i = 0; i < n; i += 5) {
    const std::int64_t count = std::min<std::int64_t>(5, n - i);
    points.distances(ohm::Metric::squared, i, count, 0, space);
    for (std::int64_t r = 0; r < count; ++r) std::copy_n(space.row(r), n, d.begin() + (i + r) * n);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      CHECK(d[i * n + j] == d[j * n + i]);
      CHECK(d[i * n + j] == squared(x, 33, i, j));
    }
  }
}

TEST(exponential_is_close_everywhere) {
  double worst = 0.0;
  for (double x = -87.3; x < 88.0; x += 0.00137) {
    const double exact = std::exp(static_cast<double>(static_cast<float>(x)));
    worst = std::max(worst, std::abs(ohm::exponential(static_cast<float>(x)) / exact - 1.0));
  }
  CHECK(worst < 2.5e-7);
  CHECK(ohm::exponential(0.0f) == 1.0f);
  CHECK(ohm::exponential(-88.0f) == 0.0f);
  CHECK(ohm::exponential(-INFINITY) == 0.0f);
}

TEST(kernels_of_all_pairs) {
  const std::int64_t n = 37;
  const auto x = grid_points<double>(n, 3, 9);
  const ohm::Points<double> points(x.data(), n, 3);
  const std::int64_t size = ohm::count_pairs(n, 0, n);
  CHECK(size == n * (n - 1) / 2);
  CHECK(ohm::count_pairs(n, 5, 9) == 31 + 30 + 29 + 28);
  std::vector<std::int32_t> u(size), v(size);
  std::vector<float> w(size);
  ohm::kernel_edges(points, ohm::Kernel::rbf, 0.1, 0, n, 2, u.data(), v.data(), w.data());
  std::size_t e = 0;
  for (std::int32_t i = 0; i < n; ++i) {
    for (std::int32_t j = i + 1; j < n; ++j, ++e) {
      CHECK(u[e] == i && v[e] == j);
      CHECK(std::abs(w[e] - std::exp(-0.1 * squared(x, 3, i, j))) < 1e-6);
    }
  }
}

}  // namespace
