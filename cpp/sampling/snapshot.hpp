// What a sampler gives for its edges so far.
#pragma once

#include "graph/csr.hpp"

namespace ohm {

struct Snapshot {
  Triangle h;
  bool is_whole = false;  // no edge was dropped, except those that do not count any more
};

}  // namespace ohm
