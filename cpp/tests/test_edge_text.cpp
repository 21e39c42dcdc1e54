#include "check.hpp"
#include "edge_text.hpp"
#include "rng.hpp"

#include <algorithm>

namespace {

using Integers = std::vector<std::int64_t>;

TEST(usual_and_unusual_lines_read_alike) {
  ohm::TextLayout layout;
  layout.w = 2;
  ohm::EdgeText text(layout, 1);
  const auto edges = text.parse("1,2,0.5\n 3 , 4 ,\"2\"\r\n\n5,6,1e1,more,\"\n-7,9223372036854775807,0\n");
  CHECK(edges.u == Integers({1, 3, 5, -7}));
  CHECK(edges.v == Integers({2, 4, 6, 9223372036854775807}));
  CHECK(edges.w == std::vector<double>({0.5, 2, 10, 0}));
  CHECK(text.n_faults() == 0);
  CHECK(text.next_line() == 6);
}

TEST(faults_have_kind_and_line) {
  using Kind = ohm::LineFault::Kind;
  const auto first = [](const char* text, bool strings, int w) {
    ohm::TextLayout layout;
    layout.strings = strings;
    layout.w = w;
    layout.skips_faults = true;
    layout.comments = "#";
    ohm::EdgeText reader(layout, 1);
    const auto edges = reader.parse(std::string("# c\n1,2,3\n") + text + "\n4,5,6\n");
    CHECK(reader.n_faults() == 1);
    CHECK((strings ? edges.u_offset.size() - 1 : edges.u.size()) == 2);
    CHECK(reader.first_fault()->line == 3);
    return reader.first_fault()->kind;
  };
  CHECK(first("1", false, -1) == Kind::columns);
  CHECK(first("1,2", false, 2) == Kind::columns);
  CHECK(first("1,x,3", false, -1) == Kind::integer);
  CHECK(first("01,2,3", false, -1) == Kind::integer);
  CHECK(first("1,99999999999999999999,3", false, -1) == Kind::integer);
  CHECK(first("1,2,x", false, 2) == Kind::number);
  CHECK(first("1,2,-1", false, 2) == Kind::weight);
  CHECK(first("1,2,nan", false, 2) == Kind::weight);
  CHECK(first("1,2,1e99999", false, 2) == Kind::weight);
  CHECK(first("a,,3", true, -1) == Kind::empty_id);
  CHECK(first("a,\"b", true, -1) == Kind::quote);
  CHECK(first("a,\xc3", true, -1) == Kind::utf8);
}

TEST(any_bytes_are_read_within_bounds) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    ohm::TextLayout layout;
    layout.delimiter = ",\t;"[seed % 3];
    if (seed % 5 == 0) layout.delimiter = 0;
    layout.strings = seed % 2 == 0;
    layout.w = static_cast<int>(seed % 4) == 3 ? 2 : -1;
    layout.skips_faults = true;
    layout.comments = "#";
    std::vector<char> text(ohm::hash(seed, 0) % 60);
    const std::string_view alphabet = "0123456789,,,\t\t;;\n\n\"\" \r-.e#a\xc3\xa4";
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = alphabet[ohm::hash(seed, i + 1) % alphabet.size()];
    text.push_back('\n');
    ohm::EdgeText reader(layout, 1);
    const auto edges = reader.parse({text.data(), text.size()});
    const std::size_t size = layout.strings ? edges.u_offset.size() - 1 : edges.u.size();
    CHECK((layout.strings ? edges.v_offset.size() - 1 : edges.v.size()) == size);
    CHECK(layout.w < 0 || edges.w.size() == size);
    const auto lines = std::count(text.begin(), text.end(), '\n');
    CHECK(reader.next_line() == lines + 1);
    CHECK(static_cast<std::int64_t>(size) + reader.n_faults() <= lines);
  }
}

}  // namespace
