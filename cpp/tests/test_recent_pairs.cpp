// Weights of pairs of nodes among recent edges, in a table of fixed size.
#include "check.hpp"
#include "sampling/recent_pairs.hpp"

namespace {

TEST(a_pair_adds_up_in_either_direction) {
  auto table = ohm::make_pair_table(100);
  CHECK(table.size() == 128);
  CHECK(ohm::add_to_pair(table, 3, 7, 2.0f) == 0.0f);
  CHECK(ohm::add_to_pair(table, 7, 3, 0.5f) == 2.0f);
  CHECK(ohm::add_to_pair(table, 3, 7, 1.0f) == 2.5f);
}

TEST(the_heavier_of_two_pairs_holds_a_slot) {
  auto table = ohm::make_pair_table(1);  // one slot for all
  CHECK(table.size() == 1);
  float heavy = 0.0f;
  for (int i = 0; i < 1000; ++i) {
    heavy = ohm::add_to_pair(table, 0, 1, 3.0f);
    ohm::add_to_pair(table, 2, 3 + i, 1.0f);
  }
  CHECK(heavy > 1900.0f && heavy <= 3000.0f);
  for (int i = 0; i < 3000; ++i) ohm::add_to_pair(table, 2, 3, 1.0f);
  CHECK(ohm::add_to_pair(table, 2, 3, 1.0f) > 900.0f);  // it has taken over
}

TEST(weights_stay_finite) {
  auto table = ohm::make_pair_table(4);
  for (int i = 0; i < 10; ++i) ohm::add_to_pair(table, 0, 1, 3e38f);
  CHECK(ohm::add_to_pair(table, 0, 1, 3e38f) <= 1e38f);
}

}  // namespace
