// Arrays between Python and C++, for the bindings alone.
#pragma once

#include "graph/csr.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>
#include <stdexcept>
#include <utility>
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
template <class T>
ArrayOut<T> to_numpy(std::vector<T>&& values) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return ArrayOut<T>(owned->data(), {owned->size()}, owner);
}

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// The columns of edges are equally long; without weights there are none.
template <class Index, class Weight>
void require_equal(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w) {
  const std::size_t weights = std::is_same_v<Weight, ohm::Unit> ? 0 : u.size();
  require(u.size() == v.size() && w.size() == weights, "arrays must be equally long");
}

void bind_products(nb::module_& m);  // bindings_products.cpp
void bind_streams(nb::module_& m);   // bindings_streams.cpp

}  // namespace ohm::python
