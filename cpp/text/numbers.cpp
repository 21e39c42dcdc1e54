#include "text/numbers.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace ohm {

bool is_below_one(const char* begin, const char* end) {
  const char* const e = std::find_if(begin, end, [](char c) { return c == 'e' || c == 'E'; });
  std::int64_t places = 0;  // of the first digit that is not 0, before the point
  bool behind_point = false;
  bool begun = false;
  for (const char* p = begin; p < e; ++p) {
    behind_point |= *p == '.';
    if (!is_digit(*p)) continue;
    begun |= *p != '0';
    if (begun) places += !behind_point;
    else places -= behind_point;
  }
  std::int64_t exponent = 0;
  if (e < end) {
    const char* const digits = e + 1 + (e[1] == '+');
    const auto [_, error] = std::from_chars(digits, end, exponent);
    if (error == std::errc::result_out_of_range) return *digits == '-';
  }
  return places + exponent <= 0;
}

#if !defined(__cpp_lib_to_chars)
// Formats that strtod alone accepts are excluded first.
const char* parse_number(const char* begin, const char* end, double& value) {
  const auto belongs = [](char c) { return is_digit(c) || std::strchr("+-.eEinfatyINFATY", c) != nullptr; };
  const char* stop = begin;
  while (stop < end && *stop != '\0' && belongs(*stop)) ++stop;
  if (stop == begin || *begin == '+') return begin;
  const std::string text(begin, stop);
  char* after = nullptr;
  value = std::strtod(text.c_str(), &after);
  return begin + (after - text.c_str());
}
#endif

}  // namespace ohm
