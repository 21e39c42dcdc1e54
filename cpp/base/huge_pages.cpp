#include "base/huge_pages.hpp"

#include <algorithm>
#include <new>

namespace ohm {

#if defined(__linux__)
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 21;  // of a large page, and so in one mapping
thread_local std::vector<std::byte*>* recycled = nullptr;  // free chunks, the next one last

std::size_t whole_chunks(std::size_t bytes) { return (bytes + kChunk - 1) / kChunk * kChunk; }

std::byte* map(void* at, std::size_t size, int flags) {
  void* data = mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(data);
}

}  // namespace

void* allocate_pages(std::size_t bytes) {
  if (bytes > std::size_t{1} << 60) throw std::bad_alloc();
  const std::size_t size = whole_chunks(bytes);
  std::byte* data = map(nullptr, size + kChunk, 0);
  const std::size_t skip = (kChunk - reinterpret_cast<std::uintptr_t>(data) % kChunk) % kChunk;
  if (skip > 0) munmap(data, skip);
  data += skip;
  munmap(data + size, kChunk - skip);
  prefer_huge_pages(data, size);
  for (std::byte* to = data; recycled != nullptr && !recycled->empty() && to < data + size; to += kChunk) {
    std::byte* chunk = recycled->back();
    recycled->pop_back();
    if (mremap(chunk, kChunk, kChunk, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
      munmap(chunk, kChunk);
      map(to, kChunk, MAP_FIXED);
    }
  }
  return data;
}

void free_pages(void* data, std::size_t bytes) noexcept {
  auto* first = static_cast<std::byte*>(data);
  std::size_t size = whole_chunks(bytes);
  try {
    for (; recycled != nullptr && size > 0; size -= kChunk) recycled->push_back(first + size - kChunk);
  } catch (const std::bad_alloc&) {
    // What is not kept is given back.
  }
  if (size > 0) munmap(first, size);
}

RecyclePages::RecyclePages() {
  if (recycled == nullptr) recycled = &chunks_;
}

RecyclePages::~RecyclePages() {
  if (recycled == &chunks_) recycled = nullptr;
  for (std::byte* chunk : chunks_) munmap(chunk, kChunk);
}
#else
void* allocate_pages(std::size_t bytes) { return ::operator new(bytes); }
void free_pages(void* data, std::size_t) noexcept { ::operator delete(data); }
RecyclePages::RecyclePages() = default;
RecyclePages::~RecyclePages() = default;
#endif

}  // namespace ohm
