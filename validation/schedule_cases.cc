#include "validation/schedule_cases.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "schedules/text/table.h"

namespace orrery::validation {
namespace {

using schedules::Action;
using schedules::ActionKind;
using schedules::Family;
using schedules::Parameters;
using schedules::PlanningCosts;
using schedules::Schedule;

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

constexpr std::pair<std::string_view, std::string_view> kFamilies[] = {
    {"GPipe", "gpipe"},
    {"1F1B", "1f1b"},
    {"Interleaved1F1B", "interleaved-1f1b-torch"},
    {"interleaved 1F1B", "interleaved-1f1b"},
    {"interleave", "interleaved-1f1b"},
    {"LoopedBFS", "looped-bfs"},
    {"InterleavedZeroBubble", "interleaved-zb"},
    {"ZB-H1 (handcrafted)", "zb-h1"},
    {"zb1p", "zb-h1"},
    {"ZB-H2 (handcrafted)", "zb-h2"},
    {"combined-1F1B (EP A2A overlap)", "combined-1f1b"},
    {"1f1b_interleave_overlap", "combined-1f1b"},
    {"1f1b_overlap", "1f1b-overlap"},
    {"Seq1F1B", "seq1f1b"},
    {"grouped interleaved 1F1B (PipeOffload)", "grouped-1f1b"},
    {"1F1B-V", "1f1b-v"},
    {"ZBVZeroBubble", "zb-v"},
    {"V-Half", "v-half"},
    {"V-Min", "v-min"},
    {"DualPipeV", "dualpipe-v"},
    {"dualpipev", "dualpipe-v"},
    {"dualpipe_v", "dualpipe-v"},
    {"Chimera (direct concatenation)", "chimera"},
    {"ZB automatic (heuristic)", "zb-auto"},
    {"ZB automatic (ILP)", "zb-auto"},
    {"ZB-V (greedy auto)", "zb-v-greedy"},
    {"V adaptive (controllable memory search)", "v-auto"},
};

// A cell such as "(1SEND_F0;1RECV_F1)BATCH".
bool IsBatchOfMessages(std::string_view cell) {
  return cell.ends_with(")BATCH") || cell.ends_with(")POST") || cell.ends_with(")WAIT");
}

// Micro-batches in a row through the first chunk of a rank; 0 where it has one chunk.
std::int32_t GroupSizeOf(const Schedule& schedule) {
  std::int32_t group = 0;
  for (const Action& action : schedule.order.front()) {
    if (action.kind != ActionKind::kForward) continue;
    if (action.chunk != 0) return group;
    ++group;
  }
  return 0;
}

// The number after `tag`, whatever its sign.
std::optional<std::int64_t> NumberAfter(std::string_view text, std::string_view tag) {
  const std::size_t at = text.find(tag);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + tag.size());
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
  return value < 0 ? -value : value;
}

absl::Status UnknownLimit(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("mem_limit \"", View(text),
                   "\"; allowed: as in \"12 (mem_f=2 mem_b=-1 mem_w=-1)\", \"2*p*M_B, M_B=34h+5as=201216 "
                   "M_W=32h=73728\" or \"4 chunk activations\""));
}

absl::Status ReadLimit(std::string_view text, std::int64_t ranks, PlanningCosts& planning) {
  if (text.empty()) return absl::OkStatus();
  const auto set = [](const std::optional<std::int64_t>& value, std::int64_t& field) {
    if (value.has_value()) field = *value;
  };
  set(NumberAfter(text, "mem_f="), planning.memory.forward);
  set(NumberAfter(text, "mem_w="), planning.memory.weight);
  set(NumberAfter(text, "5as="), planning.memory.forward);
  set(NumberAfter(text, "32h="), planning.memory.weight);
  const bool in_activations = text.find("chunk activations") != std::string_view::npos;
  if (in_activations) planning.memory = {.forward = 1, .weight = 1};
  if (text.starts_with("None")) return absl::OkStatus();
  const absl::StatusOr<std::int64_t> given =
      ParseDecimal(text.substr(0, std::min(text.find_first_not_of("0123456789."), text.size())));
  if (!given.ok() || *given % kDecimalOne != 0) return UnknownLimit(text);
  const std::int64_t unit = text.find("*p*M_B") != std::string_view::npos ? ranks * planning.memory.forward : 1;
  planning.memory_limit = *given / kDecimalOne * unit;
  return absl::OkStatus();
}

}  // namespace

const Family* FamilyOfSchedule(std::string_view schedule) {
  const auto* const found = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                         [&](const auto& entry) { return entry.first == schedule; });
  const absl::StatusOr<const Family*> family =
      schedules::FindFamily(found == std::end(kFamilies) ? schedule : found->second);
  return family.ok() ? *family : nullptr;
}

absl::StatusOr<Schedule> ReadCaseTable(std::string_view text, std::string_view name) {
  std::string passes;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(",\r\n");
    const std::string_view cell = text.substr(0, end);
    if (!IsBatchOfMessages(cell)) passes += cell;
    text.remove_prefix(cell.size());
    if (text.empty()) break;
    passes += text.front();
    text.remove_prefix(1);
  }
  return schedules::ReadTable(passes, name);
}

absl::StatusOr<PlanningCosts> PlanningOfCase(const Record& record) {
  PlanningCosts planning;
  std::int64_t costs[] = {kDecimalOne, kDecimalOne, kDecimalOne, 0};
  constexpr std::string_view kColumns[] = {"F", "B", "W", "comm"};
  for (std::size_t i = 0; i < std::size(kColumns); ++i) {
    if (record.Blank(kColumns[i])) continue;
    const absl::StatusOr<std::int64_t> cost = ParseDecimal(record.Text(kColumns[i]));
    if (!cost.ok()) return absl::InvalidArgumentError(absl::StrCat(View(kColumns[i]), ": ", cost.status().message()));
    costs[i] = *cost;
  }
  // Small integers where they are ones.
  std::int64_t unit = 0;
  for (const std::int64_t cost : costs) unit = std::gcd(unit, cost);
  if (unit > 0) {
    for (std::int64_t& cost : costs) cost /= unit;
  }
  planning.stages = {{costs[0], costs[1], costs[2]}};
  planning.latency = costs[3];
  ABSL_ASSIGN_OR_RETURN(const std::int64_t ranks, record.Positive("p"));
  ABSL_RETURN_IF_ERROR(ReadLimit(record.Text("mem_limit"), ranks, planning));
  return planning;
}

absl::StatusOr<std::vector<const Family*>> FamiliesOfCase(const Record& record) {
  const Family* const family = FamilyOfSchedule(record.Text("schedule"));
  if (family == nullptr) return std::vector<const Family*>();
  std::vector<const Family*> families = {family};
  if (family->name != "zb-auto") return families;
  ABSL_ASSIGN_OR_RETURN(const PlanningCosts planning, PlanningOfCase(record));
  ABSL_ASSIGN_OR_RETURN(const std::int64_t ranks, record.Positive("p"));
  const std::int64_t multiple = ranks * planning.memory.forward;
  for (const auto& [name, limit] : {std::pair{"zb-1p", multiple}, {"zb-2p", 2 * multiple}}) {
    if (planning.memory_limit != limit) continue;
    ABSL_ASSIGN_OR_RETURN(const Family* const named, schedules::FindFamily(name));
    families.push_back(named);
  }
  return families;
}

absl::StatusOr<Parameters> ParametersOfCase(const Record& record, const Family& family, const Schedule& table) {
  Parameters parameters;
  const auto read = [&](std::string_view column, std::int32_t& field) {
    const absl::StatusOr<std::int64_t> value = record.Positive(column);
    if (!value.ok()) return value.status();
    if (*value > std::numeric_limits<std::int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat(View(column), " = ", *value, "; allowed: below 2^31"));
    }
    field = static_cast<std::int32_t>(*value);
    return absl::OkStatus();
  };
  ABSL_RETURN_IF_ERROR(read("p", parameters.ranks));
  ABSL_RETURN_IF_ERROR(read("m", parameters.micro_batches));
  parameters.chunks = family.fixed_chunks;
  if (family.fixed_chunks == 0) ABSL_RETURN_IF_ERROR(read("v", parameters.chunks));
  if (table.micro_batches % parameters.micro_batches == 0) {
    parameters.slices = table.micro_batches / parameters.micro_batches;
  }
  if (table.placement.pipelines() > 1) parameters.pipelines = table.placement.pipelines();
  parameters.group_size = GroupSizeOf(table);
  if (family.automatic) {
    ABSL_ASSIGN_OR_RETURN(parameters.planning, PlanningOfCase(record));
  }
  return parameters;
}

}  // namespace orrery::validation
