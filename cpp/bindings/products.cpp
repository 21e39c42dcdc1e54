// The part of the Python module that multiplies by Laplacians.
#include "bindings/arrays.hpp"
#include "graph/components.hpp"
#include "graph/edge_products.hpp"
#include "graph/product.hpp"

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

// Keeps the arrays that the kernel reads and writes during a pass.
class EdgeProducts {
 public:
  EdgeProducts(std::int32_t n, std::int64_t most_columns, int threads)
      : n_(n), most_columns_(most_columns), products_(n, most_columns, threads) {}
  void begin(MatrixIn<double> x, MatrixInOut<double> y) {
    check(x, y);
    x_ = std::move(x);
    y_ = std::move(y);
    is_open_ = true;
    is_whole_ = false;
    nb::gil_scoped_release release;
    products_.begin(x_.data(), columns(x_), y_.data());
  }
  void add(const Ids& u, const Ids& v, const Weights& w) {
    require(is_open_, "begin comes first");
    with_edges(u, v, w, [&](auto a, auto b, auto c) { products_.add(a, b, c); });
  }
  void finish() {
    require(is_open_, "begin comes first");
    is_open_ = false;
    {
      nb::gil_scoped_release release;
      is_whole_ = products_.finish();
    }
    x_ = {};
    y_ = {};
  }
  bool is_whole() const { return is_whole_; }
  void repeat(const MatrixIn<double>& x, const MatrixInOut<double>& y) {
    require(is_whole_, "the tables do not have all edges");
    check(x, y);
    nb::gil_scoped_release release;
    products_.repeat(x.data(), columns(x), y.data());
  }

 private:
  static std::int64_t columns(const MatrixIn<double>& x) { return static_cast<std::int64_t>(x.shape(1)); }
  void check(const MatrixIn<double>& x, const MatrixInOut<double>& y) const {
    require(y.shape(0) == x.shape(0) && y.shape(1) == x.shape(1), "x and y must have equal shapes");
    require(static_cast<std::int64_t>(x.shape(0)) == n_ && columns(x) <= most_columns_,
            "x must have one row per node, and no more columns than announced");
  }

  std::int32_t n_;
  std::int64_t most_columns_;
  ohm::EdgeProducts products_;
  MatrixIn<double> x_;
  MatrixInOut<double> y_;
  bool is_open_ = false, is_whole_ = false;
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
      .def(nb::init<std::int32_t, std::int64_t, int>(), "n_nodes"_a, "most_columns"_a, "threads"_a)
      .def("begin", &EdgeProducts::begin, "x"_a.noconvert(), "y"_a.noconvert(), "Starts a pass.")
      .def("add", &EdgeProducts::add, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert() = nb::none())
      .def("finish", &EdgeProducts::finish, "Ends it.")
      .def("repeat", &EdgeProducts::repeat, "x"_a.noconvert(), "y"_a.noconvert(), "A pass over edges that are kept.")
      .def_prop_ro("is_whole", &EdgeProducts::is_whole, "Whether all edges of the last pass are kept.")
      .def_static("bytes", &ohm::EdgeProducts::bytes, "n_nodes"_a, "columns"_a, "threads"_a,
                  "Memory beside x and y.");
  m.def("add_surroundings", add_surroundings, "column"_a.noconvert(), "x"_a.noconvert(), "degrees"_a.noconvert(),
        "sums"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert() = nb::none());
  m.def("join_ends", join_ends, "component"_a.noconvert(), "parent"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert(),
        "w"_a.noconvert() = nb::none());
  m.def("find_roots", [](ArrayInOut<std::int32_t> parent) { ohm::find_roots({parent.data(), parent.size()}); },
        "parent"_a.noconvert());
}

}  // namespace ohm::python
