#include "text/node_types.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ohm {
namespace {

constexpr std::size_t kLongestInteger = 20;  // of 64 bits, with its sign
constexpr std::size_t kStep = 16;

// Copies `size` bytes, and some that follow them: a copy of fixed size is much faster than one of few bytes. `room`: how
// many bytes there are to read. The bytes written too much are overwritten by the next call, or unused at the end.
inline char* copy_quickly(char* to, const char* from, std::size_t size, std::size_t room) {
  if (size <= kStep && room >= kStep) {
    std::memcpy(to, from, kStep);
  } else {
    std::memcpy(to, from, size);
  }
  return to + size;
}

}  // namespace

OwnedStrings with_prefix(const Strings& ids, std::string_view prefix) {
  const std::int64_t count = ids.size();
  const auto length = static_cast<std::size_t>(ids.offset.back() - ids.offset.front());
  OwnedStrings found(count, length + static_cast<std::size_t>(count) * prefix.size() + kStep);
  const char* const end = ids.data + ids.offset.back();
  std::string padded(prefix);
  padded.resize(std::max(kStep, prefix.size()));
  auto* const data = reinterpret_cast<char*>(found.data.get());
  char* to = data;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string_view id = ids[i];
    if (!id.starts_with(prefix)) to = copy_quickly(to, padded.data(), prefix.size(), padded.size());
    to = copy_quickly(to, id.data(), id.size(), static_cast<std::size_t>(end - id.data()));
    found.offset[i + 1] = to - data;
  }
  return found;
}

OwnedStrings take_strings(const Strings& ids, std::span<const std::int64_t> positions) {
  std::size_t length = 0;
  for (const std::int64_t at : positions) length += ids[at].size();
  OwnedStrings found(std::ssize(positions), length + kStep);
  const char* const end = ids.data + ids.offset.back();
  auto* const data = reinterpret_cast<char*>(found.data.get());
  char* to = data;
  for (std::int64_t i = 0; i < std::ssize(positions); ++i) {
    const std::string_view id = ids[positions[i]];
    to = copy_quickly(to, id.data(), id.size(), static_cast<std::size_t>(end - id.data()));
    found.offset[i + 1] = to - data;
  }
  return found;
}

OwnedStrings with_prefix(std::span<const std::int64_t> ids, std::string_view prefix) {
  OwnedStrings found(std::ssize(ids), ids.size() * (prefix.size() + kLongestInteger));
  auto* const data = reinterpret_cast<char*>(found.data.get());
  char* to = data;
  for (std::int64_t i = 0; i < std::ssize(ids); ++i) {
    to = std::copy(prefix.begin(), prefix.end(), to);
    to = std::to_chars(to, to + kLongestInteger, ids[i]).ptr;
    found.offset[i + 1] = to - data;
  }
  return found;
}

std::int64_t find_without_prefix(const Strings& ids, const std::vector<std::string>& prefixes) {
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    const auto starts = [id = ids[i]](const std::string& prefix) { return id.starts_with(prefix); };
    if (std::none_of(prefixes.begin(), prefixes.end(), starts)) return i;
  }
  return -1;
}

std::vector<std::string> node_types_of(const Strings& ids) {
  std::vector<std::string> found;
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    const std::string_view node_type = ids[i].substr(0, ids[i].find(':'));
    if (std::find(found.begin(), found.end(), node_type) == found.end()) found.emplace_back(node_type);
  }
  return found;
}

}  // namespace ohm
