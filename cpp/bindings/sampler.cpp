// The sampler, in ohmlearn._core.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "base/rng.hpp"
#include "bindings/arrays.hpp"
#include "sampling/sampling_noise.hpp"
#include "sampling/sampler.hpp"
#include "sampling/windows.hpp"

namespace ohm::python {
namespace {

// ---- states -------------------------------------------------------------------------------------
// A state crosses to Python as arrays by name, and so into files and between the workers of a cluster. Records of nodes
// and clusters are rows of bytes; numbers are arrays without dimensions.

constexpr const char* kFromState = "Continues from a state; ValueError if no sampler with these options can have it.";

using State = nb::typed<nb::dict, nb::str, nb::object>;

template <class S>
void merge_all(S& self, const std::vector<const S*>& others) {
  std::vector<const typename S::State*> states;
  for (const S* other : others) {
    require(&self != other, "a sparsifier cannot be merged with itself");
    states.push_back(&other->state());
  }
  nb::gil_scoped_release release;
  self.merge(states);
}

template <class S, class Visit>
void visit_rows(S& state, const Visit& visit) {
  visit("u", state.rows.u);
  visit("v", state.rows.v);
  visit("w", state.rows.w);
  visit("chance", state.rows.probability);
}

template <class S, class Visit>
void visit_counters(S& state, const Visit& visit) {
  visit("n_sorted", state.n_sorted);
  visit("position", state.position);
  visit("n_self_loops", state.n_self_loops);
  visit("n_zero_weights", state.n_zero_weights);
  visit("n_resamples", state.n_resamples);
  visit("capacity", state.capacity);
}

template <class S, class Visit>
void visit_window_state(S& state, const Visit& visit) {
  visit("n_nodes", state.n_nodes);
  visit_rows(state, visit);
  visit("time", state.rows.time);
  visit_counters(state, visit);
  visit("beta", state.beta);
  visit("latest", state.latest);
  visit("thinned", state.thinned);
  visit("weight_seen", state.weight_seen);
}

template <class S, class Visit>
void visit_state(S& state, bool has_half_life, const Visit& visit) {
  visit("nodes", state.nodes);
  visit("clusters", state.clusters);
  visit("pairs", state.pairs);
  visit_rows(state, visit);
  visit_counters(state, visit);
  visit("n_expected", state.n_expected);
  visit("beta", state.beta);
  visit("correction", state.correction);
  visit("weight_seen", state.weight_seen);
  if (!has_half_life) return;
  visit("time", state.rows.time);
  visit("latest", state.latest);
  visit("epoch", state.epoch);
  visit("n_faded", state.n_faded);
}

template <class T>
using Number = nb::ndarray<nb::numpy, T, nb::ndim<0>>;

template <class T>
  requires std::is_arithmetic_v<T>
nb::object to_python(T value) {
  return nb::cast(Number<T>(&value, 0, nullptr), nb::rv_policy::copy);
}

template <std::size_t Size>
nb::object to_python(const std::array<double, Size>& values) {
  return nb::cast(to_numpy(std::vector<double>(values.begin(), values.end())));
}

template <class T, class Allocator>
nb::object to_python(const std::vector<T, Allocator>& values) {
  if constexpr (std::is_arithmetic_v<T>) {
    return nb::cast(to_numpy(std::vector<T, Allocator>(values)));
  } else {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
    auto* owned = new std::vector<std::uint8_t>(bytes, bytes + values.size() * sizeof(T));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<std::uint8_t>*>(p); });
    using Records = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<2>, nb::c_contig>;
    return nb::cast(Records(owned->data(), {values.size(), sizeof(T)}, owner));
  }
}

State get_state(const Sampler& sampler) {
  nb::dict result;
  visit_state(sampler.state(), sampler.has_half_life(),
              [&](const char* name, const auto& field) { result[name] = to_python(field); });
  // Room for more nodes than have been seen may be left by a call that failed.
  result["nodes"] = result["nodes"][nb::slice(sampler.state().n_nodes)];
  return State(result);
}

// The array of a state with this name, if it has the type.
template <class Array>
Array find_array(const nb::dict& state, const char* name, const std::string& type) {
  if (!state.contains(name)) throw std::invalid_argument(std::string(name) + " is missing");
  const nb::handle value = state[name];
  Array array;
  if (nb::try_cast(value, array, false)) return array;
  const auto text = [&](const char* attribute) {
    return std::string(nb::str(nb::getattr(value, attribute, nb::none())).c_str());
  };
  throw std::invalid_argument(std::string(name) + " must be " + type + ", got " + text("dtype") + " of shape " +
                              text("shape"));
}

template <class T>
const char* type_name() {
  if constexpr (std::is_same_v<T, float>) return "float32";
  if constexpr (std::is_same_v<T, double>) return "float64";
  return sizeof(T) == 4 ? "int32" : "int64";
}

template <class T>
void read_field(const nb::dict& state, const char* name, T& number) {
  using Array = nb::ndarray<const T, nb::ndim<0>, nb::device::cpu>;
  number = *find_array<Array>(state, name, std::string("a single ") + type_name<T>()).data();
}

template <std::size_t Size>
void read_field(const nb::dict& state, const char* name, std::array<double, Size>& values) {
  const auto array = find_array<ArrayIn<double>>(state, name, "a vector of float64");
  if (array.size() != Size) {
    throw std::invalid_argument(std::string(name) + " must have " + std::to_string(Size) + " entries, got " +
                                std::to_string(array.size()));
  }
  std::copy_n(array.data(), Size, values.begin());
}

template <class T, class Allocator>
void read_field(const nb::dict& state, const char* name, std::vector<T, Allocator>& values) {
  if constexpr (std::is_arithmetic_v<T>) {
    const auto array = find_array<ArrayIn<T>>(state, name, std::string("a vector of ") + type_name<T>());
    values.assign(array.data(), array.data() + array.size());
  } else {
    const std::string type = "rows of " + std::to_string(sizeof(T)) + " uint8";
    using Records = nb::ndarray<const std::uint8_t, nb::shape<-1, sizeof(T)>, nb::c_contig, nb::device::cpu>;
    const auto array = find_array<Records>(state, name, type);
    require(array.shape(0) <= std::numeric_limits<std::int32_t>::max(), "a state has at most 2**31 - 1 records");
    values.resize(array.shape(0));
    if (!values.empty()) std::memcpy(static_cast<void*>(values.data()), array.data(), array.size());
  }
}

double total(const std::array<double, 8>& lanes) { return std::accumulate(lanes.begin(), lanes.end(), 0.0); }

// The arrays of H, with its weights multiplied by a factor, the probability of each edge, and whether it has all edges.
template <class Take>
auto as_arrays(const Take& take, double factor, int threads) {
  Csr csr;
  Snapshot found = without_gil([&] {
    const RecyclePages recycle;
    Snapshot snapshot = take();
    Crew crew(threads);
    mirror(snapshot.h, factor, csr.indptr, csr.indices, csr.weights, crew);
    return snapshot;
  });
  return std::tuple(to_numpy(std::move(csr.indptr)), to_numpy(std::move(csr.indices)),
                    to_numpy(std::move(csr.weights)), to_numpy(std::move(found.h.probability)), found.is_whole);
}

template <class S>
void bind_common(nb::class_<S>& c) {
  c.attr("changes_at_once") = false;  // an update that is interrupted by a fork leaves an unusable sampler
  c.def("copy", [](const S& self, int threads) { return without_gil([&] { return self.copy(threads); }); }, "threads"_a,
        "An independent sampler with the same state.")
      .def_prop_ro("n_nodes", [](const S& s) { return s.state().n_nodes; })
      .def_prop_ro("n_rows", &S::n_rows)
      .def_prop_ro("position", [](const S& s) { return s.state().position; })
      .def_prop_ro("n_self_loops", [](const S& s) { return s.state().n_self_loops; })
      .def_prop_ro("n_zero_weights", [](const S& s) { return s.state().n_zero_weights; })
      .def_prop_ro("n_resamples", [](const S& s) { return s.state().n_resamples; })
      .def_prop_ro("capacity", [](const S& s) { return s.state().capacity; })
      .def_prop_ro("beta", [](const S& s) { return s.state().beta; })
      .def_prop_ro("latest", [](const S& s) { return s.state().latest; }, "-inf before the first edge.");
}

void bind_windows(nb::module_& m) {
  nb::class_<WindowSampler> c(m, "WindowSampler", "Trusts the edges it is given: see find_fault. Times are finite.");
  c.def("__init__", [](WindowSampler* self, std::int32_t n_nodes, std::uint64_t seed, double epsilon, double constant,
                       double offset, std::int64_t max_rows, double horizon, int threads, bool grows,
                       std::optional<State> state) {
    const SamplerOptions options{.seed = seed, .epsilon = epsilon, .constant = constant, .offset = offset,
                                 .max_rows = max_rows, .threads = threads, .grows = grows, .horizon = horizon};
    if (!state) return void(new (self) WindowSampler(n_nodes, options));
    WindowSampler::State read;
    visit_window_state(read, [&](const char* name, auto& field) { read_field(*state, name, field); });
    new (self) WindowSampler(
        without_gil([&] { return WindowSampler::from_state(std::move(read), n_nodes, options); }));
  }, "n_nodes"_a, "seed"_a, "epsilon"_a, "constant"_a, "offset"_a, "max_rows"_a, "horizon"_a, "threads"_a, "grows"_a,
        "state"_a = nb::none(), kFromState);
  c.def("update", [](WindowSampler& self, Ids u, Ids v, Weights w, ArrayIn<double> t) {
    with_edges(u, v, w, [&](auto a, auto b, auto weights) {
      require(t.size() == a.size(), "t must have the length of u and v");
      self.update(a, b, weights, as_span(t));
    });
  }, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert().none(), "t"_a.noconvert());
  c.def("merge", merge_all<WindowSampler>, "others"_a)
      .def("snapshot", [](WindowSampler& self, double since) {
        return as_arrays([&] { return self.snapshot(since); }, 1.0, self.threads());
      }, "since"_a, "H since a time, the probability of each edge (u < v, in order), and whether it has all edges.")
      .def("get_state", [](const WindowSampler& self) {
        nb::dict result;
        visit_window_state(self.state(), [&](const char* name, const auto& field) { result[name] = to_python(field); });
        return State(result);
      }, "All that the future depends on, as arrays by name.")
      .def_prop_ro("weight_seen", [](const WindowSampler& s) { return total(s.state().weight_seen); });
  bind_common(c);
}

}  // namespace

void bind_sampler(nb::module_& m) {
  nb::class_<Sampler> c(m, "Sampler", "Trusts the edges it is given: see find_fault.");
  c.def("__init__", [](Sampler* self, std::int32_t n_nodes, std::uint64_t seed, double epsilon, double constant,
                       double offset, std::int64_t max_rows, bool retracts, int threads, bool grows, double half_life,
                       std::optional<State> state) {
    const SamplerOptions options{seed, epsilon, constant, offset, max_rows, retracts, threads, grows, half_life};
    if (!state) return void(new (self) Sampler(n_nodes, options));
    Sampler::State read;
    const bool has_half_life = half_life < std::numeric_limits<double>::infinity();
    visit_state(read, has_half_life, [&](const char* name, auto& field) { read_field(*state, name, field); });
    read.n_nodes = static_cast<std::int32_t>(read.nodes.size());
    new (self) Sampler(without_gil([&] { return Sampler::from_state(std::move(read), n_nodes, options); }));
  }, "n_nodes"_a, "seed"_a, "epsilon"_a, "constant"_a, "offset"_a, "max_rows"_a, "retracts"_a, "threads"_a,
        "grows"_a, "half_life"_a, "state"_a = nb::none(), kFromState);
  m.def("draw_errors", [](std::int32_t n_nodes, ArrayIn<std::int32_t> u, ArrayIn<std::int32_t> v, ArrayIn<float> w,
                          ArrayIn<float> probability, double loose, std::uint64_t seed, std::uint64_t number) {
    require(u.size() == v.size() && u.size() == w.size() && u.size() == probability.size(),
            "u, v, w and probability must have equal lengths");
    return to_numpy(without_gil([&] {
      const auto size = static_cast<std::int64_t>(u.size());
      const Triangle h = sort_edges(n_nodes, as_span(u), as_span(v), as_span(w), size, as_span(probability));
      return draw_errors(h, loose, hash(mix(seed), number));
    }));
  }, "n_nodes"_a, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert(), "probability"_a.noconvert(), "loose"_a,
        "seed"_a, "number"_a, "Errors of the edges of H (u < v, in order) that another sample could have made.");
  m.def("find_fault", [](std::int64_t limit, int threads, Ids u, Ids v, Weights w, double smallest) {
    return with_edges(u, v, w, [&](auto a, auto b, auto c) { return find_fault(a, b, c, limit, threads, smallest); });
  }, "limit"_a, "threads"_a, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert() = nb::none(),
        "smallest"_a = 0.0);
  m.attr("SMALLEST_FADING") = kSmallestFading;
  c.def("update", [](Sampler& self, Ids u, Ids v, Weights w, std::optional<ArrayIn<double>> t) {
    with_edges(u, v, w, [&](auto a, auto b, auto c) {
      if (!t) return self.update(a, b, c);
      require(t->size() == a.size(), "t must have the length of u and v");
      self.update(a, b, c, as_span(*t));
    });
  }, "u"_a.noconvert(), "v"_a.noconvert(), "w"_a.noconvert() = nb::none(), "t"_a.noconvert() = nb::none());
  m.def("fade_weights", [](Weights w, ArrayIn<double> t, double at, double half_life) {
    std::vector<float> faded(t.size());
    const std::int64_t count = std::visit([&](const auto& weights) {
      const auto fade = [&](auto span) {
        return without_gil([&] {
          return fade_weights(span, as_span(t), at, at - kFaded * half_life, half_life, faded.data()).count;
        });
      };
      if constexpr (std::is_same_v<std::decay_t<decltype(weights)>, std::monostate>) {
        return fade(std::span<const Unit>());
      } else {
        require(weights.size() == t.size(), "w must have the length of t");
        return fade(as_span(weights));
      }
    }, w);
    return std::tuple(to_numpy(std::move(faded)), count);
  }, "w"_a.noconvert().none(), "t"_a.noconvert(), "at"_a, "half_life"_a,
        "Weights at a time, and how many are zero because their edges are later, or older than 40 half-lives.");
  c.def("merge", [](Sampler& self, const std::vector<const Sampler*>& others) {
     for (const Sampler* other : others) {
       require(self.has_half_life() == other->has_half_life(), "only some of them have a half-life");
     }
     merge_all(self, others);
   }, "others"_a)
      .def("snapshot", [](const Sampler& self, std::optional<double> at) {
        require(at.has_value() == self.has_half_life(), "a time is needed if there is a half-life");
        return as_arrays([&] { return at ? self.snapshot(*at) : self.snapshot(); }, at ? self.scale_at(*at) : 1.0,
                         self.threads());
      }, "at"_a = nb::none(), "H, the probability of each edge (u < v, in order), and whether it has all edges.")
      .def("get_state", get_state, "All that the future depends on, as arrays by name.")
      .def_prop_ro("weight_seen", [](const Sampler& s) {
        const double sum = total(s.state().weight_seen);
        return s.has_half_life() ? sum * s.scale_at(s.state().latest) : sum;
      })
      .def_prop_ro("n_faded", [](const Sampler& s) { return s.state().n_faded; });
  bind_common(c);
  bind_windows(m);
}

}  // namespace ohm::python
