// Arrays between Python and C++. Only the bindings use this.
#pragma once

#include "graph/csr.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/variant.h>

#include <limits>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace ohm::python {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using ArrayIn = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Read-only on the Python side.
template <class T>
using ArrayOut = nb::ndarray<nb::numpy, const T, nb::ndim<1>, nb::c_contig>;

template <class T>
using MatrixIn = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using MatrixInOut = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using ArrayInOut = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> as_span(const ArrayIn<T>& array) {
  return {array.data(), array.size()};
}

// Hands the storage of a vector to numpy without copying it.
template <class T, class Allocator>
ArrayOut<T> to_numpy(std::vector<T, Allocator>&& values) {
  auto* owned = new std::vector<T, Allocator>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T, Allocator>*>(p); });
  return ArrayOut<T>(owned->data(), {owned->size()}, owner);
}

// Memory that is written completely before it is read.
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

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// A graph from the arrays of build_csr, whose contents are trusted.
inline CsrView as_csr(const ArrayIn<std::int64_t>& indptr, const ArrayIn<std::int32_t>& indices) {
  require(indptr.size() > 0 && indptr.size() - 1 <= std::numeric_limits<std::int32_t>::max(),
          "indptr must have n_nodes + 1 entries");
  return {static_cast<std::int32_t>(indptr.size() - 1), indptr.data(), indices.data(), nullptr};
}

inline CsrView as_csr(const ArrayIn<std::int64_t>& indptr, const ArrayIn<std::int32_t>& indices,
                      const ArrayIn<double>& weights) {
  require(weights.size() == indices.size(), "one weight per index is needed");
  CsrView graph = as_csr(indptr, indices);
  graph.weights = weights.data();
  return graph;
}

// Returns run(), with the GIL released while it runs.
template <class Run>
auto without_gil(const Run& run) {
  nb::gil_scoped_release release;
  return run();
}

// A batch of edges: arrays u and v of one type, and w or None.
using Ids = std::variant<ArrayIn<std::int32_t>, ArrayIn<std::int64_t>>;
using Weights = std::variant<std::monostate, ArrayIn<float>, ArrayIn<double>>;

// Returns run(u, v, w) without the GIL; the arguments are spans of the types of the batch.
template <class Run>
auto with_edges(const Ids& u, const Ids& v, const Weights& w, const Run& run) {
  using Ends = std::span<const std::int32_t>;
  using Result = decltype(run(Ends(), Ends(), std::span<const Unit>()));
  return std::visit([&](const auto& a, const auto& weights) -> Result {
    const auto* b = std::get_if<std::decay_t<decltype(a)>>(&v);
    if (b == nullptr) throw nb::type_error("u and v must have the same type");
    require(a.size() == b->size(), "u and v must have the same length");
    if constexpr (std::is_same_v<std::decay_t<decltype(weights)>, std::monostate>) {
      return without_gil([&] { return run(as_span(a), as_span(*b), std::span<const Unit>()); });
    } else {
      require(weights.size() == a.size(), "w must have the length of u and v");
      return without_gil([&] { return run(as_span(a), as_span(*b), as_span(weights)); });
    }
  }, u, w);
}

// The sections of the module, each in the file of its name.
void bind_points(nb::module_& m);
void bind_products(nb::module_& m);
void bind_sampler(nb::module_& m);
void bind_text(nb::module_& m);

}  // namespace ohm::python
