#include "text/times.hpp"

#include "text/numbers.hpp"
#include "text/records.hpp"

#include <chrono>
#include <cstdint>

namespace ohm {
namespace {

// A place in a text. Each step returns whether it moved.
struct Cursor {
  const char* p;
  const char* end;

  bool take(char mark) {
    if (p == end || *p != mark) return false;
    ++p;
    return true;
  }

  bool take(std::string_view marks) {
    if (!std::string_view(p, end).starts_with(marks)) return false;
    p += marks.size();
    return true;
  }

  bool take_digits(int count, int& number) {
    if (end - p < count) return false;
    number = 0;
    for (int i = 0; i < count; ++i) {
      if (!is_digit(p[i])) return false;
      number = number * 10 + (p[i] - '0');
    }
    p += count;
    return true;
  }

  bool take_blanks() {
    const char* const start = p;
    while (p < end && is_blank(*p)) ++p;
    return p > start;
  }

  // +02, +0200, +02:00; after a blank only +02:00, since a number may follow a date.
  bool take_offset(bool after_blank, int& seconds) {
    const char* const start = p;
    const int sign = take('+') ? 1 : take('-') ? -1 : 0;
    int hours = 0;
    int minutes = 0;
    bool good = sign != 0 && take_digits(2, hours);
    const bool colon = good && take(':');
    if (colon || (good && !after_blank && p < end && is_digit(*p))) good = take_digits(2, minutes);
    good = good && (colon || !after_blank) && hours < 24 && minutes < 60;
    if (!good) p = start;
    seconds = sign * (hours * 3600 + minutes * 60);
    return good;
  }
};

}  // namespace

const char* parse_date(const char* begin, const char* end, double& value) {
  using namespace std::chrono;
  Cursor at{begin, end};
  int year_number;
  int month_number;
  int day_number;
  if (!(at.take_digits(4, year_number) && at.take('-') && at.take_digits(2, month_number) && at.take('-') &&
        at.take_digits(2, day_number))) {
    return begin;
  }
  const year_month_day day{year{year_number}, month{static_cast<unsigned>(month_number)},
                           std::chrono::day{static_cast<unsigned>(day_number)}};
  if (!day.ok()) return begin;
  auto seconds = std::int64_t{sys_days{day}.time_since_epoch().count()} * 86400;
  value = static_cast<double>(seconds);

  const Cursor after_day = at;
  const bool separated = at.take('T') || at.take('t') || at.take_blanks();
  int hour;
  int minute;
  int second = 0;
  if (!separated || !at.take_digits(2, hour) || !at.take(':')) return after_day.p;
  // From here on there is a time of the day, and if it is wrong the date is wrong, too.
  if (!at.take_digits(2, minute) || (at.take(':') && !at.take_digits(2, second))) return begin;
  if (hour > 23 || minute > 59 || second > 59) return begin;
  std::int64_t nanoseconds = 0;
  if (at.end - at.p > 1 && *at.p == '.' && is_digit(at.p[1])) {
    std::int64_t place = 100'000'000;
    for (++at.p; at.p < at.end && is_digit(*at.p); ++at.p, place /= 10) nanoseconds += place * (*at.p - '0');
  }
  const Cursor after_time = at;
  int offset = 0;
  const bool blank = at.take_blanks();
  if (!(at.take('Z') || at.take('z') || at.take("UTC") || at.take_offset(blank, offset))) at = after_time;
  seconds += hour * 3600 + minute * 60 + second - offset;
  value = static_cast<double>(seconds) + static_cast<double>(nanoseconds) / 1e9;
  return at.p;
}

bool parse_time(std::string_view text, bool dates, double& value) {
  text = trim(text);
  if (!dates && text.size() > 1 && text[0] == '+') text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  return !text.empty() && (dates ? parse_date : parse_number)(text.data(), end, value) == end;
}

}  // namespace ohm
