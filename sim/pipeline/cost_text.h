// Costs as a user writes them: decimals, kept exactly as integers of 1e-9 of a unit (base/decimal.h).
#ifndef ORRERY_SIM_PIPELINE_COST_TEXT_H_
#define ORRERY_SIM_PIPELINE_COST_TEXT_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schedules/family.h"
#include "sim/pipeline/evaluate.h"

namespace orrery::pipeline {

// "F=1,I=1,W=1,comm=0.1,block=3", in any order; F, I and W are 1 where they are not given, comm is 0, and a block costs
// the sum of its members. "B=2" for the full backward pass, instead of I and W: see NeedsSplit.
struct GivenCosts {
  std::int64_t forward = 0;
  std::optional<std::int64_t> backward;  // B, without I and W
  std::int64_t input_gradient = 0;
  std::int64_t weight_gradient = 0;
  std::int64_t latency = 0;
  std::optional<std::int64_t> block;
};
// INVALID_ARGUMENT names the item.
absl::StatusOr<GivenCosts> ParseCosts(std::string_view text);

// Whether a schedule runs I or W, for which B is not enough.
bool NeedsSplit(const schedules::Schedule& schedule);

// A table with columns stage, F, I, W: every stage from 0 on once. `name` begins every error.
absl::StatusOr<std::vector<schedules::PassCosts>> ReadStageCosts(std::string_view text, std::string_view name);

// `stages` empty: as given, equal on all. Of B alone, all counts as I. Memory: F takes 2, W frees 1, so that half of
// what a forward pass takes (M_B) can be told.
Costs CostsOf(const GivenCosts& given, std::vector<schedules::PassCosts> stages);

}  // namespace orrery::pipeline

#endif  // ORRERY_SIM_PIPELINE_COST_TEXT_H_
