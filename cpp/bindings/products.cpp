// The part of the Python module that multiplies by Laplacians.
#include "bindings/arrays.hpp"
#include "graph/product.hpp"

namespace ohm::python {
namespace {

void laplacian_product(ArrayIn<std::int64_t> indptr, ArrayIn<std::int32_t> indices, ArrayIn<double> weights,
                       MatrixIn<double> x, MatrixInOut<double> y, int threads) {
  require(indptr.size() > 0 && weights.size() == indices.size(), "not the arrays of a graph");
  const auto n = static_cast<std::int32_t>(indptr.size() - 1);
  const ohm::CsrView graph{n, indptr.data(), indices.data(), weights.data()};
  require(x.shape(0) + 1 == indptr.size() && y.shape(0) == x.shape(0) && y.shape(1) == x.shape(1),
          "x and y must have one row per node and equal shapes");
  nb::gil_scoped_release release;
  ohm::laplacian_product(graph, x.data(), static_cast<std::int64_t>(x.shape(1)), threads, y.data());
}

template <class Index, class Weight>
void add_edge_products(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                       const MatrixIn<double>& x, const MatrixInOut<double>& y, int threads) {
  require_equal(u, v, w);
  require(y.shape(0) == x.shape(0) && y.shape(1) == x.shape(1), "x and y must have equal shapes");
  nb::gil_scoped_release release;
  ohm::add_edge_products<Index, Weight>(u, v, w, static_cast<std::int32_t>(x.shape(0)), x.data(),
                                        static_cast<std::int64_t>(x.shape(1)), threads, y.data());
}

template <class Index, class Weight>
std::int64_t join_ends(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                       const ArrayIn<std::int32_t>& component, const ArrayInOut<std::int32_t>& parent) {
  require_equal(u, v, w);
  require(component.size() == parent.size(), "one component per node is needed");
  nb::gil_scoped_release release;
  return ohm::join_ends<Index, Weight>(u, v, w, as_span(component), {parent.data(), parent.size()});
}

template <class Index, class Weight>
void bind_edge_products(nb::module_& m) {
  if constexpr (std::is_same_v<Weight, ohm::Unit>) {
    m.def("add_edge_products", [](MatrixIn<double> x, MatrixInOut<double> y, int threads, ArrayIn<Index> u,
                                  ArrayIn<Index> v) {
      add_edge_products<Index, Weight>(as_span(u), as_span(v), {}, x, y, threads);
    }, "x"_a.noconvert(), "y"_a.noconvert(), "threads"_a, "u"_a.noconvert(), "v"_a.noconvert());
    m.def("join_ends", [](ArrayIn<std::int32_t> component, ArrayInOut<std::int32_t> parent, ArrayIn<Index> u,
                          ArrayIn<Index> v) {
      return join_ends<Index, Weight>(as_span(u), as_span(v), {}, component, parent);
    }, "component"_a.noconvert(), "parent"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert());
  } else {
    m.def("add_edge_products", [](MatrixIn<double> x, MatrixInOut<double> y, int threads, ArrayIn<Index> u,
                                  ArrayIn<Index> v, ArrayIn<Weight> w) {
      add_edge_products<Index, Weight>(as_span(u), as_span(v), as_span(w), x, y, threads);
    }, "x"_a.noconvert(), "y"_a.noconvert(), "threads"_a, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert());
    m.def("join_ends", [](ArrayIn<std::int32_t> component, ArrayInOut<std::int32_t> parent, ArrayIn<Index> u,
                          ArrayIn<Index> v, ArrayIn<Weight> w) {
      return join_ends<Index, Weight>(as_span(u), as_span(v), as_span(w), component, parent);
    }, "component"_a.noconvert(), "parent"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert());
  }
}

}  // namespace

void bind_products(nb::module_& m) {
  m.def("laplacian_product", laplacian_product, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "weights"_a.noconvert(), "x"_a.noconvert(), "y"_a.noconvert(), "threads"_a);
  bind_edge_products<std::int32_t, ohm::Unit>(m);
  bind_edge_products<std::int64_t, ohm::Unit>(m);
  bind_edge_products<std::int32_t, float>(m);
  bind_edge_products<std::int32_t, double>(m);
  bind_edge_products<std::int64_t, float>(m);
  bind_edge_products<std::int64_t, double>(m);
  m.def("find_roots", [](ArrayInOut<std::int32_t> parent) { ohm::find_roots({parent.data(), parent.size()}); },
        "parent"_a.noconvert());
}

}  // namespace ohm::python
