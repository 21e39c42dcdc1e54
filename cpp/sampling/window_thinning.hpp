// Thinning out rows with times, such that the rows since any t0 stay a sparsifier of what the rows since t0 were.
//
// The rows are visited from the newest to the oldest, in groups in which the total weight grows by kGroupGrowth. The
// resistance of a row is that of the graph of the rows that are not older than itself. It is estimated as elsewhere
// (estimates.hpp), from the graph of the newer groups alone (leverages.hpp), and degrees and cuts of exactly the rows
// that are not older. More rows only lower resistances, so the estimate is rather too large. An estimate from a graph
// with older rows would be too small after a change of structure: a long edge of a ring seems redundant if random edges
// came before the ring. Too large estimates cost rows, so a group ends early when they have cost too many.
//
// A forest is kept for certain, in which newer rows are preferred: so for every t0 the rows since t0 are as connected
// as they were. The newest row of each pair of nodes is certain, too, while the pairs are few. Chances are rounded in
// the order of the visit such that the weights at each node and of each pair stay balanced (balanced_coins.hpp); so they
// are balanced in every window.
#pragma once

#include "sampling/rows.hpp"

#include <cstdint>

namespace ohm {

// Thins out the rows from number `oldest` on, which are in the order of time. A row is kept with probability
// min(1, beta w R), except that some of the newest rows, and the newest ones of some pairs, at most `most` each, are
// certain. Returns the newest time of a row that was not kept for certain, or minus infinity. If memory runs out, the
// rows are unchanged.
double thin_rows(EdgeRows& rows, std::int64_t oldest, std::int32_t n_nodes, double beta, std::int64_t most,
                 std::uint64_t key, int threads);

}  // namespace ohm
