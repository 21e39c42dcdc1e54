#include "sampling/embedding.hpp"

#include "base/rng.hpp"
#include "check.hpp"

#include <cmath>
#include <vector>

using namespace ohm;

// The 4-cycle 0-1-3-2: summed over nodes 0 and 1, a right-hand side has the factors of the two edges between {0, 1} and
// {2, 3}, and the others cancel. Signs alone would sum to zero in all columns in 1 of 256 rounds.
TEST(rough_sketch_sees_a_cut_of_two_equal_edges) {
  const std::vector<std::int32_t> u = {0, 0, 1, 2}, v = {1, 2, 3, 3};
  const std::vector<float> w(4, 1.0f);
  Triangle cycle = sort_edges(4, u, v, w);
  const Matrix laplacian = make_matrix(cycle, degrees(cycle));
  constexpr int kRounds = 10000;
  double squares = 0.0;
  double least = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const Rows<double, kRoughColumns> y(4);
    rough_right_hand_sides(laplacian, mix(round), y);
    double sum = 0.0;
    for (int c = 0; c < kRoughColumns; ++c) {
      const double cut = y[0][c] + y[1][c];
      CHECK(std::abs(cut + y[2][c] + y[3][c]) < 1e-12);
      sum += cut * cut / kRoughColumns;
    }
    squares += sum / kRounds;
    least = std::min(least, sum);
  }
  // The mean square is 2, with a relative standard deviation of sqrt(2 / 80,000) = 0.5% at most.
  CHECK(std::abs(squares - 2.0) < 0.05);
  CHECK(least > 0.01);  // 0.028 with these keys
}
