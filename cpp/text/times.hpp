// Times as text: numbers, or dates of ISO 8601 such as 2026-03-31, 2026-03-31T12:30:00.5+02:00, 2026-03-31 12:30Z.
#pragma once

#include <string_view>

namespace ohm {

// Times are below this in size: nanoseconds since 1970 are.
inline constexpr double kLargestTime = 0x1p63;

// Reads the date at `begin`, in seconds since 1970; returns where it ends, or `begin` if there is none. Blanks may
// separate the day and the time of the day. A date without a zone is in UTC. Digits behind the ninth of a second are
// ignored.
const char* parse_date(const char* begin, const char* end, double& value);

// Whether the whole text, without blanks around it, is a time: a date, or a number. It may be infinite or NaN.
bool parse_time(std::string_view text, bool dates, double& value);

}  // namespace ohm
