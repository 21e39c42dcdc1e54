// The part of the Python module that multiplies by Laplacians and reads edges in passes.
#include "bindings/arrays.hpp"
#include "graph/components.hpp"
#include "graph/edge_pass.hpp"
#include "graph/product.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>
#include <tuple>
#include <utility>

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

// Keeps the arrays that the kernel reads and writes.
class EdgePass {
 public:
  EdgePass(MatrixIn<double> x, MatrixInOut<double> y, int threads)
      : x_(std::move(x)),
        y_(std::move(y)),
        pass_(static_cast<std::int32_t>(x_.shape(0)), x_.data(), static_cast<std::int64_t>(x_.shape(1)), threads,
              y_.data()) {
    require(y_.shape(0) == x_.shape(0) && y_.shape(1) == x_.shape(1), "x and y must have equal shapes");
  }
  void watch(ArrayIn<std::int32_t> column, MatrixIn<float> x, ArrayInOut<double> degrees, ArrayInOut<double> sums) {
    require(column.size() == x_.shape(0) && x.shape(0) == column.size() && degrees.size() == column.size() &&
                sums.size() == x.shape(1),
            "one degree and one row of x per node, and one sum per column of x, are needed");
    const auto columns = static_cast<std::int32_t>(x.shape(1));
    for (const std::int32_t at : as_span(column)) require(at >= -1 && at < columns, "each column must be one of x, or -1");
    pass_.watch({.columns = columns,
                 .column = column.data(),
                 .x = x.data(),
                 .degrees = degrees.data(),
                 .sums = sums.data()});
    watched_.emplace(std::move(column), std::move(x), std::move(degrees), std::move(sums));
  }
  void join(ArrayIn<std::int32_t> component, ArrayInOut<std::int32_t> parent) {
    require(component.size() == x_.shape(0) && parent.size() == x_.shape(0), "one component per node is needed");
    pass_.join({.component = component.data(), .parent = parent.data()});
    joined_.emplace(std::move(component), std::move(parent));
  }
  void add(const Ids& u, const Ids& v, const Weights& w) {
    with_edges(u, v, w, [&](auto a, auto b, auto c) { pass_.add(a, b, c); });
  }
  std::optional<std::pair<std::int64_t, std::int64_t>> finish() {
    nb::gil_scoped_release release;
    pass_.finish();
    return pass_.lost();
  }

 private:
  MatrixIn<double> x_;
  MatrixInOut<double> y_;
  std::optional<std::tuple<ArrayIn<std::int32_t>, MatrixIn<float>, ArrayInOut<double>, ArrayInOut<double>>> watched_;
  std::optional<std::pair<ArrayIn<std::int32_t>, ArrayInOut<std::int32_t>>> joined_;
  ohm::EdgePass pass_;
};

void add_edge_products(const MatrixIn<double>& x, const MatrixInOut<double>& y, int threads, const Ids& u, const Ids& v,
                       const Weights& w) {
  EdgePass pass(x, y, threads);
  pass.add(u, v, w);
  pass.finish();
}

void add_degrees(const ArrayInOut<double>& degrees, const Ids& u, const Ids& v, const Weights& w) {
  const std::span to(degrees.data(), degrees.size());
  with_edges(u, v, w, [&](auto a, auto b, auto c) { ohm::add_degrees(a, b, c, to); });
}

std::int64_t join_ends(const ArrayIn<std::int32_t>& component, const ArrayInOut<std::int32_t>& parent, const Ids& u,
                       const Ids& v, const Weights& w) {
  require(component.size() == parent.size(), "one component per node is needed");
  return with_edges(u, v, w, [&](auto a, auto b, auto c) {
    return ohm::join_ends(a, b, c, as_span(component), std::span(parent.data(), parent.size()));
  });
}

}  // namespace

void bind_products(nb::module_& m) {
  m.def("laplacian_product", laplacian_product, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "weights"_a.noconvert(), "x"_a.noconvert(), "y"_a.noconvert(), "threads"_a);
  m.def("add_edge_products", add_edge_products, "x"_a.noconvert(), "y"_a.noconvert(), "threads"_a, "u"_a.noconvert(),
        "v"_a.noconvert(), "w"_a.noconvert() = nb::none());
  nb::class_<EdgePass>(m, "EdgePass", "Adds L x of batches of edges to y. One thread at a time.")
      .def(nb::init<MatrixIn<double>, MatrixInOut<double>, int>(), "x"_a.noconvert(), "y"_a.noconvert(), "threads"_a)
      .def("watch", &EdgePass::watch, "column"_a.noconvert(), "x"_a.noconvert(), "degrees"_a.noconvert(),
           "sums"_a.noconvert(), "Also finds degrees, and sums over the neighbours of some nodes.")
      .def("join", &EdgePass::join, "component"_a.noconvert(), "parent"_a.noconvert(),
           "Also joins the ends of edges in `parent`.")
      .def("add", &EdgePass::add, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert() = nb::none())
      .def("finish", &EdgePass::finish,
           "Comes last; returns the first edge between two of the components of `join`, or with an unknown end.")
      .def_static("bytes", &ohm::EdgePass::bytes, "n_nodes"_a, "columns"_a, "threads"_a, "Memory beside x and y.");
  m.def("add_degrees", add_degrees, "degrees"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert(),
        "w"_a.noconvert() = nb::none());
  m.def("join_ends", join_ends, "component"_a.noconvert(), "parent"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert(),
        "w"_a.noconvert() = nb::none());
  m.def("find_roots", [](ArrayInOut<std::int32_t> parent) { ohm::find_roots({parent.data(), parent.size()}); },
        "parent"_a.noconvert());
}

}  // namespace ohm::python
