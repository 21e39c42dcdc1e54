#include "check.hpp"
#include "text/recent_ids.hpp"

#include <algorithm>
#include <deque>
#include <string>

using namespace ohm;

TEST(recent_ids_are_those_of_a_list) {
  constexpr std::size_t kCapacity = 37;
  RecentIds recent(kCapacity);
  std::deque<std::uint64_t> expected;
  std::uint64_t random = 1;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> ids;
    std::vector<std::uint8_t> is_new;
    for (int i = 0; i < round % 11; ++i) {
      random = hash_text(std::to_string(random));
      ids.push_back(1 + random % 90);  // many in the same places of the table
      const bool known = std::find(expected.begin(), expected.end(), ids.back()) != expected.end();
      is_new.push_back(!known);
      if (known) continue;
      expected.push_back(ids.back());
      if (expected.size() > kCapacity) expected.pop_front();
    }
    CHECK(recent.take(ids) == is_new);
    CHECK(recent.ids() == std::vector<std::uint64_t>(expected.begin(), expected.end()));
  }
}

TEST(hashes_of_texts_differ) {
  CHECK(hash_text("") != hash_text(std::string_view("\0", 1)));
  CHECK(hash_text("event-17") != hash_text("event-71"));
  CHECK(hash_text("event-00000017") != hash_text("event-00000018"));
}
