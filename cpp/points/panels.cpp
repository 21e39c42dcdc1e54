#include "points/panels.hpp"

#include "base/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ohm {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr int kSample = 64;  // points from which the widest coordinate of a range is found
constexpr std::int64_t kCentred = 255;  // points whose median is the centre
constexpr float kLargestSquare = 1e15f;

// Orders the points as leaves of a tree: each range is split at the median of its widest coordinate, at a multiple of
// kPanel points. Equal coordinates are split by index.
template <class Value>
class Tree {
 public:
  Tree(const Value* x, std::int64_t dims, std::vector<std::int32_t>& order) : x_(x), dims_(dims), order_(order) {
    keys_.resize(order.size());
  }
  void split(std::int64_t begin, std::int64_t end) {
    while (end - begin > kPanel) {
      const std::int64_t panels = (end - begin + kPanel - 1) / kPanel;
      const std::int64_t middle = begin + panels / 2 * kPanel;
      const std::int64_t c = widest(begin, end);
      for (std::int64_t at = begin; at < end; ++at) keys_[at] = {x_[order_[at] * dims_ + c], order_[at]};
      std::nth_element(keys_.begin() + begin, keys_.begin() + middle, keys_.begin() + end);
      for (std::int64_t at = begin; at < end; ++at) order_[at] = keys_[at].second;
      split(begin, middle);
      begin = middle;
    }
    std::sort(order_.begin() + begin, order_.begin() + end);
  }

 private:
  std::int64_t widest(std::int64_t begin, std::int64_t end) {
    const std::int64_t count = std::min<std::int64_t>(kSample, end - begin);
    sum_.assign(dims_, 0.0);
    squares_.assign(dims_, 0.0);
    const Value* first = x_ + order_[begin] * dims_;
    for (std::int64_t s = 1; s < count; ++s) {
      const Value* point = x_ + order_[begin + s * (end - begin) / count] * dims_;
      for (std::int64_t c = 0; c < dims_; ++c) {
        const double difference = static_cast<double>(point[c]) - static_cast<double>(first[c]);
        sum_[c] += difference;
        squares_[c] += difference * difference;
      }
    }
    std::int64_t best = 0;
    double most = -1.0;
    for (std::int64_t c = 0; c < dims_; ++c) {
      const double spread = squares_[c] - sum_[c] * (sum_[c] / static_cast<double>(count));
      if (spread > most) {
        most = spread;
        best = c;
      }
    }
    return best;
  }

  const Value* x_;
  std::int64_t dims_;
  std::vector<std::int32_t>& order_;
  std::vector<std::pair<Value, std::int32_t>> keys_;
  std::vector<double> sum_, squares_;
};

template <class Value>
std::vector<std::int32_t> order_points(const Value* x, std::int64_t n, std::int64_t dims, std::int64_t padded) {
  std::vector<std::int32_t> order(n);
  for (std::int64_t i = 0; i < n; ++i) order[i] = static_cast<std::int32_t>(i);
  Tree<Value>(x, dims, order).split(0, n);
  order.resize(padded, -1);
  return order;
}

template <class Value>
Rounding choose_rounding(const Value* x, std::int64_t n, std::int64_t dims) {
  Rounding rounding;
  std::vector<double>& centre = rounding.centre;
  centre.resize(dims);
  // Medians of some points: a few outliers must not move the centre away from all others.
  const std::int64_t count = std::min(n, kCentred);
  std::vector<double> some(count);
  for (std::int64_t c = 0; c < dims; ++c) {
    for (std::int64_t s = 0; s < count; ++s) some[s] = static_cast<double>(x[s * n / count * dims + c]);
    std::nth_element(some.begin(), some.begin() + count / 2, some.end());
    centre[c] = some[count / 2];
  }
  bool integers = true;
  double most = 0.0;
  for (std::int64_t i = 0; i < n; ++i) {
    double square = 0.0;
    for (std::int64_t c = 0; c < dims; ++c) {
      const double value = static_cast<double>(x[i * dims + c]);
      const double difference = value - centre[c];
      square += difference * difference;
      most = std::max(most, std::abs(difference));
    }
    rounding.largest = std::max(rounding.largest, square);
    for (std::int64_t c = 0; integers && c < dims; ++c) {
      const double value = static_cast<double>(x[i * dims + c]);
      integers = value == std::rint(value);
    }
  }
  // Centres are rounded, too, which moves them by at most 1/2. Then 4 |x|^2 < 2^24, so that each sum is exact.
  const double moved = std::sqrt(rounding.largest) + std::sqrt(static_cast<double>(dims)) / 2.0;
  if (integers && moved * moved < 0x1p22 * (1.0 - 1e-9)) {
    rounding.is_exact = true;
    for (double& value : centre) value = std::rint(value);
    rounding.largest = moved * moved;
    return rounding;
  }
  if (most > 0.0) rounding.exponent = std::min(-std::ilogb(most) - 1, 1000);
  rounding.largest = std::ldexp(rounding.largest, 2 * rounding.exponent);
  const double terms = static_cast<double>(dims);
  rounding.relative = std::min(1.0, (terms + 16.0) * kUnit / (1.0 - std::min(0.5, terms * kUnit)) * 1.001);
  // Numbers below the smallest normal float, and squares below the smallest double.
  rounding.absolute = (terms + 1.0) * std::min(1e20, 1e-36 + std::ldexp(4.0, 2 * rounding.exponent - 1074));
  return rounding;
}

// The sum of the squared gaps between two boxes.
OHM_KERNEL float gap(Box a, Box b, std::int64_t padded) {
  using Floats = Row<float, 16>;
  Floats sum = {};
  for (std::int64_t c = 0; c < padded; c += 16) {
    const Floats above = *reinterpret_cast<const Floats*>(a.low + c) - *reinterpret_cast<const Floats*>(b.high + c);
    const Floats below = *reinterpret_cast<const Floats*>(b.low + c) - *reinterpret_cast<const Floats*>(a.high + c);
    Floats most = above > below ? above : below;
    most = most > 0.0f ? most : Floats{};
    sum += most * most;
  }
  float total = 0.0f;
  for (int l = 0; l < 16; ++l) total += sum[l];
  return total;
}

// Copies up to kPanel points into a panel, and finds their |x|^2 and their box.
template <class Value>
void fill_panel(const Rounding& rounding, std::span<const Value* const> points, std::int64_t dims, std::int64_t padded,
                float* x, double* squares, float* box) {
  std::fill(x, x + dims * kPanel, 0.0f);
  std::fill(squares, squares + points.size(), 0.0);
  for (std::int64_t c = 0; c < padded; ++c) {
    box[c] = c < dims ? std::numeric_limits<float>::max() : 0.0f;
    box[padded + c] = c < dims ? std::numeric_limits<float>::lowest() : 0.0f;
  }
  const double scale = std::ldexp(1.0, rounding.exponent);
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::int64_t c = 0; c < dims; ++c) {
      const auto value = static_cast<float>((static_cast<double>(points[i][c]) - rounding.centre[c]) * scale);
      x[c * kPanel + i] = value;
      squares[i] += static_cast<double>(value) * static_cast<double>(value);
      box[c] = std::min(box[c], value);
      box[padded + c] = std::max(box[padded + c], value);
    }
  }
}

}  // namespace

float Rounding::limit(double square) const {
  const double terms = static_cast<double>(centre.size());
  const double scaled = std::ldexp(square * (1.0 + (terms + 4.0) * 0x1p-52), 2 * exponent);
  if (scaled > static_cast<double>(std::numeric_limits<float>::max()) / 2.0) return std::numeric_limits<float>::max();
  return std::nextafter(static_cast<float>(scaled), std::numeric_limits<float>::max());
}

template <class Value>
Panels::Panels(const Value* x, std::int64_t n, std::int64_t dims, int threads)
    : n_(n),
      dims_(dims),
      count_((n + kPanel - 1) / kPanel),
      padded_((dims + 15) / 16 * 16),
      rounding_(choose_rounding(x, n, dims)),
      order_(order_points(x, n, dims, count_ * kPanel)),
      x_(count_ * kPanel * dims / 16),
      square_(count_ * kPanel / 16),
      boxes_(count_ * 2 * padded_ / 16),
      largest_(count_) {
  parallel_for(threads, count_, [&](std::int64_t panel) {
    const Value* points[kPanel];
    double squares[kPanel];
    const std::int64_t size = std::min<std::int64_t>(kPanel, n - panel * kPanel);
    for (std::int64_t i = 0; i < size; ++i) points[i] = x + order_[panel * kPanel + i] * dims;
    fill_panel<Value>(rounding_, {points, static_cast<std::size_t>(size)}, dims, padded_,
                      floats(x_) + panel * dims * kPanel, squares, floats(boxes_) + panel * 2 * padded_);
    float* to = floats(square_) + panel * kPanel;
    for (std::int64_t i = 0; i < kPanel; ++i) {
      to[i] = i < size ? static_cast<float>(squares[i] * (1.0 - rounding_.relative) - rounding_.absolute)
                       : std::numeric_limits<float>::infinity();
      if (i < size) largest_[panel] = std::max(largest_[panel], static_cast<float>(squares[i]));
    }
  });
}

double Panels::apart(Box a, float largest_a, Box b, float largest_b) const {
  const double terms = static_cast<double>(dims_);
  const double least = static_cast<double>(gap(a, b, padded_)) * (1.0 - (terms + 16.0) * kUnit);
  const double lost = rounding_.relative * (static_cast<double>(largest_a) + static_cast<double>(largest_b));
  return least - 1.001 * lost - rounding_.absolute;
}

QueryPanel::QueryPanel(const Panels& panels)
    : panels_(panels), x_(panels.dims() * kPanel / 16), square_(kPanel / 16), box_(2 * panels.padded() / 16) {}

template <class Value>
bool QueryPanel::fill(std::span<const Value* const> rows) {
  const Rounding& rounding = panels_.rounding();
  const std::int64_t dims = panels_.dims();
  double squares[kPanel];
  fill_panel<Value>(rounding, rows, dims, panels_.padded(), floats(x_), squares, floats(box_));
  largest_ = 0.0f;
  lost_ = 0.0;
  for (std::size_t i = 0; i < kPanel; ++i) {
    floats(square_)[i] = std::numeric_limits<float>::infinity();
    if (i >= rows.size()) continue;
    if (!(squares[i] < kLargestSquare)) return false;
    // Where the panels are exact, a row that is not has to pay for all that is lost.
    bool is_exact = rounding.is_exact && squares[i] < 0x1p22;
    for (std::int64_t c = 0; is_exact && c < dims; ++c) {
      const double value = static_cast<double>(rows[i][c]);
      is_exact = value == std::rint(value);
    }
    const double terms = static_cast<double>(dims);
    double lost = rounding.relative * squares[i] + rounding.absolute;
    if (rounding.is_exact && !is_exact) {
      lost = (terms + 16.0) * kUnit * 2.0 * (squares[i] + rounding.largest) + (terms + 1.0) * 1e-36;
    }
    floats(square_)[i] = static_cast<float>(squares[i] - lost);
    largest_ = std::max(largest_, static_cast<float>(squares[i]));
    if (!rounding.is_exact || is_exact) lost = 0.0;
    lost_ = std::max(lost_, lost);
  }
  return true;
}

template <class Value>
OHM_KERNEL void exact_squares(const Value* x, std::span<const Value* const> others, std::int64_t dims,
                              double* squares) {
  constexpr std::size_t kAtOnce = 8;  // independent sums keep the adders busy
  for (std::size_t first = 0; first < others.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, others.size() - first);
    const Value* y[kAtOnce];
    for (std::size_t t = 0; t < kAtOnce; ++t) y[t] = others[first + std::min(t, count - 1)];
    double sum[kAtOnce] = {};
    for (std::int64_t c = 0; c < dims; ++c) {
      const double own = static_cast<double>(x[c]);
      for (std::size_t t = 0; t < kAtOnce; ++t) {
        const double difference = own - static_cast<double>(y[t][c]);
        sum[t] += difference * difference;
      }
    }
    std::copy_n(sum, count, squares + first);
  }
}

template Panels::Panels(const float*, std::int64_t, std::int64_t, int);
template Panels::Panels(const double*, std::int64_t, std::int64_t, int);
template Panels::Panels(const std::uint8_t*, std::int64_t, std::int64_t, int);
template bool QueryPanel::fill(std::span<const float* const>);
template bool QueryPanel::fill(std::span<const double* const>);
template bool QueryPanel::fill(std::span<const std::uint8_t* const>);
template void exact_squares(const float*, std::span<const float* const>, std::int64_t, double*);
template void exact_squares(const double*, std::span<const double* const>, std::int64_t, double*);
template void exact_squares(const std::uint8_t*, std::span<const std::uint8_t* const>, std::int64_t, double*);

}  // namespace ohm
