#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/schedule.h"
#include "schedules/steps.h"

namespace orrery::schedules {
namespace {

constexpr std::uint8_t kForwardDone = 1;
constexpr std::uint8_t kInputDone = 2;   // the input gradient exists
constexpr std::uint8_t kWeightDone = 4;  // the weight gradient exists

const char* Letter(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return "F";
    case ActionKind::kBackward:
      return "B";
    case ActionKind::kInputGradient:
      return "I";
    case ActionKind::kWeightGradient:
      return "W";
  }
  return "?";
}

std::uint8_t Produces(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return kForwardDone;
    case ActionKind::kBackward:
      return kInputDone | kWeightDone;
    case ActionKind::kInputGradient:
      return kInputDone;
    case ActionKind::kWeightGradient:
      return kWeightDone;
  }
  return 0;
}

// What has been done, by stage and micro-batch.
class Progress {
 public:
  explicit Progress(const Schedule& schedule)
      : schedule_(schedule),
        micro_batches_(static_cast<std::size_t>(schedule.micro_batches)),
        done_(static_cast<std::size_t>(schedule.ranks) * static_cast<std::size_t>(schedule.chunks) * micro_batches_) {}

  std::uint8_t& At(std::int32_t stage, std::int32_t micro_batch) {
    return done_[static_cast<std::size_t>(stage) * micro_batches_ + static_cast<std::size_t>(micro_batch)];
  }
  // Whether what the neighbouring stages must have done for `action` is done.
  bool InputsReady(std::int32_t rank, const Action& action) {
    const std::int32_t stage = schedule_.StageOf(rank, action.chunk);
    const std::int32_t last = schedule_.ranks * schedule_.chunks - 1;
    if (IsForward(action.kind)) return stage == 0 || (At(stage - 1, action.micro_batch) & kForwardDone) != 0;
    if (!SendsGradient(action.kind)) return true;
    return stage == last || (At(stage + 1, action.micro_batch) & kInputDone) != 0;
  }

 private:
  const Schedule& schedule_;
  std::size_t micro_batches_;
  std::vector<std::uint8_t> done_;
};

std::string Describe(std::int32_t rank, const Action& action, std::size_t position) {
  return absl::StrCat("rank ", rank, ", action ", position, " (", Letter(action.kind), " of chunk ", action.chunk,
                      ", micro-batch ", action.micro_batch, ")");
}

// Indices in range, nothing twice, nothing before what the same rank and stage must have done first.
absl::Status CheckRank(const Schedule& schedule, std::int32_t rank, Progress& progress) {
  const std::vector<Action>& order = schedule.order[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Action& action = order[i];
    const auto error = [&](const char* what) {
      return absl::InvalidArgumentError(absl::StrCat(Describe(rank, action, i), " ", what));
    };
    if (action.chunk < 0 || action.chunk >= schedule.chunks) return error("names a chunk that the rank does not hold");
    if (action.micro_batch < 0 || action.micro_batch >= schedule.micro_batches) {
      return error("names a micro-batch that does not exist");
    }
    std::uint8_t& done = progress.At(schedule.StageOf(rank, action.chunk), action.micro_batch);
    const std::uint8_t produces = Produces(action.kind);
    if ((done & produces) != 0) return error("repeats work");
    if (action.kind != ActionKind::kForward && (done & kForwardDone) == 0)
      return error("comes before its forward pass");
    if (action.kind == ActionKind::kWeightGradient && (done & kInputDone) == 0) {
      return error("comes before its input gradient");
    }
    if (action.joined && i + 1 == order.size()) return error("is joined to nothing");
    done |= produces;
  }
  return absl::OkStatus();
}

// Executes the next step of a rank if all of its inputs are there.
bool Advance(const Schedule& schedule, std::int32_t rank, std::size_t& next, Progress& progress) {
  const std::vector<Action>& order = schedule.order[static_cast<std::size_t>(rank)];
  const std::size_t end = StepEnd(order, next);
  std::size_t i = next;
  while (i < end && progress.InputsReady(rank, order[i])) {
    progress.At(schedule.StageOf(rank, order[i].chunk), order[i].micro_batch) |= Produces(order[i].kind);
    ++i;
  }
  if (i == end) {
    next = end;
    return true;
  }
  // Nothing of the step leaves the rank before its end: take it back.
  while (i-- > next) {
    progress.At(schedule.StageOf(rank, order[i].chunk), order[i].micro_batch) &=
        static_cast<std::uint8_t>(~Produces(order[i].kind));
  }
  return false;
}

absl::Status CheckExecutable(const Schedule& schedule) {
  Progress progress(schedule);
  std::vector<std::size_t> next(schedule.order.size());
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::int32_t rank = 0; rank < schedule.ranks; ++rank) {
      std::size_t& position = next[static_cast<std::size_t>(rank)];
      while (position < schedule.order[static_cast<std::size_t>(rank)].size() &&
             Advance(schedule, rank, position, progress)) {
        moved = true;
      }
    }
  }
  for (std::int32_t rank = 0; rank < schedule.ranks; ++rank) {
    const std::vector<Action>& order = schedule.order[static_cast<std::size_t>(rank)];
    const std::size_t position = next[static_cast<std::size_t>(rank)];
    if (position < order.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the schedule deadlocks: ", Describe(rank, order[position], position), " never gets its input"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const Schedule& schedule) {
  if (schedule.ranks < 1 || schedule.chunks < 1 || schedule.micro_batches < 1) {
    return absl::InvalidArgumentError("a schedule has at least one rank, chunk and micro-batch");
  }
  if (schedule.order.size() != static_cast<std::size_t>(schedule.ranks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are orders for ", schedule.order.size(), " ranks, expected ", schedule.ranks));
  }
  Progress progress(schedule);
  for (std::int32_t rank = 0; rank < schedule.ranks; ++rank) ABSL_RETURN_IF_ERROR(CheckRank(schedule, rank, progress));
  for (std::int32_t stage = 0; stage < schedule.ranks * schedule.chunks; ++stage) {
    for (std::int32_t k = 0; k < schedule.micro_batches; ++k) {
      if (progress.At(stage, k) != (kForwardDone | kInputDone | kWeightDone)) {
        return absl::InvalidArgumentError(
            absl::StrCat("stage ", stage, " does not finish micro-batch ", k, " in both directions"));
      }
    }
  }
  return CheckExecutable(schedule);
}

}  // namespace orrery::schedules
