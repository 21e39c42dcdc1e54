// The Python module ohmlearn._core. The only file that knows nanobind; one section per station.
//
// Arrays are taken as they are or not at all (noconvert: nanobind would otherwise copy silently) and
// kernels run without the GIL. Python checks dtypes and words the errors: see _validation.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <span>
#include <stdexcept>
#include <tuple>
#include <variant>
#include <vector>

#include "csr.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// ---- arrays -------------------------------------------------------------------------------------

template <class T>
using ArrayIn = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Read-only on the Python side.
template <class T>
using ArrayOut = nb::ndarray<nb::numpy, const T, nb::ndim<1>, nb::c_contig>;

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

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// ---- graph --------------------------------------------------------------------------------------

using CsrArrays = std::tuple<ArrayOut<std::int64_t>, ArrayOut<std::int32_t>, ArrayOut<double>,
                             std::int64_t, std::int64_t>;

template <class Index, class Weight>
std::variant<CsrArrays, ohm::EdgeFault> build_csr(std::int32_t n_nodes, std::span<const Index> u,
                                                  std::span<const Index> v,
                                                  std::span<const Weight> w) {
  require(n_nodes >= 0, "n_nodes must not be negative");
  require(u.size() == v.size(), "u and v must be equally long");
  std::variant<ohm::BuiltCsr, ohm::EdgeFault> result;
  {
    nb::gil_scoped_release release;
    result = ohm::build_csr<Index, Weight>(n_nodes, u, v, w);
  }
  if (const auto* fault = std::get_if<ohm::EdgeFault>(&result)) return *fault;
  auto& [csr, n_self_loops, n_zero_weights] = std::get<ohm::BuiltCsr>(result);
  return CsrArrays(to_numpy(std::move(csr.indptr)), to_numpy(std::move(csr.indices)),
                   to_numpy(std::move(csr.weights)), n_self_loops, n_zero_weights);
}

template <class Index, class Weight>
void bind_weighted(nb::module_& m) {
  m.def(
      "build_csr",
      [](std::int32_t n_nodes, ArrayIn<Index> u, ArrayIn<Index> v, ArrayIn<Weight> w) {
        require(w.size() == u.size(), "w must be as long as u and v");
        return build_csr<Index, Weight>(n_nodes, as_span(u), as_span(v), as_span(w));
      },
      "n_nodes"_a, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert());
}

template <class Index>
void bind_unweighted(nb::module_& m) {
  m.def(
      "build_csr",
      [](std::int32_t n_nodes, ArrayIn<Index> u, ArrayIn<Index> v) {
        return build_csr<Index, ohm::Unit>(n_nodes, as_span(u), as_span(v), {});
      },
      "n_nodes"_a, "u"_a.noconvert(), "v"_a.noconvert());
}

// Trusts what is in the arrays: they come from build_csr.
ohm::CsrView as_csr(const ArrayIn<std::int64_t>& indptr, const ArrayIn<std::int32_t>& indices) {
  require(indptr.size() > 0, "indptr must have n_nodes + 1 entries");
  return {static_cast<std::int32_t>(indptr.size() - 1), indptr.data(), indices.data(), nullptr};
}

std::tuple<std::int32_t, ArrayOut<std::int32_t>> components(ArrayIn<std::int64_t> indptr,
                                                            ArrayIn<std::int32_t> indices) {
  const ohm::CsrView graph = as_csr(indptr, indices);
  ohm::Components found;
  {
    nb::gil_scoped_release release;
    found = ohm::components(graph);
  }
  return {found.count, to_numpy(std::move(found.labels))};
}

void bind_graph(nb::module_& m) {
  nb::class_<ohm::EdgeFault> fault(m, "EdgeFault", "The first edge that build_csr cannot take.");
  nb::enum_<ohm::EdgeFault::Kind>(fault, "Kind")
      .value("node_u", ohm::EdgeFault::Kind::node_u)
      .value("node_v", ohm::EdgeFault::Kind::node_v)
      .value("weight", ohm::EdgeFault::Kind::weight)
      .value("overflow", ohm::EdgeFault::Kind::overflow);
  fault.def_ro("kind", &ohm::EdgeFault::kind)
      .def_ro("position", &ohm::EdgeFault::position)
      .def_ro("node", &ohm::EdgeFault::node)
      .def_ro("weight", &ohm::EdgeFault::weight);

  bind_unweighted<std::int32_t>(m);
  bind_unweighted<std::int64_t>(m);
  bind_weighted<std::int32_t, float>(m);
  bind_weighted<std::int32_t, double>(m);
  bind_weighted<std::int64_t, float>(m);
  bind_weighted<std::int64_t, double>(m);
  m.def("components", components, "indptr"_a.noconvert(), "indices"_a.noconvert());
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Kernels of ohmlearn. Internal: names and signatures change without notice.";
  bind_graph(m);
}
