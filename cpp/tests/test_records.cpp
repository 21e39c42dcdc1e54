// Ends of records against a finder that looks at each record from its start and remembers nothing.
#include "base/rng.hpp"
#include "check.hpp"
#include "text/edge_text.hpp"
#include "text/records.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct Found {
  std::string content;
  std::size_t size;
  bool is_empty;
  bool has_stray_return;
  bool operator==(const Found&) const = default;
};

enum class End { found, unknown, broken };

// Reads fields of a text up to a newline outside of quotes.
End find_end(std::string_view text, const ohm::TextLayout& layout, std::size_t& at, bool& has_stray_return) {
  const auto is = [&](std::size_t i, std::string_view what) { return text.substr(i, what.size()) == what; };
  const auto ends = [&](char c) { return layout.delimiter == 0 ? ohm::is_blank(c) : c == layout.delimiter; };
  const auto skip_blanks = [&] {
    while (at < text.size() && ohm::is_blank(text[at]) && text[at] != layout.delimiter) ++at;
  };
  for (at = 0; at < text.size(); ++at) {
    skip_blanks();
    while (is(at, "\"")) {
      for (++at; at < text.size() && !(is(at, "\"") && !is(at, "\"\"")); ++at) at += is(at, "\"\"");
      const std::size_t after = ++at;
      if (at >= text.size()) return End::unknown;
      skip_blanks();
      if (at == text.size()) return End::unknown;
      const bool divided = ends(text[at]) || (layout.delimiter == 0 && at > after);
      if (!divided && !is(at, "\n") && !is(at, "\r\n")) return End::broken;
    }
    for (; at < text.size() && !ends(text[at]) && text[at] != '\n'; ++at) {
      has_stray_return |= is(at, "\r") && !is(at, "\r\n");
    }
    if (is(at, "\n")) return End::found;
  }
  return End::unknown;
}

Found find_simply(std::string_view text, const ohm::TextLayout& layout, bool last, std::size_t longest) {
  const auto cut = [&](std::size_t size, bool has_stray_return) {
    std::string content(text.substr(0, size - 1));
    if (content.ends_with('\r')) content.pop_back();
    const std::size_t first = content.find_first_not_of(" \t");
    const bool is_empty = first == std::string::npos || layout.comments.find(content[first]) != std::string::npos;
    return Found{content, size, is_empty, has_stray_return};
  };
  Found line = cut(text.find('\n') + 1, false);
  line.has_stray_return = line.content.find('\r') != std::string::npos;
  if (line.is_empty || !layout.quotes || line.content.find('"') == std::string::npos) return line;
  std::size_t at = 0;
  bool has_stray_return = false;
  const End end = find_end(text.substr(0, longest), layout, at, has_stray_return);
  if (end == End::unknown && !last && text.size() <= longest) return {};
  if (end != End::found) return line;
  Found record = cut(at + 1, has_stray_return);
  record.is_empty = false;
  return record;
}

std::string random_text(std::uint64_t seed, std::size_t size, std::string_view alphabet) {
  std::string text(size, '\n');
  for (std::size_t i = 0; i + 1 < size; ++i) text[i] = alphabet[ohm::hash(seed, i + 1) % alphabet.size()];
  return text;
}

TEST(records_end_where_a_finder_without_memory_says) {
  const std::string_view alphabets[] = {"\"\",,\n\nab", "\"\"\"\",,\n\n\n\r\r \t#a", "\",,\na", "\",\n\r", "\"\"\n  a"};
  const std::size_t longest[] = {3, 5, 8, 20, 1000};
  const std::uint64_t n_texts = std::getenv("OHMLEARN_LONG") != nullptr ? 20'000'000 : 400'000;
  for (std::uint64_t seed = 0; seed < n_texts; ++seed) {
    auto draw = [&, k = std::uint64_t{0}](std::uint64_t n) mutable { return ohm::hash(~seed, k++) % n; };
    ohm::TextLayout layout;
    layout.delimiter = ",,,\t;\0"[draw(6)];
    layout.comments = draw(2) == 0 ? "#" : "";
    const std::size_t most = longest[draw(5)];
    const std::string text = random_text(seed, 1 + draw(120), alphabets[draw(5)]);
    // The text comes in parts, each of which ends with a newline; a record that is not complete is left for the next.
    ohm::RecordFinder finder(most);
    std::size_t consumed = 0;
    for (std::size_t end = 0; end < text.size();) {
      end = std::min(text.size(), text.find('\n', end + draw(2 * text.size())) + 1);
      end = end == 0 ? text.size() : end;
      const bool last = end == text.size();
      const auto part = std::string_view(text).substr(consumed, end - consumed);
      std::size_t start = 0;
      while (start < part.size()) {
        const auto expected = find_simply(part.substr(start), layout, last, most);
        const auto found = finder.find(part, start, layout, last);
        CHECK(Found(std::string(found.content), found.size, found.is_empty, found.has_stray_return) == expected);
        if (expected.size == 0 || found.size == 0) break;
        start += expected.size;
      }
      finder.move_on(start);
      consumed += start;
    }
    CHECK(consumed == text.size());
  }
}

// Takes hours if each line is compared with all later ones.
TEST(many_stray_quotes_are_read_in_one_go) {
  const std::int64_t n_lines = 2'000'000;
  for (const std::string_view line : {"a\",\"b\n", "\"a\",\"b\n", "a,b,\"c\n", "\"a\"b,\"\"\"\n", "a\",\"b\r\n"}) {
    std::string text;
    for (std::int64_t i = 0; i < n_lines; ++i) text += line;
    const bool is_edge = line[0] == 'a' && line[1] == ',';
    ohm::EdgeText reader({.strings = true, .skips_faults = true}, 1);
    std::size_t consumed = 0;
    std::size_t n_edges = 0;
    for (std::size_t end = 0; end < text.size();) {  // in blocks of 1 MiB
      end = text.size() - end <= 1 << 20 ? text.size() : text.find('\n', end + (1 << 20)) + 1;
      const auto part = std::string_view(text).substr(consumed, end - consumed);
      n_edges += reader.parse(part, end == text.size()).u_offset.size() - 1;
      consumed += reader.n_consumed();
    }
    CHECK(consumed == text.size());
    CHECK(reader.next_line() == n_lines + 1);
    CHECK(n_edges == (is_edge ? n_lines : 0));
    CHECK(reader.n_faults() == (is_edge ? 0 : n_lines));
  }
}

TEST(some_records_are_the_first_ones) {
  const std::string text = "x\n\n# no\na,\"b\nc\"\n\"d\ne\nf\n";
  using Records = std::vector<std::string_view>;
  const ohm::TextLayout layout{.comments = "#"};
  CHECK(ohm::some_records(text, 2, text.size(), 9, layout) == Records({"a,\"b\nc\"", "\"d", "e", "f"}));
  CHECK(ohm::some_records(text, 2, text.size(), 2, layout) == Records({"a,\"b\nc\"", "\"d"}));
  CHECK(ohm::some_records(text, 0, 3, 9, layout) == Records({"x"}));
}

}  // namespace
