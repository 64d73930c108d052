#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "reports/schedule_picture.h"
#include "reports/schedule_report.h"
#include "schedules/family.h"
#include "schedules/text/table.h"
#include "sim/pipeline/cost_text.h"
#include "sim/pipeline/evaluate.h"

namespace orrery::cli {
namespace {

using schedules::Family;
using schedules::Schedule;

constexpr std::int64_t kLargestTable = 256 << 20;  // bytes
constexpr const char* kFormats[] = {"text", "torch-csv", "torch-comms-csv", "json", "svg"};

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// What is shown of a schedule, and at which costs.
struct Shown {
  std::string name;
  Schedule schedule;
  pipeline::Costs costs;
};

absl::Status CheckFormat(const ScheduleView& view) {
  const std::vector<std::string> formats(std::begin(kFormats), std::end(kFormats));
  if (std::find(formats.begin(), formats.end(), view.format) == formats.end()) {
    return absl::InvalidArgumentError(absl::StrCat("--format ", view.format, ": no such format; allowed: ",
                                                   absl::StrJoin(formats, ", "), DidYouMean(view.format, formats)));
  }
  if (view.json && view.format != "text" && view.format != "json") {
    return absl::InvalidArgumentError(absl::StrCat("--json with --format ", view.format, "; allowed: one of the two"));
  }
  return absl::OkStatus();
}

struct Prices {
  pipeline::GivenCosts given;
  std::vector<schedules::PassCosts> stages;
};

absl::StatusOr<Prices> PricesOf(const ScheduleView& view) {
  Prices prices;
  const absl::StatusOr<pipeline::GivenCosts> given = pipeline::ParseCosts(view.costs);
  if (!given.ok()) return absl::InvalidArgumentError(absl::StrCat("--costs: ", given.status().message()));
  prices.given = *given;
  if (view.stage_costs.empty()) return prices;
  if (prices.given.backward.has_value()) {
    return absl::InvalidArgumentError("--costs: B beside --stage-costs, which has I and W; allowed: without B");
  }
  ABSL_ASSIGN_OR_RETURN(const std::string text, ReadFile(view.stage_costs, kLargestTable));
  ABSL_ASSIGN_OR_RETURN(prices.stages, pipeline::ReadStageCosts(text, view.stage_costs));
  return prices;
}

absl::Status NeedsInputAndWeight(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("--costs: B alone, but ", View(what),
                   " splits the backward pass; allowed: I and W in place of B, as in F=1,I=1,W=1"));
}

absl::StatusOr<pipeline::Costs> CostsFor(const Schedule& schedule, const Prices& prices, std::string_view name) {
  if (prices.given.backward.has_value() && pipeline::NeedsSplit(schedule)) return NeedsInputAndWeight(name);
  return pipeline::CostsOf(prices.given, prices.stages);
}

// Where the number of stages per rank is free: 2, or 1 where that is not allowed.
std::int32_t ChunksOf(const Family& family, schedules::Parameters parameters) {
  if (family.fixed_chunks > 0) return family.fixed_chunks;
  parameters.chunks = 2;
  return family.check(parameters).ok() ? 2 : 1;
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
  if (!arguments.memory_limit.empty()) {
    const absl::StatusOr<std::int64_t> limit = ParseDecimal(arguments.memory_limit);
    const std::int64_t step = kDecimalOne / costs.memory.forward;
    if (!limit.ok() || *limit == 0 || *limit % step != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--memory-limit ", arguments.memory_limit,
                       "; allowed: a number of activations of one chunk and micro-batch above 0, in halves"));
    }
    if (!family->automatic) {
      return absl::InvalidArgumentError(
          absl::StrCat("--memory-limit: ", arguments.family, " plans by no limit; allowed: with automatic schedules"));
    }
    parameters.planning.memory_limit = *limit / step;
  }
  parameters.chunks = arguments.chunks > 0 ? arguments.chunks : ChunksOf(*family, parameters);
  ABSL_RETURN_IF_ERROR(family->check(parameters));
  ABSL_ASSIGN_OR_RETURN(Schedule schedule, family->generate(parameters));
  ABSL_ASSIGN_OR_RETURN(pipeline::Costs own, CostsFor(schedule, prices, arguments.family));
  return Shown{arguments.family, std::move(schedule), std::move(own)};
}

absl::StatusOr<Shown> Read(const ScheduleEvalArguments& arguments) {
  ABSL_ASSIGN_OR_RETURN(const Prices prices, PricesOf(arguments.view));
  ABSL_ASSIGN_OR_RETURN(const std::string text, ReadFile(arguments.table, kLargestTable));
  ABSL_ASSIGN_OR_RETURN(Schedule schedule, schedules::ReadTable(text, arguments.table));
  ABSL_ASSIGN_OR_RETURN(pipeline::Costs costs, CostsFor(schedule, prices, "the table"));
  return Shown{arguments.table, std::move(schedule), std::move(costs)};
}

absl::StatusOr<std::string> Render(const Shown& shown, const ScheduleView& view) {
  const bool picture = view.format == "svg" || (view.format == "text" && !view.json);
  ABSL_ASSIGN_OR_RETURN(const pipeline::Evaluation evaluation,
                        pipeline::Evaluate(shown.schedule, shown.costs, {.spans = picture}));
  if (view.json || view.format == "json") {
    return reports::ScheduleReportJson(shown.name, shown.schedule, shown.costs, evaluation);
  }
  if (view.format == "torch-csv") return schedules::WriteTable(shown.schedule);
  if (view.format == "torch-comms-csv") return schedules::WriteLoweredTable(shown.schedule);
  reports::SchedulePictureOptions options{.name = shown.name};
  options.unit = kDecimalOne;
  options.memory_unit = shown.costs.memory.forward;
  options.memory_unit_name = "M_B";
  if (view.format == "svg") return reports::ScheduleSvg(shown.schedule, shown.costs, evaluation, options);
  ABSL_ASSIGN_OR_RETURN(const std::string lines,
                        reports::ScheduleText(shown.schedule, shown.costs, evaluation, options));
  return absl::StrCat(lines, "\n", reports::ScheduleFigures(shown.schedule, shown.costs, evaluation));
}

// A schedule that deadlocks is an answer: the cycle is printed where the figures would stand.
int Answer(const absl::StatusOr<Shown>& shown, const ScheduleView& view) {
  if (!shown.ok()) return Fail(shown.status());
  const absl::StatusOr<std::string> text = Render(*shown, view);
  const bool deadlocks = absl::IsFailedPrecondition(text.status());
  if (!text.ok() && !deadlocks) return Fail(text.status());
  std::string output;
  if (!deadlocks) {
    output = *text;
  } else if (view.json || view.format == "json") {
    const nlohmann::ordered_json json = {{"name", shown->name}, {"deadlock", std::string(text.status().message())}};
    output = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  } else {
    output = absl::StrCat(text.status().message(), "\n");
  }
  // A file asked for as a table or picture does not get the cycle instead.
  const bool beside = deadlocks && (view.format == "svg" || view.format.starts_with("torch"));
  const absl::Status written = Write(output, beside ? "" : view.output);
  if (!written.ok()) return Fail(written);
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
  return written.ok() ? kDone : Fail(written);
}

int ScheduleShow(const ScheduleShowArguments& arguments) {
  if (const absl::Status format = CheckFormat(arguments.view); !format.ok()) return Fail(format);
  return Answer(Generated(arguments), arguments.view);
}

int ScheduleEval(const ScheduleEvalArguments& arguments) {
  if (const absl::Status format = CheckFormat(arguments.view); !format.ok()) return Fail(format);
  return Answer(Read(arguments), arguments.view);
}

}  // namespace orrery::cli
