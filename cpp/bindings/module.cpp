// The Python module ohmlearn._core. Only the bindings know nanobind; graphs, solver and resistances are here, the
// other sections in files beside this one.
//
// Arrays are never converted (noconvert; nanobind would copy them silently), and kernels run without the GIL. Python
// checks dtypes and raises the errors that users see (ohmlearn.checks).
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.hpp"
#include "graph/components.hpp"
#include "graph/csr.hpp"
#include "sampling/embedding.hpp"
#include "solver/solver.hpp"

using namespace ohm::python;

namespace {

// ---- graph --------------------------------------------------------------------------------------

using CsrArrays = std::tuple<ArrayOut<std::int64_t>, ArrayOut<std::int32_t>, ArrayOut<double>,
                             std::int64_t, std::int64_t>;

std::variant<CsrArrays, ohm::EdgeFault> build_csr(std::int32_t n_nodes, const Ids& u, const Ids& v, const Weights& w) {
  require(n_nodes >= 0, "n_nodes must not be negative");
  auto result = with_edges(u, v, w, [&](auto a, auto b, auto c) { return ohm::build_csr(n_nodes, a, b, c); });
  if (const auto* fault = std::get_if<ohm::EdgeFault>(&result)) return *fault;
  auto& [csr, n_self_loops, n_zero_weights] = std::get<ohm::BuiltCsr>(result);
  return CsrArrays(to_numpy(std::move(csr.indptr)), to_numpy(std::move(csr.indices)),
                   to_numpy(std::move(csr.weights)), n_self_loops, n_zero_weights);
}

std::tuple<std::int32_t, ArrayOut<std::int32_t>> components(ArrayIn<std::int64_t> indptr,
                                                            ArrayIn<std::int32_t> indices) {
  const ohm::CsrView graph = as_csr(indptr, indices);
  ohm::Components found = without_gil([&] { return ohm::components(graph); });
  return {found.count, to_numpy(std::move(found.labels))};
}

void bind_graph(nb::module_& m) {
  nb::class_<ohm::EdgeFault> fault(m, "EdgeFault", "The first invalid edge.");
  nb::enum_<ohm::EdgeFault::Reason>(fault, "Kind")
      .value("node_u", ohm::EdgeFault::Reason::node_u)
      .value("node_v", ohm::EdgeFault::Reason::node_v)
      .value("weight", ohm::EdgeFault::Reason::weight)
      .value("overflow", ohm::EdgeFault::Reason::overflow);
  fault.def_ro("kind", &ohm::EdgeFault::reason)
      .def_ro("position", &ohm::EdgeFault::position)
      .def_ro("node", &ohm::EdgeFault::node)
      .def_ro("weight", &ohm::EdgeFault::weight);

  m.def("build_csr", build_csr, "n_nodes"_a, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert() = nb::none());
  m.def("components", components, "indptr"_a.noconvert(), "indices"_a.noconvert());
}

// ---- solver -------------------------------------------------------------------------------------

// Keeps the arrays alive as long as the C++ solver. One thread at a time may use it: LaplacianSolver has the lock,
// because a forked child can replace a lock of Python.
class Solver {
 public:
  Solver(ArrayIn<std::int64_t> indptr, ArrayIn<std::int32_t> indices, ArrayIn<double> weights,
         std::optional<ArrayIn<double>> ground, ohm::Method method, std::uint64_t seed, int threads)
      : indptr_(indptr), indices_(indices), weights_(weights), ground_(ground) {
    const ohm::CsrView graph = as_csr(indptr, indices, weights);
    require(!ground || ground->size() == static_cast<std::size_t>(graph.n), "one ground per node is needed");
    nb::gil_scoped_release release;
    solver_.emplace(graph, ground ? ground->data() : nullptr, ohm::SolverOptions{method, seed, threads});
  }

  auto solve(MatrixIn<double> b, MatrixInOut<double> x, double tolerance, std::int32_t max_iterations) {
    const auto columns = check(b, x);
    const auto reports = without_gil([&] { return solver_->solve(columns, tolerance, max_iterations); });
    std::vector<std::int32_t> iterations;
    std::vector<double> residual;
    std::vector<double> projected_out;
    std::vector<std::uint8_t> rounding;
    for (const ohm::ColumnReport& report : reports) {
      iterations.push_back(report.iterations);
      residual.push_back(report.residual);
      projected_out.push_back(report.projected_out);
      rounding.push_back(report.outcome == ohm::Outcome::rounding);
    }
    return std::tuple(to_numpy(std::move(iterations)), to_numpy(std::move(residual)),
                      to_numpy(std::move(projected_out)), to_numpy(std::move(rounding)));
  }

  void precondition(MatrixIn<double> b, MatrixInOut<double> x) {
    const auto columns = check(b, x);
    nb::gil_scoped_release release;
    solver_->precondition(columns);
  }

  template <auto Question>
  auto ask() const {
    return ((*solver_).*Question)();
  }

 private:
  ohm::Columns check(const MatrixIn<double>& b, const MatrixInOut<double>& x) const {
    require(b.shape(0) + 1 == indptr_.size() && x.shape(0) == b.shape(0) && x.shape(1) == b.shape(1),
            "b and x must have one row per node and equal shapes");
    const auto count = static_cast<std::int64_t>(b.shape(1));
    return {b.data(), x.data(), count, count};
  }

  ArrayIn<std::int64_t> indptr_;
  ArrayIn<std::int32_t> indices_;
  ArrayIn<double> weights_;
  std::optional<ArrayIn<double>> ground_;
  std::optional<ohm::Solver> solver_;
};

void bind_solver(nb::module_& m) {
  nb::enum_<ohm::Method>(m, "Method")
      .value("auto", ohm::Method::automatic)
      .value("diagonal", ohm::Method::diagonal)
      .value("cholesky", ohm::Method::cholesky)
      .value("direct", ohm::Method::direct);
  nb::class_<Solver>(m, "Solver", "Trusts what is in the arrays: they come from a Graph.")
      .def(nb::init<ArrayIn<std::int64_t>, ArrayIn<std::int32_t>, ArrayIn<double>,
                    std::optional<ArrayIn<double>>, ohm::Method, std::uint64_t, int>(),
           "indptr"_a.noconvert(), "indices"_a.noconvert(), "weights"_a.noconvert(),
           "ground"_a.noconvert().none(), "method"_a, "seed"_a, "threads"_a)
      .def("solve", &Solver::solve, "b"_a.noconvert(), "x"_a.noconvert(), "tolerance"_a, "max_iterations"_a,
           "Overwrites x. Returns for each column: iterations, residual, fraction projected out, limited by rounding.")
      .def("precondition", &Solver::precondition, "b"_a.noconvert(), "x"_a.noconvert())
      .def_prop_ro("method", &Solver::ask<&ohm::Solver::method>)
      .def_prop_ro("reason", &Solver::ask<&ohm::Solver::reason>)
      .def_prop_ro("factor_entries", &Solver::ask<&ohm::Solver::factor_entries>)
      .def_prop_ro("setup_seconds", &Solver::ask<&ohm::Solver::setup_seconds>);
  m.attr("DIRECT_LIMIT") = ohm::Solver::kDirectLimit;
}

// ---- resistances --------------------------------------------------------------------------------

void sketch_right_hand_sides(ArrayIn<std::int64_t> indptr, ArrayIn<std::int32_t> indices, ArrayIn<double> weights,
                             std::uint64_t seed, std::uint64_t round, int threads, MatrixInOut<double> y) {
  const ohm::CsrView graph = as_csr(indptr, indices, weights);
  require(y.shape(0) + 1 == indptr.size() && y.shape(1) == ohm::kSketchColumns, "y has the wrong shape");
  nb::gil_scoped_release release;
  ohm::sketch_right_hand_sides(graph, seed, round, threads, y.data());
}

// Pairs of nodes, with weights if they are edges, and the sums of their estimates.
void require_pairs(const ArrayIn<std::int32_t>& u, const ArrayIn<std::int32_t>& v,
                   const std::optional<ArrayIn<double>>& w, std::size_t squares, std::size_t products) {
  const std::size_t size = u.size();
  require(v.size() == size && (!w || w->size() == size) && squares == size && products == size,
          "arrays of pairs must have the same length");
}

void add_estimates(MatrixIn<double> z, ArrayIn<std::int32_t> u, ArrayIn<std::int32_t> v,
                   std::optional<ArrayIn<double>> w, std::uint64_t seed, std::uint64_t round, int threads,
                   ArrayInOut<double> squares, ArrayInOut<double> products) {
  require(z.shape(1) == ohm::kSketchColumns, "z has the wrong shape");
  require_pairs(u, v, w, squares.size(), products.size());
  nb::gil_scoped_release release;
  ohm::add_estimates(z.data(), as_span(u), as_span(v), w ? as_span(*w) : std::span<const double>{}, seed, round,
                     threads, squares.data(), products.data());
}

void combine_estimates(ArrayIn<std::int32_t> u, ArrayIn<std::int32_t> v, std::optional<ArrayIn<double>> w,
                       ArrayIn<double> degrees, double q, ArrayInOut<double> squares, ArrayIn<double> products) {
  require_pairs(u, v, w, squares.size(), products.size());
  nb::gil_scoped_release release;
  ohm::combine_estimates(as_span(u), as_span(v), w ? as_span(*w) : std::span<const double>{}, degrees.data(), q,
                         squares.data(), products.data());
}

void bind_resistance(nb::module_& m) {
  m.attr("SKETCH_COLUMNS") = ohm::kSketchColumns;
  m.def("sketch_right_hand_sides", sketch_right_hand_sides, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "weights"_a.noconvert(), "seed"_a, "round"_a, "threads"_a, "y"_a.noconvert());
  m.def("add_estimates", add_estimates, "z"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert(),
        "w"_a.noconvert().none(), "seed"_a, "round"_a, "threads"_a, "squares"_a.noconvert(), "products"_a.noconvert());
  m.def("combine_estimates", combine_estimates, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert().none(),
        "degrees"_a.noconvert(), "q"_a, "squares"_a.noconvert(), "products"_a.noconvert());
}

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // at exit others, such as Dask, may still hold objects
  m.def("never_free", [](nb::handle object) { object.inc_ref(); }, "object"_a,
        "Keep an object until the process ends, and do not run its destructor even then.");
  m.doc() = "Kernels of ohmlearn. Internal: names and signatures change without notice.";
  bind_graph(m);
  bind_solver(m);
  bind_products(m);
  bind_resistance(m);
  bind_sampler(m);
  bind_points(m);  // after the sampler, which it feeds
  bind_text(m);
}
