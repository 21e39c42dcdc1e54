#include "base/exponential.hpp"

namespace ohm {

OHM_KERNEL void exponentials(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = exponential(x[i]);
}

}  // namespace ohm
