// Effective resistances from a random projection (Spielman and Srivastava 2008).
//
// R_uv = |x|^2 for x = W^1/2 B L+ (e_u - e_v), one entry per edge of the graph. With random signs s, z = L+ B' W^1/2 s
// has (z_u - z_v) = s'x, and the mean of (z_u - z_v)^2 over q draws estimates R_uv with relative variance up to 2/q.
// For an edge e of the graph, s_e (z_u - z_v) / sqrt(w_e) is a second estimate, whose relative variance is (1 - t)/(t
// q) with t = w_e R_e: it is exact for bridges. The covariance of the two is known too, so they can be combined
// (resistance.py).
#pragma once

#include "base/simd.hpp"
#include "graph/csr.hpp"
#include "solver/matrix.hpp"

#include <cstdint>
#include <span>

namespace ohm {

// Signs are a hash of (seed, round, edge): a round has this many columns.
constexpr int kSketchColumns = 16;

// y = B' W^1/2 s, row-major (n, kSketchColumns).
void sketch_right_hand_sides(const CsrView& graph, std::uint64_t seed, std::uint64_t round, int threads, double* y);

// The same with fewer columns, for coins; s has random magnitudes as well. With eight columns, signs alone would cancel
// across a cut of two equal edges in all columns once in 256 draws. The edges would then seem to have no resistance.
constexpr int kRoughColumns = 8;
void rough_right_hand_sides(const Matrix& laplacian, std::uint64_t key, Row<double, kRoughColumns>* y,
                            Crew& crew = alone);

// Adds sum over columns of (z_u - z_v)^2 to squares[i] for each pair i; where w is not empty, the pairs are edges of
// weight w[i], and sum of s_e (z_u - z_v) / sqrt(w_e) is added to products[i].
void add_estimates(const double* z, std::span<const std::int32_t> u, std::span<const std::int32_t> v,
                   std::span<const double> w, std::uint64_t seed, std::uint64_t round, int threads, double* squares,
                   double* products);

}  // namespace ohm
