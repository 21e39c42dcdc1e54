#include "text/recent_ids.hpp"

#include "base/rng.hpp"

#include <algorithm>
#include <cstring>

namespace ohm {

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t result = mix(text.size());
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint64_t part = 0;
    std::memcpy(&part, text.data() + at, std::min<std::size_t>(8, text.size() - at));
    result = hash(result, part);
  }
  return result == 0 ? 1 : result;  // 0 marks a free place
}

std::vector<std::uint8_t> RecentIds::take(std::span<const std::uint64_t> ids) {
  std::vector<std::uint8_t> is_new(ids.size(), 0);
  for (std::size_t row = 0; row < ids.size(); ++row) {
    std::size_t at = find(ids[row]);
    if (table_[at] != 0) continue;
    is_new[row] = 1;
    if (ring_.size() < capacity_) {
      ring_.push_back(ids[row]);
      table_[at] = ids[row];
      if (2 * ring_.size() > table_.size()) grow();
    } else {
      forget(ring_[oldest_]);
      ring_[oldest_] = ids[row];
      oldest_ = (oldest_ + 1) % capacity_;
      table_[find(ids[row])] = ids[row];
    }
  }
  return is_new;
}

std::vector<std::uint64_t> RecentIds::ids() const {
  std::vector<std::uint64_t> found(ring_.begin() + static_cast<std::ptrdiff_t>(oldest_), ring_.end());
  found.insert(found.end(), ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(oldest_));
  return found;
}

std::size_t RecentIds::find(std::uint64_t id) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t at = id & mask;
  while (table_[at] != 0 && table_[at] != id) at = (at + 1) & mask;
  return at;
}

// Removes an id, and moves those behind it that would not be found any more.
void RecentIds::forget(std::uint64_t id) {
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = find(id);
  for (std::size_t at = (hole + 1) & mask; table_[at] != 0; at = (at + 1) & mask) {
    const std::size_t home = table_[at] & mask;
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      table_[hole] = table_[at];
      hole = at;
    }
  }
  table_[hole] = 0;
}

void RecentIds::grow() {
  std::vector<std::uint64_t> larger(2 * table_.size(), 0);
  table_.swap(larger);
  for (const std::uint64_t id : ring_) table_[find(id)] = id;
}

}  // namespace ohm
