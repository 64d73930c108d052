// Hanayo: waves of stages up and down the ranks, full backward passes. No public generator defines an order, so this is
// the order of a greedy execution in slots of one forward pass, a backward pass taking two, messages none: whenever a
// rank is free, it runs what is *due* first of what has its inputs. On v chunks per rank and S = p v stages,
// micro-batch k is due at 3 v k + s forward on stage s, where it would start, and at 3 v k + 3 S - 2 s backward, where
// it would end, had it the ranks for itself; 3 v is what a micro-batch takes on every rank. Ties: backward before
// forward, then the lower chunk. Stage 0 starts a micro-batch only if less than 2 p of them have not come back to it.
#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/families.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "hanayo";
constexpr std::int32_t kForwardSlots = 1;
constexpr std::int32_t kBackwardSlots = 2;

absl::Status Check(const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckCommon(kName, parameters));
  if (parameters.chunks % 2 == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("hanayo: chunks = ", parameters.chunks, " (virtual_stages)",
                                                 ", allowed: even numbers from 2, two stages per rank for every wave"));
}

class Greedy {
 public:
  explicit Greedy(const Parameters& parameters)
      : micro_batches_(parameters.micro_batches),
        in_flight_(2 * parameters.ranks),
        forward_(At(parameters.ranks * parameters.chunks), Stage(micro_batches_)),
        backward_(forward_),
        free_(At(parameters.ranks)),
        schedule_{Placement::Wave(parameters.ranks, parameters.chunks), micro_batches_, {}} {
    schedule_.order.resize(At(parameters.ranks));
  }

  Schedule Run() {
    std::int64_t left = std::int64_t{2} * schedule_.stages() * micro_batches_;
    for (std::int32_t now = 0; left > 0; ++now) {
      for (std::int32_t rank = 0; rank < schedule_.ranks(); ++rank) {
        if (free_[At(rank)] <= now && RunFirstDue(rank, now)) --left;
      }
    }
    return std::move(schedule_);
  }

 private:
  // Passes of a stage in one direction, micro-batch after micro-batch.
  struct Stage {
    explicit Stage(std::int32_t micro_batches) : end(At(micro_batches)) {}
    bool Has(std::int32_t k, std::int32_t now) const { return k < next && end[At(k)] <= now; }

    std::int32_t next = 0;
    std::vector<std::int32_t> end;  // of those before `next`
  };

  static std::size_t At(std::int32_t i) { return static_cast<std::size_t>(i); }

  bool ForwardReady(std::int32_t stage, std::int32_t k, std::int32_t now) const {
    return stage > 0 ? forward_[At(stage - 1)].Has(k, now) : k - backward_.front().next < in_flight_;
  }
  bool BackwardReady(std::int32_t stage, std::int32_t k, std::int32_t now) const {
    return stage + 1 < schedule_.stages() ? backward_[At(stage + 1)].Has(k, now) : forward_[At(stage)].Has(k, now);
  }

  bool RunFirstDue(std::int32_t rank, std::int32_t now) {
    const std::int32_t stages = schedule_.stages();
    const std::int64_t period = std::int64_t{kForwardSlots + kBackwardSlots} * schedule_.chunks();
    std::int64_t first_due = -1;
    Action first;
    for (const ActionKind kind : {ActionKind::kBackward, ActionKind::kForward}) {
      const bool forward = kind == ActionKind::kForward;
      for (std::int32_t chunk = 0; chunk < schedule_.chunks(); ++chunk) {
        const std::int32_t stage = schedule_.StageOf(rank, chunk);
        const std::int32_t k = (forward ? forward_ : backward_)[At(stage)].next;
        if (k == micro_batches_ || !(forward ? ForwardReady(stage, k, now) : BackwardReady(stage, k, now))) continue;
        const std::int64_t due = period * k + (forward ? stage : 3 * stages - 2 * stage);
        if (first_due >= 0 && first_due <= due) continue;
        first_due = due;
        first = {kind, chunk, k};
      }
    }
    if (first_due < 0) return false;
    const bool forward = first.kind == ActionKind::kForward;
    Stage& stage = (forward ? forward_ : backward_)[At(schedule_.StageOf(rank, first.chunk))];
    free_[At(rank)] = now + (forward ? kForwardSlots : kBackwardSlots);
    stage.end[At(stage.next++)] = free_[At(rank)];
    schedule_.order[At(rank)].push_back(first);
    return true;
  }

  std::int32_t micro_batches_;
  std::int32_t in_flight_;       // most micro-batches at once
  std::vector<Stage> forward_;   // by stage
  std::vector<Stage> backward_;  // by stage
  std::vector<std::int32_t> free_;
  Schedule schedule_;
};

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) { return Greedy(parameters).Run(); }

}  // namespace

const Family kHanayo = {
    kName,
    "Stages in waves up and down the ranks, full backward passes, in the order of a greedy execution.",
    "Liu et al., Hanayo, SC 2023 (arXiv 2308.15762); the order is Orrery's own, by a rule that its file states",
    "an even number of stages per rank, two for every wave; any number of micro-batches",
    "",
    &Check,
    &GenerateOrder,
    /*fixed_chunks=*/0,
    /*automatic=*/false,
    /*default_chunks=*/2,
};

}  // namespace orrery::schedules
