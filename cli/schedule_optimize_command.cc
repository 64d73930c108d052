#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/format.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/schedule_view.h"
#include "cli/terminal_progress.h"
#include "reports/schedule_report.h"
#include "sim/pipeline/optimizer/optimize.h"

namespace orrery::cli {
namespace {

using pipeline::Cut;
using schedules::PassCosts;
using schedules::Placement;

// What a rank holds for one micro-batch is M. Two chunks hold half of it each, and half of that until W.
constexpr std::int64_t kQuarters = 4;
constexpr schedules::PassMemory kWhole = {.forward = 4, .weight = 2};
constexpr schedules::PassMemory kHalf = {.forward = 2, .weight = 1};
constexpr std::int64_t kMillion = 1'000'000;

absl::Status NotAllowed(const char* flag, const std::string& given, const std::vector<std::string>& names) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", given, ": no such value; allowed: ", names[0], " or ",
                                                 names[1], names.size() > 2 ? absl::StrCat(" or ", names[2]) : "",
                                                 DidYouMean(given, names)));
}

absl::StatusOr<pipeline::Objective> ObjectiveOf(const std::string& name) {
  if (name == "makespan") return pipeline::Objective::kMakespan;
  if (name == "span") return pipeline::Objective::kLongestSpan;
  return NotAllowed("--objective", name, {"makespan", "span"});
}

PassCosts Sum(const PassCosts& a, const PassCosts& b) {
  return {a.forward + b.forward, a.input_gradient + b.input_gradient, a.weight_gradient + b.weight_gradient};
}

PassCosts Halved(const PassCosts& costs, std::int64_t rounding) {
  return {(costs.forward + rounding) / 2, (costs.input_gradient + rounding) / 2,
          (costs.weight_gradient + rounding) / 2};
}

// `stages` empty: all ranks as given. A table of one stage per rank has no halves; one of two has both.
Cut LoopCut(std::int32_t ranks, const pipeline::GivenCosts& given, const std::vector<PassCosts>& stages) {
  Cut cut{Placement::Loop(ranks, 1), pipeline::CostsOf(given, stages)};
  cut.costs.memory = kWhole;
  if (stages.size() == 2 * static_cast<std::size_t>(ranks)) {
    cut.costs.stages.clear();
    for (std::size_t s = 0; s < stages.size(); s += 2) cut.costs.stages.push_back(Sum(stages[s], stages[s + 1]));
  }
  return cut;
}

Cut WaveCut(std::int32_t ranks, const pipeline::GivenCosts& given, const std::vector<PassCosts>& stages) {
  Cut cut{Placement::Wave(ranks, 2), pipeline::CostsOf(given, stages)};
  cut.costs.memory = kHalf;
  if (!stages.empty()) return cut;
  const PassCosts whole = cut.costs.stages.front();
  cut.costs.stages.assign(static_cast<std::size_t>(ranks), Halved(whole, 0));
  cut.costs.stages.resize(2 * static_cast<std::size_t>(ranks), Halved(whole, 1));
  if (cut.costs.stages.front().forward == cut.costs.stages.back().forward &&
      cut.costs.stages.front().backward() == cut.costs.stages.back().backward()) {
    cut.costs.stages.resize(1);
  }
  return cut;
}

absl::StatusOr<std::vector<Cut>> CutsOf(const ScheduleOptimizeArguments& arguments) {
  ABSL_ASSIGN_OR_RETURN(const Prices prices, PricesOf(arguments.view));
  if (prices.given.backward.has_value()) return NeedsInputAndWeight("a search");
  if (prices.given.block.has_value()) {
    return absl::InvalidArgumentError("--costs: block; allowed: F, I, W and comm (no fused blocks are searched)");
  }
  const std::string& placement = arguments.placement;
  if (placement != "loop" && placement != "v" && placement != "all") {
    return NotAllowed("--placement", placement, {"loop", "v", "all"});
  }
  const auto ranks = static_cast<std::size_t>(arguments.ranks);
  const std::size_t given = prices.stages.size();
  if (given != 0 && given != 2 * ranks && (given != ranks || placement == "v")) {
    return absl::InvalidArgumentError(
        absl::StrCat(arguments.view.stage_costs, ": ", given,
                     " stages; allowed: ", placement == "v" ? "" : absl::StrCat(ranks, " or "), 2 * ranks, " (",
                     placement == "v" ? "two per rank" : "one or two per rank; the V needs two", ")"));
  }
  std::vector<Cut> cuts;
  if (placement != "v") cuts.push_back(LoopCut(arguments.ranks, prices.given, prices.stages));
  if (placement != "loop" && (given == 0 || given == 2 * ranks)) {
    cuts.push_back(WaveCut(arguments.ranks, prices.given, prices.stages));
  }
  return cuts;
}

// In the user's unit.
absl::Status TooLarge(const std::vector<Cut>& cuts, std::int32_t micro_batches) {
  std::int64_t most = pipeline::MostCost(cuts.front().placement, micro_batches);
  for (const Cut& cut : cuts) most = std::min(most, pipeline::MostCost(cut.placement, micro_batches));
  return absl::InvalidArgumentError(absl::StrCat("costs: a pass or message of more than ", FormatDecimal(most),
                                                 "; allowed: at most that, so in a larger unit of time"));
}

absl::StatusOr<pipeline::OptimizeRequest> RequestOf(const ScheduleOptimizeArguments& arguments) {
  pipeline::OptimizeRequest request;
  ABSL_ASSIGN_OR_RETURN(request.objective, ObjectiveOf(arguments.objective));
  ABSL_ASSIGN_OR_RETURN(request.cuts, CutsOf(arguments));
  request.micro_batches = arguments.micro_batches;
  request.effort = arguments.effort * kMillion;
  if (arguments.memory_limit.empty()) return request;
  ABSL_ASSIGN_OR_RETURN(request.memory_limit, MemoryLimitOf(arguments.memory_limit, kQuarters));
  return request;
}

// The answer in words and as JSON.
class Report {
 public:
  Report(const ScheduleOptimizeArguments& arguments, const pipeline::OptimizeRequest& request,
         const pipeline::Optimized& found)
      : arguments_(arguments), request_(request), found_(found) {}

  std::string Summary() const {
    std::string text =
        absl::StrCat(arguments_.objective, " ", FormatDecimal(found_.value), ", ", PlacementOf(found_.cut),
                     ", found by ", found_.origin, "\nlower bound ", FormatDecimal(found_.lower_bound));
    absl::StrAppend(
        &text,
        found_.optimal() ? ": proven optimal" : absl::StrCat(", gap ", FormatPercent(Gap(), 2), ": not proven optimal"),
        Scope(), "\n");
    absl::StrAppend(&text, "memory: at most ", FormatDecimal(InShares(Peak())), " M on a rank, limit ",
                    arguments_.memory_limit.empty() ? "none" : arguments_.memory_limit,
                    " (M: activations of one micro-batch on a rank)\n");
    absl::StrAppend(&text, "effort ", FormatCount(found_.effort / kMillion), " of ", FormatCount(arguments_.effort),
                    " million passes", found_.stopped ? ", interrupted: not the whole search" : "", "\n");
    if (request_.cuts[found_.cut].placement.stages() != arguments_.ranks) {
      absl::StrAppend(&text, "a stage is half of a rank's share: its F, I and W are what follows below\n");
    }
    return text;
  }

  std::string Text() const {
    using Align = TextTable::Align;
    TextTable table({{"published, split into F, I, W"},
                     {"placement"},
                     {arguments_.objective, Align::kRight},
                     {"above", Align::kRight},
                     {"peak M", Align::kRight}});
    for (const pipeline::Published& published : found_.published) {
      table.AddRow({published.family, PlacementOf(published.cut), FormatDecimal(published.value),
                    FormatPercent(Share(published.value - found_.value, found_.value), 2),
                    FormatDecimal(InShares(published.peak_memory))});
    }
    return absl::StrCat(Summary(), "\n", found_.published.empty() ? "no published schedule fits\n" : table.Render());
  }

  nlohmann::ordered_json Json() const {
    nlohmann::ordered_json json = {{"objective", arguments_.objective},
                                   {"value", Number(found_.value)},
                                   {"lower_bound", Number(found_.lower_bound)},
                                   {"gap_fraction", Gap()},
                                   {"optimal", found_.optimal()},
                                   {"interrupted", found_.stopped},
                                   {"placement", PlacementOf(found_.cut)},
                                   {"found_by", found_.origin},
                                   {"peak_memory", Number(InShares(Peak()))},
                                   {"effort", found_.effort}};
    json["published"] = nlohmann::ordered_json::array();
    for (const pipeline::Published& published : found_.published) {
      json["published"].push_back({{"name", published.family},
                                   {"placement", PlacementOf(published.cut)},
                                   {"value", Number(published.value)},
                                   {"peak_memory", Number(InShares(published.peak_memory))}});
    }
    return json;
  }

 private:
  static nlohmann::ordered_json Number(std::int64_t value) {
    if (value % kDecimalOne == 0) return value / kDecimalOne;
    return static_cast<double>(value) / static_cast<double>(kDecimalOne);
  }
  static std::int64_t InShares(std::int64_t memory) { return memory * (kDecimalOne / kQuarters); }
  static double Share(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }

  double Gap() const { return Share(found_.value - found_.lower_bound, found_.value); }
  std::string PlacementOf(std::size_t cut) const {
    return request_.cuts[cut].placement.stages() == arguments_.ranks ? "loop" : "v";
  }
  // What a bound holds for.
  std::string Scope() const {
    if (request_.cuts.size() > 1) return " of all orders on a loop or a V";
    return absl::StrCat(" of all orders on a ",
                        request_.cuts.front().placement.stages() == arguments_.ranks ? "loop" : "V");
  }
  std::int64_t Peak() const {
    std::int64_t peak = 0;
    for (const pipeline::RankEvaluation& rank : found_.evaluation.ranks) peak = std::max(peak, rank.peak_memory);
    return peak;
  }

  const ScheduleOptimizeArguments& arguments_;
  const pipeline::OptimizeRequest& request_;
  const pipeline::Optimized& found_;
};

absl::StatusOr<std::string> Output(const ScheduleView& view, const Report& report, const Shown& shown,
                                   const pipeline::Evaluation& evaluation) {
  absl::StatusOr<std::string> order = Render(shown, view);
  if (view.json || view.format == "json") {
    ABSL_RETURN_IF_ERROR(order.status());
    nlohmann::ordered_json json = {{"name", shown.name}, {"search", report.Json()}};
    json.update(nlohmann::ordered_json::parse(*order));
    return json.dump(2) + "\n";
  }
  if (view.format != "text") return order;
  // More passes than a picture can show.
  if (absl::IsResourceExhausted(order.status())) {
    order = reports::ScheduleFigures(shown.schedule, shown.costs, evaluation);
  }
  ABSL_RETURN_IF_ERROR(order.status());
  return absl::StrCat(report.Text(), "\n", *order);
}

}  // namespace

int ScheduleOptimize(const ScheduleOptimizeArguments& arguments) {
  const ScheduleView& view = arguments.view;
  if (const absl::Status format = CheckView(view); !format.ok()) return FailOnOneLine(format);
  absl::StatusOr<pipeline::OptimizeRequest> request = RequestOf(arguments);
  if (!request.ok()) return FailOnOneLine(request.status());
  CatchInterrupts();
  request->stop = [] { return Interrupted() != 0; };
  absl::StatusOr<pipeline::Optimized> found;
  {
    TerminalProgress progress;
    request->progress = &progress;
    found = pipeline::Optimize(*request);
  }
  if (absl::IsOutOfRange(found.status())) return FailOnOneLine(TooLarge(request->cuts, arguments.micro_batches));
  if (!found.ok()) return FailOnOneLine(found.status());
  const Report report(arguments, *request, *found);
  const Shown shown{"best order found", found->schedule, request->cuts[found->cut].costs};
  const absl::StatusOr<std::string> output = Output(view, report, shown, found->evaluation);
  if (!output.ok()) return FailOnOneLine(output.status());
  if (const absl::Status written = Write(*output, view.output); !written.ok()) return FailOnOneLine(written);
  // A table or a picture does not say what it is worth.
  if (view.format == "svg" || view.format.starts_with("torch")) std::fputs(report.Summary().c_str(), stderr);
  if (!found->stopped) return kDone;
  Warn("interrupted: the best order found so far; without the interruption a better one may follow");
  return InterruptedCode();
}

}  // namespace orrery::cli
