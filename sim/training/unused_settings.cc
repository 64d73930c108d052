#include "sim/training/unused_settings.h"

#include "absl/strings/str_cat.h"
#include "sim/training/run_schedule.h"

namespace orrery::training {
namespace {

// Whether data-parallel communication of this kind runs beside the passes that the rule names.
bool Plays(const v1::OverlapRule& rule, const v1::Run& run) {
  const v1::Parallelism& parallelism = run.parallelism();
  const v1::Software& software = run.software();
  if (parallelism.dp() == 1) return false;
  const bool units = parallelism.zero_stage() == 3;
  if (rule.pass() == v1::FORWARD) {
    if (units) return rule.micro_batches() == v1::ALL;
    return rule.micro_batches() == v1::FIRST && parallelism.zero_stage() > 0 &&
           software.parameter_gather() == v1::OVERLAPPED;
  }
  if (units) return rule.micro_batches() == v1::ALL;
  return software.gradient_reduction() == v1::OVERLAPPED &&
         software.reduce_every_micro_batch() == (rule.micro_batches() == v1::ALL);
}

}  // namespace

std::vector<std::string> UnusedSettings(const v1::Run& run) {
  const v1::Parallelism& parallelism = run.parallelism();
  const v1::Training& training = run.training();
  std::vector<std::string> unused;
  const auto add = [&](const std::string& text) { unused.push_back(absl::StrCat(text, " plays no part")); };
  if (training.has_recompute_layers() && training.recompute() != v1::FULL) {
    add("training.recompute_layers without recompute FULL");
  }
  if (training.recompute_modules_size() > 0 && training.recompute() != v1::SELECTIVE) {
    add("training.recompute_modules without recompute SELECTIVE");
  }
  if (parallelism.shard_ranks() != parallelism.dp() && parallelism.zero_stage() == 0) {
    add("parallelism.shard_ranks with zero_stage 0");
  }
  if (run.model().rotary_fraction() != 1 && run.model().positions() != v1::ROTARY) {
    add("model.rotary_fraction without positions ROTARY");
  }
  if (run.schedule().has_memory_limit() && !IsPlanned(run)) {
    add(absl::StrCat("schedule.memory_limit with ", run.schedule().name(), ", which is not planned,"));
  }
  if (run.schedule().has_pipelines() && !TakesPipelines(run)) {
    add(absl::StrCat("schedule.pipelines with ", run.schedule().name()));
  }
  for (int i = 0; i < run.software().overlap_rules_size(); ++i) {
    const v1::OverlapRule& rule = run.software().overlap_rules(i);
    if (Plays(rule, run)) continue;
    add(absl::StrCat("software.overlap_rules[", i, "]: no data-parallel communication runs beside ",
                     v1::PassKind_Name(rule.pass()), " passes of ", v1::MicroBatches_Name(rule.micro_batches()),
                     " micro-batches here, and it"));
  }
  return unused;
}

}  // namespace orrery::training
