#include "base/exponential.hpp"

#include <algorithm>

namespace ohm {

OHM_KERNEL void exponentials(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = std::max(exponential(x[i]), 0x1.0p-126f);
}

}  // namespace ohm
