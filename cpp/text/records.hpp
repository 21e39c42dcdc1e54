// Records of text with fields: where each of them ends.
//
// A record is usually a line. Quotes that are closed before a delimiter or the end of a line may contain newlines, as
// in RFC 4180; then the record has several lines. A quote that is not closed like this affects its own line only: that
// line is a record.
//
// To find out that a quote is not closed like this, up to kLongestRecord bytes are read. This must not happen again for
// each line of a text with many stray quotes. A scan that has failed was inside quotes at each newline that it passed;
// outside of quotes it would have found the end of its record there. So if a later record is inside quotes at the end
// of its first line, and a failed scan has passed that newline, then the two agree from there on. It is enough to
// remember the failed scan that came farthest, and to continue it where it stopped. So a byte is read a few times only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ohm {

// How text holds edges.
struct TextLayout {
  char delimiter = ',';       // 0: runs of blanks and tabs
  bool quotes = true;         // fields may be enclosed in double quotes
  std::string comments = "";  // lines that start with one of these characters are comments
  int u = 0;                  // columns, from 0
  int v = 1;
  int w = -1;                 // -1: no weights
  int t = -1;                 // -1: no times
  int event = -1;             // column of the ids of events; -1: none
  bool dates = false;         // times are dates, else numbers
  bool strings = false;       // ids are strings, else integers
  bool whole_u = false;       // strings of a column are whole numbers, of which some are written as 17.0
  bool whole_v = false;
  bool empty_v = false;       // the second id may be an empty string, and an empty weight is 1
  bool skips_faults = false;  // otherwise reading stops at the first fault
  bool decimal_comma = false;  // weights are written as 0,5
  int n_fields = 0;           // of each record; 0: any number. Empty fields may follow
  bool attributes = false;    // the third field is a dict of Python, as networkx writes it, which may have a weight
};

// A quote that is not closed within this many bytes is treated as never closed.
inline constexpr std::size_t kLongestRecord = std::size_t{1} << 24;

struct Record {
  std::string_view content;       // without the end of its last line
  std::size_t size = 0;           // including it; 0 if more text is needed to find the end
  bool is_empty = false;          // blank, or a comment
  bool has_stray_return = false;  // a carriage return outside of quotes that does not end the line
};

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

inline std::string_view trim(std::string_view s) {
  while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
  return s;
}

// Reads fields up to the first newline outside of quotes. It can continue with a longer text.
class FieldScan {
 public:
  enum class Result {
    found,    // the newline is the character before at()
    unknown,  // the text ends first
    broken    // text follows a quote
  };
  explicit FieldScan(std::size_t start) : at_(start) {}

  // `text` must start with the text of earlier calls.
  Result run(std::string_view text, const TextLayout& layout);

  std::size_t at() const { return at_; }
  // Whether a carriage return that does not end the line was read at or after a position, outside of quotes.
  bool has_stray_return(std::size_t from) const { return after_return_ > from; }
  // The text now starts `count` bytes later.
  void move_on(std::size_t count);

 private:
  enum class Place { field, quoted, closed, plain };  // at the start of a field, in quotes, behind them, in other text
  Place place_ = Place::field;
  std::size_t at_;
  std::size_t after_quote_ = 0;   // the position behind the quotes that were closed last
  std::size_t after_return_ = 0;  // the position behind the last stray return; 0 if there is none
};

// Finds records of a text one after the other.
class RecordFinder {
 public:
  explicit RecordFinder(std::size_t longest = kLongestRecord) : longest_(longest) {}

  // The record of a text that starts at `start`; the text ends with a newline. `last`: nothing follows the text.
  // `start` must not decrease.
  Record find(std::string_view text, std::size_t start, const TextLayout& layout, bool last);

  // The next text continues this one, of which it leaves out the first `count` bytes.
  void move_on(std::size_t count);

 private:
  std::size_t longest_;
  std::optional<FieldScan> failed_;  // the scan that came farthest without finding the end of its record
};

// Contents of some records, without blank lines and comments: up to `most` from `start` on, which start before `stop`.
std::vector<std::string_view> some_records(std::string_view text, std::size_t start, std::size_t stop, std::size_t most,
                                           const TextLayout& layout);

}  // namespace ohm
