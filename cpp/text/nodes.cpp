#include "text/nodes.hpp"

#include "base/rng.hpp"
#include "base/simd.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace ohm {
namespace {

constexpr std::int64_t kFirstSlots = 1 << 8;
constexpr std::int64_t kFirstDirect = 1 << 12;
constexpr std::int64_t kDirectPerNode = 8;
constexpr std::size_t kAhead = 16;

std::int64_t mask_of(const auto& slots) { return std::ssize(slots) - 1; }

// Both halves of a product depend on all bits of both factors (after wyhash, Wang Yi 2019).
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

constexpr std::uint64_t kOdd0 = 0xa0761d6478bd642full;
constexpr std::uint64_t kOdd1 = 0xe7037ed1a0b428dbull;

template <class Word>
std::uint64_t load(const char* p) {
  Word word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

}  // namespace

// ---- integers -----------------------------------------------------------------------------------

IntegerNodes::IntegerNodes() : direct_(kFirstDirect, -1), slots_(kFirstSlots) {}

inline std::int64_t IntegerNodes::slot_of(std::int64_t key) const {
  const std::int64_t mask = mask_of(slots_);
  std::int64_t at = static_cast<std::int64_t>(mix(static_cast<std::uint64_t>(key))) & mask;
  while (slots_[at].number >= 0 && slots_[at].key != key) at = (at + 1) & mask;
  return at;
}

inline void IntegerNodes::prefetch(std::int64_t key) const {
  if (is_direct(key)) {
    __builtin_prefetch(&direct_[key]);
  } else {
    __builtin_prefetch(&slots_[static_cast<std::int64_t>(mix(static_cast<std::uint64_t>(key))) & mask_of(slots_)]);
  }
}

inline std::int32_t IntegerNodes::find(std::int64_t key) const {
  return is_direct(key) ? direct_[key] : slots_[slot_of(key)].number;
}

inline std::int32_t IntegerNodes::number(std::int64_t key) {
  const std::int32_t found = find(key);
  return found >= 0 ? found : append(key);
}

std::int32_t IntegerNodes::append(std::int64_t key) {
  if (size() >= kMaxNodes) throw TooManyNodes{};
  if (!is_direct(key) && 2 * (used_ + 1) > std::ssize(slots_)) grow_slots();
  const auto number = static_cast<std::int32_t>(size());
  keys_.push_back(key);  // nothing after this line throws
  if (is_direct(key)) {
    direct_[key] = number;
  } else {
    slots_[slot_of(key)] = {key, number};
    ++used_;
  }
  if (kDirectPerNode * size() > 2 * std::ssize(direct_)) grow_direct();
  return number;
}

void IntegerNodes::grow_slots() {
  std::vector<Slot> old;
  resize_huge(old, 2 * slots_.size());
  old.swap(slots_);
  used_ = 0;
  for (const Slot& slot : old) {
    if (slot.number < 0 || is_direct(slot.key)) continue;  // these are in the array now
    slots_[slot_of(slot.key)] = slot;
    ++used_;
  }
}

void IntegerNodes::grow_direct() {
  const std::int64_t begin = std::ssize(direct_);
  std::vector<std::int32_t> larger;
  reserve_huge(larger, 2 * begin);
  larger.assign(direct_.begin(), direct_.end());
  larger.resize(2 * begin, -1);
  direct_ = std::move(larger);
  for (std::int64_t i = 0; i < size(); ++i) {
    if (keys_[i] >= begin && is_direct(keys_[i])) direct_[keys_[i]] = static_cast<std::int32_t>(i);
  }
}

// Calls take(i) for each i below `count`, and fetch(i) well before.
template <class Fetch, class Take>
OHM_INLINE void ahead(std::size_t count, const Fetch& fetch, const Take& take) {
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) fetch(i + kAhead);
    take(i);
  }
}

void IntegerNodes::add_edges(std::span<const std::int64_t> u, std::span<const std::int64_t> v, std::int32_t* to_u,
                             std::int32_t* to_v) {
  ahead(u.size(), [&](std::size_t i) { prefetch(u[i]), prefetch(v[i]); },
        [&](std::size_t i) { to_u[i] = number(u[i]), to_v[i] = number(v[i]); });
}

void IntegerNodes::add(std::span<const std::int64_t> ids, std::int32_t* to) {
  ahead(ids.size(), [&](std::size_t i) { prefetch(ids[i]); }, [&](std::size_t i) { to[i] = number(ids[i]); });
}

void IntegerNodes::find(std::span<const std::int64_t> ids, std::int32_t* to) const {
  ahead(ids.size(), [&](std::size_t i) { prefetch(ids[i]); }, [&](std::size_t i) { to[i] = find(ids[i]); });
}

// ---- strings ------------------------------------------------------------------------------------

StringNodes::StringNodes() : offset_(1, 0), slots_(kFirstSlots) {}

inline std::uint64_t StringNodes::Mark::hash() const { return fold(head ^ kOdd0, tail ^ kOdd1); }

inline StringNodes::Mark StringNodes::mark_of(std::string_view key) {
  const char* p = key.data();
  const std::size_t size = key.size();
  // The first and the last bytes, which together cover the whole string.
  if (size <= 16) {
    if (size >= 8) return {load<std::uint64_t>(p), load<std::uint64_t>(p + size - 8)};
    if (size >= 4) return {load<std::uint32_t>(p), load<std::uint32_t>(p + size - 4) + (std::uint64_t{size} << 32)};
    if (size >= 2) return {load<std::uint16_t>(p), load<std::uint16_t>(p + size - 2) + (std::uint64_t{size} << 32)};
    return {size == 1 ? load<std::uint8_t>(p) : 0, std::uint64_t{size} << 32};
  }
  std::uint64_t hash = kOdd0 ^ size;
  for (std::size_t at = 0; at + 8 < size; at += 8) hash = fold(hash ^ load<std::uint64_t>(p + at), kOdd1);
  return {hash, fold(hash ^ load<std::uint64_t>(p + size - 8), kOdd0)};
}

inline std::int64_t StringNodes::slot_of(std::string_view key, const Mark& mark) const {
  const std::int64_t mask = mask_of(slots_);
  std::int64_t at = static_cast<std::int64_t>(mark.hash()) & mask;
  for (; slots_[at].number >= 0; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.mark.head != mark.head || slot.mark.tail != mark.tail) continue;
    if (slot.size != static_cast<std::uint32_t>(key.size())) continue;
    if (key.size() <= 16 || keys()[slot.number] == key) break;
  }
  return at;
}

std::int32_t StringNodes::number(std::string_view key, const Mark& mark) {
  std::int64_t at = slot_of(key, mark);
  if (slots_[at].number >= 0) return slots_[at].number;
  if (size() >= kMaxNodes) throw TooManyNodes{};
  if (2 * (size() + 1) > std::ssize(slots_)) {
    grow();
    at = slot_of(key, mark);
  }
  const auto number = static_cast<std::int32_t>(size());
  data_.resize(offset_.back());  // a call that failed here may have left bytes
  data_.insert(data_.end(), key.begin(), key.end());
  offset_.push_back(std::ssize(data_));
  slots_[at] = {mark, static_cast<std::uint32_t>(key.size()), number};  // last, because it cannot throw
  return number;
}

void StringNodes::grow() {
  std::vector<Slot> larger;
  resize_huge(larger, 2 * slots_.size());
  const std::int64_t mask = mask_of(larger);
  for (const Slot& slot : slots_) {
    if (slot.number < 0) continue;
    std::int64_t at = static_cast<std::int64_t>(slot.mark.hash()) & mask;
    while (larger[at].number >= 0) at = (at + 1) & mask;
    larger[at] = slot;
  }
  slots_ = std::move(larger);
}

// Computes the marks of a group of strings before it reads their slots, so that cache misses overlap. Long strings are
// compared with those in the table, whose offsets and bytes are prefetched, too. `string(i)` is the i-th of `count`
// strings; `take(i, string, mark)` is called for each in order.
template <class String, class Take>
void StringNodes::in_groups(std::int64_t count, const String& string, const Take& take) const {
  constexpr std::int64_t kGroup = 32;
  std::array<Mark, kGroup> mark;
  std::array<std::int64_t, kGroup> long_one;
  std::array<std::int32_t, kGroup> known;
  for (std::int64_t begin = 0; begin < count; begin += kGroup) {
    const std::int64_t size = std::min(kGroup, count - begin);
    std::int64_t n_long = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const std::string_view key = string(begin + i);
      mark[i] = mark_of(key);
      __builtin_prefetch(&slots_[static_cast<std::int64_t>(mark[i].hash()) & mask_of(slots_)]);
      if (key.size() > 16) long_one[n_long++] = i;
    }
    for (std::int64_t k = 0; k < n_long; ++k) {
      const std::int32_t number = slots_[static_cast<std::int64_t>(mark[long_one[k]].hash()) & mask_of(slots_)].number;
      known[k] = std::max(number, 0);
      __builtin_prefetch(&offset_[known[k]]);
    }
    for (std::int64_t k = 0; k < n_long; ++k) __builtin_prefetch(data_.data() + offset_[known[k]]);
    for (std::int64_t i = 0; i < size; ++i) take(begin + i, string(begin + i), mark[i]);
  }
}

void StringNodes::add_edges(const Strings& u, const Strings& v, std::int32_t* to_u, std::int32_t* to_v) {
  in_groups(
      2 * u.size(), [&](std::int64_t i) { return i % 2 == 0 ? u[i / 2] : v[i / 2]; },
      [&](std::int64_t i, std::string_view key, const Mark& mark) {
        (i % 2 == 0 ? to_u : to_v)[i / 2] = number(key, mark);
      });
}

void StringNodes::add(const Strings& ids, std::int32_t* to) {
  in_groups(
      ids.size(), [&](std::int64_t i) { return ids[i]; },
      [&](std::int64_t i, std::string_view key, const Mark& mark) { to[i] = number(key, mark); });
}

void StringNodes::find(const Strings& ids, std::int32_t* to) const {
  in_groups(
      ids.size(), [&](std::int64_t i) { return ids[i]; },
      [&](std::int64_t i, std::string_view key, const Mark& mark) { to[i] = slots_[slot_of(key, mark)].number; });
}

}  // namespace ohm
