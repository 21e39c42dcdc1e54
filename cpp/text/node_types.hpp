// Ids with the type of their node in front, as in "user:17", so that ids of two types may overlap.
#pragma once

#include "text/nodes.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ohm {

struct OwnedStrings {
  explicit OwnedStrings(std::int64_t count, std::size_t room)
      : offset(std::make_unique_for_overwrite<std::int64_t[]>(static_cast<std::size_t>(count) + 1)),
        data(std::make_unique_for_overwrite<std::uint8_t[]>(room)),
        size(count) {
    offset[0] = 0;
  }
  std::unique_ptr<std::int64_t[]> offset;
  std::unique_ptr<std::uint8_t[]> data;
  std::int64_t size;  // number of strings
};

// The ids with the prefix in front. A string that starts with it already stays as it is.
OwnedStrings with_prefix(const Strings& ids, std::string_view prefix);
OwnedStrings with_prefix(std::span<const std::int64_t> ids, std::string_view prefix);

// The ids at some positions, in their order.
OwnedStrings take_strings(const Strings& ids, std::span<const std::int64_t> positions);

// The position of the first id that starts with none of the prefixes; -1 if there is none.
std::int64_t find_without_prefix(const Strings& ids, const std::vector<std::string>& prefixes);

// What stands before the first colon of the ids, each once, in the order of appearance.
std::vector<std::string> node_types_of(const Strings& ids);

}  // namespace ohm
