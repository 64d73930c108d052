// Korthikanti et al. 2022, Table 4: one layer of the 22B model on eight A100, four sequences, forward and backward
// times under five ways of keeping activations. The price of the layer, without jitter, stays within a tenth of each.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/training/role_pricer.h"
#include "tests/sim/training/example_runs.h"

namespace orrery::training {
namespace {

struct LayerTimes {
  double forward_ms = 0;
  double backward_ms = 0;
};

// Operators of the first layer, exposed communication included.
double LayerMilliseconds(const PricedPass& pass) {
  Time sum;
  for (const PricedOperator& op : pass.operators) {
    if (op.layer == 0) sum += op.duration;
  }
  return SecondsFromTime(sum) * 1e3;
}

LayerTimes TimesOf(const std::vector<std::string>& overrides) {
  std::vector<std::string> all = {"perturbation.jitter={mode: NO_JITTER}"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const v1::Run run = testing::Example("korthikanti_22b", all);
  const Plan plan = *MakePlan(run);
  const v1::Accelerator& accelerator = run.cluster().accelerator();
  const kernels::KernelPrices kernels(accelerator, run.training().precision());
  const collectives::CollectivePrices collectives = CollectivePricesOf(plan);
  const SpecPricer pricer(plan, kernels, collectives);
  const PricedChunk& chunk = *pricer.nominal_stages().front();
  return {.forward_ms = LayerMilliseconds(chunk.forward), .backward_ms = LayerMilliseconds(chunk.backward)};
}

TEST(LayerTimes, FiveVariantsOfTable4) {
  struct Variant {
    const char* name;
    std::vector<std::string> overrides;
    LayerTimes measured;
  };
  const std::string no_sequence = "parallelism.sequence_parallel=false";
  const std::vector<Variant> variants = {
      {"baseline", {no_sequence, "training.recompute=NONE"}, {7.7, 11.9}},
      {"sequence parallelism", {"training.recompute=NONE"}, {7.2, 11.8}},
      {"full recomputation", {no_sequence, "training.recompute=FULL"}, {7.7, 19.5}},
      {"selective", {no_sequence, "training.recompute=SELECTIVE"}, {7.7, 13.2}},
      {"selective and sequence parallelism", {"training.recompute=SELECTIVE"}, {7.2, 13.1}},
  };
  for (const Variant& variant : variants) {
    SCOPED_TRACE(variant.name);
    const LayerTimes times = TimesOf(variant.overrides);
    EXPECT_NEAR(times.forward_ms, variant.measured.forward_ms, 0.1 * variant.measured.forward_ms);
    EXPECT_NEAR(times.backward_ms, variant.measured.backward_ms, 0.1 * variant.measured.backward_ms);
    const double measured = variant.measured.forward_ms + variant.measured.backward_ms;
    EXPECT_NEAR(times.forward_ms + times.backward_ms, measured, 0.1 * measured);
  }
}

}  // namespace
}  // namespace orrery::training
