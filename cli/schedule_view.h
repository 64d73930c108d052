// How the commands of `orrery schedule` read costs and show a schedule.
#ifndef ORRERY_CLI_SCHEDULE_VIEW_H_
#define ORRERY_CLI_SCHEDULE_VIEW_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/commands.h"
#include "schedules/schedule.h"
#include "sim/pipeline/cost_text.h"
#include "sim/pipeline/evaluate.h"

namespace orrery::cli {

inline constexpr std::int64_t kLargestScheduleTable = 256 << 20;  // bytes

// What is shown of a schedule, and at which costs.
struct Shown {
  std::string name;
  schedules::Schedule schedule;
  pipeline::Costs costs;
};

struct Prices {
  pipeline::GivenCosts given;
  std::vector<schedules::PassCosts> stages;
};

// The format exists, and no cost file is written over.
absl::Status CheckView(const ScheduleView& view);
absl::StatusOr<Prices> PricesOf(const ScheduleView& view);
// The refusal of `--costs B=...` where I and W are run apart.
absl::Status NeedsInputAndWeight(std::string_view what);
// What `--memory-limit` allows a rank to hold, in units of which a micro-batch takes so many, rounded down.
// INVALID_ARGUMENT below one micro-batch, within which nothing can run.
absl::StatusOr<std::int64_t> MemoryLimitOf(const std::string& given, std::int64_t units_of_micro_batch);
// INVALID_ARGUMENT, in the user's unit, where the passes and messages of so many stages and micro-batches add up to
// more than can be counted.
absl::Status CheckTime(const pipeline::Costs& costs, std::int64_t stages, std::int64_t micro_batches);
// In the view's format. FAILED_PRECONDITION where it deadlocks.
absl::StatusOr<std::string> Render(const Shown& shown, const ScheduleView& view);

}  // namespace orrery::cli

#endif  // ORRERY_CLI_SCHEDULE_VIEW_H_
