// Thinning out rows with times, such that the rows since any t0 stay a sparsifier of what the rows since t0 were.
//
// The rows are visited from the newest to the oldest, in groups in which the total weight grows by kGroupGrowth. For each
// group the graph of the newer rows that have been kept and of all rows of the group is embedded (leverages.hpp). The
// resistance of a row is that of the graph of the rows that are not older than itself. It is estimated as elsewhere
// (estimates.hpp), with two changes. The floor uses the degrees and cuts of exactly these rows; so a part of the graph
// whose edges came in a short time, all in one group, is treated right. And the part of the sketch above the floor is
// multiplied by the weight of the group's graph over the weight of these rows.
//
// A forest is kept for certain, in which newer rows are preferred: so for every t0 the rows since t0 are as connected as
// they were. Chances are rounded in the order of the visit such that the weights at each node stay balanced
// (balanced_coins.hpp); so they are balanced in every window.
#pragma once

#include "base/huge_pages.hpp"

#include <cstdint>
#include <vector>

namespace ohm {

struct TimedRows {
  Buffer<std::int32_t> u, v;
  Buffer<float> w;
  Buffer<float> chance;  // with which each row has been kept so far
  Buffer<double> time;

  std::int64_t size() const { return static_cast<std::int64_t>(u.size()); }
  void reserve(std::int64_t rows);
  void resize(std::int64_t rows);
  void append(const TimedRows& other);
  // Brings the rows into the order of time and drops those before `earliest`. Rows of equal times stay in their order.
  void sort(double earliest);
};

// Thins out the rows from number `oldest` on, which are in the order of time. A row is kept with probability
// min(1, beta w R), except that some of the newest rows, at most `most`, are certain. Returns the newest time of a row that was not kept for certain, or minus infinity. If memory runs
// out, the rows are unchanged.
double thin_rows(TimedRows& rows, std::int64_t oldest, std::int32_t n_nodes, double beta, std::int64_t most,
                 std::uint64_t key, int threads);

}  // namespace ohm
