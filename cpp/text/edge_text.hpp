// Edges from text with one edge per line: CSV, TSV, blank-separated files with comments, the body of MatrixMarket
// files.
//
// A line in the usual form (ids in the first two columns, and optionally a weight and a time in the next ones) is read
// in one pass. Any other line is read again by the general rules: fields are separated by the delimiter or by runs of blanks,
// blanks around them are dropped, and they may be quoted ("" in quotes means "). A line that is not an edge is reported
// with its number. records.hpp says which lines belong together.
#pragma once

#include "text/records.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ohm {

struct LineFault {
  enum class Reason {
    columns, quote, integer, utf8, empty_id, number, weight, time, late, carriage_return,
    ragged  // `column` is the number of fields
  };
  Reason reason;
  std::int64_t line;  // from 1
  int column;
  std::string text;  // of the field, or of the line if it has too few fields
};

// Edges of some lines. Ids are either integers or strings, which are concatenated.
struct TextEdges {
  std::vector<std::int64_t> u, v;
  std::vector<std::int64_t> u_offset, v_offset;
  std::vector<char> u_data, v_data;
  std::vector<double> w;
  std::vector<double> t;  // numbers, or seconds since 1970
};

class EdgeText {
 public:
  // `line` is the number of the first line.
  EdgeText(TextLayout layout, std::int64_t line);

  // Reads whole records of a text that ends with a newline. Unless the text is the `last` one, a record whose quotes
  // are not closed yet is left for the next call; n_consumed() bytes have been read. The next text starts behind them.
  TextEdges parse(std::string_view text, bool last);

  // Hashes of the ids of events, of the edges of the latest text, if the layout has them.
  std::vector<std::uint64_t> take_events() { return std::move(events_); }

  // Later times are faults.
  double latest() const { return latest_; }
  void set_latest(double latest) { latest_ = latest; }

  std::size_t n_consumed() const { return n_consumed_; }
  std::int64_t next_line() const { return line_; }
  std::int64_t n_faults() const { return n_faults_; }
  const std::optional<LineFault>& first_fault() const { return first_fault_; }

 private:
  template <bool strings, bool timed>
  void parse_records(std::string_view text, bool last, TextEdges& edges);
  template <bool strings, bool timed>
  bool take_usual_line(const char*& p, const char* end, TextEdges& edges) const;
  void take_line(std::string_view line, TextEdges& edges);
  bool take_attributes(std::string_view line, std::size_t at, double& weight);
  bool take_time(std::string_view field, std::string_view line, double& t);
  void fail(LineFault::Reason reason, int column, std::string_view text);

  TextLayout layout_;
  RecordFinder finder_;
  std::int64_t line_;
  std::size_t n_consumed_ = 0;
  std::int64_t n_faults_ = 0;
  std::optional<LineFault> first_fault_;
  std::string unquoted_[5];
  std::vector<std::uint64_t> events_;
  double latest_;
  bool usual_;
  int n_rest_;  // fields after those that are read, in usual lines; -1 if their number is not checked
  bool is_plain_[256] = {};
  bool is_plain_in_quotes_[256] = {};
};

// Some fields of each record that is neither empty nor damaged: columns of a table as text.
struct RecordFields {
  std::vector<std::int64_t> start, end;            // of records, in the text, with the ends of their lines
  std::vector<std::int64_t> line;                  // number of the first line of each, from 0 on
  std::vector<std::vector<std::int64_t>> offset;   // of each column: where its fields start and end in `data`
  std::vector<std::vector<char>> data;             // a field that a record does not have is empty
  std::optional<LineFault> first_fault;            // of a damaged record, which is left out; lines are counted from 0
  std::size_t n_consumed = 0;
};

// Reads whole records of a text that ends with a newline, as EdgeText::parse does.
RecordFields take_fields(std::string_view text, const TextLayout& layout, const std::vector<int>& columns, bool last);

// Splits a line into fields as EdgeText does; no value if a quote is not closed.
std::optional<std::vector<std::string>> split_line(std::string_view line, const TextLayout& layout);

// Whether the text is an int64 in canonical form: no plus sign, no leading zeros, in range.
bool parse_integer(std::string_view text, std::int64_t& value);

// Whether the text is such an integer, or one of at most 2^53 that is written as a float: 17.0 or 17.
bool parse_whole(std::string_view text, std::int64_t& value);

}  // namespace ohm
