// How PyTorch lowers a table (torch/distributed/pipelining/schedules.py, v2.14.1), from its description: parameters
// first (UNSHARD, RESHARD), then the reduction of gradients, then messages.
#include <algorithm>
#include <cstddef>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "schedules/steps.h"
#include "schedules/text/table.h"

namespace orrery::schedules {
namespace {

// Stages whose parameters a rank keeps.
constexpr std::size_t kResident = 3;

// A cell before messages: its text, and the passes in it.
struct Item {
  std::string text;
  std::vector<Action> passes;
};

std::size_t At(std::int32_t i) { return static_cast<std::size_t>(i); }

class Lowerer {
 public:
  explicit Lowerer(const Schedule& schedule)
      : schedule_(schedule),
        forward_there_(At(schedule.stages()) * At(schedule.micro_batches)),
        gradient_there_(forward_there_.size()),
        cells_(schedule.order.size()) {
    for (std::int32_t rank = 0; rank < schedule.ranks(); ++rank)
      items_.push_back(WithReduction(rank, WithParameters(rank)));
  }

  std::vector<std::vector<std::string>> Run() {
    std::vector<std::size_t> next(items_.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < items_.size(); ++r) {
        if (next[r] == items_[r].size() || !IsReady(static_cast<std::int32_t>(r), items_[r][next[r]])) continue;
        Place(static_cast<std::int32_t>(r), items_[r][next[r]++]);
        moved = true;
      }
    }
    for (std::size_t r = 0; r < items_.size(); ++r) ORRERY_CHECK(next[r] == items_[r].size());
    return std::move(cells_);
  }

 private:
  std::int32_t StageOf(std::int32_t rank, const Action& action) const { return schedule_.StageOf(rank, action.chunk); }

  std::vector<Item> ItemsOf(std::int32_t rank) const {
    std::vector<Item> items;
    const std::vector<Action>& order = schedule_.order[At(rank)];
    for (std::size_t i = 0; i < order.size(); ++i) {
      Item item{Describe(schedule_, rank, order[i]), {order[i]}};
      if (order[i].fused) {
        item.passes.push_back(order[++i]);
        item.text = absl::StrCat("(", item.text, ";", Describe(schedule_, rank, order[i]), ")OVERLAP_F_B");
      }
      items.push_back(std::move(item));
    }
    return items;
  }

  // The next stages to run from an item on, in order, at most kResident (a block counts whole).
  std::vector<std::int32_t> NextStages(std::int32_t rank, const std::vector<Item>& items, std::size_t from) const {
    std::vector<std::int32_t> stages;
    const std::size_t most = std::min(kResident, At(schedule_.placement.ChunksOf(rank)));
    for (std::size_t i = from; i < items.size() && stages.size() < most; ++i) {
      for (const Action& pass : items[i].passes) {
        const std::int32_t stage = StageOf(rank, pass);
        if (std::find(stages.begin(), stages.end(), stage) == stages.end()) stages.push_back(stage);
      }
    }
    return stages;
  }

  std::vector<Item> WithParameters(std::int32_t rank) const {
    std::vector<Item> items;
    std::set<std::int32_t> resident;
    const auto drop = [&](std::int32_t stage) {
      resident.erase(stage);
      items.push_back({absl::StrCat(stage, "RESHARD"), {}});
    };
    const std::vector<Item> passes = ItemsOf(rank);
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const std::vector<std::int32_t> needed = NextStages(rank, passes, i);
      for (const std::int32_t stage : std::set<std::int32_t>(resident)) {
        if (std::find(needed.begin(), needed.end(), stage) == needed.end()) drop(stage);
      }
      for (const std::int32_t stage : needed) {
        if (resident.insert(stage).second) items.push_back({absl::StrCat(stage, "UNSHARD"), {}});
      }
      items.push_back(passes[i]);
    }
    for (const std::int32_t stage : std::set<std::int32_t>(resident)) drop(stage);
    return items;
  }

  // After the last weight gradient of a stage.
  std::vector<Item> WithReduction(std::int32_t rank, const std::vector<Item>& items) const {
    std::vector<std::int32_t> left(At(schedule_.placement.ChunksOf(rank)));
    const auto is_last = [](ActionKind kind) {
      return kind == ActionKind::kBackward || kind == ActionKind::kWeightGradient;
    };
    for (const Action& action : schedule_.order[At(rank)]) left[At(action.chunk)] += is_last(action.kind) ? 1 : 0;
    std::vector<Item> reduced;
    for (const Item& item : items) {
      reduced.push_back(item);
      for (const Action& pass : item.passes) {
        if (is_last(pass.kind) && --left[At(pass.chunk)] == 0) {
          reduced.push_back({absl::StrCat(StageOf(rank, pass), "REDUCE_GRAD"), {}});
        }
      }
    }
    return reduced;
  }

  // Whether the output of a stage in one direction is on the rank that needs it: computed there, or its receive posted.
  std::vector<bool>::reference There(bool forward, std::int32_t stage, std::int32_t micro_batch) {
    std::vector<bool>& there = forward ? forward_there_ : gradient_there_;
    return there[At(stage) * At(schedule_.micro_batches) + At(micro_batch)];
  }

  bool IsReady(std::int32_t rank, const Item& item) {
    return std::all_of(item.passes.begin(), item.passes.end(), [&](const Action& pass) {
      const bool forward = IsForward(pass.kind);
      if (!forward && !SendsGradient(pass.kind)) return true;
      const std::int32_t before = StageOf(rank, pass) + (forward ? -1 : 1);
      return before < 0 || before == schedule_.stages() || There(forward, before, pass.micro_batch);
    });
  }

  void Place(std::int32_t rank, const Item& item) {
    cells_[At(rank)].push_back(item.text);
    for (const Action& pass : item.passes) {
      const bool forward = IsForward(pass.kind);
      if (!forward && !SendsGradient(pass.kind)) continue;
      const std::int32_t stage = StageOf(rank, pass);
      There(forward, stage, pass.micro_batch) = true;
      const std::int32_t after = stage + (forward ? 1 : -1);
      if (after < 0 || after == schedule_.stages()) continue;
      const std::int32_t to = schedule_.PlaceOf(after, pass.micro_batch).rank;
      if (to == rank) continue;
      const char* const direction = forward ? "F" : "B";
      cells_[At(rank)].push_back(absl::StrCat(stage, "SEND_", direction, pass.micro_batch));
      cells_[At(to)].push_back(absl::StrCat(after, "RECV_", direction, pass.micro_batch));
    }
  }

  const Schedule& schedule_;
  std::vector<std::vector<Item>> items_;  // [rank]
  std::vector<bool> forward_there_;       // [stage x micro-batches + micro-batch]
  std::vector<bool> gradient_there_;
  std::vector<std::vector<std::string>> cells_;  // [rank]
};

}  // namespace

std::string WriteLoweredTable(const Schedule& schedule) {
  std::string text;
  for (const std::vector<std::string>& row : Lowerer(schedule).Run()) {
    for (std::size_t i = 0; i < row.size(); ++i) absl::StrAppend(&text, i == 0 ? "" : ",", row[i]);
    text += '\n';
  }
  return text;
}

}  // namespace orrery::schedules
