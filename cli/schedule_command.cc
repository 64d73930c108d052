#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/schedule_view.h"
#include "schedules/family.h"
#include "schedules/text/table.h"
#include "sim/pipeline/cost_text.h"
#include "sim/pipeline/evaluate.h"

namespace orrery::cli {
namespace {

using schedules::Family;
using schedules::Schedule;

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

absl::Status CheckStages(const Prices& prices, std::int64_t stages, std::string_view name) {
  if (prices.stages.empty() || static_cast<std::int64_t>(prices.stages.size()) == stages) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--stage-costs: ", prices.stages.size(), " stages; allowed: ", stages, ", those of ", View(name)));
}

absl::StatusOr<pipeline::Costs> CostsFor(const Schedule& schedule, const Prices& prices, std::string_view name) {
  ABSL_RETURN_IF_ERROR(CheckStages(prices, schedule.stages(), name));
  if (prices.given.backward.has_value() && pipeline::NeedsSplit(schedule)) return NeedsInputAndWeight(name);
  pipeline::Costs costs = pipeline::CostsOf(prices.given, prices.stages);
  ABSL_RETURN_IF_ERROR(CheckTime(costs, schedule.stages(), schedule.micro_batches));
  return costs;
}

// Where the number of stages per rank is free: 2, or 1 where that is not allowed.
std::int32_t ChunksOf(const Family& family, schedules::Parameters parameters) {
  if (family.fixed_chunks > 0) return family.fixed_chunks;
  parameters.chunks = 2;
  return family.check(parameters).ok() ? 2 : 1;
}

// Options that the schedule does not know change nothing; the user should hear of it.
void WarnOfIdleOptions(const Family& family, const schedules::Parameters& given, const Schedule& schedule) {
  struct Option {
    const char* flag;
    std::int32_t schedules::Parameters::*field;
    std::int32_t usual;
  };
  constexpr Option kOptions[] = {{"--group-size", &schedules::Parameters::group_size, 0},
                                 {"--slices", &schedules::Parameters::slices, 1},
                                 {"--pipelines", &schedules::Parameters::pipelines, 0}};
  for (const auto& [flag, field, usual] : kOptions) {
    if (given.*field == usual) continue;
    schedules::Parameters without = given;
    without.*field = usual;
    if (!family.check(without).ok()) continue;
    const absl::StatusOr<Schedule> other = family.generate(without);
    if (other.ok() && other->order == schedule.order) {
      Warn(absl::StrCat(flag, " ", given.*field, " changes nothing in ", View(family.name)));
    }
  }
}

// What a family says of costs and limit is put in terms of the options.
absl::Status CheckFamily(const Family& family, const schedules::Parameters& parameters, const pipeline::Costs& costs,
                         const std::string& memory_limit) {
  absl::Status legal = family.check(parameters);
  schedules::Parameters unplanned = parameters;
  unplanned.planning = {};
  if (legal.ok() || !family.check(unplanned).ok()) return legal;
  ABSL_RETURN_IF_ERROR(CheckTime(costs, std::int64_t{parameters.ranks} * parameters.chunks, parameters.micro_batches));
  if (memory_limit.empty()) return legal;
  return absl::InvalidArgumentError(absl::StrCat("--memory-limit ", memory_limit, ": ", legal.message()));
}

absl::StatusOr<Shown> Generated(const ScheduleShowArguments& arguments) {
  ABSL_ASSIGN_OR_RETURN(const Family* const family, schedules::FindFamily(arguments.family));
  ABSL_ASSIGN_OR_RETURN(const Prices prices, PricesOf(arguments.view));
  if (family->automatic && prices.given.backward.has_value()) return NeedsInputAndWeight(arguments.family);
  schedules::Parameters parameters;
  parameters.ranks = arguments.ranks;
  parameters.micro_batches = arguments.micro_batches;
  parameters.group_size = arguments.group_size;
  parameters.slices = arguments.slices;
  parameters.pipelines = arguments.pipelines;
  const pipeline::Costs costs = pipeline::CostsOf(prices.given, prices.stages);
  parameters.planning = {.stages = costs.stages, .latency = costs.latency, .memory = costs.memory, .memory_limit = 0};
  parameters.chunks = arguments.chunks > 0 ? arguments.chunks : ChunksOf(*family, parameters);
  if (!arguments.memory_limit.empty()) {
    ABSL_ASSIGN_OR_RETURN(parameters.planning.memory_limit,
                          MemoryLimitOf(arguments.memory_limit, costs.memory.forward * parameters.chunks));
    if (!family->automatic) {
      return absl::InvalidArgumentError(
          absl::StrCat("--memory-limit: ", arguments.family, " plans by no limit; allowed: with automatic schedules"));
    }
  }
  ABSL_RETURN_IF_ERROR(CheckStages(prices, std::int64_t{parameters.ranks} * parameters.chunks, family->name));
  ABSL_RETURN_IF_ERROR(CheckFamily(*family, parameters, costs, arguments.memory_limit));
  absl::StatusOr<Schedule> schedule = family->generate(parameters);
  if (absl::IsResourceExhausted(schedule.status()) && !arguments.memory_limit.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory-limit ", arguments.memory_limit, ": ", schedule.status().message()));
  }
  ABSL_RETURN_IF_ERROR(schedule.status());
  WarnOfIdleOptions(*family, parameters, *schedule);
  ABSL_ASSIGN_OR_RETURN(pipeline::Costs own, CostsFor(*schedule, prices, arguments.family));
  return Shown{arguments.family, *std::move(schedule), std::move(own)};
}

absl::StatusOr<Shown> Read(const ScheduleEvalArguments& arguments) {
  ABSL_ASSIGN_OR_RETURN(const Prices prices, PricesOf(arguments.view));
  ABSL_ASSIGN_OR_RETURN(const std::string text, ReadFile(arguments.table, kLargestScheduleTable));
  ABSL_ASSIGN_OR_RETURN(Schedule schedule, schedules::ReadTable(text, arguments.table));
  if (const absl::Status legal = schedules::Validate(schedule); !legal.ok()) {
    return absl::Status(legal.code(), absl::StrCat(arguments.table, ": ", legal.message()));
  }
  ABSL_ASSIGN_OR_RETURN(pipeline::Costs costs, CostsFor(schedule, prices, "the table"));
  return Shown{arguments.table, std::move(schedule), std::move(costs)};
}

// A schedule that deadlocks is an answer: the cycle is printed where the figures would stand.
int Answer(const std::string& name, const absl::StatusOr<Shown>& shown, const ScheduleView& view) {
  const absl::StatusOr<std::string> text = shown.ok() ? Render(*shown, view) : shown.status();
  const bool deadlocks = absl::IsFailedPrecondition(text.status());
  if (!text.ok() && !deadlocks) return FailOnOneLine(text.status());
  std::string output;
  if (!deadlocks) {
    output = *text;
  } else if (view.json || view.format == "json") {
    const nlohmann::ordered_json json = {{"name", name}, {"deadlock", std::string(text.status().message())}};
    output = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  } else {
    output = PrintableLines(std::string(text.status().message())) + "\n";
  }
  // A file asked for as a table or picture does not get the cycle instead.
  const bool beside = deadlocks && (view.format == "svg" || view.format.starts_with("torch"));
  const absl::Status written = Write(output, beside ? "" : view.output);
  if (!written.ok()) return FailOnOneLine(written);
  return deadlocks ? kAnswerIsNo : kDone;
}

}  // namespace

int ScheduleList(bool as_json, const std::string& output) {
  std::string text;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Family& family : schedules::Families()) {
    if (as_json) {
      json.push_back({{"name", family.name},
                      {"summary", family.summary},
                      {"reference", family.reference},
                      {"constraints", family.constraints},
                      {"closed_form", family.closed_form},
                      {"chunks", family.fixed_chunks},
                      {"automatic", family.automatic}});
      if (family.closed_form.empty()) json.back().erase("closed_form");
      if (family.fixed_chunks == 0) json.back().erase("chunks");
      continue;
    }
    absl::StrAppend(&text, text.empty() ? "" : "\n", View(family.name), "\n  ", View(family.summary),
                    "\n  reference    ", View(family.reference), "\n  constraints  ", View(family.constraints), "\n");
    if (!family.closed_form.empty()) absl::StrAppend(&text, "  closed form  ", View(family.closed_form), "\n");
  }
  const absl::Status written = Write(as_json ? json.dump(2) + "\n" : text, output);
  return written.ok() ? kDone : FailOnOneLine(written);
}

int ScheduleShow(const ScheduleShowArguments& arguments) {
  if (const absl::Status format = CheckView(arguments.view); !format.ok()) return FailOnOneLine(format);
  return Answer(arguments.family, Generated(arguments), arguments.view);
}

int ScheduleEval(const ScheduleEvalArguments& arguments) {
  if (const absl::Status view = CheckView(arguments.view); !view.ok()) return FailOnOneLine(view);
  const absl::Status output = CheckNotRead("--output", arguments.view.output, {arguments.table});
  if (!output.ok()) return FailOnOneLine(output);
  return Answer(arguments.table, Read(arguments), arguments.view);
}

}  // namespace orrery::cli
