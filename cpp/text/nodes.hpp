// Tables that number node ids 0, 1, 2, ... in the order of their first appearance.
//
// Edges are taken one after the other, u before v, so the numbers do not depend on the batches of a stream. Slots of
// the hash tables are prefetched a few edges ahead: a lookup is a cache miss, and several misses overlap.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace ohm {

constexpr std::int64_t kMaxNodes = std::numeric_limits<std::int32_t>::max();

// Thrown when there are more different ids than 32-bit numbers.
struct TooManyNodes {};

// Integer ids. Most are small and dense: those below a few times the number of nodes are stored in an array, all others
// in a hash table with linear probing. A huge id costs no more than a small one.
class IntegerNodes {
 public:
  IntegerNodes();
  std::int64_t size() const { return std::ssize(keys_); }
  std::span<const std::int64_t> keys() const { return keys_; }

  // Writes the numbers of the ids; new ids are added.
  void add_edges(std::span<const std::int64_t> u, std::span<const std::int64_t> v, std::int32_t* to_u,
                 std::int32_t* to_v);
  void add(std::span<const std::int64_t> ids, std::int32_t* to);
  // Writes the numbers of the ids, -1 for unknown ones.
  void find(std::span<const std::int64_t> ids, std::int32_t* to) const;

 private:
  struct Slot {
    std::int64_t key = 0;
    std::int32_t number = -1;  // -1: empty
  };
  bool is_direct(std::int64_t key) const { return static_cast<std::uint64_t>(key) < direct_.size(); }
  std::int64_t slot_of(std::int64_t key) const;
  void prefetch(std::int64_t key) const;
  std::int32_t find(std::int64_t key) const;
  std::int32_t number(std::int64_t key);
  std::int32_t append(std::int64_t key);
  void grow_slots();
  void grow_direct();

  std::vector<std::int64_t> keys_;    // by number
  std::vector<std::int32_t> direct_;  // number by key, -1: unknown
  std::vector<Slot> slots_;           // a power of two, at most half full
  std::int64_t used_ = 0;             // slots
};

// Concatenated strings: string i is data[offset[i]], ..., data[offset[i + 1] - 1], as in Arrow.
struct Strings {
  std::span<const std::int64_t> offset;  // one more than strings
  const char* data = nullptr;
  std::int64_t size() const { return std::ssize(offset) - 1; }
  std::string_view operator[](std::int64_t i) const {
    return {data + offset[i], static_cast<std::size_t>(offset[i + 1] - offset[i])};
  }
};

// Ids that are byte strings. A slot holds the whole of a short string, so a lookup costs one cache miss.
class StringNodes {
 public:
  StringNodes();
  std::int64_t size() const { return std::ssize(offset_) - 1; }
  Strings keys() const { return {offset_, data_.data()}; }
  std::span<const char> bytes() const { return data_; }

  void add_edges(const Strings& u, const Strings& v, std::int32_t* to_u, std::int32_t* to_v);
  void add(const Strings& ids, std::int32_t* to);
  void find(const Strings& ids, std::int32_t* to) const;

 private:
  // Two strings of the same size, up to 16, are equal if their marks are equal. For longer strings marks are hashes.
  struct Mark {
    std::uint64_t head;
    std::uint64_t tail;
    std::uint64_t hash() const;
  };
  struct Slot {
    Mark mark = {};
    std::uint32_t size = 0;
    std::int32_t number = -1;  // -1: empty
  };
  static Mark mark_of(std::string_view key);
  // The position of the slot of the string, or of the empty slot where it belongs.
  std::int64_t slot_of(std::string_view key, const Mark& mark) const;
  std::int32_t number(std::string_view key, const Mark& mark);
  void grow();
  template <class String, class Take>
  void in_groups(std::int64_t count, const String& string, const Take& take) const;

  std::vector<std::int64_t> offset_;
  std::vector<char> data_;
  std::vector<Slot> slots_;  // a power of two, at most half full
};

}  // namespace ohm
