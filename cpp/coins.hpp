// The coins of the sampler: from the records of two nodes to the leverage of an edge, and to its fate.
//
// The resistance between u and v is estimated by floor + max(0, sketch - 1.5 floor): the sketch is |z_u - z_v|^2,
// the floor is the resistance with all other nodes shorted, which follows from degrees. It removes the harmful
// underestimates of a sketch of only eight columns, for free; coins.cpp says why it is taken away one and a half
// times. Degrees are kept up to date between embeddings, so that the first floor falls as edges arrive, and
// fewer of them are kept; only what the sketch is above its own floor is old.
#pragma once

#include "csr.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace ohm {

// What a coin needs to know of a node, in one cache line.
struct alignas(64) NodeRecord {
  static constexpr int kColumns = 8;
  float z[kColumns] = {};       // R_uv ~ |z_u - z_v|^2
  float degree = 0;             // weighted, in H as it was embedded
  float degree_now = 0;         // with what has been kept since
  float share = 0;              // in the floor of a resistance: 1 / degree
  float share_now = 0;
  float distance = std::numeric_limits<float>::infinity();  // |z - centre|^2, see measure_distances
  std::int32_t component = -1;  // -1: has no embedding yet
};

// Rows hold floats. Positive weights below the first count as zero, those above the second are refused: sums of
// 10^11 of them still fit.
constexpr double kSmallestWeight = 0x1.0p-126;
constexpr double kLargestWeight = 1e27;

// The first edge that cannot be taken: a node id below 0 or from `limit` on, a weight that is negative, not a
// number, or too large.
template <class Index, class Weight>
std::optional<EdgeFault> find_fault(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w,
                                    std::int64_t limit, int threads = 1);

struct KeptEdge {
  std::int64_t at;  // in the batch
  std::int32_t u;
  std::int32_t v;
  float w;
};

// For each node a bound of its part in any estimate of a resistance: R_uv <= share_u + share_v, because
// |z_u - z_v|^2 <= 2 |z_u - centre|^2 + 2 |z_v - centre|^2. Infinite outside the largest component, so that two
// finite ones belong to nodes that H joins.
std::vector<float> bound_shares(std::span<const NodeRecord> nodes);

// The centre is that of the largest component; elsewhere distances are infinite.
void measure_distances(std::span<NodeRecord> nodes);

// Tosses independent coins for edges begin..end of a batch whose first has number `position` in the stream and
// appends those kept, with their new weight. An edge that is not in H has leverage w / (w + C) once added, C the
// conductance of H between its ends; it is kept with probability beta times that, and for certain where C is
// zero: between components, or at a node that has no embedding yet. Most coins are settled by the bound alone,
// which takes two floats instead of two records; what is kept does not depend on it.
template <class Index, class Weight>
void toss_edges(std::span<const Index> u, std::span<const Index> v, std::span<const Weight> w, std::int64_t begin,
                std::int64_t end, std::int64_t position, std::uint64_t key, float beta, const NodeRecord* nodes,
                const float* share, std::vector<KeptEdge>& kept);

// Leverages w R of the edges of H itself.
void row_leverages(const Triangle& h, const NodeRecord* nodes, float* leverage);

// Sets the leverage of the edges of a spanning forest of H to kCertain: whatever the sketch says, H stays connected
// where it is. Edges of high leverage go first. Chosen before any coin, the forest does not bias H.
constexpr float kCertain = 1e30f;
void keep_forest(const Triangle& h, std::int32_t n_components, std::span<float> leverage);

// Which edges of H to keep, each with its own chance.
//
// Sampling is systematic: every edge belongs to one of its ends, at random, and a node goes through the edges it
// owns, adding up chances from a random start and keeping an edge whenever the sum passes an integer. An edge is
// kept with its chance exactly, but a node gets as many edges as its chances add up to, within one. In dense
// graphs the error of degrees is most of the error of H: with independent coins epsilon is a quarter larger.
std::vector<char> choose_rows(const Triangle& h, const float* chance, std::uint64_t key);

}  // namespace ohm
