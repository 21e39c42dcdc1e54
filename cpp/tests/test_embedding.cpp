#include "check.hpp"

#include "embedding.hpp"
#include "rng.hpp"

#include <cmath>
#include <vector>

using namespace ohm;

// The 4-cycle 0-1-3-2: summed over nodes 0 and 1, a right-hand side has the factors of the two edges between
// {0, 1} and {2, 3}, and the others cancel. Signs alone would sum to zero in all columns in 1 of 256 rounds.
TEST(rough_sketch_sees_a_cut_of_two_equal_edges) {
  const std::vector<std::int64_t> indptr = {0, 2, 4, 6, 8};
  const std::vector<std::int32_t> indices = {1, 2, 0, 3, 0, 3, 1, 2};
  const std::vector<double> weights(8, 1.0);
  const CsrView cycle{4, indptr.data(), indices.data(), weights.data()};
  constexpr int kRounds = 10000;
  double squares = 0.0;
  double least = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> y(4 * kRoughColumns);
    rough_right_hand_sides(cycle, mix(round), 1, y.data());
    double sum = 0.0;
    for (int c = 0; c < kRoughColumns; ++c) {
      const double cut = y[c] + y[kRoughColumns + c];
      CHECK(std::abs(cut + y[2 * kRoughColumns + c] + y[3 * kRoughColumns + c]) < 1e-12);
      sum += cut * cut / kRoughColumns;
    }
    squares += sum / kRounds;
    least = std::min(least, sum);
  }
  // The mean square is 2, with a relative standard deviation of sqrt(2 / 80,000) = 0.5% at most.
  CHECK(std::abs(squares - 2.0) < 0.05);
  CHECK(least > 0.01);  // 0.028 with these keys
}
