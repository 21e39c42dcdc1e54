// The Python module ohmlearn._core. Only the bindings know nanobind; one section per station, the
// sources of edges in bindings_streams.cpp, products in bindings_products.cpp.
//
// Arrays are taken as they are or not at all (noconvert: nanobind would otherwise copy silently) and
// kernels run without the GIL. Python checks dtypes and words the errors: see _validation.py.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings.hpp"
#include "csr.hpp"
#include "embedding.hpp"
#include "sampler.hpp"
#include "solver.hpp"

using namespace ohm::python;

namespace {

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
  require(indptr.size() > 0 && indptr.size() - 1 <= std::numeric_limits<std::int32_t>::max(),
          "indptr must have n_nodes + 1 entries");
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

// ---- solver -------------------------------------------------------------------------------------

// Holds the arrays for as long as the C++ solver looks at them. One thread at a time may use it: LaplacianSolver has
// the lock, because a forked child can replace a lock of Python's.
class Solver {
 public:
  Solver(ArrayIn<std::int64_t> indptr, ArrayIn<std::int32_t> indices, ArrayIn<double> weights,
         std::optional<ArrayIn<double>> ground, ohm::Method method, std::uint64_t seed, int threads)
      : indptr_(indptr), indices_(indices), weights_(weights), ground_(ground) {
    ohm::CsrView graph = as_csr(indptr, indices);
    graph.weights = weights.data();
    require(weights.size() == indices.size(), "one weight per index is needed");
    require(!ground || ground->size() == static_cast<std::size_t>(graph.n), "one ground per node is needed");
    nb::gil_scoped_release release;
    solver_.emplace(graph, ground ? ground->data() : nullptr, ohm::SolverOptions{method, seed, threads});
  }

  auto solve(MatrixIn<double> b, MatrixInOut<double> x, double tolerance, std::int32_t max_iterations) {
    const auto columns = check(b, x);
    std::vector<ohm::ColumnReport> reports;
    {
      nb::gil_scoped_release release;
      reports = solver_->solve(columns, tolerance, max_iterations);
    }
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
      .def("solve", &Solver::solve, "b"_a.noconvert(), "x"_a.noconvert(), "tolerance"_a,
           "max_iterations"_a, "Iterations, residual, share projected out, limited by rounding, per column; x is overwritten.")
      .def("precondition", &Solver::precondition, "b"_a.noconvert(), "x"_a.noconvert())
      .def_prop_ro("method", &Solver::ask<&ohm::Solver::method>)
      .def_prop_ro("reason", &Solver::ask<&ohm::Solver::reason>)
      .def_prop_ro("factor_entries", &Solver::ask<&ohm::Solver::factor_entries>)
      .def_prop_ro("setup_seconds", &Solver::ask<&ohm::Solver::setup_seconds>);
  m.attr("DIRECT_LIMIT") = ohm::Solver::kDirectLimit;
}

// ---- resistances --------------------------------------------------------------------------------

void sketch_right_hand_sides(ArrayIn<std::int64_t> indptr, ArrayIn<std::int32_t> indices,
                             ArrayIn<double> weights, std::uint64_t seed, std::uint64_t round,
                             int threads, MatrixInOut<double> y) {
  ohm::CsrView graph = as_csr(indptr, indices);
  graph.weights = weights.data();
  require(weights.size() == indices.size(), "one weight per index is needed");
  require(y.shape(0) + 1 == indptr.size() && y.shape(1) == ohm::kSketchColumns, "y has the wrong shape");
  nb::gil_scoped_release release;
  ohm::sketch_right_hand_sides(graph, seed, round, threads, y.data());
}

void add_estimates(MatrixIn<double> z, ArrayIn<std::int32_t> u, ArrayIn<std::int32_t> v,
                   std::optional<ArrayIn<double>> w, std::uint64_t seed, std::uint64_t round, int threads,
                   ArrayInOut<double> squares, ArrayInOut<double> products) {
  require(z.shape(1) == ohm::kSketchColumns, "z has the wrong shape");
  require(u.size() == v.size() && (!w || w->size() == u.size()) && squares.size() == u.size() &&
              products.size() == u.size(),
          "pairs must be equally long");
  nb::gil_scoped_release release;
  ohm::add_estimates(z.data(), as_span(u), as_span(v), w ? as_span(*w) : std::span<const double>{}, seed, round,
                     threads, squares.data(), products.data());
}

void combine_estimates(ArrayIn<std::int32_t> u, ArrayIn<std::int32_t> v, std::optional<ArrayIn<double>> w,
                       ArrayIn<double> degrees, double q, ArrayInOut<double> squares, ArrayIn<double> products) {
  require(u.size() == v.size() && (!w || w->size() == u.size()) && squares.size() == u.size() &&
              products.size() == u.size(),
          "pairs must be equally long");
  nb::gil_scoped_release release;
  ohm::combine_estimates(as_span(u), as_span(v), w ? as_span(*w) : std::span<const double>{}, degrees.data(), q,
                         squares.data(), products.data());
}

void bind_resistance(nb::module_& m) {
  m.attr("SKETCH_COLUMNS") = ohm::kSketchColumns;
  m.def("sketch_right_hand_sides", sketch_right_hand_sides, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "weights"_a.noconvert(), "seed"_a, "round"_a, "threads"_a, "y"_a.noconvert());
  m.def("add_estimates", add_estimates, "z"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert(),
        "w"_a.noconvert().none(), "seed"_a, "round"_a, "threads"_a, "squares"_a.noconvert(),
        "products"_a.noconvert());
  m.def("combine_estimates", combine_estimates, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert().none(),
        "degrees"_a.noconvert(), "q"_a, "squares"_a.noconvert(), "products"_a.noconvert());
}

// ---- sparsifier ---------------------------------------------------------------------------------

template <class Index, class Weight>
std::optional<ohm::EdgeFault> find_fault(std::int64_t limit, int threads, std::span<const Index> u,
                                         std::span<const Index> v, std::span<const Weight> w) {
  require_equal(u, v, w);
  nb::gil_scoped_release release;
  return ohm::find_fault<Index, Weight>(u, v, w, limit, threads);
}

template <class Index, class Weight>
void update(ohm::Sampler& sampler, std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w) {
  require_equal(u, v, w);
  nb::gil_scoped_release release;
  sampler.update<Index, Weight>(u, v, w);
}

template <class Index, class Weight>
void bind_update(nb::module_& m, nb::class_<ohm::Sampler>& c) {
  if constexpr (std::is_same_v<Weight, ohm::Unit>) {
    m.def("find_fault", [](std::int64_t limit, int threads, ArrayIn<Index> u, ArrayIn<Index> v) {
      return find_fault<Index, Weight>(limit, threads, as_span(u), as_span(v), {});
    }, "limit"_a, "threads"_a, "u"_a.noconvert(), "v"_a.noconvert());
    c.def("update", [](ohm::Sampler& self, ArrayIn<Index> u, ArrayIn<Index> v) {
      update<Index, Weight>(self, as_span(u), as_span(v), {});
    }, "u"_a.noconvert(), "v"_a.noconvert());
  } else {
    m.def("find_fault", [](std::int64_t limit, int threads, ArrayIn<Index> u, ArrayIn<Index> v, ArrayIn<Weight> w) {
      return find_fault<Index, Weight>(limit, threads, as_span(u), as_span(v), as_span(w));
    }, "limit"_a, "threads"_a, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert());
    c.def("update", [](ohm::Sampler& self, ArrayIn<Index> u, ArrayIn<Index> v, ArrayIn<Weight> w) {
      update<Index, Weight>(self, as_span(u), as_span(v), as_span(w));
    }, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert());
  }
}

// A state as arrays: the records of the nodes as bytes, rows, counters, and numbers.
using SamplerState = std::tuple<ArrayOut<std::uint8_t>, ArrayOut<std::uint8_t>, ArrayOut<std::uint8_t>, ArrayOut<std::int32_t>,
                                ArrayOut<std::int32_t>, ArrayOut<float>, ArrayOut<std::int64_t>, ArrayOut<double>>;

SamplerState get_state(const ohm::Sampler& sampler) {
  const ohm::Sampler::State& s = sampler.state();
  // Room for more nodes than have been seen may be left by a call that failed.
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(s.nodes.data());
  const auto* more = reinterpret_cast<const std::uint8_t*>(s.clusters.data());
  const auto* table = reinterpret_cast<const std::uint8_t*>(s.pairs.data());
  std::vector<double> numbers(s.weight_seen, s.weight_seen + 8);
  for (const double x : {s.beta, s.n_expected, s.correction}) numbers.push_back(x);
  return {to_numpy(std::vector<std::uint8_t>(bytes, bytes + s.n_nodes * sizeof(ohm::NodeRecord))),
          to_numpy(std::vector<std::uint8_t>(more, more + s.clusters.size() * sizeof(ohm::Cluster))),
          to_numpy(std::vector<std::uint8_t>(table, table + s.pairs.size() * sizeof(ohm::PairWeight))),
          to_numpy(std::vector<std::int32_t>(s.u)),
          to_numpy(std::vector<std::int32_t>(s.v)),
          to_numpy(std::vector<float>(s.w)),
          to_numpy(std::vector<std::int64_t>{s.position, s.n_self_loops, s.n_zero_weights, s.n_resamples, s.capacity, s.n_sorted}),
          to_numpy(std::move(numbers))};
}

void set_state(ohm::Sampler& sampler, ArrayIn<std::uint8_t> nodes, ArrayIn<std::uint8_t> clusters,
               ArrayIn<std::uint8_t> pairs, ArrayIn<std::int32_t> u, ArrayIn<std::int32_t> v, ArrayIn<float> w, ArrayIn<std::int64_t> counters, ArrayIn<double> numbers) {
  const std::size_t n_nodes = nodes.size() / sizeof(ohm::NodeRecord);
  require(nodes.size() % sizeof(ohm::NodeRecord) == 0 && n_nodes <= std::numeric_limits<std::int32_t>::max(),
          "nodes must have one record per node");
  require(clusters.size() % sizeof(ohm::Cluster) == 0, "clusters must have whole records");
  require(pairs.size() % sizeof(ohm::PairWeight) == 0, "pairs must have whole records");
  require(counters.size() == 6, "counters must have 6 entries");
  require(numbers.size() == 11, "numbers must have 11 entries");
  nb::gil_scoped_release release;
  ohm::Sampler::State s;
  s.n_nodes = static_cast<std::int32_t>(n_nodes);
  s.nodes.resize(n_nodes);
  if (n_nodes > 0) std::memcpy(static_cast<void*>(s.nodes.data()), nodes.data(), nodes.size());
  s.clusters.resize(clusters.size() / sizeof(ohm::Cluster));
  if (clusters.size() > 0) std::memcpy(static_cast<void*>(s.clusters.data()), clusters.data(), clusters.size());
  s.pairs.resize(pairs.size() / sizeof(ohm::PairWeight));
  if (pairs.size() > 0) std::memcpy(static_cast<void*>(s.pairs.data()), pairs.data(), pairs.size());
  s.u.assign(u.data(), u.data() + u.size());
  s.v.assign(v.data(), v.data() + v.size());
  s.w.assign(w.data(), w.data() + w.size());
  s.position = counters.data()[0];
  s.n_self_loops = counters.data()[1];
  s.n_zero_weights = counters.data()[2];
  s.n_resamples = counters.data()[3];
  s.capacity = counters.data()[4];
  s.n_sorted = counters.data()[5];
  std::copy_n(numbers.data(), 8, s.weight_seen);
  s.beta = numbers.data()[8];
  s.n_expected = numbers.data()[9];
  s.correction = numbers.data()[10];
  sampler.set_state(std::move(s));
}

void bind_sparsifier(nb::module_& m) {
  m.attr("RECORD_BYTES") = sizeof(ohm::NodeRecord);
  nb::class_<ohm::Sampler> c(m, "Sampler", "Trusts the edges it is given: see find_fault.");
  c.def("__init__", [](ohm::Sampler* self, std::int32_t n_nodes, std::uint64_t seed, double epsilon, double constant,
                       double offset, std::int64_t max_rows, bool retracts, int threads, bool grows) {
    new (self) ohm::Sampler(n_nodes, {seed, epsilon, constant, offset, max_rows, retracts, threads, grows});
  }, "n_nodes"_a, "seed"_a, "epsilon"_a, "constant"_a, "offset"_a, "max_rows"_a, "retracts"_a, "threads"_a,
        "grows"_a);
  bind_update<std::int32_t, ohm::Unit>(m, c);
  bind_update<std::int64_t, ohm::Unit>(m, c);
  bind_update<std::int32_t, float>(m, c);
  bind_update<std::int32_t, double>(m, c);
  bind_update<std::int64_t, float>(m, c);
  bind_update<std::int64_t, double>(m, c);
  c.def("merge", [](ohm::Sampler& self, const ohm::Sampler& other) {
     require(&self != &other, "a sparsifier cannot be merged with itself");
     nb::gil_scoped_release release;
     self.merge(other.state());
   }, "other"_a)
      .def("snapshot", [](const ohm::Sampler& self) {
        ohm::Csr csr;
        {
          nb::gil_scoped_release release;
          csr = self.snapshot();
        }
        return std::tuple(to_numpy(std::move(csr.indptr)), to_numpy(std::move(csr.indices)),
                          to_numpy(std::move(csr.weights)));
      })
      .def("get_state", get_state)
      .def("set_state", set_state, "nodes"_a.noconvert(), "clusters"_a.noconvert(), "pairs"_a.noconvert(), "u"_a.noconvert(),
           "v"_a.noconvert(), "w"_a.noconvert(),
           "counters"_a.noconvert(), "numbers"_a.noconvert())
      .def_prop_ro("n_nodes", [](const ohm::Sampler& s) { return s.state().n_nodes; })
      .def_prop_ro("n_rows", &ohm::Sampler::n_rows)
      .def_prop_ro("position", [](const ohm::Sampler& s) { return s.state().position; })
      .def_prop_ro("n_self_loops", [](const ohm::Sampler& s) { return s.state().n_self_loops; })
      .def_prop_ro("n_zero_weights", [](const ohm::Sampler& s) { return s.state().n_zero_weights; })
      .def_prop_ro("n_resamples", [](const ohm::Sampler& s) { return s.state().n_resamples; })
      .def_prop_ro("capacity", [](const ohm::Sampler& s) { return s.state().capacity; })
      .def_prop_ro("beta", [](const ohm::Sampler& s) { return s.state().beta; })
      .def_prop_ro("weight_seen", [](const ohm::Sampler& s) {
        double sum = 0.0;
        for (const double lane : s.state().weight_seen) sum += lane;
        return sum;
      });
}

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // at the end of a process others may still hold objects, Dask among them
  m.def("never_free", [](nb::handle object) { object.inc_ref(); }, "object"_a,
        "Keep an object until the process ends, and do not run its destructor even then.");
  m.doc() = "Kernels of ohmlearn. Internal: names and signatures change without notice.";
  bind_graph(m);
  bind_solver(m);
  bind_products(m);
  bind_resistance(m);
  bind_sparsifier(m);
  bind_streams(m);
}
