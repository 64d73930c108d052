#include "cli/schedule_view.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/decimal.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/suggest.h"
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

}  // namespace orrery::cli
