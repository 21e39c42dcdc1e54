// The part of the Python module that multiplies by Laplacians and reads edges in passes.
#include "bindings/arrays.hpp"
#include "graph/components.hpp"
#include "graph/edge_pass.hpp"
#include "graph/product.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>


namespace ohm::python {
namespace {

void laplacian_product(ArrayIn<std::int64_t> indptr, ArrayIn<std::int32_t> indices, ArrayIn<double> weights,
                       MatrixIn<double> x, MatrixInOut<double> y, int threads) {
  const ohm::CsrView graph = as_csr(indptr, indices, weights);
  require(x.shape(0) + 1 == indptr.size() && y.shape(0) == x.shape(0) && y.shape(1) == x.shape(1),
          "x and y must have one row per node and equal shapes");
  nb::gil_scoped_release release;
  ohm::laplacian_product(graph, x.data(), static_cast<std::int64_t>(x.shape(1)), threads, y.data());
}

// The pass reads and writes arrays, which keep_alive keeps as long as the pass.
void make_pass(EdgePass* self, MatrixIn<double> x, MatrixInOut<double> y, int threads) {
  require(y.shape(0) == x.shape(0) && y.shape(1) == x.shape(1), "x and y must have equal shapes");
  new (self) EdgePass(static_cast<std::int32_t>(x.shape(0)), x.data(), static_cast<std::int64_t>(x.shape(1)), threads,
                      y.data());
}

void watch(EdgePass& self, ArrayIn<std::int32_t> column, MatrixIn<float> x, ArrayInOut<double> degrees,
           ArrayInOut<double> sums) {
  const auto n = static_cast<std::size_t>(self.n());
  require(column.size() == n && x.shape(0) == n && degrees.size() == n && sums.size() == x.shape(1),
          "one degree and one row of x per node, and one sum per column of x, are needed");
  const auto columns = static_cast<std::int32_t>(x.shape(1));
  for (const std::int32_t at : as_span(column)) require(at >= -1 && at < columns, "each column must be one of x, or -1");
  self.watch({columns, column.data(), x.data(), degrees.data(), sums.data()});
}

void join(EdgePass& self, ArrayIn<std::int32_t> component, ArrayInOut<std::int32_t> parent) {
  const auto n = static_cast<std::size_t>(self.n());
  require(component.size() == n && parent.size() == n, "one component per node is needed");
  self.join({component.data(), parent.data()});
}

void add_degrees(const ArrayInOut<double>& degrees, const Ids& u, const Ids& v, const Weights& w) {
  const std::span to(degrees.data(), degrees.size());
  with_edges(u, v, w, [&](auto a, auto b, auto c) { ohm::add_degrees(a, b, c, to); });
}

}  // namespace

void bind_products(nb::module_& m) {
  m.def("laplacian_product", laplacian_product, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "weights"_a.noconvert(), "x"_a.noconvert(), "y"_a.noconvert(), "threads"_a);
  nb::class_<EdgePass>(m, "EdgePass", "Adds L x of batches of edges to y. One thread at a time.")
      .def("__init__", make_pass, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), "x"_a.noconvert(), "y"_a.noconvert(),
           "threads"_a)
      .def("watch", watch, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
           nb::keep_alive<1, 5>(), "column"_a.noconvert(), "x"_a.noconvert(), "degrees"_a.noconvert(),
           "sums"_a.noconvert(), "Also finds degrees, and sums over the neighbours of some nodes.")
      .def("join", join, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), "component"_a.noconvert(),
           "parent"_a.noconvert(), "Also joins the ends of edges in `parent`.")
      .def("add", [](EdgePass& self, const Ids& u, const Ids& v, const Weights& w) {
        with_edges(u, v, w, [&](auto a, auto b, auto c) { self.add(a, b, c); });
      }, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert() = nb::none())
      .def("finish", [](EdgePass& self) {
        without_gil([&] { self.finish(); });
        return self.lost();
      }, "Comes last; returns the first edge between two of the components of `join`, or with an unknown end.")
      .def_static("bytes", &EdgePass::bytes, "n_nodes"_a, "columns"_a, "threads"_a, "Memory beside x and y.");
  m.def("add_degrees", add_degrees, "degrees"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert(),
        "w"_a.noconvert() = nb::none());
  m.def("find_roots", [](ArrayInOut<std::int32_t> parent) { ohm::find_roots({parent.data(), parent.size()}); },
        "parent"_a.noconvert());
}

}  // namespace ohm::python
