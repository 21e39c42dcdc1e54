#include "text/nodes.hpp"

#include "base/rng.hpp"
#include "check.hpp"

#include <string>
#include <unordered_map>

namespace {

TEST(integers_are_numbered_as_by_a_map) {
  ohm::IntegerNodes nodes;
  std::unordered_map<std::int64_t, std::int32_t> expected;
  std::vector<std::int64_t> u, v;
  for (std::int64_t i = 0; i < 50000; ++i) {
    // Dense ids, spread ids and negative ones.
    u.push_back(static_cast<std::int64_t>(ohm::hash(1, i) % 20000));
    v.push_back(static_cast<std::int64_t>(ohm::hash(2, ohm::hash(3, i) % 9000)));
  }
  std::vector<std::int32_t> a(u.size()), b(u.size());
  for (std::size_t begin = 0; begin < u.size(); begin += 777) {
    const std::size_t count = std::min<std::size_t>(777, u.size() - begin);
    nodes.add_edges(std::span<const std::int64_t>(u).subspan(begin, count),
                    std::span<const std::int64_t>(v).subspan(begin, count), a.data() + begin, b.data() + begin);
  }
  for (std::size_t i = 0; i < u.size(); ++i) {
    CHECK(expected.emplace(u[i], static_cast<std::int32_t>(expected.size())).first->second == a[i]);
    CHECK(expected.emplace(v[i], static_cast<std::int32_t>(expected.size())).first->second == b[i]);
  }
  CHECK(nodes.size() == std::ssize(expected));
  const std::vector<std::int64_t> some = {u[5], -12345, std::numeric_limits<std::int64_t>::min(), 20000};
  std::vector<std::int32_t> found(some.size());
  nodes.find(some, found.data());
  CHECK(found == (std::vector<std::int32_t>{a[5], -1, -1, -1}));
}

TEST(strings_of_all_lengths) {
  ohm::StringNodes nodes;
  std::string data;
  std::vector<std::int64_t> offset = {0};
  std::vector<std::string> strings;
  // Prefixes of two letters repeated differ in one byte or in their length alone.
  for (int length = 0; length < 40; ++length) {
    for (int at = -1; at < length; ++at) {
      std::string s(length, 'a');
      if (at >= 0) s[at] = '\0';
      strings.push_back(s);
    }
  }
  const std::size_t different = strings.size();
  for (std::size_t i = 0; i < 3 * different; ++i) strings.push_back(strings[ohm::hash(1, i) % different]);
  for (const std::string& s : strings) {
    data += s;
    offset.push_back(std::ssize(data));
  }
  std::vector<std::int32_t> to(strings.size());
  nodes.add(ohm::Strings{offset, data.data()}, to.data());
  CHECK(nodes.size() == static_cast<std::int64_t>(different));
  for (std::size_t i = 0; i < strings.size(); ++i) CHECK(nodes.keys()[to[i]] == strings[i]);
}

}  // namespace
