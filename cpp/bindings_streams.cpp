// Sources of edges, in ohmlearn._core.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <tuple>

#include "bindings.hpp"
#include "knn.hpp"
#include "similarity.hpp"

namespace ohm::python {
namespace {

template <class Value>
void require_rows(const Points<Value>& points, std::int64_t begin, std::int64_t end) {
  require(0 <= begin && begin <= end && end <= points.n(), "no such points");
}

// Memory that is written in full before anyone reads it.
template <class T>
ArrayInOut<T> uninitialised(std::int64_t size) {
  auto* values = new T[size];
  return ArrayInOut<T>(values, {static_cast<std::size_t>(size)},
                       nb::capsule(values, [](void* p) noexcept { delete[] static_cast<T*>(p); }));
}

template <class T>
ArrayOut<T> read_only(const ArrayInOut<T>& array) {
  return ArrayOut<T>(array);
}

using Edges = std::tuple<ArrayOut<std::int32_t>, ArrayOut<std::int32_t>, std::optional<ArrayOut<float>>>;

template <class Value>
Edges knn_edges(const Points<Value>& points, ArrayIn<Value> distance, ArrayIn<std::int32_t> index,
                std::optional<ArrayIn<Value>> scale, std::int64_t begin, std::int64_t end, int threads) {
  const auto n = static_cast<std::size_t>(points.n());
  require(distance.size() == n && index.size() == n && (!scale || scale->size() == n), "one entry per point is needed");
  require_rows(points, begin, end);
  EdgeBlock found;
  {
    nb::gil_scoped_release release;
    found = neighbour_edges<Value>(points, as_span(distance), as_span(index),
                                   scale ? as_span(*scale) : std::span<const Value>{}, begin, end, threads);
  }
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
  {
    nb::gil_scoped_release release;
    kernel_edges(points, kernel, gamma, begin, end, threads, u.data(), v.data(), w.data());
  }
  return std::tuple(read_only(u), read_only(v), read_only(w));
}

template <class Value>
void bind_points(nb::module_& m, const char* name) {
  nb::class_<Points<Value>>(m, name, "A copy of points, laid out for distances. They must be finite.")
      .def("__init__", [](Points<Value>* self, MatrixIn<Value> x) {
        new (self) Points<Value>(x.data(), static_cast<std::int64_t>(x.shape(0)), static_cast<std::int64_t>(x.shape(1)));
      }, "x"_a.noconvert())
      .def("find_reach", [](const Points<Value>& self, std::int64_t k, std::int64_t begin, std::int64_t end, int threads) {
        require(1 <= k && k < self.n(), "k must lie between 1 and n - 1");
        require_rows(self, begin, end);
        Reach<Value> reach;
        {
          nb::gil_scoped_release release;
          reach = find_reach(self, k, begin, end, threads);
        }
        return std::tuple(to_numpy(std::move(reach.distance)), to_numpy(std::move(reach.index)));
      }, "k"_a, "begin"_a, "end"_a, "threads"_a, "Squared distance and index of the k-th neighbour of each point.")
      .def("knn_edges", knn_edges<Value>, "distance"_a.noconvert(), "index"_a.noconvert(),
           "scale"_a.noconvert().none(), "begin"_a, "end"_a, "threads"_a)
      .def("kernel_edges", all_edges<Value>, "kernel"_a, "gamma"_a, "begin"_a, "end"_a, "threads"_a);
}

}  // namespace

void bind_streams(nb::module_& m) {
  nb::enum_<Kernel>(m, "Kernel")
      .value("rbf", Kernel::rbf)
      .value("laplacian", Kernel::laplacian)
      .value("cosine", Kernel::cosine);
  bind_points<float>(m, "Points32");
  bind_points<double>(m, "Points64");
}

}  // namespace ohm::python
