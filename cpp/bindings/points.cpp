// Nearest neighbours and edges between points, in ohmlearn._core.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/arrays.hpp"
#include "points/kernel_edges.hpp"
#include "points/knn.hpp"
#include "points/nearest.hpp"
#include "points/sparse_nearest.hpp"
#include "sampling/sampler.hpp"

namespace ohm::python {
namespace {

// The rows of x, which are not copied, in panels.
template <class Value>
struct PointIndex {
  const Value* x;
  Panels panels;
};

// ---- neighbours ---------------------------------------------------------------------------------

// (index, squared distance), k entries per point.
using Pair = std::tuple<ArrayOut<std::int32_t>, ArrayOut<double>>;
Pair to_pair(Neighbours&& found) { return {to_numpy(std::move(found.index)), to_numpy(std::move(found.square))}; }

using Offsets = ArrayIn<std::int64_t>;
using Columns = ArrayIn<std::int32_t>;

// Arrays of scipy, whose contents its full check guarantees.
template <class Value>
SparseRows<Value> as_rows(const Offsets& offsets, const Columns& columns, const ArrayIn<Value>& values) {
  require(offsets.size() > 0 && columns.size() == values.size() &&
              offsets.data()[offsets.size() - 1] == static_cast<std::int64_t>(values.size()),
          "the arrays of a CSR matrix do not fit together");
  return {as_span(offsets), as_span(columns), as_span(values)};
}

// Indices read the points of their arrays, which keep_alive keeps as long as the index.
template <class Value>
void bind_dense(nb::module_& m, const std::string& suffix) {
  using Search = Nearest<Value>;
  nb::class_<Search>(m, ("Nearest" + suffix).c_str(), "Search for the neighbours of all points.")
      .def("__init__", [](Search* self, MatrixIn<Value> x, std::int64_t k, int threads) {
        require(1 <= k && k < static_cast<std::int64_t>(x.shape(0)), "k must lie between 1 and n - 1");
        without_gil([&] { new (self) Search(x.data(), x.shape(0), x.shape(1), k, threads); });
      }, nb::keep_alive<1, 2>(), "x"_a.noconvert(), "k"_a, "threads"_a)
      .def("advance", [](Search& self, int threads) {
        return without_gil([&] { return self.advance(threads); });
      }, "threads"_a, "Do a part of the work; False if nothing was left.")
      .def_prop_ro("fraction", &Search::fraction)
      .def("take", [](Search& self) { return to_pair(self.take()); });
  using Index = PointIndex<Value>;
  nb::class_<Index>(m, ("PointIndex" + suffix).c_str(), "Points among which neighbours of others are found.")
      .def("__init__", [](Index* self, MatrixIn<Value> x, int threads) {
        without_gil([&] { new (self) Index{x.data(), Panels(x.data(), x.shape(0), x.shape(1), threads)}; });
      }, nb::keep_alive<1, 2>(), "x"_a.noconvert(), "threads"_a)
      .def("find", [](const Index& self, MatrixIn<Value> queries, std::int64_t k, int threads) {
        const std::int64_t n = self.panels.n();
        require(static_cast<std::int64_t>(queries.shape(1)) == self.panels.dims(),
                "queries must have the coordinates of the points");
        require(1 <= k && k <= n, "k must lie between 1 and n");
        return to_pair(without_gil([&] {
          return nearest_of<Value>(self.panels, self.x, queries.data(), queries.shape(0), k, threads);
        }));
      }, "queries"_a.noconvert(), "k"_a, "threads"_a);
}

template <class Value>
void bind_sparse(nb::module_& m, const std::string& suffix) {
  using Self = SparseNearest<Value>;
  nb::class_<Self>(m, ("SparseIndex" + suffix).c_str(), "Rows of a CSR matrix among which neighbours are found.")
      .def("__init__", [](Self* self, Offsets offsets, Columns columns, ArrayIn<Value> values, std::int64_t dims) {
        const auto rows = as_rows(offsets, columns, values);
        without_gil([&] { new (self) Self(rows, dims); });
      }, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), "indptr"_a.noconvert(),
           "indices"_a.noconvert(), "data"_a.noconvert(), "dims"_a)
      .def("find_own", [](const Self& self, std::int64_t k, std::int64_t begin, std::int64_t end, int threads) {
        require(1 <= k && k < self.n(), "k must lie between 1 and n - 1");
        require(0 <= begin && begin <= end && end <= self.n(), "no such points");
        return to_pair(without_gil([&] { return self.find(self.points(), k, true, begin, end, threads); }));
      }, "k"_a, "begin"_a, "end"_a, "threads"_a)
      .def("find", [](const Self& self, Offsets offsets, Columns columns, ArrayIn<Value> values, std::int64_t k,
                      int threads) {
        require(1 <= k && k <= self.n(), "k must lie between 1 and n");
        const auto rows = as_rows(offsets, columns, values);
        return to_pair(without_gil([&] { return self.find(rows, k, false, 0, rows.size(), threads); }));
      }, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "k"_a, "threads"_a);
}

// ---- edges from points --------------------------------------------------------------------------

template <class Value>
void require_rows(const Points<Value>& points, std::int64_t begin, std::int64_t end) {
  require(0 <= begin && begin <= end && end <= points.n(), "no such points");
}

using Edges = std::tuple<ArrayOut<std::int32_t>, ArrayOut<std::int32_t>, std::optional<ArrayOut<float>>>;

template <class Value>
Edges knn_edges(const Points<Value>& points, ArrayIn<Value> distance, ArrayIn<std::int32_t> index,
                std::optional<ArrayIn<Value>> scale, std::int64_t begin, std::int64_t end, int threads) {
  const auto n = static_cast<std::size_t>(points.n());
  require(distance.size() == n && index.size() == n && (!scale || scale->size() == n), "one entry per point is needed");
  require_rows(points, begin, end);
  EdgeBlock found = without_gil([&] {
    return neighbour_edges<Value>(points, as_span(distance), as_span(index),
                                  scale ? as_span(*scale) : std::span<const Value>{}, begin, end, threads);
  });
  std::optional<ArrayOut<float>> w;
  if (scale) w = to_numpy(std::move(found.w));
  return {to_numpy(std::move(found.u)), to_numpy(std::move(found.v)), w};
}

template <class Value>
auto all_edges(const Points<Value>& points, Kernel kernel, double gamma, std::int64_t begin, std::int64_t end,
               int threads) {
  require_rows(points, begin, end);
  const std::int64_t size = count_pairs(points.n(), begin, end);
  auto u = uninitialised<std::int32_t>(size);
  auto v = uninitialised<std::int32_t>(size);
  auto w = uninitialised<float>(size);
  without_gil([&] { kernel_edges(points, kernel, gamma, begin, end, threads, u.data(), v.data(), w.data()); });
  return std::tuple(read_only(u), read_only(v), read_only(w));
}

// Feeds all pairs to a sampler, a few rows at a time, so that they are never stored.
template <class Value>
void feed_kernel(const Points<Value>& points, Sampler& sampler, Kernel kernel, double gamma, std::int64_t begin,
                 std::int64_t end, int threads) {
  require_rows(points, begin, end);
  nb::gil_scoped_release release;
  const std::int64_t rows = Points<Value>::kRows * threads;
  const auto room = static_cast<std::size_t>(count_pairs(points.n(), begin, std::min(end, begin + rows)));
  std::vector<std::int32_t> u(room), v(room);
  std::vector<float> w(room);
  for (std::int64_t first = begin; first < end; first += rows) {
    const std::int64_t last = std::min(end, first + rows);
    const auto size = static_cast<std::size_t>(count_pairs(points.n(), first, last));
    kernel_edges(points, kernel, gamma, first, last, threads, u.data(), v.data(), w.data());
    sampler.update<std::int32_t, float>({u.data(), size}, {v.data(), size}, {w.data(), size});
  }
}

template <class Value>
void bind_edges(nb::module_& m, const char* name) {
  nb::class_<Points<Value>>(m, name, "A copy of points, laid out for distances. They must be finite.")
      .def("__init__", [](Points<Value>* self, MatrixIn<Value> x) {
        new (self) Points<Value>(x.data(), static_cast<std::int64_t>(x.shape(0)),
                                 static_cast<std::int64_t>(x.shape(1)));
      }, "x"_a.noconvert())
      .def("find_reach", [](const Points<Value>& self, std::int64_t k, std::int64_t begin, std::int64_t end,
                            int threads) {
        require(1 <= k && k < self.n(), "k must lie between 1 and n - 1");
        require_rows(self, begin, end);
        Reach<Value> reach = without_gil([&] { return find_reach(self, k, begin, end, threads); });
        return std::tuple(to_numpy(std::move(reach.distance)), to_numpy(std::move(reach.index)));
      }, "k"_a, "begin"_a, "end"_a, "threads"_a, "Squared distance and index of the k-th neighbour of each point.")
      .def("knn_edges", knn_edges<Value>, "distance"_a.noconvert(), "index"_a.noconvert(),
           "scale"_a.noconvert().none(), "begin"_a, "end"_a, "threads"_a)
      .def("kernel_edges", all_edges<Value>, "kernel"_a, "gamma"_a, "begin"_a, "end"_a, "threads"_a)
      .def("feed_kernel", feed_kernel<Value>, "sampler"_a, "kernel"_a, "gamma"_a, "begin"_a, "end"_a, "threads"_a);
}

}  // namespace

void bind_points(nb::module_& m) {
  nb::enum_<Kernel>(m, "Kernel")
      .value("rbf", Kernel::rbf)
      .value("laplacian", Kernel::laplacian)
      .value("cosine", Kernel::cosine);
  bind_edges<float>(m, "Points32");
  bind_edges<double>(m, "Points64");
  bind_dense<std::uint8_t>(m, "8");
  bind_dense<float>(m, "32");
  bind_dense<double>(m, "64");
  bind_sparse<float>(m, "32");
  bind_sparse<double>(m, "64");
  m.def("join_neighbours", [](ArrayIn<std::int32_t> index, ArrayIn<double> square,
                              std::optional<ArrayIn<double>> scale, std::int64_t k) {
    require(k >= 1 && index.size() == square.size() && index.size() % k == 0, "k entries per point are needed");
    const auto n = static_cast<std::int64_t>(index.size()) / k;
    require(!scale || static_cast<std::int64_t>(scale->size()) == n, "one scale per point is needed");
    NeighbourGraph graph = without_gil([&] {
      return join_neighbours(as_span(index), as_span(square), scale ? as_span(*scale) : std::span<const double>{}, n,
                             k);
    });
    std::optional<ArrayOut<float>> w;
    if (scale) w = to_numpy(std::move(graph.w));
    return std::tuple(to_numpy(std::move(graph.offset)), to_numpy(std::move(graph.v)), w);
  }, "index"_a.noconvert(), "square"_a.noconvert(), "scale"_a.noconvert().none(), "k"_a,
     "(indptr, v, w) of the edges {u, v}, u < v, between neighbours.");
}

}  // namespace ohm::python
