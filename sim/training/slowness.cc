#include "sim/training/slowness.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "base/random.h"

namespace orrery::training {
namespace {

constexpr double kSpeedSteps = 256;

}  // namespace

Slowness::Slowness(const Plan& plan) {
  if (plan.Without(v1::CAUSE_JITTER)) return;
  const v1::Jitter& jitter = plan.run.perturbation().jitter();
  sigma_ = jitter.sigma();
  seed_ = static_cast<std::uint64_t>(jitter.seed());
  sampled_ = jitter.mode() == v1::SAMPLED;
  for (const v1::SlowGpu& gpu : plan.run.perturbation().slow_gpus()) slow_[gpu.rank()] = gpu.factor();
}

double Slowness::Of(std::int64_t rank) const {
  const auto slow = slow_.find(rank);
  double slowness = slow == slow_.end() ? 1 : slow->second;
  if (sampled_) {
    const double steps = std::round(sigma_ * StandardNormal(seed_, static_cast<std::uint64_t>(rank)) * kSpeedSteps);
    slowness *= std::max(1 + steps / kSpeedSteps, 1 / kSpeedSteps);
  }
  return slowness;
}

double ExpectedSlowness(const Plan& plan, std::int64_t ranks) {
  const v1::Jitter& jitter = plan.run.perturbation().jitter();
  if (jitter.mode() != v1::EXPECTED || plan.Without(v1::CAUSE_JITTER)) return 0;
  return jitter.sigma() * ExpectedMaximumOfNormals(ranks);
}

double ExpectedSkewSeconds(const Plan& plan) {
  if (plan.run.perturbation().jitter().mode() == v1::NO_JITTER || plan.Without(v1::CAUSE_JITTER)) return 0;
  const v1::HostProfile& host = plan.run.cluster().accelerator().profile().host();
  return host.launch_skew().value() * ExpectedMaximumOfNormals(plan.world);
}

}  // namespace orrery::training
