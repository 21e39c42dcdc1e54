// The part of the Python module that multiplies by Laplacians.
#include "bindings/arrays.hpp"
#include "graph/components.hpp"
#include "graph/edge_products.hpp"
#include "graph/product.hpp"

#include <memory>

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

void add_edge_products(const MatrixIn<double>& x, const MatrixInOut<double>& y, int threads, const Ids& u, const Ids& v,
                       const Weights& w) {
  require(y.shape(0) == x.shape(0) && y.shape(1) == x.shape(1), "x and y must have equal shapes");
  with_edges(u, v, w, [&](auto a, auto b, auto c) {
    ohm::add_edge_products(a, b, c, static_cast<std::int32_t>(x.shape(0)), x.data(),
                           static_cast<std::int64_t>(x.shape(1)), threads, y.data());
  });
}

// Keeps the arrays that the kernel reads and writes.
class EdgeProducts {
 public:
  EdgeProducts(MatrixIn<double> x, MatrixInOut<double> y, int threads) : x_(std::move(x)), y_(std::move(y)) {
    require(y_.shape(0) == x_.shape(0) && y_.shape(1) == x_.shape(1), "x and y must have equal shapes");
    nb::gil_scoped_release release;
    products_ = std::make_unique<ohm::EdgeProducts>(static_cast<std::int32_t>(x_.shape(0)), x_.data(),
                                                    static_cast<std::int64_t>(x_.shape(1)), threads, y_.data());
  }
  void add(const Ids& u, const Ids& v, const Weights& w) {
    with_edges(u, v, w, [&](auto a, auto b, auto c) { products_->add(a, b, c); });
  }
  void finish() {
    nb::gil_scoped_release release;
    products_->finish();
  }

 private:
  MatrixIn<double> x_;
  MatrixInOut<double> y_;
  std::unique_ptr<ohm::EdgeProducts> products_;
};

void add_surroundings(const ArrayIn<std::int32_t>& column, const MatrixIn<float>& x, const ArrayInOut<double>& degrees,
                      const ArrayInOut<double>& sums, const Ids& u, const Ids& v, const Weights& w) {
  require(x.shape(0) == column.size() && degrees.size() == column.size() && sums.size() == x.shape(1),
          "one degree and one row of x per node, and one sum per column of x, are needed");
  const ohm::Surroundings to{.n = static_cast<std::int32_t>(column.size()),
                             .columns = static_cast<std::int64_t>(x.shape(1)),
                             .column = column.data(),
                             .x = x.data(),
                             .degrees = degrees.data(),
                             .sums = sums.data()};
  const auto columns = static_cast<std::int32_t>(x.shape(1));
  for (std::size_t i = 0; i < column.size(); ++i) {
    require(column.data()[i] >= -1 && column.data()[i] < columns, "each column must be one of x, or -1");
  }
  with_edges(u, v, w, [&](auto a, auto b, auto c) { ohm::add_surroundings(a, b, c, to); });
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
  nb::class_<EdgeProducts>(m, "EdgeProducts", "Adds L x of batches of edges to y. One thread at a time.")
      .def(nb::init<MatrixIn<double>, MatrixInOut<double>, int>(), "x"_a.noconvert(), "y"_a.noconvert(), "threads"_a)
      .def("add", &EdgeProducts::add, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert() = nb::none())
      .def("finish", &EdgeProducts::finish, "Adds what is still in tables; comes last.")
      .def_static("bytes", &ohm::EdgeProducts::bytes, "n_nodes"_a, "columns"_a, "threads"_a,
                  "Memory beside x and y.");
  m.def("add_surroundings", add_surroundings, "column"_a.noconvert(), "x"_a.noconvert(), "degrees"_a.noconvert(),
        "sums"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert() = nb::none());
  m.def("add_degrees", add_degrees, "degrees"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert(),
        "w"_a.noconvert() = nb::none());
  m.def("join_ends", join_ends, "component"_a.noconvert(), "parent"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert(),
        "w"_a.noconvert() = nb::none());
  m.def("find_roots", [](ArrayInOut<std::int32_t> parent) { ohm::find_roots({parent.data(), parent.size()}); },
        "parent"_a.noconvert());
}

}  // namespace ohm::python
