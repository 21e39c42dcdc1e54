#include "text/edge_text.hpp"

#include "graph/edges.hpp"
#include "text/numbers.hpp"
#include "text/recent_ids.hpp"
#include "text/times.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace ohm {
namespace {

// Whether it is valid UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view s) {
  const auto* p = reinterpret_cast<const unsigned char*>(s.data());
  const auto* const end = p + s.size();
  while (p < end) {
    if (*p < 0x80) {
      ++p;
      continue;
    }
    const int more = *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : 1;
    if (*p < 0xc2 || *p > 0xf4 || end - p <= more) return false;
    const unsigned first = p[0];
    const unsigned second = p[1];
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
        (first == 0xf4 && second > 0x8f)) {
      return false;
    }
    for (int i = 1; i <= more; ++i) {
      if ((p[i] & 0xc0) != 0x80) return false;
    }
    p += more + 1;
  }
  return true;
}

inline void append(TextEdges& edges, std::string_view u, std::string_view v) {
  edges.u_data.insert(edges.u_data.end(), u.begin(), u.end());
  edges.v_data.insert(edges.v_data.end(), v.begin(), v.end());
  edges.u_offset.push_back(std::ssize(edges.u_data));
  edges.v_offset.push_back(std::ssize(edges.v_data));
}

constexpr std::int64_t kLargestExact = std::int64_t{1} << 53;  // floats have all integers up to it

// The text without a point and zeros at its end.
std::string_view without_zeros(std::string_view text) {
  const std::size_t last = text.find_last_not_of('0');
  return last != std::string_view::npos && text[last] == '.' ? text.substr(0, last) : text;
}

// Reads up to 18 digits at p and moves p behind them. Longer numbers and leading zeros are left to the slow path.
inline bool take_integer(const char*& p, std::int64_t& value) {
  const char* const start = p;
  if (!is_digit(*p) || (*p == '0' && is_digit(p[1]))) return false;
  std::uint64_t number = 0;  // may overflow, in numbers that are rejected afterwards
  for (; is_digit(*p); ++p) number = number * 10 + static_cast<std::uint64_t>(*p - '0');  // the newline ends this loop
  value = static_cast<std::int64_t>(number);
  return p - start <= 18;
}

// Reads the field of the line at `at`. Moves `at` behind the delimiter, or past the end of the line after the last
// field. Returns false if a quote is not closed.
bool take_field(std::string_view line, std::size_t& at, const TextLayout& layout, std::string& unquoted,
                std::string_view& field) {
  const auto ends = [&](char c) { return layout.delimiter == 0 ? is_blank(c) : c == layout.delimiter; };
  const auto skip_blanks = [&] {
    while (at < line.size() && is_blank(line[at]) && line[at] != layout.delimiter) ++at;
  };
  skip_blanks();
  if (layout.quotes && at < line.size() && line[at] == '"') {
    unquoted.clear();
    for (++at;; ++at) {
      if (at >= line.size()) return false;
      if (line[at] == '"') {
        if (at + 1 >= line.size() || line[at + 1] != '"') break;
        ++at;
      }
      unquoted.push_back(line[at]);
    }
    ++at;
    if (at < line.size() && !is_blank(line[at]) && !ends(line[at])) return false;  // text after the quotes
    skip_blanks();
    if (at < line.size() && layout.delimiter != 0 && !ends(line[at])) return false;
    field = unquoted;
  } else {
    const std::size_t start = at;
    while (at < line.size() && !ends(line[at])) ++at;
    field = trim(line.substr(start, at - start));
  }
  if (layout.delimiter == 0) {
    skip_blanks();
    if (at >= line.size()) at = line.size() + 1;
  } else {
    ++at;
  }
  return true;
}

// Returns how many fields a record has, given where the field number `known` starts; -1 if a quote is not closed.
// Empty fields at the end do not count if there are more fields than expected, and neither does a comment after blanks.
int count_fields(std::string_view line, std::size_t at, int known, const TextLayout& layout, std::string& room) {
  int filled = known;
  int n_fields = known;
  while (at <= line.size()) {
    std::string_view field;
    if (!take_field(line, at, layout, room, field)) return -1;
    ++n_fields;
    if (field.empty()) continue;
    if (layout.delimiter == 0 && layout.comments.find(field[0]) != std::string::npos) return n_fields - 1;
    filled = n_fields;
  }
  return std::max(filled, std::min(n_fields, layout.n_fields));
}

}  // namespace

bool parse_integer(std::string_view text, std::int64_t& value) {
  const std::size_t sign = !text.empty() && text[0] == '-';
  if (text.size() > sign + 1 && text[sign] == '0') return false;  // 007 is a name, not a number
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty() && text != "-0";
}

bool parse_whole(std::string_view text, std::int64_t& value) {
  const std::string_view digits = without_zeros(text);
  if (!parse_integer(digits == "-0" && digits != text ? "0" : digits, value)) return false;
  return digits == text || (value >= -kLargestExact && value <= kLargestExact);
}

std::optional<std::vector<std::string>> split_line(std::string_view line, const TextLayout& layout) {
  std::vector<std::string> fields;
  std::string unquoted;
  for (std::size_t at = 0; at <= line.size();) {
    std::string_view field;
    if (!take_field(line, at, layout, unquoted, field)) return std::nullopt;
    fields.emplace_back(field);
  }
  return fields;
}

RecordFields take_fields(std::string_view text, const TextLayout& layout, const std::vector<int>& columns, bool last) {
  RecordFields found;
  found.offset.assign(columns.size(), {0});
  found.data.resize(columns.size());
  std::vector<std::string> room(columns.empty() ? 0 : *std::max_element(columns.begin(), columns.end()) + 1);
  std::vector<std::string_view> field(room.size());
  std::string scratch;
  RecordFinder finder;
  std::int64_t line = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const Record record = finder.find(text, at, layout, last);
    if (record.size == 0) break;
    using Reason = LineFault::Reason;
    std::optional<Reason> fault;
    if (record.has_stray_return) fault = Reason::carriage_return;
    std::size_t next = 0;
    int n_fields = 0;
    for (std::size_t column = 0; !fault && column < field.size(); ++column) {
      field[column] = {};
      if (next > record.content.size()) continue;
      if (!take_field(record.content, next, layout, room[column], field[column])) fault = Reason::quote;
      ++n_fields;
    }
    if (!fault && layout.n_fields > 0) {
      n_fields = count_fields(record.content, next, n_fields, layout, scratch);
      if (n_fields != layout.n_fields) fault = n_fields < 0 ? Reason::quote : Reason::ragged;
    }
    if (fault && !record.is_empty && !found.first_fault) {
      found.first_fault = LineFault{*fault, line, n_fields, std::string(record.content.substr(0, 200))};
    }
    if (!fault && !record.is_empty) {
      found.start.push_back(static_cast<std::int64_t>(at));
      found.end.push_back(static_cast<std::int64_t>(at + record.size));
      found.line.push_back(line);
      for (std::size_t k = 0; k < columns.size(); ++k) {
        const std::string_view content = field[columns[k]];
        found.data[k].insert(found.data[k].end(), content.begin(), content.end());
        found.offset[k].push_back(std::ssize(found.data[k]));
      }
    }
    line += std::count(text.begin() + at, text.begin() + at + record.size, '\n');
    at += record.size;
  }
  found.n_consumed = at;
  return found;
}

void EdgeText::fail(LineFault::Reason reason, int column, std::string_view text) {
  ++n_faults_;
  if (!first_fault_) first_fault_ = LineFault{reason, line_, column, std::string(text.substr(0, 200))};
}

// The general case: a record, field by field.
void EdgeText::take_line(std::string_view line, TextEdges& edges) {
  using Reason = LineFault::Reason;
  const int last = std::max({layout_.u, layout_.v, layout_.w, layout_.t, layout_.event});
  std::string_view field[5];
  std::size_t at = 0;
  const int columns[5] = {layout_.u, layout_.v, layout_.w, layout_.t, layout_.event};
  std::string scratch;
  for (int column = 0; column <= last; ++column) {
    if (at > line.size()) return fail(Reason::columns, column, line);
    std::string_view found;
    const auto* const wanted = std::find(columns, columns + 5, column);
    std::string& room = wanted == columns + 5 ? scratch : unquoted_[wanted - columns];
    if (!take_field(line, at, layout_, room, found)) return fail(Reason::quote, column, line);
    for (int k = 0; k < 5; ++k) {
      if (columns[k] == column) field[k] = found;
    }
  }
  if (layout_.n_fields > 0) {
    const int n_fields = count_fields(line, at, last + 1, layout_, scratch);
    if (n_fields < 0) return fail(Reason::quote, last + 1, line);
    if (n_fields != layout_.n_fields) return fail(Reason::ragged, n_fields, line);
  }
  double weight = 1.0;
  if (layout_.attributes && !take_attributes(line, at, weight)) return;
  if (layout_.w >= 0 && !(layout_.empty_v && field[2].empty())) {
    std::string_view text = field[2];
    if (text.size() > 1 && text[0] == '+') text.remove_prefix(1);
    if (layout_.decimal_comma) {
      scratch = text;
      std::replace(scratch.begin(), scratch.end(), ',', '.');
      text = scratch;
    }
    const char* const end = text.data() + text.size();
    if (text.empty() || parse_number(text.data(), end, weight) != end) return fail(Reason::number, layout_.w, field[2]);
    if (!is_weight(weight, kSmallestWeight)) return fail(Reason::weight, layout_.w, field[2]);
  }
  double time = 0.0;
  if (layout_.t >= 0 && !take_time(field[3], line, time)) return;
  for (int k = 0; k < 2; ++k) {
    if (field[k].empty() && !(k == 1 && layout_.empty_v)) return fail(Reason::empty_id, columns[k], line);
  }
  if (layout_.event >= 0 && field[4].empty()) return fail(Reason::empty_id, layout_.event, line);
  if (layout_.strings) {
    for (int k = 0; k < 2; ++k) {
      if (!is_utf8(field[k])) return fail(Reason::utf8, columns[k], field[k]);
      if (!(k == 0 ? layout_.whole_u : layout_.whole_v)) continue;
      std::int64_t whole;
      if (!parse_whole(field[k], whole)) return fail(Reason::integer, columns[k], field[k]);
      field[k] = without_zeros(field[k]);
      if (whole == 0) field[k] = "0";  // not -0
    }
    append(edges, field[0], field[1]);
  } else {
    std::int64_t u;
    std::int64_t v;
    if (!parse_whole(field[0], u)) return fail(Reason::integer, layout_.u, field[0]);
    if (!parse_whole(field[1], v)) return fail(Reason::integer, layout_.v, field[1]);
    edges.u.push_back(u);
    edges.v.push_back(v);
  }
  if (layout_.w >= 0 || layout_.attributes) edges.w.push_back(weight);
  if (layout_.t >= 0) edges.t.push_back(time);
  if (layout_.event >= 0) events_.push_back(hash_text(field[4]));
}

// Reads the weight in {'weight': 3, ...}, which is the rest of a line; 1 if there is none.
bool EdgeText::take_attributes(std::string_view line, std::size_t at, double& weight) {
  const std::string_view rest = at < line.size() ? trim(line.substr(at)) : "";
  if (!rest.empty() && (rest.front() != '{' || rest.back() != '}')) {
    fail(LineFault::Reason::number, 2, rest);
    return false;
  }
  constexpr std::string_view kKey = "'weight':";
  const std::size_t key = rest.find(kKey);
  if (key == std::string_view::npos) return true;
  std::string_view value = rest.substr(key + kKey.size());
  value = trim(value.substr(0, value.find_first_of(",}")));
  const char* const end = value.data() + value.size();
  if (value.empty() || parse_number(value.data(), end, weight) != end) {
    fail(LineFault::Reason::number, 2, value);
    return false;
  }
  if (is_weight(weight, kSmallestWeight)) return true;
  fail(LineFault::Reason::weight, 2, value);
  return false;
}

// Reads the time of a line in the general case, or reports the fault.
bool EdgeText::take_time(std::string_view field, std::string_view line, double& t) {
  bool found;
  const bool in_line = field.data() >= line.data() && field.data() < line.data() + line.size();
  if (layout_.dates && layout_.delimiter == 0 && in_line) {
    // Blanks separate fields, but also a day and the time of the day.
    const char* const end = line.data() + line.size();
    const char* const after = parse_date(field.data(), end, t);
    found = after > field.data() && (after == end || is_blank(*after));
  } else {
    found = parse_time(field, layout_.dates, t);
  }
  const bool good = found && t >= -kLargestTime && t <= std::min(latest_, kLargestTime);
  const bool late = found && t > latest_ && std::isfinite(t);
  if (!good) fail(late ? LineFault::Reason::late : LineFault::Reason::time, layout_.t, field);
  return good;
}

// Takes a line of the usual form, in one pass: u, v, then weight and time if there are any, then columns that are not
// read. If the line has that form, appends its edge and moves p behind its newline. If not, changes nothing, and the
// line is split into fields, which is slower and finds every fault. The text ends with a newline, so no step before 4
// needs to look for the end.
//
// 1. Two ids with a delimiter between them: plain characters, perhaps in quotes, or integers, perhaps as 17.0.
// 2. A weight and a time, in the order of the columns, if the layout has them. Values that would be faults are unusual.
// 3. Columns that are not read, up to the newline, which must be as many as in other lines. Quotes in them may contain
//    newlines, and carriage returns may end other lines: if the fields do not end at this newline, the line is unusual.
// 4. The newline, perhaps after a carriage return; then the edge is appended.
template <bool strings, bool timed>
bool EdgeText::take_usual_line(const char*& p, const char* end, TextEdges& edges) const {
  const char* q = p;
  const bool weighted = layout_.w >= 0;
  const auto take_delimiter = [&] {
    if (layout_.delimiter != 0) return *q++ == layout_.delimiter;
    if (!is_blank(*q)) return false;
    while (is_blank(*q)) ++q;
    return true;
  };
  std::int64_t number[2];
  std::string_view name[2];
  double w = 0.0;
  double t = 0.0;
  for (int k = 0; k < 2; ++k) {  // 1
    if (k == 1 && !take_delimiter()) return false;
    if constexpr (strings) {
      const bool quoted = layout_.quotes && *q == '"';
      q += quoted;
      const char* const start = q;
      const bool* const plain = quoted ? is_plain_in_quotes_ : is_plain_;
      while (plain[static_cast<unsigned char>(*q)]) ++q;
      name[k] = {start, static_cast<std::size_t>(q - start)};
      if (q == start || (quoted && *q++ != '"')) return false;
    } else {
      if (!take_integer(q, number[k])) return false;
      if (*q == '.' && layout_.delimiter != '.') {  // as in 17.0
        do ++q;
        while (*q == '0');
        if (number[k] > kLargestExact) return false;
      }
    }
  }
  // 2
  const auto take_weight = [&] {
    if (!take_delimiter()) return false;
    const char* const start = q;
    q = parse_number(q, end, w);
    return q != start && is_weight(w, kSmallestWeight);
  };
  const auto take_time = [&] {
    if (!take_delimiter()) return false;
    const char* const start = q;
    std::int64_t whole;
    if (layout_.dates) {
      q = parse_date(start, end, t);
    } else if (take_integer(q, whole) && *q != '.' && (*q | 0x20) != 'e') {
      t = static_cast<double>(whole);
    } else {
      q = parse_number(start, end, t);
    }
    return q != start && t >= -kLargestTime && t <= latest_;
  };
  if constexpr (timed) {
    const bool time_first = layout_.t == 2;
    if (time_first && !take_time()) return false;
    if (weighted && !take_weight()) return false;
    if (!time_first && !take_time()) return false;
  } else {
    if (weighted && !take_weight()) return false;
  }
  if (layout_.delimiter == 0 ? is_blank(*q) : *q == layout_.delimiter) {  // 3
    const char* const rest = q;
    q = static_cast<const char*>(std::memchr(q, '\n', end - q));
    if (n_rest_ == 0) {  // only empty fields may follow
      const char* at = rest;
      while (is_blank(*at) || *at == layout_.delimiter) ++at;
      if (at != q - (q[-1] == '\r')) return false;
    } else if (n_rest_ > 0 && layout_.delimiter == 0) {
      int n_fields = 0;
      for (const char* at = rest; at < q; ++at) n_fields += is_blank(*at) && !is_blank(at[1]);
      n_fields -= is_blank(q[-1]) || (q[-1] == '\r' && is_blank(q[-2]));
      if (n_fields != n_rest_) return false;
    } else if (n_rest_ > 0 && std::count(rest, q, layout_.delimiter) != n_rest_) {
      return false;
    }
    if (layout_.quotes && std::memchr(rest, '"', q - rest) != nullptr) {
      FieldScan scan(0);
      const auto result = scan.run({rest, static_cast<std::size_t>(q + 1 - rest)}, layout_);
      if (result != FieldScan::Result::found || scan.has_stray_return(0)) return false;
    } else if (std::memchr(rest, '\r', q - rest - (q[-1] == '\r')) != nullptr) {
      return false;
    }
  } else {
    if (n_rest_ > 0) return false;
    q += *q == '\r';
  }
  if (*q != '\n') return false;  // 4
  if constexpr (strings) {
    append(edges, name[0], name[1]);
  } else {
    edges.u.push_back(number[0]);
    edges.v.push_back(number[1]);
  }
  if (weighted) edges.w.push_back(w);
  if constexpr (timed) edges.t.push_back(t);
  p = q + 1;
  return true;
}

EdgeText::EdgeText(TextLayout layout, std::int64_t line)
    : layout_(std::move(layout)), line_(line), latest_(kLargestTime) {
  const int w = layout_.w;
  const int t = layout_.t;
  usual_ = layout_.u == 0 && layout_.v == 1 && !layout_.whole_u && !layout_.whole_v;
  if (t == -1) {
    usual_ &= w == -1 || w == 2;
  } else {
    // A delimiter must not be part of a time, and a time of two fields moves the columns that follow.
    usual_ &= (t == 2 && (w == -1 || w == 3)) || (t == 3 && w == 2);
    usual_ &= std::string_view("-+.:").find(layout_.delimiter) == std::string_view::npos;
    usual_ &= !(layout_.dates && layout_.delimiter == 0 && w > t);
  }
  usual_ &= !layout_.attributes && !layout_.decimal_comma && layout_.event < 0;
  n_rest_ = layout_.n_fields == 0 ? -1 : layout_.n_fields - 2 - (w >= 0) - (t >= 0);
  // Characters that a string id may have on the fast path: comments begin with other characters.
  for (int c = ' '; c < 0x7f; ++c) is_plain_in_quotes_[c] = c != '"';
  for (int c = '!'; c < 0x7f; ++c) {
    const bool is_comment = layout_.comments.find(static_cast<char>(c)) != std::string::npos;
    is_plain_[c] = c != '"' && c != layout_.delimiter && !is_comment;
  }
}

template <bool strings, bool timed>
void EdgeText::parse_records(std::string_view text, bool last, TextEdges& edges) {
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end) {
    if (usual_ && take_usual_line<strings, timed>(p, end, edges)) {
      ++line_;
      continue;
    }
    const Record record = finder_.find(text, p - text.data(), layout_, last);
    if (record.size == 0) break;
    if (record.has_stray_return) fail(LineFault::Reason::carriage_return, 0, record.content);
    else if (!record.is_empty) take_line(record.content, edges);
    line_ += std::count(p, p + record.size, '\n');
    p += record.size;
    if (n_faults_ > 0 && !layout_.skips_faults) break;
  }
  n_consumed_ = p - text.data();
  if (last) finder_ = RecordFinder();
  else finder_.move_on(n_consumed_);
}

TextEdges EdgeText::parse(std::string_view text, bool last) {
  TextEdges edges;
  events_.clear();
  const bool timed = layout_.t >= 0;
  if (layout_.strings) {
    edges.u_offset.push_back(0);
    edges.v_offset.push_back(0);
    edges.u_data.reserve(text.size() / 2);
    edges.v_data.reserve(text.size() / 2);
    timed ? parse_records<true, true>(text, last, edges) : parse_records<true, false>(text, last, edges);
  } else {
    timed ? parse_records<false, true>(text, last, edges) : parse_records<false, false>(text, last, edges);
  }
  return edges;
}

}  // namespace ohm
