// Numbers as text.
#pragma once

#include <charconv>
#include <limits>
#include <system_error>

namespace ohm {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whether the absolute value of a decimal number without blanks is less than one.
bool is_below_one(const char* begin, const char* end);

// Reads the number at `begin`; returns where it ends, or `begin` if there is none. Overflow gives infinity, underflow
// 0.
#if defined(__cpp_lib_to_chars)
inline const char* parse_number(const char* begin, const char* end, double& value) {
  const auto [after, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range) {
    // from_chars does not say which of the two it is; strtod would, but its decimal point depends on the locale.
    value = is_below_one(begin, after) ? 0.0 : std::numeric_limits<double>::infinity();
    if (*begin == '-') value = -value;
  }
  return after;
}
#else  // Some libraries have from_chars for integers only.
const char* parse_number(const char* begin, const char* end, double& value);
#endif

}  // namespace ohm
