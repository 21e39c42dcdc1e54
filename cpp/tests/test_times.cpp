#include "text/times.hpp"

#include "base/rng.hpp"
#include "check.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace {

double date(std::string_view text) {
  double value;
  return ohm::parse_time(text, true, value) ? value : std::numeric_limits<double>::quiet_NaN();
}

TEST(dates_are_seconds_since_1970) {
  CHECK(date("1970-01-01") == 0);
  CHECK(date("1969-12-31") == -86400);
  CHECK(date("2000-02-29") == 951782400);
  CHECK(date("0001-01-01") == -62135596800);
  CHECK(date("9999-12-31") == 253402214400);
  CHECK(date("2026-03-31T12:30") == 1774960200);
  CHECK(date("2026-03-31 12:30:15") == 1774960215);
  CHECK(date("2026-03-31t12:30:15z") == 1774960215);
  CHECK(date("2026-03-31T12:30:15.25Z") == 1774960215.25);
  CHECK(date("2026-03-31T12:30:15.123456789") == 1774960215 + 123456789 / 1e9);
  CHECK(date("2026-03-31T12:30:15.123456789999") == 1774960215 + 123456789 / 1e9);
  CHECK(date("1969-12-31T23:59:59.5") == -0.5);
  for (const char* same : {" 2026-03-31T12:30Z ", "2026-03-31 12:30 UTC", "2026-03-31T14:30+02", "2026-03-31T14:30+0200",
                           "2026-03-31T14:30:00.0+02:00", "2026-03-31 14:30:00 +02:00", "2026-03-31T07:00-05:30",
                           "2026-04-01T00:30+12:00"}) {
    CHECK(date(same) == 1774960200);
  }
}

TEST(other_texts_are_no_dates) {
  for (const char* bad :
       {"", "2026", "2026-03", "2026-3-31", "26-03-31", "2026-13-01", "2026-00-01", "2026-02-29", "2026-04-31", "2026-03-32",
        "2026/03/31", "31.03.2026", "2026-03-31T", "2026-03-31 x", "2026-03-31T1", "2026-03-31T12", "2026-03-31T12:3",
        "2026-03-31T24:00", "2026-03-31T12:60", "2026-03-31T12:30:60", "2026-03-31T12:30:", "2026-03-31T12:30:00.",
        "2026-03-31T12:30+", "2026-03-31T12:30+2", "2026-03-31T12:30+25:00", "2026-03-31T12:30+02:60", "+2026-03-31",
        "2026-03-31T12:30:00Zx", "x2026-03-31", "-2026-03-31", "nan", "1774960200"}) {
    CHECK(std::isnan(date(bad)));
  }
}

TEST(every_day_follows_the_one_before) {
  constexpr int kLengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  double expected = date("1600-01-01");
  for (int year = 1600; year < 2200; ++year) {
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    for (int month = 1; month <= 12; ++month) {
      for (int day = 1; day <= kLengths[month - 1] + (month == 2 && leap); ++day) {
        char text[64];
        std::snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
        CHECK(date(text) == expected);
        expected += 86400;
      }
    }
  }
}

TEST(any_text_is_read_within_its_bounds) {
  const std::string_view alphabet = "0123456789012345678901234567890123456789--::T .+Z";
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    const std::string whole = "2026-03-31T12:30:15.123456+02:00";
    // On the heap without a terminator, so that a sanitizer notices a read past the end.
    std::vector<char> text(whole.begin(), whole.begin() + ohm::hash(seed, 0) % (whole.size() + 1));
    for (int change = 0; change < 2 && !text.empty() && seed % 2 == 0; ++change) {
      text[ohm::hash(seed, 1 + 2 * change) % text.size()] = alphabet[ohm::hash(seed, 2 + 2 * change) % alphabet.size()];
    }
    double value = 0.0;
    const char* const end = text.data() + text.size();
    const char* const after = ohm::parse_date(text.data(), end, value);
    CHECK(after >= text.data() && after <= end);
    CHECK(std::isfinite(value));
  }
}

}  // namespace
