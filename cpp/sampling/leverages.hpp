// What a resample must know of a graph: degrees, clusters, a sketch of its resistances, and from them leverages.
#pragma once

#include "graph/csr.hpp"
#include "sampling/estimates.hpp"
#include "solver/matrix.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace ohm {

// What the solver needs of the Laplacian of a graph, without the matrix.
struct Laplacian {
  NullSpace space;
  std::vector<double> degree;
  ClusterTree tree;

  explicit Laplacian(const Triangle& h, Crew& crew = alone);
  double rank() const { return static_cast<double>(degree.size()) - static_cast<double>(space.singular.size()); }
};

// Sets all but the sketch in the records of the nodes. There may be more records than the graph has nodes.
void record_nodes(const Laplacian& laplacian, std::span<NodeRecord> nodes);

// Sets the sketch of the resistances. A coordinate that is not finite, because the contrast of weights is too large for
// the solver, is set to zero, so that the floors are used. During the solve the edges are stored only in the matrix.
// Records that are missing are made after it.
void sketch_nodes(Triangle& h, const Laplacian& laplacian, std::uint64_t key, Crew& crew,
                  std::vector<NodeRecord>& nodes);

struct Leverages {
  Buffer<float> of_edges;   // of h, corrected
  double correction = 1.0;  // the factor by which all were multiplied
};

// Leverages of the edges of a graph whose records hold a sketch, corrected if their sum shows that they are wrong.
//
// An edge whose leverage is at least `certain` is kept for certain. If the sum of w times the sketch differs much from
// the rank, the solve has failed, because the contrast of weights is too large even for doubles: the sketch is set to
// zero and only the floors are used. If some edges have sketches far above their floors, several sketches are averaged.
// Edges between two distant parts of the graph have nearly equal sketches, so their errors are correlated. A single
// sketch that is too small would drop many of them at once. If the sum of the estimates is less than the rank, all are
// multiplied by the same correction. Too large a sum only costs memory.
//
// `use_sketch(part)` is called for each sketch that is used, while it is in the records; the parts add up to 1.
// `unexplained` is the leverage of other pairs for which it is used, as far as they are far above their floors.
Leverages estimate_leverages(Triangle& h, const Laplacian& laplacian, float certain, std::uint64_t key, Crew& crew,
                             std::vector<NodeRecord>& nodes,
                             const std::function<void(float)>& use_sketch = [](float) {}, double unexplained = 0.0);

}  // namespace ohm
