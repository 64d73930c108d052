#include "reports/memory_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/text_table.h"
#include "reports/action_names.h"

namespace orrery::reports {
namespace {

using Align = TextTable::Align;
using Json = nlohmann::ordered_json;

// A class of memory, as JSON and tables name it.
struct NamedClass {
  std::string_view key;
  Bytes memory::Ledger::*bytes;
};
constexpr std::array kClasses = {
    NamedClass{"weights", &memory::Ledger::weights},       NamedClass{"gradients", &memory::Ledger::gradients},
    NamedClass{"optimizer", &memory::Ledger::optimizer},   NamedClass{"activations", &memory::Ledger::activations},
    NamedClass{"logits", &memory::Ledger::logits},         NamedClass{"buffers", &memory::Ledger::buffers},
    NamedClass{"workspaces", &memory::Ledger::workspaces}, NamedClass{"update", &memory::Ledger::update},
    NamedClass{"runtime", &memory::Ledger::runtime},
};

std::string GiB(std::int64_t bytes) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  return FormatFixed(static_cast<double>(bytes) / kGiB, 2);
}

const training::PipelineRankResult& Fullest(const training::Result& result) {
  return *std::max_element(result.pipeline_ranks.begin(), result.pipeline_ranks.end(),
                           [](const training::PipelineRankResult& a, const training::PipelineRankResult& b) {
                             return a.memory.DevicePeak() < b.memory.DevicePeak();
                           });
}

Json RankJson(const training::PipelineRankResult& rank) {
  Json json = {{"pipeline_rank", rank.pipeline_rank}};
  for (const NamedClass& named : kClasses) json[std::string(named.key)] = (rank.memory.*named.bytes).count();
  json["allocator_peak_bytes"] = rank.memory.AllocatorPeak().count();
  return json;
}

Json PeakJson(const training::PipelineRankResult& rank) {
  if (rank.peak.update) return {{"pass", "update"}};
  Json json = {{"pass", std::string(ActionName(rank.peak.action))},
               {"chunk", rank.peak.chunk},
               {"micro_batch", rank.peak.micro_batch},
               {"operator", std::string(rank.peak.operator_name)}};
  if (rank.peak.layer >= 0) json["layer"] = rank.peak.layer;
  return json;
}

Json LiveJson(const training::Plan& plan, const training::PipelineRankResult& rank) {
  Json live = Json::array();
  for (const memory::Holder& holder : HoldersOf(plan, rank)) {
    live.push_back(
        {{"allocated_by", std::string(holder.operator_name)},
         {"class", holder.activation_class == workloads::ActivationClass::kLogits ? "logits" : "activations"},
         {"workspace", holder.workspace},
         {"bytes", holder.bytes.count()}});
  }
  return live;
}

std::string HoldersTable(const training::Result& result, const training::PipelineRankResult& rank) {
  TextTable table({{"what is live then", Align::kLeft}, {"GiB", Align::kRight}, {"share", Align::kRight}});
  const auto peak = static_cast<double>(rank.memory.DevicePeak().count());
  const auto row = [&](std::string name, Bytes bytes) {
    table.AddRow({std::move(name), GiB(bytes.count()), FormatPercent(static_cast<double>(bytes.count()) / peak)});
  };
  for (const NamedClass& named : kClasses) {
    const Bytes bytes = rank.memory.*named.bytes;
    if (named.key != "activations" && named.key != "logits" && bytes > Bytes(0)) row(std::string(named.key), bytes);
  }
  constexpr std::size_t kMostHolders = 12;
  const std::vector<memory::Holder> holders = HoldersOf(*result.plan, rank);
  Bytes rest;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const memory::Holder& holder = holders[i];
    if (i >= kMostHolders) {
      rest += holder.bytes;
      continue;
    }
    const bool logits = holder.activation_class == workloads::ActivationClass::kLogits;
    row(absl::StrCat(holder.workspace ? "workspace of "
                     : logits         ? "logits of "
                                      : "activations of ",
                     std::string(holder.operator_name)),
        holder.bytes);
  }
  if (rest > Bytes(0)) row("other activations", rest);
  return table.Render();
}

// "3.1 %": how much longer; a shorter iteration has a sign.
std::string Cost(double cost) { return absl::StrCat(cost >= 0 ? "+" : "", FormatPercent(cost)); }

std::string SetArguments(const Change& change) {
  std::string text;
  for (const std::string& given : change.overrides) {
    // A list needs quotes in a shell.
    const bool quoted = given.find_first_of("[] ") != std::string::npos;
    absl::StrAppend(&text, text.empty() ? "" : " ", "--set ", quoted ? absl::StrCat("'", given, "'") : given);
  }
  return text;
}

std::string AdviceText(const training::Result& result, const FitAdvice& advice) {
  if (result.Fits()) {
    const std::int64_t headroom = result.memory_capacity - DevicePeak(result);
    return absl::StrCat("headroom ", GiB(headroom), " GiB; micro-batches of up to ", advice.largest_micro_batch,
                        " would fit\n");
  }
  if (advice.changes.empty()) {
    return absl::StrCat("no change that was tried makes it fit (", advice.tried, " runs, alone and in pairs)\n");
  }
  TextTable table({{"cheapest changes that fit", Align::kLeft},
                   {"iteration", Align::kRight},
                   {"cost", Align::kRight},
                   {"peak GiB", Align::kRight},
                   {"arguments", Align::kLeft}});
  constexpr std::size_t kMostChanges = 5;
  for (std::size_t i = 0; i < std::min(advice.changes.size(), kMostChanges); ++i) {
    const Change& change = advice.changes[i];
    table.AddRow({change.description, FormatSeconds(change.iteration_seconds), Cost(change.cost),
                  GiB(change.device_peak_bytes), SetArguments(change)});
  }
  return table.Render();
}

Json AdviceJson(const FitAdvice& advice) {
  Json changes = Json::array();
  for (const Change& change : advice.changes) {
    changes.push_back({{"description", change.description},
                       {"set", change.overrides},
                       {"iteration_time_s", change.iteration_seconds},
                       {"cost", change.cost},
                       {"device_peak_bytes", change.device_peak_bytes}});
  }
  return changes;
}

}  // namespace

Json MemoryJson(const training::Result& result) {
  Json ranks = Json::array();
  std::int64_t allocator_peak = 0;
  for (const training::PipelineRankResult& rank : result.pipeline_ranks) {
    allocator_peak = std::max(allocator_peak, rank.memory.AllocatorPeak().count());
    ranks.push_back(RankJson(rank));
  }
  return {{"fits", result.Fits()},
          {"capacity_bytes", result.memory_capacity},
          {"allocator_peak_bytes", allocator_peak},
          {"device_peak_bytes", DevicePeak(result)},
          {"pipeline_ranks", std::move(ranks)}};
}

std::string PeakText(const training::PipelineRankResult& rank) {
  if (rank.peak.update) return "optimizer update";
  return absl::StrCat(std::string(ActionName(rank.peak.action)), " of chunk ", rank.peak.chunk, ", micro-batch ",
                      rank.peak.micro_batch);
}

std::string MemoryTable(const training::Result& result) {
  std::vector<TextTable::Column> columns = {{"GiB by pipeline rank", Align::kLeft}};
  std::vector<const NamedClass*> shown;
  for (const NamedClass& named : kClasses) {
    const bool any =
        std::any_of(result.pipeline_ranks.begin(), result.pipeline_ranks.end(),
                    [&](const training::PipelineRankResult& rank) { return rank.memory.*named.bytes > Bytes(0); });
    if (!any && named.key == "update") continue;
    shown.push_back(&named);
    columns.push_back({std::string(named.key), Align::kRight});
  }
  columns.push_back({"peak", Align::kRight});
  columns.push_back({"reached in", Align::kLeft});
  TextTable table(std::move(columns));
  for (const training::PipelineRankResult& rank : result.pipeline_ranks) {
    std::vector<std::string> cells = {absl::StrCat(rank.pipeline_rank)};
    for (const NamedClass* named : shown) cells.push_back(GiB((rank.memory.*named->bytes).count()));
    cells.push_back(GiB(rank.memory.DevicePeak().count()));
    cells.push_back(PeakText(rank));
    table.AddRow(std::move(cells));
  }
  return absl::StrCat(table.Render(), result.Fits() ? "fits: " : "DOES NOT FIT: ", GiB(DevicePeak(result)), " of ",
                      GiB(result.memory_capacity), " GiB on the fullest rank\n");
}

std::vector<memory::Holder> HoldersOf(const training::Plan& plan, const training::PipelineRankResult& rank) {
  if (rank.peak.update) return {};
  std::vector<workloads::ChunkWork> work;
  std::vector<std::vector<workloads::Operator>> split;  // by chunk: input gradients, then weight gradients
  for (std::int32_t chunk = 0; chunk < plan.chunks; ++chunk) {
    work.push_back(workloads::BuildChunk(plan.run, plan.Stage(rank.pipeline_rank, chunk)));
    for (const bool weights : {false, true}) {
      split.emplace_back();
      for (const workloads::Operator& op : work.back().backward) {
        if ((op.pass == workloads::Pass::kWeightGradient) == weights) split.back().push_back(op);
      }
    }
  }
  const std::vector<schedules::Action>& order = plan.schedule.order[static_cast<std::size_t>(rank.pipeline_rank)];
  std::vector<memory::TracedPass> passes;
  for (std::size_t i = 0; i <= rank.peak.pass; ++i) {
    const schedules::Action& action = order[i];
    const auto chunk = static_cast<std::size_t>(action.chunk);
    const auto operators = [&]() -> const std::vector<workloads::Operator>& {
      switch (action.kind) {
        case schedules::ActionKind::kForward:
          return work[chunk].forward;
        case schedules::ActionKind::kBackward:
          return work[chunk].backward;
        case schedules::ActionKind::kInputGradient:
          return split[2 * chunk];
        case schedules::ActionKind::kWeightGradient:
          break;
      }
      return split[2 * chunk + 1];
    };
    passes.push_back({operators(), action.chunk, action.micro_batch});
  }
  return memory::HoldersAtPeak(passes);
}

Reserved ReservedOf(const training::Result& result, const training::PipelineRankResult& rank) {
  const v1::Profile& profile = result.plan->run.cluster().accelerator().profile();
  const auto peak = static_cast<double>(rank.memory.AllocatorPeak().count());
  return {.low = std::llround(peak * (1 + profile.fragmentation_low().value())),
          .high = std::llround(peak * (1 + profile.fragmentation_high().value()))};
}

std::string MemoryReportText(const training::Result& result, const FitAdvice& advice) {
  const training::PipelineRankResult& rank = Fullest(result);
  const Reserved reserved = ReservedOf(result, rank);
  std::string text =
      absl::StrCat(MemoryTable(result), "\n", "peak of pipeline rank ", rank.pipeline_rank, ": ", PeakText(rank));
  if (!rank.peak.update) {
    absl::StrAppend(&text, ", in ", std::string(rank.peak.operator_name));
    if (rank.peak.layer >= 0) absl::StrAppend(&text, " of layer ", rank.peak.layer);
  }
  absl::StrAppend(&text, "\n", HoldersTable(result, rank), "with fragmentation the allocator holds ", GiB(reserved.low),
                  " to ", GiB(reserved.high), " GiB of the device, and with the runtime ",
                  GiB(reserved.low + rank.memory.runtime.count()), " to ",
                  GiB(reserved.high + rank.memory.runtime.count()), "\n\n", AdviceText(result, advice));
  return text;
}

std::string MemoryReportJson(const training::Result& result, const FitAdvice& advice) {
  Json json = MemoryJson(result);
  for (std::size_t i = 0; i < result.pipeline_ranks.size(); ++i) {
    const training::PipelineRankResult& rank = result.pipeline_ranks[i];
    const Reserved reserved = ReservedOf(result, rank);
    Json& entry = json["pipeline_ranks"][i];
    entry["device_peak_bytes"] = rank.memory.DevicePeak().count();
    entry["reserved_low_bytes"] = reserved.low;
    entry["reserved_high_bytes"] = reserved.high;
    entry["peak"] = PeakJson(rank);
    entry["live"] = LiveJson(*result.plan, rank);
  }
  json["iteration_time_s"] = SecondsFromTime(result.iteration_time);
  if (result.Fits()) json["largest_micro_batch"] = advice.largest_micro_batch;
  json["advice"] = AdviceJson(advice);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery::reports
