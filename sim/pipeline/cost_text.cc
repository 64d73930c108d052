#include "sim/pipeline/cost_text.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/csv.h"
#include "base/decimal.h"
#include "base/status_macros.h"

namespace orrery::pipeline {
namespace {

using schedules::ActionKind;
using schedules::PassCosts;

constexpr char kAllowed[] = "allowed: F, I, W (or B), comm and block, as in F=1,I=1,W=1,comm=0.1,block=3";

}  // namespace

absl::StatusOr<GivenCosts> ParseCosts(std::string_view text) {
  std::pair<std::string_view, std::optional<std::int64_t>> items[] = {{"F", {}}, {"I", {}},    {"W", {}},
                                                                      {"B", {}}, {"comm", {}}, {"block", {}}};
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::string_view name = item.substr(0, equals);
    const auto found = std::find_if(std::begin(items), std::end(items), [&](const auto& i) { return i.first == name; });
    if (equals == item.size() || found == std::end(items)) {
      return absl::InvalidArgumentError(absl::StrCat("costs: \"", std::string(item), "\"; ", kAllowed));
    }
    if (found->second.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("costs: ", std::string(name), " twice; allowed: once"));
    }
    const absl::StatusOr<std::int64_t> value = ParseDecimal(item.substr(equals + 1));
    if (!value.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("costs: ", std::string(name), " = ", value.status().message()));
    }
    found->second = *value;
  }
  const auto& [forward, input, weight, backward, latency, block] = items;
  if (backward.second.has_value() && (input.second.has_value() || weight.second.has_value())) {
    return absl::InvalidArgumentError("costs: B beside I or W; allowed: I and W, or B = I + W alone");
  }
  GivenCosts costs;
  costs.forward = forward.second.value_or(kDecimalOne);
  costs.backward = backward.second;
  costs.input_gradient = input.second.value_or(kDecimalOne);
  costs.weight_gradient = weight.second.value_or(kDecimalOne);
  costs.latency = latency.second.value_or(0);
  costs.block = block.second;
  return costs;
}

bool NeedsSplit(const schedules::Schedule& schedule) {
  return std::any_of(schedule.order.begin(), schedule.order.end(), [](const std::vector<schedules::Action>& order) {
    return std::any_of(order.begin(), order.end(), [](const schedules::Action& action) {
      return action.kind == ActionKind::kInputGradient || action.kind == ActionKind::kWeightGradient;
    });
  });
}

absl::StatusOr<std::vector<PassCosts>> ReadStageCosts(std::string_view text, std::string_view name) {
  ABSL_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Parse(text, name));
  ABSL_ASSIGN_OR_RETURN(const std::size_t stage_column, table.Column("stage"));
  std::size_t columns[3] = {};
  constexpr const char* kNames[] = {"F", "I", "W"};
  for (std::size_t i = 0; i < 3; ++i) {
    ABSL_ASSIGN_OR_RETURN(columns[i], table.Column(kNames[i]));
  }
  const std::size_t stages = table.rows().size();
  if (stages == 0)
    return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": no stage; allowed: all of them"));
  std::vector<std::optional<PassCosts>> costs(stages);
  for (const CsvRow& row : table.rows()) {
    const auto wrong = [&](const auto&... what) {
      return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": line ", row.line, ": ", what...));
    };
    const std::string& cell = row.cells[stage_column];
    std::size_t stage = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), stage);
    if (error != std::errc() || end != cell.data() + cell.size() || stage >= stages) {
      return wrong("stage \"", cell, "\"; allowed: 0 to ", stages - 1, ", the rows of the table");
    }
    if (costs[stage].has_value()) return wrong("stage ", stage, " twice; allowed: once");
    std::int64_t values[3] = {};
    for (std::size_t i = 0; i < 3; ++i) {
      const absl::StatusOr<std::int64_t> value = ParseDecimal(row.cells[columns[i]]);
      if (!value.ok()) return wrong(kNames[i], " = ", value.status().message());
      values[i] = *value;
    }
    costs[stage] = PassCosts{values[0], values[1], values[2]};
  }
  // As many rows as stages, none twice: none is missing.
  std::vector<PassCosts> all;
  for (const std::optional<PassCosts>& stage : costs) all.push_back(stage.value_or(PassCosts{}));
  return all;
}

Costs CostsOf(const GivenCosts& given, std::vector<PassCosts> stages) {
  Costs costs;
  costs.stages = std::move(stages);
  if (costs.stages.empty()) {
    const bool split = !given.backward.has_value();
    costs.stages = {{given.forward, given.backward.value_or(given.input_gradient), split ? given.weight_gradient : 0}};
  }
  costs.latency = given.latency;
  costs.block = given.block;
  costs.memory = {.forward = 2, .weight = 1};
  return costs;
}

}  // namespace orrery::pipeline
