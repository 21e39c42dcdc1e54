#include "text/edge_text.hpp"

#include "base/rng.hpp"
#include "check.hpp"

#include <algorithm>

namespace {

using Integers = std::vector<std::int64_t>;

TEST(usual_and_unusual_lines_read_alike) {
  ohm::EdgeText text({.w = 2}, 1);
  const auto edges = text.parse("1,2,0.5\n 3 , 4 ,\"2\"\r\n\n5,6,1e1,more,\"\n-7,9223372036854775807,0\n", true);
  CHECK(edges.u == Integers({1, 3, 5, -7}));
  CHECK(edges.v == Integers({2, 4, 6, 9223372036854775807}));
  CHECK(edges.w == std::vector<double>({0.5, 2, 10, 0}));
  CHECK(text.n_faults() == 0);
  CHECK(text.next_line() == 6);
}

TEST(whole_floats_are_integers) {
  ohm::EdgeText text({.skips_faults = true}, 1);
  const auto edges = text.parse("6507.0,2\n-3.00,\"4.\"\n1.5,2\n9007199254740993.0,1\n-0.0,.0\n5,9007199254740993\n", true);
  CHECK(edges.u == Integers({6507, -3, 5}));
  CHECK(edges.v == Integers({2, 4, 9007199254740993}));
  CHECK(text.n_faults() == 3);
  CHECK(text.first_fault()->reason == ohm::LineFault::Reason::integer);
  CHECK(text.first_fault()->text == "1.5");
}

TEST(whole_floats_of_one_column_are_strings_of_integers) {
  ohm::EdgeText text({.strings = true, .whole_u = true, .skips_faults = true}, 1);
  const auto edges = text.parse("6507.0,1.0\n-0.0,b\nname,c\n7,d\n", true);
  CHECK(std::string(edges.u_data.begin(), edges.u_data.end()) == "650707");
  CHECK(std::string(edges.v_data.begin(), edges.v_data.end()) == "1.0bd");
  CHECK(text.n_faults() == 1);
}

TEST(faults_have_reason_and_line) {
  using Reason = ohm::LineFault::Reason;
  const auto first = [](const char* text, bool strings, int w) {
    ohm::EdgeText reader({.comments = "#", .w = w, .strings = strings, .skips_faults = true}, 1);
    const auto edges = reader.parse(std::string("# c\n1,2,3\n") + text + "\n4,5,6\n", true);
    CHECK(reader.n_faults() == 1);
    CHECK((strings ? edges.u_offset.size() - 1 : edges.u.size()) == 2);
    CHECK(reader.first_fault()->line == 3);
    return reader.first_fault()->reason;
  };
  CHECK(first("1", false, -1) == Reason::columns);
  CHECK(first("1,2", false, 2) == Reason::columns);
  CHECK(first("1,x,3", false, -1) == Reason::integer);
  CHECK(first("01,2,3", false, -1) == Reason::integer);
  CHECK(first("1,99999999999999999999,3", false, -1) == Reason::integer);
  CHECK(first("1,2,x", false, 2) == Reason::number);
  CHECK(first("1,2,-1", false, 2) == Reason::weight);
  CHECK(first("1,2,nan", false, 2) == Reason::weight);
  CHECK(first("1,2,1e99999", false, 2) == Reason::weight);
  CHECK(first("1,2,1e-39", false, 2) == Reason::weight);
  CHECK(first("a,,3", true, -1) == Reason::empty_id);
  CHECK(first("a,\"b", true, -1) == Reason::quote);
  CHECK(first("a,\xc3", true, -1) == Reason::utf8);
  CHECK(first("a,b\rc,d", true, -1) == Reason::carriage_return);
  CHECK(first("1,2\r\r", false, -1) == Reason::carriage_return);
  CHECK(first("1,2,3,x\r4,5,6", false, -1) == Reason::carriage_return);
  CHECK(first("# c\r4,5,6", false, -1) == Reason::carriage_return);
}

TEST(times_are_read_in_any_column) {
  using Times = std::vector<double>;
  const auto read = [](std::string_view text, ohm::TextLayout layout) {
    ohm::EdgeText reader(layout, 1);
    auto edges = reader.parse(text, true);
    CHECK(reader.n_faults() == 0);
    CHECK(edges.u.size() == edges.t.size());
    return edges;
  };
  CHECK(read("1,2,5\n1,2,-0.5\n1,2,1700000000123456789\n 1,2, +7\n1,2,1e3,x\n", {.t = 2}).t ==
        Times({5, -0.5, 1700000000123456789.0, 7, 1000}));
  for (const ohm::TextLayout& layout : {ohm::TextLayout{.w = 3, .t = 2}, ohm::TextLayout{.w = 2, .t = 3}}) {
    const auto edges = read("1,2,3,4\n1,2,\"5\",6\n", layout);
    CHECK((layout.t == 2 ? edges.t : edges.w) == Times({3, 5}));
    CHECK((layout.t == 2 ? edges.w : edges.t) == Times({4, 6}));
  }
  CHECK(read("7,1,2\n8,1,2\n", {.u = 1, .v = 2, .t = 0}).t == Times({7, 8}));
  CHECK(read("1,2,1970-01-02\n1,2,1970-01-01 00:01:00,x\n1,2,\"1970-01-01T00:02\"\n", {.t = 2, .dates = true}).t ==
        Times({86400, 60, 120}));
  // Blanks separate fields, but also a day and the time of the day.
  const ohm::TextLayout blanks{.delimiter = 0, .t = 2, .dates = true};
  CHECK(read("1 2 1970-01-02\n1\t2\t1970-01-01  00:01 9\n 1 2 1970-01-01 00:02:00\n1 2 1970-01-02 x\n", blanks).t ==
        Times({86400, 60, 120, 86400}));
  CHECK(read("1 2 0.5 1970-01-01 00:01\n 1 2 0.5 1970-01-01 00:02\n",
             {.delimiter = 0, .w = 2, .t = 3, .dates = true}).t == Times({60, 120}));
}

TEST(bad_times_are_faults) {
  using Reason = ohm::LineFault::Reason;
  const auto first = [](const char* time, bool dates) {
    ohm::EdgeText reader({.t = 2, .dates = dates, .skips_faults = true}, 1);
    reader.set_latest(1000);
    const auto edges = reader.parse(std::string("1,2,") + (dates ? "1970-01-01" : "0") + "\n1,2," + time + "\n", true);
    CHECK(reader.n_faults() == 1);
    CHECK(edges.u.size() == 1 && edges.t == std::vector<double>({0}));
    CHECK(reader.first_fault()->line == 2 && reader.first_fault()->column == 2);
    return reader.first_fault()->reason;
  };
  for (const char* bad : {"", "x", "nan", "inf", "-inf", "1e99", "-1e99", "5x", "1970-01-01"}) {
    CHECK(first(bad, false) == (std::string_view(bad) == "1e99" ? Reason::late : Reason::time));
  }
  CHECK(first("1001", false) == Reason::late);
  CHECK(first("1970-01-02", true) == Reason::late);
  CHECK(first("9999-12-31", true) == Reason::late);
  for (const char* bad : {"", "5", "1970-02-30", "1970-01-01T", "1970-01-01x", "1970-01-01T00:00:00+1"}) {
    CHECK(first(bad, true) == Reason::time);
  }
}

TEST(the_second_id_may_be_empty_where_the_layout_says_so) {
  ohm::TextLayout layout;
  layout.strings = layout.empty_v = layout.skips_faults = true;
  ohm::EdgeText reader(layout, 1);
  const auto edges = reader.parse("a,\nb,\"\"\n,c\nd,e\n", true);
  CHECK(edges.v_offset == std::vector<std::int64_t>({0, 0, 0, 1}));
  CHECK(reader.n_faults() == 1);  // the first id of line 3
  CHECK(reader.first_fault()->line == 3);
  CHECK(reader.first_fault()->reason == ohm::LineFault::Reason::empty_id);
  layout.w = 2;
  CHECK(ohm::EdgeText(layout, 1).parse("a,,\nb,c,\nd,e,0.5\nf,g,x\n", true).w == std::vector<double>({1.0, 1.0, 0.5}));
}

std::vector<std::string> names(const std::vector<std::int64_t>& offset, const std::vector<char>& data) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i + 1 < offset.size(); ++i) {
    found.emplace_back(data.data() + offset[i], data.data() + offset[i + 1]);
  }
  return found;
}

TEST(quotes_may_hold_line_ends) {
  using Names = std::vector<std::string>;
  const auto read = [](std::string_view text, char delimiter, std::int64_t faults) {
    ohm::EdgeText reader({.delimiter = delimiter, .strings = true, .skips_faults = true}, 1);
    const auto edges = reader.parse(text, true);
    CHECK(reader.n_faults() == faults);
    CHECK(reader.next_line() == std::count(text.begin(), text.end(), '\n') + 1);
    const Names u = names(edges.u_offset, edges.u_data);
    const Names v = names(edges.v_offset, edges.v_data);
    Names both;
    for (std::size_t i = 0; i < u.size(); ++i) both.push_back(u[i] + "|" + v[i]);
    return both;
  };
  CHECK(read("\"a\nb,c\",d\ne,f\n", ',', 0) == Names({"a\nb,c|d", "e|f"}));
  CHECK(read("a,\"b\r\n\"\"\r c\"\r\ne,f\r\n", ',', 0) == Names({"a|b\r\n\"\r c", "e|f"}));
  CHECK(read("\"a b\" \"c\nd\"\ne f\n", 0, 0) == Names({"a b|c\nd", "e|f"}));
  // Also in columns that are not read.
  CHECK(read("a,b,\"x\ny,z\"\ne,f,\n", ',', 0) == Names({"a|b", "e|f"}));
  CHECK(read("a,b,\"x\ny,z\",\"\n\"\ne,f,\n", ',', 0) == Names({"a|b", "e|f"}));
  // A quote that is never closed, or not where a field ends, affects its own line only.
  CHECK(read("\"a,b\ne,f\n", ',', 1) == Names({"e|f"}));
  CHECK(read("\"a,b\ne,\"f\"\n", ',', 1) == Names({"e|f"}));
  CHECK(read("a,b,\"\ne,f\n", ',', 0) == Names({"a|b", "e|f"}));
}

TEST(records_are_read_alike_however_the_text_is_cut) {
  const std::string_view text = "a,\"b\nc\"\n\"d\n\n\",e,\"\n\"\nf,g\n\"h,i\nj,k\n";
  const ohm::TextLayout layout{.strings = true, .skips_faults = true};
  ohm::EdgeText whole(layout, 1);
  const auto expected = whole.parse(text, true);
  CHECK(whole.n_faults() == 1);
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    if (text[cut] != '\n') continue;
    ohm::EdgeText parts(layout, 1);
    auto found = parts.parse(text.substr(0, cut + 1), false);
    const auto rest = parts.parse(text.substr(parts.n_consumed()), true);
    found.u_data.insert(found.u_data.end(), rest.u_data.begin(), rest.u_data.end());
    found.v_data.insert(found.v_data.end(), rest.v_data.begin(), rest.v_data.end());
    CHECK(found.u_data == expected.u_data);
    CHECK(found.v_data == expected.v_data);
    CHECK(parts.n_faults() == 1);
    CHECK(parts.first_fault()->line == whole.first_fault()->line);
    CHECK(parts.next_line() == whole.next_line());
  }
}

TEST(a_quote_reaches_only_so_far) {
  std::string text = "a,\"b\n";
  while (text.size() < ohm::kLongestRecord) text += "c,d\n";
  text += "e\",f\n";
  ohm::EdgeText reader({.strings = true, .skips_faults = true}, 1);
  const auto edges = reader.parse(text, false);
  CHECK(reader.n_consumed() == text.size());
  CHECK(reader.n_faults() == 1);
  CHECK(edges.u_offset.size() - 1 == static_cast<std::size_t>(reader.next_line()) - 2);
}

TEST(any_bytes_are_read_within_bounds) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    ohm::TextLayout layout;
    layout.delimiter = ",\t;"[seed % 3];
    if (seed % 5 == 0) layout.delimiter = 0;
    layout.strings = seed % 2 == 0;
    layout.w = static_cast<int>(seed % 4) == 3 ? 2 : -1;
    layout.t = static_cast<int>(seed / 4 % 3) == 2 ? (layout.w == 2 ? 3 : 2) : -1;
    layout.dates = seed / 12 % 2 == 0;
    layout.skips_faults = true;
    layout.comments = "#";
    std::vector<char> text(ohm::hash(seed, 0) % 60);
    const std::string_view alphabet = "0123456789,,,\t\t;;\n\n\"\" \r-.e#a\xc3\xa4";
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = alphabet[ohm::hash(seed, i + 1) % alphabet.size()];
    text.push_back('\n');
    ohm::EdgeText reader(layout, 1);
    const auto edges = reader.parse({text.data(), text.size()}, true);
    const std::size_t size = layout.strings ? edges.u_offset.size() - 1 : edges.u.size();
    CHECK((layout.strings ? edges.v_offset.size() - 1 : edges.v.size()) == size);
    CHECK(layout.w < 0 || edges.w.size() == size);
    CHECK(layout.t < 0 || edges.t.size() == size);
    const auto lines = std::count(text.begin(), text.end(), '\n');
    CHECK(reader.next_line() == lines + 1);
    CHECK(static_cast<std::int64_t>(size) + reader.n_faults() <= lines);
  }
}

TEST(fields_of_records_for_filters) {
  const ohm::TextLayout layout{.comments = "#"};
  const std::string text = "1,2,x\n# no\n3,4\n\n5,6,\"a\n\"\"b\"\n\"7\" 7,8,9\n9,\"open\n";
  const auto found = ohm::take_fields(text, layout, {2, 0}, false);
  CHECK(found.n_consumed == text.size() - 8);  // the record with an open quote is left for the next call
  CHECK(found.start == Integers({0, 11, 16}));
  CHECK(found.end == Integers({6, 15, 28}));
  CHECK(found.line == Integers({0, 2, 4}));  // the damaged line is left to EdgeText
  CHECK(std::string(found.data[0].begin(), found.data[0].end()) == "xa\n\"b");
  CHECK(found.offset[0] == Integers({0, 1, 1, 5}));
  CHECK(std::string(found.data[1].begin(), found.data[1].end()) == "135");
  CHECK(ohm::take_fields(text, layout, {0}, true).n_consumed == text.size());
}

}  // namespace
