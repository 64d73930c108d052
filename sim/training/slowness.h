// How much more slowly than nominal each GPU computes: slow GPUs that the spec names, and sampled jitter.
#ifndef ORRERY_SIM_TRAINING_SLOWNESS_H_
#define ORRERY_SIM_TRAINING_SLOWNESS_H_

#include <cstdint>
#include <map>

#include "sim/training/plan.h"

namespace orrery::training {

class Slowness {
 public:
  explicit Slowness(const Plan& plan);

  // Factor on the duration of the rank's kernels. A sampled factor is 1 + sigma x a standard normal draw, rounded to a
  // multiple of 2^-8 so that ranks of one speed share a program, and at least 2^-8.
  double Of(std::int64_t rank) const;

  bool sampled() const { return sampled_; }
  // Named slow GPUs, by rank.
  const std::map<std::int64_t, double>& slow() const { return slow_; }

 private:
  double sigma_ = 0;
  std::uint64_t seed_ = 0;
  std::map<std::int64_t, double> slow_;
  bool sampled_ = false;
};

// Share of compute time by which the slowest of `ranks` GPUs is expected to be slower than the mean: sigma x E[max of n
// draws]; 0 unless jitter is EXPECTED.
double ExpectedSlowness(const Plan& plan, std::int64_t ranks);

// Seconds by which the last of all hosts is expected to begin an iteration after the mean: launch skew x E[max of n
// draws]; 0 without jitter. Drawn anew in every iteration, so that sampled jitter, which is a rank's own, has none of
// it: there it is expected too.
double ExpectedSkewSeconds(const Plan& plan);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_SLOWNESS_H_
