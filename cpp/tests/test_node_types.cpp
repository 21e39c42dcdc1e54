#include "text/node_types.hpp"

#include "check.hpp"

#include <limits>
#include <string>

namespace {

std::vector<std::string> as_list(const ohm::OwnedStrings& strings) {
  std::vector<std::string> found;
  for (std::int64_t i = 0; i < strings.size; ++i) {
    found.emplace_back(strings.data.get() + strings.offset[i], strings.data.get() + strings.offset[i + 1]);
  }
  return found;
}

TEST(node_types_are_put_in_front_once) {
  const std::vector<std::int64_t> offset = {2, 4, 4, 8, 14};  // does not start at 0
  const ohm::Strings ids = {offset, "..17item" "user:5"};
  CHECK(as_list(ohm::with_prefix(ids, "user:")) ==
        std::vector<std::string>({"user:17", "user:", "user:item", "user:5"}));
  CHECK(as_list(ohm::with_prefix(ohm::Strings{std::span(offset).first(1), ""}, "user:")).empty());
}

TEST(strings_are_taken_by_position) {
  const std::vector<std::int64_t> offset = {2, 4, 4, 8, 30};  // does not start at 0
  const ohm::Strings ids = {offset, "..17item" "longer-than-16-letters"};
  const std::vector<std::int64_t> at = {3, 0, 1, 3, 2};
  CHECK(as_list(ohm::take_strings(ids, at)) ==
        std::vector<std::string>({"longer-than-16-letters", "17", "", "longer-than-16-letters", "item"}));
  CHECK(as_list(ohm::take_strings(ids, std::span(at).first(0))).empty());
}

TEST(integers_of_a_node_type_are_strings) {
  const std::vector<std::int64_t> ids = {0, -7, std::numeric_limits<std::int64_t>::min()};
  CHECK(as_list(ohm::with_prefix(ids, "é:")) ==
        std::vector<std::string>({"é:0", "é:-7", "é:-9223372036854775808"}));
}

TEST(ids_without_a_node_type_are_found) {
  const std::vector<std::int64_t> offset = {0, 3, 6, 9, 10};
  const ohm::Strings ids = {offset, "a:1b:2a:3b"};
  CHECK(ohm::find_without_prefix(ids, {"a:", "b:"}) == 3);
  CHECK(ohm::find_without_prefix(ids, {"a:"}) == 1);
  CHECK(ohm::find_without_prefix(ids, {"a:", "b"}) == -1);
  CHECK(ohm::node_types_of(ids) == std::vector<std::string>({"a", "b"}));
}

}  // namespace
