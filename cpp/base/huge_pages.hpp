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
#include <malloc.h>
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

// A vector of numbers, or of plain structs, that does not set them when it grows, so that the threads which write them
// touch their pages first, and several at a time.
template <class T>
struct Untouched : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = Untouched<U>;
  };
  T* allocate(std::size_t size) {
    T* data = std::allocator<T>::allocate(size);
    prefer_huge_pages(data, size * sizeof(T));
    return data;
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

// Returns freed memory to the system. glibc keeps freed blocks of up to 32 MB and fragments them, so a process that
// allocates and frees such blocks repeatedly would seem to grow.
inline void return_freed_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace ohm
