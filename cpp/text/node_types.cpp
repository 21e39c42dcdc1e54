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

// `count` strings with room for all their bytes; append(i, to) writes string i and returns its end.
template <class Append>
OwnedStrings write_strings(std::int64_t count, std::size_t room, const Append& append) {
  OwnedStrings found(count, room);
  auto* const data = reinterpret_cast<char*>(found.data.get());
  char* to = data;
  for (std::int64_t i = 0; i < count; ++i) {
    to = append(i, to);
    found.offset[i + 1] = to - data;
  }
  return found;
}

}  // namespace

OwnedStrings with_prefix(const Strings& ids, std::string_view prefix) {
  const std::int64_t count = ids.size();
  const auto length = static_cast<std::size_t>(ids.offset.back() - ids.offset.front());
  const char* const end = ids.data + ids.offset.back();
  std::string padded(prefix);
  padded.resize(std::max(kStep, prefix.size()));
  const std::size_t room = length + static_cast<std::size_t>(count) * prefix.size() + kStep;
  return write_strings(count, room, [&](std::int64_t i, char* to) {
    const std::string_view id = ids[i];
    if (!id.starts_with(prefix)) to = copy_quickly(to, padded.data(), prefix.size(), padded.size());
    return copy_quickly(to, id.data(), id.size(), static_cast<std::size_t>(end - id.data()));
  });
}

OwnedStrings take_strings(const Strings& ids, std::span<const std::int64_t> positions) {
  std::size_t length = 0;
  for (const std::int64_t at : positions) length += ids[at].size();
  const char* const end = ids.data + ids.offset.back();
  return write_strings(std::ssize(positions), length + kStep, [&](std::int64_t i, char* to) {
    const std::string_view id = ids[positions[i]];
    return copy_quickly(to, id.data(), id.size(), static_cast<std::size_t>(end - id.data()));
  });
}

OwnedStrings with_prefix(std::span<const std::int64_t> ids, std::string_view prefix) {
  const std::size_t room = ids.size() * (prefix.size() + kLongestInteger);
  return write_strings(std::ssize(ids), room, [&](std::int64_t i, char* to) {
    to = std::copy(prefix.begin(), prefix.end(), to);
    return std::to_chars(to, to + kLongestInteger, ids[i]).ptr;
  });
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
