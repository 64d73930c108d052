#include "sim/training/planning_costs.h"

#include <algorithm>

#include "base/status_macros.h"
#include "sim/training/role_pricer.h"

namespace orrery::training {
namespace {

std::int64_t PicosecondsOf(const PricedPass& pass) {
  Time sum;
  for (const PricedOperator& op : pass.operators) sum += op.lead + op.duration;
  return sum.count();
}

std::int64_t KeptAfter(const PricedPass& pass) { return pass.footprint.left.total().count(); }

}  // namespace

absl::StatusOr<schedules::PlanningCosts> PlanningCostsOf(const Plan& plan) {
  const v1::Accelerator& accelerator = plan.run.cluster().accelerator();
  const kernels::KernelPrices kernels(accelerator, plan.run.training().precision());
  const collectives::CollectivePrices collectives = CollectivePricesOf(plan);
  SpecPricer pricer(plan, kernels, collectives);
  schedules::PlanningCosts costs;
  costs.stages.clear();
  costs.memory = {.forward = 0, .weight = 0};
  for (const PricedChunk* stage : pricer.nominal_stages()) {
    costs.stages.push_back({.forward = PicosecondsOf(stage->forward),
                            .input_gradient = PicosecondsOf(stage->input_gradient),
                            .weight_gradient = PicosecondsOf(stage->weight_gradient)});
    // A backward pass that computes activations again may keep more for W than the forward pass had kept.
    const std::int64_t kept_for_weights = -KeptAfter(stage->weight_gradient);
    costs.memory.forward = std::max({costs.memory.forward, KeptAfter(stage->forward), kept_for_weights});
    costs.memory.weight = std::max(costs.memory.weight, kept_for_weights);
  }
  for (std::int32_t rank = 0; rank < plan.pp; ++rank) {
    for (const Communication& message : pricer.PricesOf({.pp = rank}).message) {
      costs.latency = std::max(costs.latency, message.duration.count());
    }
  }
  ABSL_RETURN_IF_ERROR(collectives.status());
  return costs;
}

}  // namespace orrery::training
