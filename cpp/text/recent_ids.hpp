// The last ids of events, as 64-bit hashes: which rows of a stream repeat an event.
//
// The hashes are in a ring, in the order in which they came first, and in a table with linear probing, which is at
// most half full. At the capacity, a new id replaces the oldest one. So the answer for a row depends only on the rows
// before it, not on batches. Memory: 24 bytes per id at most, if the capacity is a power of two.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ohm {

// A hash of the text of an id. Two different ids have the same with probability 2^-64.
std::uint64_t hash_text(std::string_view text);

class RecentIds {
 public:
  explicit RecentIds(std::size_t capacity) : capacity_(capacity), table_(16, 0) {}

  // Whether each id is new, and remembers those that are.
  std::vector<std::uint8_t> take(std::span<const std::uint64_t> ids);

  // From the oldest to the newest.
  std::vector<std::uint64_t> ids() const;

 private:
  std::size_t find(std::uint64_t id) const;  // where the table has the id, or the free place for it
  void forget(std::uint64_t id);
  void grow();

  std::size_t capacity_;
  std::size_t oldest_ = 0;
  std::vector<std::uint64_t> ring_;
  std::vector<std::uint64_t> table_;  // 0: free
};

}  // namespace ohm
