// Rows of a block of vectors as machine vectors, and kernels compiled for several x86-64 levels.
#pragma once

#include "base/huge_pages.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

// The version is chosen at load time; other processors use the plain build. (Sanitizers do not support the choice.)
// A kernel that may throw must not be in the file of its callers: GCC 12 takes the choice there for one that cannot.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define OHM_KERNEL [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define OHM_KERNEL
#endif
#define OHM_INLINE [[gnu::always_inline]] inline

namespace ohm {

// `Width` values of a row, with elementwise operations. A row of one column is a scalar.
template <class Value, int Width>
struct RowOf {
  typedef Value type __attribute__((vector_size(Width * sizeof(Value)), may_alias));
};
template <class Value>
struct RowOf<Value, 1> {
  using type = Value;
};
template <class Value, int Width>
using Row = typename RowOf<Value, Width>::type;

// Storage for rows, aligned to cache lines and not initialised.
template <class Value, int Width>
class Rows {
  using R = Row<Value, Width>;

 public:
  explicit Rows(std::int64_t rows) : bytes_(rows * sizeof(R) + kLine) {}
  operator R*() const {
    const auto skip = (kLine - reinterpret_cast<std::uintptr_t>(bytes_.data()) % kLine) % kLine;
    return reinterpret_cast<R*>(const_cast<std::byte*>(bytes_.data()) + skip);
  }

 private:
  static constexpr std::size_t kLine = 64;
  Buffer<std::byte> bytes_;
};

}  // namespace ohm
