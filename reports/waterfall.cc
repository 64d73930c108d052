#include "reports/waterfall.h"

#include <algorithm>
#include <iterator>

#include "base/status_macros.h"

namespace orrery::reports {
namespace {

struct NamedCause {
  v1::Cause cause;
  std::string_view name;
};

constexpr NamedCause kCauses[] = {
    {v1::CAUSE_JITTER, "jitter"},
    {v1::CAUSE_OPTIMIZER, "optimizer"},
    {v1::CAUSE_EXPOSED_DP, "exposed dp"},
    {v1::CAUSE_EXPOSED_TP, "exposed tp"},
    {v1::CAUSE_EXPOSED_PP, "exposed pp"},
    {v1::CAUSE_HOST, "host"},
    {v1::CAUSE_BUBBLE, "bubble"},
    {v1::CAUSE_RECOMPUTE, "recompute"},
    {v1::CAUSE_KERNEL_EFFICIENCY, "kernel efficiency"},
};

}  // namespace

std::string_view CauseName(v1::Cause cause) {
  const auto* found = std::find_if(std::begin(kCauses), std::end(kCauses),
                                   [&](const NamedCause& named) { return named.cause == cause; });
  return found == std::end(kCauses) ? "" : found->name;
}

std::vector<v1::Cause> WaterfallCauses() {
  std::vector<v1::Cause> causes;
  for (const NamedCause& named : kCauses) causes.push_back(named.cause);
  return causes;
}

v1::Run RunOfStep(const v1::Run& run, std::size_t steps) {
  v1::Run changed = run;
  v1::Simulation& simulation = *changed.mutable_simulation();
  simulation.set_fold(v1::ON);
  simulation.set_granularity(v1::CHUNK);
  const std::vector<v1::Cause> causes = WaterfallCauses();
  for (std::size_t i = 0; i < steps; ++i) {
    const auto& without = simulation.without();
    if (std::find(without.begin(), without.end(), causes[i]) == without.end()) simulation.add_without(causes[i]);
  }
  return changed;
}

v1::Run WithoutContention(const v1::Run& run) {
  v1::Run changed = run;
  changed.mutable_perturbation()->clear_link();
  changed.mutable_simulation()->set_network(v1::ANALYTIC);
  const bool rates_change = run.simulation().overlap() == v1::DYNAMIC;
  changed.mutable_simulation()->set_engine(rates_change ? v1::EVENT_QUEUE : v1::WORKLIST);
  return changed;
}

absl::StatusOr<Waterfall> MakeWaterfall(const v1::Run& run, const training::Result& result) {
  Waterfall waterfall;
  waterfall.achieved_mfu = result.Mfu();
  Time before = result.iteration_time;
  double mfu_before = result.Mfu();
  const auto add = [&](v1::Cause cause, std::string_view name, const training::Result& without) {
    WaterfallStep step{.cause = cause,
                       .name = name,
                       .time = before - without.iteration_time,
                       .mfu = without.Mfu() - mfu_before,
                       .note = {}};
    if (step.time < Time()) step.note = "removing it delays what it had let other ranks prepare";
    before = without.iteration_time;
    mfu_before = without.Mfu();
    waterfall.steps.push_back(step);
  };
  const bool shares = run.simulation().network() == v1::FLOW;
  const v1::Run alone = shares ? WithoutContention(run) : run;
  training::SimulateOptions options;
  options.prices_alone = shares;
  if (shares) {
    ABSL_ASSIGN_OR_RETURN(const training::Result without, training::Simulate(alone, options));
    add(v1::CAUSE_UNSPECIFIED, "contention", without);
  }
  const std::vector<v1::Cause> causes = WaterfallCauses();
  for (std::size_t i = 0; i < causes.size(); ++i) {
    ABSL_ASSIGN_OR_RETURN(const training::Result without, training::Simulate(RunOfStep(alone, i + 1), options));
    add(causes[i], CauseName(causes[i]), without);
  }
  const double ideal_seconds = result.model_flops.count() / (static_cast<double>(result.gpus) * result.peak.count());
  waterfall.remainder = before - TimeFromSeconds(ideal_seconds);
  waterfall.remainder_mfu = 1 - mfu_before;
  // Prices are rounded one by one: less than a nanosecond says nothing.
  if (waterfall.remainder < Time() - TimeFromSeconds(1e-9)) {
    waterfall.remainder_note = "the convention counts FLOPs that are not executed";
  }
  return waterfall;
}

}  // namespace orrery::reports
