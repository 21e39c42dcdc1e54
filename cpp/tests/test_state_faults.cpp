// States that may come from a file: a sampler refuses them, or continues without invalid memory accesses.
// OHMLEARN_LONG=1 tries many more.
#include "base/rng.hpp"
#include "sampling/sampler.hpp"
#include "check.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>

namespace {

using State = ohm::Sampler::State;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int32_t kNodes = 60;

const ohm::SamplerOptions kOptions[] = {
    {.seed = 1, .epsilon = 0.9},
    {.seed = 2, .epsilon = 0.9, .grows = false},
    {.seed = 3, .max_rows = 300},
    {.seed = 4, .epsilon = 0.9, .retracts = false, .threads = 2},
    {.seed = 5, .max_rows = 300, .half_life = 100.0},
};

// A sequence of random numbers from a seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t bits() { return ohm::hash(seed_, ++rolled_); }
  std::int64_t below(std::int64_t end) { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(end)); }
  template <class T, std::size_t Size>
  T one_of(const T (&values)[Size]) {
    return values[below(Size)];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t rolled_ = 0;
};

void feed(ohm::Sampler& sampler, std::int64_t edges, std::uint64_t seed) {
  Dice dice(seed);
  std::vector<std::int32_t> u, v;
  std::vector<float> w;
  for (std::int64_t i = 0; i < edges; ++i) {
    u.push_back(static_cast<std::int32_t>(dice.below(kNodes)));
    v.push_back(static_cast<std::int32_t>(dice.below(kNodes)));
    w.push_back(static_cast<float>(0.1 + ohm::uniform(dice.bits())) * (u.back() / 2 == v.back() / 2 ? 1e4f : 1.0f));
  }
  if (!sampler.has_half_life()) return sampler.update<std::int32_t, float>(u, v, w);
  std::vector<double> t;
  for (std::int64_t i = 0; i < edges; ++i) t.push_back(static_cast<double>(i + dice.below(300)));
  sampler.update<std::int32_t, float>(u, v, w, t);
}

ohm::Triangle snapshot(const ohm::Sampler& sampler) {
  return (sampler.has_half_life() ? sampler.snapshot(sampler.state().latest) : sampler.snapshot()).h;
}

ohm::Sampler fed(const ohm::SamplerOptions& options, std::int64_t edges) {
  ohm::Sampler sampler(options.grows ? 0 : kNodes, options);
  feed(sampler, edges, 7);
  return sampler;
}

ohm::Sampler restored(const ohm::SamplerOptions& options, State state) {
  return ohm::Sampler::from_state(std::move(state), options.grows ? 0 : kNodes, options);
}

std::string fault_of(const ohm::SamplerOptions& options, const State& state) {
  try {
    restored(options, state);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

float odd_float(Dice& dice) {
  const float odd[] = {kNan, kInfinity, -kInfinity, -1.0f, 0.0f, -0.0f, 1e-45f, 1e-38f, 3e38f, 1e27f, 0.5f,
                       std::bit_cast<float>(static_cast<std::uint32_t>(dice.bits()))};
  return dice.one_of(odd);
}

double odd_double(Dice& dice) {
  const double odd[] = {std::nan(""), HUGE_VAL, -1.0, 0.0, 5e-324, 1e-30, 1e300, 0.01, 2.0,
                        std::bit_cast<double>(dice.bits())};
  return dice.one_of(odd);
}

std::int64_t odd_integer(Dice& dice, std::int64_t near) {
  const auto bits = static_cast<std::uint64_t>(near);  // unsigned, because it may be extreme already
  const std::uint64_t odd[] = {0, 1, ~0ull, bits - 1, bits + 1, 2 * bits, dice.bits(),
                               static_cast<std::uint64_t>(ohm::kMostEdges) / 4,
                               static_cast<std::uint64_t>(ohm::kMostEdges) + 1, ~0ull >> 1, ~(~0ull >> 1)};
  return static_cast<std::int64_t>(dice.one_of(odd));
}

void change_times(State& state, Dice& dice) {
  switch (dice.below(4)) {
    case 0: state.latest = odd_double(dice); return;
    case 1: state.epoch = odd_integer(dice, state.epoch); return;
    case 2: state.n_faded = odd_integer(dice, state.n_faded); return;
    default: state.rows.time[dice.below(std::ssize(state.rows.time))] = odd_double(dice);
  }
}

void change(State& state, Dice& dice) {
  const std::int64_t rows = state.rows.size();
  const std::int64_t row = rows > 0 ? dice.below(rows) : 0;
  if (!state.rows.time.empty() && dice.below(3) == 0) return change_times(state, dice);
  switch (dice.below(rows > 0 ? 15 : 9)) {
    case 0: {
      std::int64_t* counters[] = {&state.position,    &state.n_self_loops, &state.n_zero_weights,
                                  &state.n_resamples, &state.capacity,     &state.n_sorted};
      std::int64_t& counter = *dice.one_of(counters);
      counter = odd_integer(dice, counter);
      return;
    }
    case 1: state.beta = odd_double(dice); return;
    case 2: state.weight_seen[dice.below(8)] = odd_double(dice); return;
    case 3: state.n_nodes = static_cast<std::int32_t>(odd_integer(dice, state.n_nodes)); return;
    case 4:
      state.nodes.resize(dice.below(2 * kNodes));
      if (dice.below(2) == 0) state.n_nodes = static_cast<std::int32_t>(state.nodes.size());
      return;
    case 5:
    case 6: {
      if (state.nodes.empty()) return;
      ohm::NodeRecord& node = state.nodes[dice.below(std::ssize(state.nodes))];
      float* numbers[] = {&node.z[dice.below(8)], &node.balance,   &node.degree_now,
                          &node.inverse_degree,            &node.inverse_degree_now, &node.distance};
      std::int32_t* integers[] = {&node.component, &node.cluster};
      if (dice.below(3) > 0) {
        *dice.one_of(numbers) = odd_float(dice);
      } else {
        std::int32_t& integer = *dice.one_of(integers);
        integer = static_cast<std::int32_t>(odd_integer(dice, integer));
      }
      return;
    }
    case 7: {
      if (dice.below(3) == 0) state.clusters.resize(dice.below(10));
      if (state.clusters.empty()) return;
      ohm::Cluster& cluster = state.clusters[dice.below(std::ssize(state.clusters))];
      float* numbers[] = {&cluster.inverse_cut, &cluster.inverse_cut_now, &cluster.cut_now, &cluster.balance};
      if (dice.below(2) > 0) *dice.one_of(numbers) = odd_float(dice);
      else cluster.parent = static_cast<std::int32_t>(odd_integer(dice, cluster.parent));
      return;
    }
    case 13: {
      if (dice.below(3) == 0) state.pairs.resize(dice.below(200));
      if (!state.pairs.empty()) state.pairs[dice.below(std::ssize(state.pairs))].weight = odd_float(dice);
      return;
    }
    case 8: (dice.below(2) > 0 ? state.n_expected : state.correction) = odd_double(dice); return;
    case 9: state.rows.u[row] = static_cast<std::int32_t>(odd_integer(dice, dice.below(kNodes))); return;
    case 10: state.rows.v[row] = static_cast<std::int32_t>(odd_integer(dice, dice.below(kNodes))); return;
    case 11: (dice.below(2) > 0 ? state.rows.w : state.rows.probability)[row] = odd_float(dice); return;
    case 12: std::swap(state.rows.u[row], state.rows.u[dice.below(rows)]); return;
    default:
      state.rows.u.resize(dice.below(rows + 1));
      if (dice.below(4) > 0) state.rows.v.resize(state.rows.u.size());
      if (dice.below(4) > 0) state.rows.w.resize(state.rows.u.size());
      if (dice.below(4) > 0) state.rows.probability.resize(state.rows.u.size());
      if (!state.rows.time.empty() && dice.below(4) > 0) state.rows.time.resize(state.rows.u.size());
  }
}

TEST(states_of_samplers_are_taken_and_continue_alike) {
  for (const ohm::SamplerOptions& options : kOptions) {
    for (const std::int64_t edges : {0, 50, 4000, 30000}) {
      ohm::Sampler original = fed(options, edges);
      ohm::Sampler others[] = {restored(options, original.state()), original.copy(1), original.copy(2)};
      feed(original, 5000, 8);
      for (ohm::Sampler& other : others) {
        feed(other, 5000, 8);
        CHECK(original.state().rows.w == other.state().rows.w);
        CHECK(snapshot(original).weight == snapshot(other).weight);
      }
    }
  }
}

TEST(each_fault_of_a_state_is_named) {
  const ohm::SamplerOptions& options = kOptions[0];
  const State sound = fed(options, 30000).state();
  CHECK(sound.n_sorted > 2 && sound.n_resamples > 0 && sound.clusters.size() > 2);
  const auto fault = [&](auto&& spoil) {
    State state = sound;
    spoil(state);
    return fault_of(options, state);
  };
  CHECK(fault([](State&) {}).empty());
  CHECK(fault([](State& s) { s.nodes.pop_back(); }) == "there are 59 records for 60 nodes");
  CHECK(fault([](State& s) { s.rows.w.pop_back(); }).find("u, v, w and chance have ") == 0);
  CHECK(fault([](State& s) { s.rows.probability[2] = kNan; }) == "row 2 was kept with probability nan");
  CHECK(fault([](State& s) { s.rows.probability[2] = 1.5f; }) == "row 2 was kept with probability 1.5");
  CHECK(fault([](State& s) { s.n_sorted = -1; }).find("-1 of ") == 0);
  CHECK(fault([](State& s) { s.rows.u[1] = -1; }).find("row 1 joins nodes -1 and ") == 0);
  CHECK(fault([](State& s) { s.rows.v[1] = 60; }).find(" and 60 of 60") != std::string::npos);
  CHECK(fault([](State& s) { s.rows.v.back() = s.rows.u.back(); }).find(" joins nodes ") != std::string::npos);
  CHECK(fault([](State& s) { s.rows.w[2] = kNan; }) == "row 2 has weight nan");
  CHECK(fault([](State& s) { s.rows.w[2] = kInfinity; }) == "row 2 has weight inf");
  CHECK(fault([](State& s) { s.rows.w[2] = 0.0f; }) == "row 2 has weight 0");
  CHECK(fault([](State& s) { s.rows.w[0] = s.rows.w[1] = 3e38f; }).find("more than the largest") != std::string::npos);
  CHECK(fault([](State& s) { std::swap(s.rows.v[0], s.rows.v[1]); }) == "row 1 is not in order");
  CHECK(fault([](State& s) { s.position = -1; }) == "the number of edges seen is -1");
  CHECK(fault([](State& s) { s.position = 5; }).find("of 5 edges are self-loops") != std::string::npos);
  CHECK(fault([](State& s) { s.n_zero_weights = 30001; }).find("30001 of ") == 0);
  CHECK(fault([](State& s) { s.n_zero_weights = s.position - s.n_self_loops; }).find("rows come from 0 edges") !=
        std::string::npos);
  CHECK(fault([](State& s) { s.n_resamples = -3; }) == "the number of resamples is -3");
  CHECK(fault([](State& s) { s.n_resamples = 0; }).find("after 0 resamples") != std::string::npos);
  CHECK(fault([](State& s) { s.beta = std::nan(""); }).find("the rate beta is nan") == 0);
  CHECK(fault([](State& s) { s.weight_seen[7] = -2.0; }) == "the weight seen is -2");
  CHECK(fault([](State& s) { s.capacity = 1; }) == "the capacity is 1 rows");
  const std::string record = "the record of node 3 holds a number out of its range";
  CHECK(fault([](State& s) { s.nodes[3].z[5] = kNan; }) == record);
  CHECK(fault([](State& s) { s.nodes[3].degree_now = -1.0f; }) == record);
  CHECK(fault([](State& s) { s.nodes[3].cluster = -1; }) == record);
  CHECK(fault([](State& s) { s.nodes[3].cluster = static_cast<std::int32_t>(s.clusters.size()) + 1; }) == record);
  const std::string cluster = "the record of cluster 1 holds a number out of its range";
  CHECK(fault([](State& s) { s.clusters[1].parent = 1; }) == cluster);
  CHECK(fault([](State& s) { s.clusters[1].parent = static_cast<std::int32_t>(s.clusters.size()) + 1; }) == cluster);
  CHECK(fault([](State& s) { s.clusters[1].cut_now = kNan; }) == cluster);
  CHECK(fault([](State& s) { s.pairs.pop_back(); }) == "the table of pairs has 63 slots for 60 nodes");
  CHECK(fault([](State& s) { s.pairs.resize(128); }) == "the table of pairs has 128 slots for 60 nodes");
  CHECK(fault([](State& s) { s.pairs[5].weight = -2.0f; }) == "a pair of nodes has weight -2");
  CHECK(fault([](State& s) { s.correction = 0.5; }) == "the correction of leverages is 0.5");
  CHECK(fault([](State& s) { s.n_expected = -1.0; }) == "n_expected = -1 must be at least 0");
  CHECK(fault([](State& s) { s.n_expected = 1e9; }).find("n_expected = 1e+09 exceeds the ") == 0);
  CHECK(fault([](State& s) { s.nodes[3].inverse_degree_now = kNan; }) == record);
  CHECK(fault([](State& s) { s.nodes[3].component = 60; }) == record);
  CHECK(fault([](State& s) { s.nodes[3].component = -2; }) == record);
  State few = fed(kOptions[1], 100).state();
  few.nodes.resize(30);
  few.n_nodes = 30;
  few.rows.resize(0);
  CHECK(fault_of(kOptions[1], few) == "there are records for 30 of 60 nodes");
  CHECK(fault_of(kOptions[2], [] {
          State state = fed(kOptions[2], 1000).state();
          state.capacity = 700;
          return state;
        }()) == "the capacity is 700 rows");
}

TEST(each_fault_of_times_is_named) {
  const ohm::SamplerOptions& options = kOptions[4];
  const State sound = fed(options, 30000).state();
  CHECK(sound.epoch == 7 && sound.rows.time.size() == sound.rows.u.size() && sound.n_resamples > 7);
  const auto fault = [&](auto&& spoil) {
    State state = sound;
    spoil(state);
    return fault_of(options, state);
  };
  CHECK(fault([](State&) {}).empty());
  CHECK(fault([](State& s) { s.rows.time.pop_back(); }).find("there are ") == 0);
  CHECK(fault([](State& s) { s.rows.time[2] = std::nan(""); }).find("row 2 has time nan") == 0);
  CHECK(fault([](State& s) { s.rows.time[2] = 1e9; }).find("row 2 has time 1e+09") == 0);
  CHECK(fault([](State& s) { s.latest = HUGE_VAL; }) == "the latest time inf is not in epoch 7");
  CHECK(fault([](State& s) { s.latest = -HUGE_VAL; }) == "the latest time is missing");
  CHECK(fault([](State& s) { s.epoch = 8; }).find("is not in epoch 8") != std::string::npos);
  CHECK(fault([](State& s) { s.n_faded = -1; }) == "-1 of 30000 edges came too late");
  CHECK(fault_of(kOptions[2], sound) == "there are times, but no half-life");
}

TEST(streams_too_long_to_count_are_not_merged) {
  State state = fed(kOptions[0], 100).state();
  state.position = ohm::kMostEdges;
  ohm::Sampler one = restored(kOptions[0], state);
  const ohm::Sampler two = restored(kOptions[0], state);
  bool refused = false;
  try {
    one.merge(two.state());
  } catch (const std::length_error&) {
    refused = true;
  }
  CHECK(refused && one.state().position == ohm::kMostEdges);
}

// For the sanitizers: a state that is not refused can be updated, merged and read.
TEST(changed_states_are_refused_or_usable) {
  const char* asked = std::getenv("OHMLEARN_LONG");
  const int rounds = asked != nullptr && std::string(asked) == "1" ? 20000 : 400;
  std::vector<State> sound;
  for (const ohm::SamplerOptions& options : kOptions) {
    for (const std::int64_t edges : {0, 200, 20000}) sound.push_back(fed(options, edges).state());
  }
  int refused = 0, taken = 0;
  for (int round = 0; round < rounds; ++round) {
    Dice dice(ohm::hash(11, round));
    const std::int64_t which = dice.below(std::ssize(sound));
    const ohm::SamplerOptions& options = kOptions[which / 3];
    State state = sound[which];
    for (std::int64_t changes = 1 + dice.below(3); changes > 0; --changes) change(state, dice);
    if (!fault_of(options, state).empty()) {
      ++refused;
      continue;
    }
    ++taken;
    ohm::Sampler sampler = restored(options, std::move(state));
    snapshot(sampler);
    ohm::Sampler other = fed(options, 300);
    try {
      feed(sampler, 3000, round);
      other.merge(sampler.state());
      sampler.merge(fed(options, 300).state());
    } catch (const std::length_error&) {
      CHECK(sampler.state().position + 3300 > ohm::kMostEdges);
    }
    // Sums of numbers in range may leave the range.
    const std::string fault = fault_of(options, sampler.state());
    CHECK(fault.empty() || fault.find("holds a number out of its range") != std::string::npos);
  }
  CHECK(refused > rounds / 4 && taken > rounds / 20);
}

}  // namespace
