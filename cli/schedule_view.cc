#include "cli/schedule_view.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/decimal.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/output.h"
#include "reports/schedule_picture.h"
#include "reports/schedule_report.h"
#include "schedules/text/table.h"

namespace orrery::cli {
namespace {

constexpr const char* kFormats[] = {"text", "torch-csv", "torch-comms-csv", "json", "svg"};

}  // namespace

absl::Status CheckView(const ScheduleView& view) {
  ABSL_RETURN_IF_ERROR(CheckNotRead("--output", view.output, {view.stage_costs}));
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

absl::StatusOr<Prices> PricesOf(const ScheduleView& view) {
  Prices prices;
  const absl::StatusOr<pipeline::GivenCosts> given = pipeline::ParseCosts(view.costs);
  if (!given.ok()) return absl::InvalidArgumentError(absl::StrCat("--", given.status().message()));
  prices.given = *given;
  if (view.stage_costs.empty()) return prices;
  if (prices.given.backward.has_value()) {
    return absl::InvalidArgumentError("--costs: B beside --stage-costs, which has I and W; allowed: without B");
  }
  for (const absl::string_view item : absl::StrSplit(view.costs, ',')) {
    const absl::string_view name = item.substr(0, item.find('='));
    if (name != "F" && name != "I" && name != "W") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--costs: ", name, " beside --stage-costs, which has it for every stage; allowed: comm, block"));
  }
  ABSL_ASSIGN_OR_RETURN(const std::string text, ReadFile(view.stage_costs, kLargestScheduleTable));
  ABSL_ASSIGN_OR_RETURN(prices.stages, pipeline::ReadStageCosts(text, view.stage_costs));
  return prices;
}

absl::Status NeedsInputAndWeight(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("--costs: B alone, but ", absl::string_view(what.data(), what.size()),
                   " splits the backward pass; allowed: I and W in place of B, as in F=1,I=1,W=1"));
}

absl::StatusOr<std::int64_t> MemoryLimitOf(const std::string& given, std::int64_t units_of_micro_batch) {
  const absl::StatusOr<std::int64_t> limit = ParseDecimal(given);
  if (!limit.ok() || *limit < kDecimalOne) {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory-limit ", given,
                     "; allowed: a number of at least 1, in M (the activations of one micro-batch on a rank)"));
  }
  const Int128 units = static_cast<Int128>(*limit) * units_of_micro_batch / kDecimalOne;
  return static_cast<std::int64_t>(std::min<Int128>(units, std::numeric_limits<std::int64_t>::max()));
}

absl::Status CheckTime(const pipeline::Costs& costs, std::int64_t stages, std::int64_t micro_batches) {
  Int128 left = schedules::kMostTime / micro_batches;
  for (std::int64_t stage = 0; stage < stages && left >= 0; ++stage) {
    const schedules::PassCosts& passes = costs.Of(static_cast<std::int32_t>(stage));
    const Int128 apart = static_cast<Int128>(passes.forward) + passes.input_gradient + passes.weight_gradient;
    left -= std::max<Int128>(apart, costs.block.value_or(0)) + 2 * static_cast<Int128>(costs.latency);
  }
  if (left >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "costs: all passes and messages of ", micro_batches, " micro-batches on ", stages, " stages add up to more than ",
      FormatDecimal(schedules::kMostTime), "; allowed: at most that, so in a larger unit of time"));
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
  reports::SchedulePictureOptions options{.name = shown.name,
                                          .unit = kDecimalOne,
                                          .memory_unit = reports::MemoryOfMicroBatch(shown.schedule, shown.costs),
                                          .memory_unit_name = "M"};
  if (view.format == "svg") return reports::ScheduleSvg(shown.schedule, shown.costs, evaluation, options);
  options.name = Printable(shown.name);
  ABSL_ASSIGN_OR_RETURN(const std::string lines,
                        reports::ScheduleText(shown.schedule, shown.costs, evaluation, options));
  return absl::StrCat(lines, "\n", reports::ScheduleFigures(shown.schedule, shown.costs, evaluation));
}

}  // namespace orrery::cli
