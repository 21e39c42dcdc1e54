// Weights of pairs of nodes among recent edges, in a table of fixed size.
#include "check.hpp"
#include "sampling/recent_pairs.hpp"

namespace {

float add(std::vector<ohm::PairWeight>& table, std::int32_t u, std::int32_t v, float w) {
  const std::uint64_t bits = ohm::hash_pair(u, v);
  return ohm::add_to_pair(table[bits & (table.size() - 1)], static_cast<std::uint32_t>(bits >> 32), w);
}

TEST(a_pair_adds_up_in_either_direction) {
  auto table = ohm::make_pair_table(100);
  CHECK(table.size() == 128);
  CHECK(add(table, 3, 7, 2.0f) == 0.0f);
  CHECK(add(table, 7, 3, 0.5f) == 2.0f);
  CHECK(add(table, 3, 7, 1.0f) == 2.5f);
}

TEST(the_heavier_of_two_pairs_holds_a_slot) {
  auto table = ohm::make_pair_table(1);  // one slot for all
  CHECK(table.size() == 1);
  float heavy = 0.0f;
  for (int i = 0; i < 1000; ++i) {
    heavy = add(table, 0, 1, 3.0f);
    add(table, 2, 3 + i, 1.0f);
  }
  CHECK(heavy > 1900.0f && heavy <= 3000.0f);
  for (int i = 0; i < 3000; ++i) add(table, 2, 3, 1.0f);
  CHECK(add(table, 2, 3, 1.0f) > 900.0f);  // it has taken over
}

TEST(weights_stay_finite) {
  auto table = ohm::make_pair_table(4);
  for (int i = 0; i < 10; ++i) add(table, 0, 1, 3e38f);
  CHECK(add(table, 0, 1, 3e38f) <= 1e38f);
}

}  // namespace
