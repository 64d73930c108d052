#include "sim/training/run_schedule.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/text/table.h"

namespace orrery::training {
namespace {

using schedules::Family;
using schedules::Parameters;
using schedules::Schedule;

bool IsTable(const v1::Schedule& schedule) { return schedule.name() == kTableSchedule; }

absl::StatusOr<Schedule> ReadTable(const v1::Schedule& schedule) {
  constexpr std::string_view kName = "table";
  absl::StatusOr<Schedule> table = schedules::ReadTable(schedule.table(), kName);
  if (table.ok() || !absl::StartsWith(table.status().message(), "table: ")) return table;
  // Whoever reports it names the field.
  return absl::Status(table.status().code(), table.status().message().substr(kName.size() + 2));
}

// What the schedule depends on; nullopt where the run is too broken to say.
std::optional<Parameters> ParametersOf(const v1::Run& run) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto in_range = [](std::int64_t value) { return value >= 1 && value <= kMost; };
  if (!in_range(run.parallelism().dp()) || !in_range(run.training().micro_batch()) ||
      !in_range(run.parallelism().pp()) || !in_range(run.parallelism().virtual_stages()) ||
      !in_range(run.schedule().group_size())) {
    return std::nullopt;
  }
  const std::int64_t sequences = run.parallelism().dp() * run.training().micro_batch();
  if (!in_range(run.training().global_batch() / sequences)) return std::nullopt;
  return Parameters{.ranks = static_cast<std::int32_t>(run.parallelism().pp()),
                    .chunks = static_cast<std::int32_t>(run.parallelism().virtual_stages()),
                    .micro_batches = static_cast<std::int32_t>(run.training().global_batch() / sequences),
                    .group_size = static_cast<std::int32_t>(run.schedule().group_size()),
                    .pipelines = static_cast<std::int32_t>(run.schedule().pipelines())};
}

void SetPlanning(const v1::Run& run, const schedules::PlanningCosts& planning, Parameters& parameters) {
  parameters.planning = planning;
  parameters.planning.memory_limit = run.schedule().memory_limit() * parameters.chunks * planning.memory.forward;
}

// Blocking messages of ranks with several stages wait for each other.
absl::Status CheckMessages(const v1::Run& run, const Schedule& schedule) {
  if (MessageModeOf(run, schedule) != v1::BLOCKING || schedule.placement.chunks() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found BLOCKING with schedule ", run.schedule().name(), ", which has ",
                                                 schedule.placement.chunks(),
                                                 " stages on a rank; allowed: EAGER, BATCHED, or one stage per rank"));
}

absl::Status CheckFamily(const Family& family, const v1::Run& run, Parameters parameters) {
  SetPlanning(run, {}, parameters);
  return family.check(parameters);
}

// At unit costs: whether an order within the limit exists depends on costs in rare cases only, which planning finds.
absl::Status CheckMemoryLimit(const Family& family, v1::Run run, Parameters parameters) {
  const auto works = [&](std::int64_t limit) {
    run.mutable_schedule()->set_memory_limit(limit);
    SetPlanning(run, {}, parameters);
    return !absl::IsResourceExhausted(family.generate(parameters).status());
  };
  const std::int64_t given = run.schedule().memory_limit();
  if (works(given)) return absl::OkStatus();
  std::int64_t low = given + 1;
  std::int64_t high = std::max<std::int64_t>(low, std::min(parameters.ranks, parameters.micro_batches));
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (works(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("found ", given, ", within which ",
                                                 absl::string_view(family.name.data(), family.name.size()),
                                                 " has no order; allowed: at least ", high));
}

absl::Status CheckTable(const Schedule& table, const Parameters& run) {
  ABSL_RETURN_IF_ERROR(schedules::Validate(table));
  const auto error = [](const auto&... words) { return absl::InvalidArgumentError(absl::StrCat(words...)); };
  if (table.ranks() != run.ranks) {
    return error("has ", table.ranks(), " ranks (rows); allowed: parallelism.pp = ", run.ranks);
  }
  if (table.micro_batches != run.micro_batches) {
    return error("has ", table.micro_batches,
                 " micro-batches; allowed: global_batch / (dp x micro_batch) = ", run.micro_batches);
  }
  if (table.stages() != std::int64_t{run.ranks} * run.chunks) {
    return error("has ", table.stages(), " stages; allowed: pp x virtual_stages = ", run.ranks, " x ", run.chunks,
                 " = ", std::int64_t{run.ranks} * run.chunks);
  }
  return absl::OkStatus();
}

using Problems = std::vector<spec::FieldProblem>;

void Add(std::vector<std::string> fields, const absl::Status& status, Problems& problems) {
  if (!status.ok()) problems.push_back({std::move(fields), std::string(status.message())});
}

void AddTableProblems(const v1::Run& run, Problems& problems) {
  if (!run.schedule().has_table()) {
    problems.push_back(
        {{"schedule.name"}, "found \"table\" without one; allowed: with schedule.file or schedule.table"});
    return;
  }
  const absl::StatusOr<Schedule> table = ReadTable(run.schedule());
  Add({"schedule.file", "schedule.table"}, table.status(), problems);
  const std::optional<Parameters> parameters = ParametersOf(run);
  if (!table.ok() || !parameters.has_value()) return;
  Add({"schedule.file", "schedule.table", "training.global_batch", "training.micro_batch", "parallelism.pp",
       "parallelism.dp", "parallelism.virtual_stages"},
      CheckTable(*table, *parameters), problems);
  Add({"software.message_mode", "software.split_message_mode", "schedule.file", "schedule.table"},
      CheckMessages(run, *table), problems);
}

void AddFamilyProblems(const Family& family, const v1::Run& run, Problems& problems) {
  if (run.schedule().has_table()) {
    problems.push_back({{"schedule.name"},
                        absl::StrCat("found ", run.schedule().name(),
                                     " beside a table of actions; allowed: table, or no schedule.file")});
  }
  if (family.sliced) {
    const absl::string_view name(family.name.data(), family.name.size());
    problems.push_back(
        {{"schedule.name"},
         absl::StrCat(name, ": what a slice of a sequence costs is not modelled in training runs; allowed: other ",
                      "schedules (orrery schedule show ", name, " evaluates it at given costs)")});
    return;
  }
  const std::optional<Parameters> parameters = ParametersOf(run);
  if (!parameters.has_value()) return;
  const absl::Status legal = CheckFamily(family, run, *parameters);
  Add({"schedule.group_size", "schedule.pipelines", "schedule.memory_limit", "parallelism.virtual_stages",
       "training.global_batch", "training.micro_batch", "parallelism.dp", "parallelism.pp", "schedule.name"},
      legal, problems);
  if (legal.ok() && family.automatic && run.schedule().has_memory_limit()) {
    Add({"schedule.memory_limit", "schedule.name"}, CheckMemoryLimit(family, run, *parameters), problems);
  }
  const v1::Software& software = run.software();
  if (!legal.ok() || (software.message_mode() != v1::BLOCKING && software.split_message_mode() != v1::BLOCKING)) return;
  const absl::StatusOr<Schedule> schedule = family.generate(*parameters);
  if (!schedule.ok()) return;
  Add({"software.message_mode", "software.split_message_mode", "parallelism.virtual_stages", "schedule.name"},
      CheckMessages(run, *schedule), problems);
}

}  // namespace

std::int64_t StagesPerRank(const v1::Schedule& schedule) {
  if (IsTable(schedule)) {
    const absl::StatusOr<Schedule> table = ReadTable(schedule);
    return table.ok() ? table->stages() / table->ranks() : 0;
  }
  const absl::StatusOr<const Family*> family = schedules::FindFamily(schedule.name());
  return family.ok() ? (*family)->usual_chunks() : 0;
}

std::vector<spec::FieldProblem> ScheduleProblems(const v1::Run& run) {
  Problems problems;
  if (IsTable(run.schedule())) {
    AddTableProblems(run, problems);
    return problems;
  }
  const absl::StatusOr<const Family*> family = schedules::FindFamily(run.schedule().name());
  Add({"schedule.name"}, family.status(), problems);
  if (family.ok()) AddFamilyProblems(**family, run, problems);
  return problems;
}

v1::MessageMode MessageModeOf(const v1::Run& run, const Schedule& schedule) {
  return schedules::SplitsBackward(schedule) ? run.software().split_message_mode() : run.software().message_mode();
}

bool IsPlanned(const v1::Run& run) {
  const absl::StatusOr<const Family*> family = schedules::FindFamily(run.schedule().name());
  return family.ok() && (*family)->automatic;
}

bool TakesPipelines(const v1::Run& run) {
  const absl::StatusOr<const Family*> family = schedules::FindFamily(run.schedule().name());
  return family.ok() && (*family)->takes_pipelines;
}

absl::StatusOr<Schedule> ScheduleOf(const v1::Run& run, const schedules::PlanningCosts& planning) {
  if (IsTable(run.schedule())) return ReadTable(run.schedule());
  ABSL_ASSIGN_OR_RETURN(const Family* family, schedules::FindFamily(run.schedule().name()));
  Parameters parameters = *ParametersOf(run);
  SetPlanning(run, planning, parameters);
  absl::StatusOr<Schedule> schedule = family->generate(parameters);
  if (!absl::IsResourceExhausted(schedule.status())) return schedule;
  return absl::InvalidArgumentError(
      absl::StrCat("schedule.memory_limit: found ", run.schedule().memory_limit(), "; ", schedule.status().message()));
}

}  // namespace orrery::training
