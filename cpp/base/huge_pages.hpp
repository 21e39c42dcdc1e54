// Asks Linux for 2 MB pages behind a large allocation, before it is first touched.
//
// Scattering into hundreds of megabytes is bound by page faults and TLB misses; with large pages it is several times
// faster. numpy does the same for its arrays. On other systems this does nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ohm {

inline void prefer_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::size_t worthwhile = std::size_t{1} << 22, page = 4096;
  if (bytes < worthwhile) return;
  const std::size_t skip = (page - reinterpret_cast<std::uintptr_t>(data) % page) % page;
  // Only a hint: without support for large pages everything still works.
  (void)madvise(static_cast<char*>(data) + skip, bytes - skip, MADV_HUGEPAGE);
#endif
}

// Reserves memory for an empty vector.
template <class T>
void reserve_huge(std::vector<T>& values, std::size_t size) {
  values.reserve(size);
  prefer_huge_pages(values.data(), size * sizeof(T));
}

// Resizes an empty vector.
template <class T>
void resize_huge(std::vector<T>& values, std::size_t size) {
  reserve_huge(values, size);
  values.resize(size);
}

// Memory of at least this size comes from here, elsewhere from operator new.
constexpr std::size_t kManyPages = std::size_t{1} << 22;
void* allocate_pages(std::size_t bytes);
void free_pages(void* data, std::size_t bytes) noexcept;

// While it lives, what this thread frees with free_pages is kept, and the next allocations are made of it: Linux moves
// pages to other addresses, so their sizes need not fit. New pages must be cleared first, which took a quarter of
// the time of a resample. What is left goes back to the system at the end.
class RecyclePages {
 public:
  RecyclePages();
  ~RecyclePages();
  RecyclePages(const RecyclePages&) = delete;
  RecyclePages& operator=(const RecyclePages&) = delete;

 private:
  std::vector<std::byte*> chunks_;
};

// A vector of numbers, or of plain structs, that does not set them when it grows, so that the threads which write them
// touch their pages first, and several at a time.
template <class T>
struct Untouched : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = Untouched<U>;
  };
  T* allocate(std::size_t size) {
    if (size * sizeof(T) >= kManyPages) return static_cast<T*>(allocate_pages(size * sizeof(T)));
    return std::allocator<T>::allocate(size);
  }
  void deallocate(T* data, std::size_t size) noexcept {
    if (size * sizeof(T) >= kManyPages) return free_pages(data, size * sizeof(T));
    std::allocator<T>::deallocate(data, size);
  }
  template <class U>
  void construct(U* place) {
    static_assert(std::is_trivially_default_constructible_v<U>);
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Arguments>
  void construct(U* place, Arguments&&... arguments) {
    ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
  }
};
template <class T>
using Buffer = std::vector<T, Untouched<T>>;

// Gives back the pages that are reserved beyond the end.
template <class T>
void drop_tail([[maybe_unused]] Buffer<T>& values) {
#if defined(__linux__)
  constexpr std::size_t page = std::size_t{1} << 21;
  if (values.capacity() * sizeof(T) < kManyPages) return;
  const std::size_t used = (values.size() * sizeof(T) + page - 1) / page * page;
  const std::size_t all = (values.capacity() * sizeof(T) + page - 1) / page * page;
  (void)madvise(reinterpret_cast<char*>(values.data()) + used, all - used, MADV_DONTNEED);
#endif
}

}  // namespace ohm
