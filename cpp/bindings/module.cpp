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

CsrArrays to_arrays(ohm::BuiltCsr&& built) {
  auto& [csr, n_self_loops, n_zero_weights] = built;
  return CsrArrays(to_numpy(std::move(csr.indptr)), to_numpy(std::move(csr.indices)),
                   to_numpy(std::move(csr.weights)), n_self_loops, n_zero_weights);
}

std::variant<CsrArrays, ohm::EdgeFault> build_csr(std::int32_t n_nodes, const Ids& u, const Ids& v, const Weights& w) {
  require(n_nodes >= 0, "n_nodes must not be negative");
  auto result = with_edges(u, v, w, [&](auto a, auto b, auto c) { return ohm::build_csr(n_nodes, a, b, c); });
  if (const auto* fault = std::get_if<ohm::EdgeFault>(&result)) return *fault;
  return to_arrays(std::get<ohm::BuiltCsr>(std::move(result)));
}

std::optional<CsrArrays> read_matrix(const Ids& indptr, const Ids& indices, ArrayIn<double> values, double tolerance,
                                     std::optional<ArrayInOut<double>> excess) {
  return std::visit([&](const auto& offsets) -> std::optional<CsrArrays> {
    const auto& columns = std::get<std::decay_t<decltype(offsets)>>(indices);
    require(offsets.size() > 0 && columns.size() == values.size() && (!excess || excess->size() + 1 == offsets.size()),
            "the arrays are not those of one matrix");
    auto built = without_gil([&, to = excess ? excess->data() : nullptr] {
      return ohm::read_matrix(as_span(offsets), as_span(columns), as_span(values), tolerance, to);
    });
    return built ? std::optional(to_arrays(*std::move(built))) : std::nullopt;
  }, indptr);
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
  m.def("read_matrix", read_matrix, "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(),
        "tolerance"_a, "excess"_a.noconvert().none(), "None unless sorted and symmetric; with `excess`, a Laplacian.");
  m.def("components", components, "indptr"_a.noconvert(), "indices"_a.noconvert());
}

// ---- solver -------------------------------------------------------------------------------------

// One thread at a time may use a solver: LaplacianSolver has the lock, because a forked child can replace a lock of
// Python. The solver reads the arrays, which keep_alive keeps as long as the solver.
void make_solver(ohm::Solver* self, ArrayIn<std::int64_t> indptr, ArrayIn<std::int32_t> indices,
                 ArrayIn<double> weights, std::optional<ArrayIn<double>> ground, ohm::Method method,
                 std::uint64_t seed, int threads) {
  const ohm::CsrView graph = as_csr(indptr, indices, weights);
  require(!ground || ground->size() == static_cast<std::size_t>(graph.n), "one ground per node is needed");
  nb::gil_scoped_release release;
  new (self) ohm::Solver(graph, ground ? ground->data() : nullptr, ohm::SolverOptions{method, seed, threads});
}

ohm::Columns as_columns(const ohm::Solver& solver, const MatrixIn<double>& b, const MatrixInOut<double>& x) {
  require(b.shape(0) == solver.null_space().component.size() && x.shape(0) == b.shape(0) && x.shape(1) == b.shape(1),
          "b and x must have one row per node and equal shapes");
  const auto count = static_cast<std::int64_t>(b.shape(1));
  return {b.data(), x.data(), count, count};
}

auto solve(ohm::Solver& solver, MatrixIn<double> b, MatrixInOut<double> x, double tolerance,
           std::int32_t max_iterations) {
  const ohm::Columns columns = as_columns(solver, b, x);
  const auto reports = without_gil([&] { return solver.solve(columns, tolerance, max_iterations); });
  const auto each = [&]<class T>(const auto& take) {
    std::vector<T> values;
    for (const ohm::ColumnReport& report : reports) values.push_back(take(report));
    return to_numpy(std::move(values));
  };
  return std::tuple(each.operator()<std::int32_t>([](const auto& report) { return report.iterations; }),
                    each.operator()<double>([](const auto& report) { return report.residual; }),
                    each.operator()<double>([](const auto& report) { return report.projected_out; }),
                    each.operator()<std::uint8_t>([](const auto& report) {
                      return report.outcome == ohm::Outcome::rounding;
                    }));
}

void bind_solver(nb::module_& m) {
  nb::enum_<ohm::Method>(m, "Method")
      .value("auto", ohm::Method::automatic)
      .value("diagonal", ohm::Method::diagonal)
      .value("cholesky", ohm::Method::cholesky)
      .value("direct", ohm::Method::direct);
  nb::class_<ohm::Solver>(m, "Solver", "Trusts what is in the arrays: they come from a Graph.")
      .def("__init__", make_solver, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
           nb::keep_alive<1, 5>(), "indptr"_a.noconvert(), "indices"_a.noconvert(), "weights"_a.noconvert(),
           "ground"_a.noconvert().none(), "method"_a, "seed"_a, "threads"_a)
      .def("solve", solve, "b"_a.noconvert(), "x"_a.noconvert(), "tolerance"_a, "max_iterations"_a,
           "Overwrites x. Returns for each column: iterations, residual, fraction projected out, limited by rounding.")
      .def("precondition", [](ohm::Solver& self, MatrixIn<double> b, MatrixInOut<double> x) {
        without_gil([&, columns = as_columns(self, b, x)] { self.precondition(columns); });
      }, "b"_a.noconvert(), "x"_a.noconvert())
      .def_prop_ro("method", &ohm::Solver::method)
      .def_prop_ro("reason", &ohm::Solver::reason)
      .def_prop_ro("factor_entries", &ohm::Solver::factor_entries)
      .def_prop_ro("setup_seconds", &ohm::Solver::setup_seconds);
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

void add_estimates(MatrixIn<double> z, ArrayIn<std::int32_t> u, ArrayIn<std::int32_t> v,
                   std::optional<ArrayIn<double>> w, std::uint64_t seed, std::uint64_t round, int threads,
                   ArrayInOut<double> squares, ArrayInOut<double> products) {
  require(z.shape(1) == ohm::kSketchColumns, "z has the wrong shape");
  const std::size_t size = u.size();
  require(v.size() == size && (!w || w->size() == size) && squares.size() == size && products.size() == size,
          "arrays of pairs must have the same length");
  nb::gil_scoped_release release;
  ohm::add_estimates(z.data(), as_span(u), as_span(v), w ? as_span(*w) : std::span<const double>{}, seed, round,
                     threads, squares.data(), products.data());
}

void bind_resistance(nb::module_& m) {
  m.attr("SKETCH_COLUMNS") = ohm::kSketchColumns;
  m.def("sketch_right_hand_sides", sketch_right_hand_sides, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "weights"_a.noconvert(), "seed"_a, "round"_a, "threads"_a, "y"_a.noconvert());
  m.def("add_estimates", add_estimates, "z"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert(),
        "w"_a.noconvert().none(), "seed"_a, "round"_a, "threads"_a, "squares"_a.noconvert(), "products"_a.noconvert());
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
