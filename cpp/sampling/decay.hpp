// Weights that fade: after each half-life h, an edge counts half as much.
//
// At time T, an edge of time t and weight w has the weight w 2^(-(T - t) / h), and none when it is older than 40
// half-lives. Between different T all weights differ by the same factor only, and leverages do not depend on it. So the
// sampler stores w 2^((t - e) / h) for a fixed time e ("forward decay", Cormode et al. 2009), and late edges need
// nothing special. Such weights grow with time. Time is therefore divided into epochs of 40 half-lives, and e is the
// end of the epoch of the latest edge. When an edge of a later epoch arrives, all weights are multiplied by 2^-40 for
// each epoch, which is exact. The epochs do not depend on the stream, so that two samplers can be merged.
#pragma once

#include "graph/edges.hpp"

#include <cstdint>
#include <span>

namespace ohm {

// Half-lives after which an edge is gone, and the length of an epoch.
constexpr double kFaded = 40.0;
// The most half-lives between time zero and an edge: a double then still resolves a thousandth of one.
constexpr double kMostHalfLives = 0x1.0p40;
// Positive weights below this count as zero. Larger ones can be stored for at least 20 half-lives: they are multiplied
// by at least 2^-60 in that time, and a float goes down to 2^-126.
constexpr double kSmallestFading = 0x1.0p-66;

// The epoch of a time, and where an epoch ends; the end belongs to the next epoch.
std::int64_t find_epoch(double time, double half_life);
double end_of_epoch(std::int64_t epoch, double half_life);

// What weights are multiplied by when so many epochs have passed: 2^(-40 epochs), or 0 if that is too small.
double fading_factor(std::int64_t epochs);

struct Faded {
  std::int64_t count = 0;  // edges whose weight is zero because of their time
  double newest = 0.0;     // time; -infinity if there are no edges
};

// Writes w[i] 2^((t[i] - at) / half_life) to `faded`, zero for edges of times before `earliest`, which is at most 100
// half-lives before `at`, or after `at`.
template <class Weight>
Faded fade_weights(std::span<const Weight> w, std::span<const double> t, double at, double earliest, double half_life,
                   float* faded);

}  // namespace ohm
