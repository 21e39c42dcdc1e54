#include "text/kinds.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ohm {
namespace {

constexpr std::size_t kLongestInteger = 20;  // of 64 bits, with its sign

}  // namespace

template <class Offset>
OwnedStrings with_prefix(const Strings<Offset>& ids, std::string_view prefix) {
  OwnedStrings found;
  found.offset.reserve(ids.offset.size());
  found.offset.push_back(0);
  const auto length = static_cast<std::size_t>(ids.offset.back() - ids.offset.front());
  found.data.resize(length + static_cast<std::size_t>(ids.size()) * prefix.size());
  std::uint8_t* to = found.data.data();
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    const std::string_view id = ids[i];
    if (!id.starts_with(prefix)) to = std::copy(prefix.begin(), prefix.end(), to);
    to = std::copy(id.begin(), id.end(), to);
    found.offset.push_back(to - found.data.data());
  }
  found.data.resize(static_cast<std::size_t>(found.offset.back()));
  return found;
}

OwnedStrings with_prefix(std::span<const std::int64_t> ids, std::string_view prefix) {
  OwnedStrings found;
  found.offset.reserve(ids.size() + 1);
  found.offset.push_back(0);
  found.data.resize(ids.size() * (prefix.size() + kLongestInteger));
  auto* const data = reinterpret_cast<char*>(found.data.data());
  char* to = data;
  for (const std::int64_t id : ids) {
    to = std::copy(prefix.begin(), prefix.end(), to);
    to = std::to_chars(to, to + kLongestInteger, id).ptr;
    found.offset.push_back(to - data);
  }
  found.data.resize(static_cast<std::size_t>(found.offset.back()));
  return found;
}

template <class Offset>
std::int64_t find_without_prefix(const Strings<Offset>& ids, const std::vector<std::string>& prefixes) {
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    const auto starts = [id = ids[i]](const std::string& prefix) { return id.starts_with(prefix); };
    if (std::none_of(prefixes.begin(), prefixes.end(), starts)) return i;
  }
  return -1;
}

template <class Offset>
std::vector<std::string> kinds_of(const Strings<Offset>& ids) {
  std::vector<std::string> found;
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    const std::string_view kind = ids[i].substr(0, ids[i].find(':'));
    if (std::find(found.begin(), found.end(), kind) == found.end()) found.emplace_back(kind);
  }
  return found;
}

#define OHM_KINDS(Offset)                                                                         \
  template OwnedStrings with_prefix(const Strings<Offset>&, std::string_view);                    \
  template std::int64_t find_without_prefix(const Strings<Offset>&, const std::vector<std::string>&); \
  template std::vector<std::string> kinds_of(const Strings<Offset>&);
OHM_KINDS(std::int32_t)
OHM_KINDS(std::int64_t)

}  // namespace ohm
