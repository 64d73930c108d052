#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/text/cell.h"
#include "schedules/text/table.h"

namespace orrery::schedules {
namespace {

// Keeps a table of nonsense from taking all memory: an action takes some 40 bytes.
constexpr std::size_t kMostActions = std::size_t{1} << 23;

std::size_t At(std::int32_t i) { return static_cast<std::size_t>(i); }

std::string TextOf(const CellAction& action) {
  std::string text = absl::StrCat(action.stage, std::string(NameOf(action.verb)));
  if (IsPass(action.verb) || IsMessage(action.verb)) absl::StrAppend(&text, action.micro_batch);
  return text;
}

// An action and where it stands.
struct Entry {
  CellAction action;
  std::int32_t rank = 0;
  int line = 0;
  std::int32_t cell = 0;  // from 0
  bool fused = false;     // with the next entry
};

struct Table {
  std::string name;
  std::vector<Entry> entries;  // by rank, in order
  std::int32_t ranks = 0;
  std::int32_t stages = 0;
  std::int32_t micro_batches = 0;
  bool lowered = false;
  bool has_gaps = false;  // an idle slot before an action

  template <typename... What>
  absl::Status Wrong(const Entry& entry, const What&... what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": line ", entry.line, ", cell ", entry.cell + 1, ": ", TextOf(entry.action), " ", what...));
  }
};

// --- Rows and cells.

class Splitter {
 public:
  Splitter(std::string_view text, Table& table) : text_(text), table_(table) {}

  absl::Status Run() {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
    for (int line = 1; !text_.empty(); ++line) {
      std::string_view row = text_.substr(0, text_.find('\n'));
      text_.remove_prefix(std::min(text_.size(), row.size() + 1));
      if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
      if (row.find_first_not_of(" \t") == std::string_view::npos) continue;
      ABSL_RETURN_IF_ERROR(AddRow(line, row));
    }
    if (table_.ranks == 0)
      return absl::InvalidArgumentError(absl::StrCat(table_.name, ": no row; allowed: one per rank"));
    return absl::OkStatus();
  }

 private:
  absl::Status AddRow(int line, std::string_view row) {
    const std::size_t before = table_.entries.size();
    std::int32_t cell = 0;
    bool gap = false;
    for (bool more = true; more; ++cell) {
      const std::string_view text = row.substr(0, row.find(','));
      more = text.size() < row.size();
      row.remove_prefix(text.size() + (more ? 1 : 0));
      const absl::StatusOr<std::vector<CellAction>> actions = ParseCell(text);
      if (!actions.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat(table_.name, ": line ", line, ", cell ", cell + 1, ": ", actions.status().message()));
      }
      if (actions->empty()) gap = true;
      for (std::size_t i = 0; i < actions->size(); ++i) {
        table_.entries.push_back({(*actions)[i], table_.ranks, line, cell, i + 1 < actions->size()});
        table_.lowered = table_.lowered || !IsPass((*actions)[i].verb);
        table_.has_gaps = table_.has_gaps || gap;
      }
      if (table_.entries.size() > kMostActions) {
        return absl::InvalidArgumentError(
            absl::StrCat(table_.name, ": line ", line, ": more than ", kMostActions, " actions; allowed: fewer"));
      }
    }
    if (table_.entries.size() == before) {
      return absl::InvalidArgumentError(absl::StrCat(table_.name, ": line ", line, ": rank ", table_.ranks,
                                                     " runs nothing; allowed: one action or more"));
    }
    ++table_.ranks;
    return absl::OkStatus();
  }

  std::string_view text_;
  Table& table_;
};

// --- Where stages and micro-batches run.

class Inference {
 public:
  explicit Inference(Table& table) : table_(table) {}

  absl::StatusOr<Schedule> Run() {
    ABSL_RETURN_IF_ERROR(CountStages());
    ABSL_RETURN_IF_ERROR(FindRanks());
    ABSL_RETURN_IF_ERROR(CheckPlaces());
    ABSL_RETURN_IF_ERROR(FindPipelines());
    return Build();
  }

  std::int32_t RankOf(std::int32_t stage, std::int32_t micro_batch) const {
    return table_.entries[forward_[IndexOf(stage, micro_batch)]].rank;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::size_t IndexOf(std::int32_t stage, std::int32_t micro_batch) const {
    return At(micro_batch) * At(table_.stages) + At(stage);
  }

  // Before anything of that size is allocated: a complete table has a forward pass for each stage and micro-batch.
  absl::Status CountStages() {
    const Entry* last_stage = &table_.entries.front();
    const Entry* last_micro_batch = last_stage;
    std::int64_t forward_passes = 0;
    for (const Entry& entry : table_.entries) {
      if (!IsPass(entry.action.verb)) continue;
      if (entry.action.verb == Verb::kForward) ++forward_passes;
      if (entry.action.stage > last_stage->action.stage) last_stage = &entry;
      if (entry.action.micro_batch > last_micro_batch->action.micro_batch) last_micro_batch = &entry;
    }
    const std::int64_t stages = std::int64_t{last_stage->action.stage} + 1;
    const std::int64_t micro_batches = std::int64_t{last_micro_batch->action.micro_batch} + 1;
    if (stages * micro_batches > 2 * forward_passes + 2) {
      return table_.Wrong(stages > micro_batches ? *last_stage : *last_micro_batch, "makes ", stages, " stages and ",
                          micro_batches, " micro-batches, for which the table has ", forward_passes,
                          " forward passes; allowed: numbers from 0 on, with one for each stage and micro-batch");
    }
    table_.stages = static_cast<std::int32_t>(stages);
    table_.micro_batches = static_cast<std::int32_t>(micro_batches);
    return absl::OkStatus();
  }

  absl::Status FindRanks() {
    forward_.assign(At(table_.stages) * At(table_.micro_batches), kNone);
    for (std::size_t i = 0; i < table_.entries.size(); ++i) {
      const Entry& entry = table_.entries[i];
      if (entry.action.verb != Verb::kForward) continue;
      std::size_t& forward = forward_[IndexOf(entry.action.stage, entry.action.micro_batch)];
      if (forward != kNone) {
        const Entry& first = table_.entries[forward];
        return table_.Wrong(entry, "stands in line ", first.line, ", cell ", first.cell + 1,
                            " already; allowed: once for each stage and micro-batch");
      }
      forward = i;
    }
    for (std::int32_t k = 0; k < table_.micro_batches; ++k) {
      for (std::int32_t stage = 0; stage < table_.stages; ++stage) {
        if (forward_[IndexOf(stage, k)] != kNone) continue;
        ABSL_RETURN_IF_ERROR(CheckNobodyWaits(stage, k));
        return absl::InvalidArgumentError(absl::StrCat(table_.name, ": no rank runs ", stage, "F", k,
                                                       "; allowed: stages 0 to ", table_.stages - 1,
                                                       " run micro-batches 0 to ", table_.micro_batches - 1));
      }
    }
    return absl::OkStatus();
  }

  // A pass that no rank runs is a deadlock where some pass needs it, and a gap in the table otherwise. The forward pass
  // of `stage` is missing; without it so is the backward pass.
  absl::Status CheckNobodyWaits(std::int32_t stage, std::int32_t micro_batch) const {
    const Entry* for_backward = nullptr;
    for (const Entry& entry : table_.entries) {
      const CellAction& action = entry.action;
      if (!IsPass(action.verb) || action.verb == Verb::kWeightGradient || action.micro_batch != micro_batch) continue;
      const bool forward = action.verb == Verb::kForward;
      if (action.stage == (forward ? stage + 1 : stage)) return NobodyRuns(entry, stage, 'F');
      if (!forward && action.stage == stage - 1 && for_backward == nullptr) for_backward = &entry;
    }
    return for_backward == nullptr ? absl::OkStatus() : NobodyRuns(*for_backward, stage, 'B');
  }

  absl::Status NobodyRuns(const Entry& entry, std::int32_t stage, char kind) const {
    return absl::FailedPreconditionError(absl::StrCat(table_.name, ": the table deadlocks: rank ", entry.rank, " at ",
                                                      TextOf(entry.action), " (line ", entry.line, ", cell ",
                                                      entry.cell + 1, ") waits for ", stage, std::string(1, kind),
                                                      entry.action.micro_batch, ", which no rank runs"));
  }

  // Everything of a stage and micro-batch stands on the rank of its forward pass, once.
  absl::Status CheckPlaces() const {
    std::vector<std::uint8_t> done(forward_.size());
    for (const Entry& entry : table_.entries) {
      const CellAction& action = entry.action;
      if (!IsPass(action.verb)) continue;
      const std::int32_t rank = RankOf(action.stage, action.micro_batch);
      if (entry.rank != rank) {
        return table_.Wrong(entry, "stands on rank ", entry.rank, ", allowed: rank ", rank, ", which runs ",
                            action.stage, "F", action.micro_batch);
      }
      const unsigned produces = action.verb == Verb::kForward          ? 1
                                : action.verb == Verb::kInputGradient  ? 2
                                : action.verb == Verb::kWeightGradient ? 4
                                                                       : 6;
      std::uint8_t& so_far = done[IndexOf(action.stage, action.micro_batch)];
      if ((so_far & produces) != 0)
        return table_.Wrong(entry, "repeats what the rank has run; allowed: B, or I and W, once");
      so_far = static_cast<std::uint8_t>(so_far | produces);
    }
    return absl::OkStatus();
  }

  // Micro-batches that run all stages on the same ranks share a pipeline.
  absl::Status FindPipelines() {
    std::map<std::vector<std::int32_t>, std::int32_t> pipelines;
    for (std::int32_t k = 0; k < table_.micro_batches; ++k) {
      std::vector<std::int32_t> ranks(At(table_.stages));
      for (std::int32_t stage = 0; stage < table_.stages; ++stage) ranks[At(stage)] = RankOf(stage, k);
      const auto [found, is_new] = pipelines.emplace(std::move(ranks), static_cast<std::int32_t>(pipelines.size()));
      pipeline_of_.push_back(found->second);
      if (!is_new) continue;
      for (const std::int32_t other : first_of_) {
        for (std::int32_t stage = 0; stage < table_.stages; ++stage) {
          if (RankOf(stage, other) == RankOf(stage, k)) return NoPipeline(k, other, stage);
        }
      }
      first_of_.push_back(k);
    }
    return absl::OkStatus();
  }

  // Micro-batches `k` and `other` run `shared` on one rank, and another stage on two.
  absl::Status NoPipeline(std::int32_t k, std::int32_t other, std::int32_t shared) const {
    std::int32_t apart = 0;
    while (RankOf(apart, other) == RankOf(apart, k)) ++apart;
    return table_.Wrong(table_.entries[forward_[IndexOf(apart, k)]], "stands on rank ", RankOf(apart, k), " and ",
                        apart, "F", other, " on rank ", RankOf(apart, other), ", while both micro-batches run stage ",
                        shared, " on rank ", RankOf(shared, k),
                        "; allowed: one rank for each stage, or copies of the model that share no stage's rank");
  }

  absl::StatusOr<Schedule> Build() const {
    std::vector<std::vector<Held>> held(At(table_.ranks));
    for (std::size_t pipeline = 0; pipeline < first_of_.size(); ++pipeline) {
      for (std::int32_t stage = 0; stage < table_.stages; ++stage) {
        held[At(RankOf(stage, first_of_[pipeline]))].push_back({stage, static_cast<std::int32_t>(pipeline)});
      }
    }
    absl::StatusOr<Placement> placement = Placement::Of(std::move(held));
    if (!placement.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(table_.name, ": ", placement.status().message()));
    }
    Schedule schedule{*std::move(placement), table_.micro_batches, {}};
    if (first_of_.size() > 1) schedule.pipeline_of = pipeline_of_;
    schedule.order.resize(At(table_.ranks));
    const bool has_slots = table_.has_gaps && !table_.lowered;
    if (has_slots) schedule.slots.resize(At(table_.ranks));
    for (const Entry& entry : table_.entries) {
      const CellAction& action = entry.action;
      if (!IsPass(action.verb)) continue;
      schedule.order[At(entry.rank)].push_back({static_cast<ActionKind>(action.verb),
                                                schedule.PlaceOf(action.stage, action.micro_batch).chunk,
                                                action.micro_batch, false, entry.fused});
      if (has_slots) schedule.slots[At(entry.rank)].push_back(entry.cell);
    }
    return schedule;
  }

  Table& table_;
  std::vector<std::size_t> forward_;       // [micro-batch x stages + stage]: entry
  std::vector<std::int32_t> pipeline_of_;  // [micro-batch]
  std::vector<std::int32_t> first_of_;     // [pipeline]: its first micro-batch
};

// --- Communication of lowered tables.

class CommunicationCheck {
 public:
  CommunicationCheck(const Table& table, const Schedule& schedule)
      : table_(table), schedule_(schedule), seen_(At(table.stages) * At(table.micro_batches)) {}

  absl::Status Run() {
    bool any = false;
    for (const Entry& entry : table_.entries) {
      any = any || IsMessage(entry.action.verb);
      ABSL_RETURN_IF_ERROR(IsPass(entry.action.verb) ? CheckPass(entry) : CheckCommunication(entry));
    }
    if (!any) return absl::OkStatus();
    for (const Entry& entry : table_.entries) ABSL_RETURN_IF_ERROR(CheckComplete(entry));
    return absl::OkStatus();
  }

 private:
  // What has been met of a stage and micro-batch, a bit each.
  unsigned Bit(Verb verb) const { return 1U << static_cast<unsigned>(verb); }
  std::uint16_t& Seen(const CellAction& action) {
    return seen_[At(action.stage) * At(table_.micro_batches) + At(action.micro_batch)];
  }
  void See(const CellAction& action) {
    Verb verb = action.verb;
    if (verb == Verb::kInputGradient) verb = Verb::kBackward;
    Seen(action) = static_cast<std::uint16_t>(Seen(action) | Bit(verb));
  }

  // The stage that a message comes from or goes to, if it is on another rank.
  bool IsBetweenRanks(const CellAction& action) const {
    const bool up = action.verb == Verb::kSendForward || action.verb == Verb::kReceiveBackward;
    const std::int32_t other = action.stage + (up ? 1 : -1);
    if (other < 0 || other >= table_.stages) return false;
    return schedule_.PlaceOf(other, action.micro_batch).rank !=
           schedule_.PlaceOf(action.stage, action.micro_batch).rank;
  }

  absl::Status CheckPass(const Entry& entry) {
    See(entry.action);
    return absl::OkStatus();
  }

  absl::Status CheckCommunication(const Entry& entry) {
    const CellAction& action = entry.action;
    if (action.stage >= table_.stages) {
      return table_.Wrong(entry, "names a stage that runs nothing; allowed: 0 to ", table_.stages - 1);
    }
    if (!IsMessage(action.verb)) return CheckHeld(entry);
    if (action.micro_batch >= table_.micro_batches) {
      return table_.Wrong(entry, "names a micro-batch that runs nowhere; allowed: 0 to ", table_.micro_batches - 1);
    }
    const std::int32_t rank = schedule_.PlaceOf(action.stage, action.micro_batch).rank;
    if (entry.rank != rank) return table_.Wrong(entry, "stands on rank ", entry.rank, ", allowed: rank ", rank);
    if (!IsBetweenRanks(action))
      return table_.Wrong(entry, "is no message between ranks; allowed: where one is needed");
    const unsigned seen = Seen(action);
    if ((seen & Bit(action.verb)) != 0) return table_.Wrong(entry, "stands there twice; allowed: once");
    const bool forward = action.verb == Verb::kSendForward || action.verb == Verb::kReceiveForward;
    const bool has_run = (seen & Bit(forward ? Verb::kForward : Verb::kBackward)) != 0;
    const bool sends = action.verb == Verb::kSendForward || action.verb == Verb::kSendBackward;
    if (sends && !has_run) return table_.Wrong(entry, "comes before what it sends; allowed: after it");
    if (!sends && has_run) return table_.Wrong(entry, "comes after the pass that needs it; allowed: before it");
    See(action);
    return absl::OkStatus();
  }

  // UNSHARD, RESHARD and REDUCE_GRAD: some copy of the stage is on the rank.
  absl::Status CheckHeld(const Entry& entry) const {
    for (std::int32_t chunk = 0; chunk < schedule_.placement.ChunksOf(entry.rank); ++chunk) {
      if (schedule_.StageOf(entry.rank, chunk) == entry.action.stage) return absl::OkStatus();
    }
    return table_.Wrong(entry, "stands on rank ", entry.rank,
                        ", which does not hold the stage; allowed: where it is held");
  }

  absl::Status CheckComplete(const Entry& entry) {
    CellAction message = entry.action;
    std::vector<Verb> needed;
    if (entry.action.verb == Verb::kForward) needed = {Verb::kReceiveForward, Verb::kSendForward};
    if (entry.action.verb == Verb::kBackward || entry.action.verb == Verb::kInputGradient) {
      needed = {Verb::kReceiveBackward, Verb::kSendBackward};
    }
    for (const Verb verb : needed) {
      message.verb = verb;
      if (!IsBetweenRanks(message) || (Seen(message) & Bit(verb)) != 0) continue;
      return table_.Wrong(entry, "lacks ", TextOf(message), "; allowed: all messages, or none");
    }
    return absl::OkStatus();
  }

  const Table& table_;
  const Schedule& schedule_;
  std::vector<std::uint16_t> seen_;
};

}  // namespace

absl::StatusOr<Schedule> ReadTable(std::string_view text, std::string_view name) {
  Table table;
  table.name = std::string(name);
  ABSL_RETURN_IF_ERROR(Splitter(text, table).Run());
  ABSL_ASSIGN_OR_RETURN(Schedule schedule, Inference(table).Run());
  if (table.lowered) ABSL_RETURN_IF_ERROR(CommunicationCheck(table, schedule).Run());
  return schedule;
}

}  // namespace orrery::schedules
