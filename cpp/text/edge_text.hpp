// Edges from text, one a line: CSV, TSV, blank-separated files with comments, the body of MatrixMarket files.
//
// A line in the usual form (integers in the first two columns, perhaps a weight in the third) is read in one go;
// whatever looks different at any point is read again by rule: fields are cut at the delimiter or at runs of
// blanks, blanks around them are dropped, quotes may enclose one ("" stands for "). A line that is no edge is a
// fault with its number, never a crash and never a guess.
//
// A record is usually a line. Quotes that are closed in front of a delimiter or the end of a line may hold newlines, as
// in RFC 4180, and then the record has several lines; a quote that is not closed like this concerns its own line only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ohm {

struct TextLayout {
  char delimiter = ',';  // 0: runs of blanks and tabs
  bool quotes = true;    // fields may be enclosed in double quotes
  std::string comments;  // lines that begin with one of these are none
  int u = 0;             // columns, from 0
  int v = 1;
  int w = -1;                 // -1: no weights
  bool strings = false;       // ids are strings, else integers
  bool skips_faults = false;  // else the first fault ends it
};

struct LineFault {
  enum class Kind { columns, quote, integer, utf8, empty_id, number, weight, carriage_return };
  Kind kind;
  std::int64_t line;  // from 1
  int column;
  std::string text;  // of the field, or of the line where it has too few fields
};

// A quote that is not closed within so many bytes counts as never closed.
inline constexpr std::size_t kLongestRecord = std::size_t{1} << 24;

struct Record {
  std::string_view content;       // without the end of its last line
  std::size_t size = 0;           // with it; 0 if more text is needed to find the end
  bool is_empty = false;          // blank, or a comment
  bool has_stray_return = false;  // a carriage return outside of quotes that does not end the line
};

// The first record of a text that ends with a newline. `last`: nothing follows the text.
Record first_record(std::string_view text, const TextLayout& layout, bool last);

// Edges of some lines; ids either as integers or as strings one after the other.
struct TextEdges {
  std::vector<std::int64_t> u, v;
  std::vector<std::int64_t> u_offset, v_offset;
  std::vector<char> u_data, v_data;
  std::vector<double> w;
};

class EdgeText {
 public:
  // The first line that comes has number `line`.
  EdgeText(TextLayout layout, std::int64_t line);

  // Reads whole records of a text that ends with a newline. Unless the text is the `last` one, a record whose quotes
  // are not closed yet stays for the next call: n_consumed() bytes were read.
  TextEdges parse(std::string_view text, bool last);

  std::size_t n_consumed() const { return n_consumed_; }
  std::int64_t next_line() const { return line_; }
  std::int64_t n_faults() const { return n_faults_; }
  const std::optional<LineFault>& first_fault() const { return first_fault_; }

 private:
  template <bool strings>
  bool take_usual_line(const char*& p, const char* end, TextEdges& edges) const;
  void take_line(std::string_view line, TextEdges& edges);
  void fail(LineFault::Kind kind, int column, std::string_view text);

  TextLayout layout_;
  std::int64_t line_;
  std::size_t n_consumed_ = 0;
  std::int64_t n_faults_ = 0;
  std::optional<LineFault> first_fault_;
  std::string unquoted_[3];
  bool usual_;
  bool is_plain_[256] = {};
  bool is_plain_in_quotes_[256] = {};
};

// Cuts a line into fields as EdgeText does; nothing if a quote is not closed.
std::optional<std::vector<std::string>> split_line(std::string_view line, const TextLayout& layout);

// Whether it is written as int64 would be: no plus sign, no leading zeros, in range.
bool parse_integer(std::string_view text, std::int64_t& value);

}  // namespace ohm
