#include "text/records.hpp"

#include <algorithm>

namespace ohm {

FieldScan::Result FieldScan::run(std::string_view text, const TextLayout& layout) {
  const auto ends = [&](char c) { return layout.delimiter == 0 ? is_blank(c) : c == layout.delimiter; };
  std::size_t at = at_;
  const auto skip_blanks = [&] {
    while (at < text.size() && is_blank(text[at]) && text[at] != layout.delimiter) ++at;
  };
  const auto is_line_end = [&] { return text[at] == '\n' || text.substr(at, 2) == "\r\n"; };
  Place place = place_;
  const auto stop = [&](Result result) {
    at_ = at;
    place_ = place;
    return result;
  };
  for (;;) {
    switch (place) {
      case Place::field:
        skip_blanks();
        if (at == text.size()) return stop(Result::unknown);
        place = text[at] == '"' ? Place::quoted : Place::plain;
        at += place == Place::quoted;
        break;
      case Place::quoted:
        at = std::min(text.find('"', at), text.size());
        if (at + 1 >= text.size()) return stop(Result::unknown);  // a quote may follow the last character
        if (text[at + 1] == '"') {
          at += 2;
        } else {
          after_quote_ = ++at;
          place = Place::closed;
        }
        break;
      case Place::closed: {
        skip_blanks();
        if (at == text.size()) return stop(Result::unknown);
        const bool divided = ends(text[at]) || (layout.delimiter == 0 && at > after_quote_);
        if (!divided && !is_line_end()) return stop(Result::broken);
        place = text[at] == '"' ? Place::quoted : Place::plain;
        at += place == Place::quoted;
        break;
      }
      case Place::plain:
        for (; at < text.size() && !ends(text[at]) && text[at] != '\n'; ++at) {
          if (text[at] != '\r') continue;
          if (at + 1 == text.size()) return stop(Result::unknown);
          if (!is_line_end()) after_return_ = at + 1;
        }
        if (at == text.size()) return stop(Result::unknown);
        place = Place::field;
        if (text[at++] == '\n') return stop(Result::found);
        break;
    }
  }
}

void FieldScan::move_on(std::size_t count) {
  at_ -= count;
  after_quote_ -= std::min(count, after_quote_);
  after_return_ -= std::min(count, after_return_);
}

Record RecordFinder::find(std::string_view text, std::size_t start, const TextLayout& layout, bool last) {
  using Result = FieldScan::Result;
  const auto cut = [&](std::size_t end) {
    Record record;
    record.size = end - start;
    record.content = text.substr(start, record.size - 1);
    if (record.content.ends_with('\r')) record.content.remove_suffix(1);
    return record;
  };
  const std::size_t line_end = text.find('\n', start) + 1;
  Record line = cut(line_end);
  const std::string_view words = trim(line.content);
  line.is_empty = words.empty() || layout.comments.find(words[0]) != std::string::npos;
  line.has_stray_return = line.content.find('\r') != std::string_view::npos;
  if (line.is_empty || !layout.quotes || line.content.find('"') == std::string_view::npos) return line;

  const std::string_view within = text.substr(0, start + longest_);
  FieldScan scan(start);
  Result result = Result::unknown;
  bool has_stray_return = false;
  if (failed_ && line_end <= failed_->at() && failed_->at() <= within.size()) {
    result = scan.run(text.substr(0, line_end), layout);
    has_stray_return = scan.has_stray_return(start);
    if (result == Result::unknown) {  // in quotes at the end of the line, where the failed scan was as well
      scan = *failed_;
      result = scan.run(within, layout);
      has_stray_return |= scan.has_stray_return(line_end);
    }
  } else {
    result = scan.run(within, layout);
    has_stray_return = scan.has_stray_return(start);
  }
  if (result != Result::found) {
    if (!failed_ || failed_->at() <= scan.at()) failed_ = scan;
    const bool may_continue = result == Result::unknown && !last && text.size() - start <= longest_;
    return may_continue ? Record() : line;
  }
  Record record = cut(scan.at());
  record.has_stray_return = has_stray_return;
  return record;
}

void RecordFinder::move_on(std::size_t count) {
  if (failed_ && failed_->at() > count) failed_->move_on(count);
  else failed_.reset();
}

std::vector<std::string_view> some_records(std::string_view text, std::size_t start, std::size_t stop, std::size_t most,
                                           const TextLayout& layout) {
  std::vector<std::string_view> found;
  RecordFinder finder;
  while (start < stop && found.size() < most) {
    const Record record = finder.find(text, start, layout, true);
    if (!record.is_empty) found.push_back(record.content);
    start += record.size;
  }
  return found;
}

}  // namespace ohm
