#include <algorithm>
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

// Bits. Two bytes and not one: stores to a character type might change anything, as far as compilers know.
using Done = std::uint16_t;
constexpr Done kForwardDone = 1;
constexpr Done kInputDone = 2;   // the input gradient exists
constexpr Done kWeightDone = 4;  // the weight gradient exists

Done Produces(ActionKind kind) {
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

// What has been done, by stage and micro-batch. The input of the first stage, and that of the last one's backward
// passes, is there from the start.
class Progress {
 public:
  explicit Progress(const Schedule& schedule)
      : micro_batches_(static_cast<std::size_t>(schedule.micro_batches)),
        chunks_(static_cast<std::size_t>(schedule.chunks())),
        done_((static_cast<std::size_t>(schedule.stages()) + 2) * micro_batches_),
        first_(static_cast<std::size_t>(schedule.ranks()) * chunks_) {
    const auto rows_end = done_.end() - static_cast<std::ptrdiff_t>(micro_batches_);
    std::fill(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(micro_batches_), kForwardDone);
    std::fill(rows_end, done_.end(), kInputDone);
    for (std::int32_t rank = 0; rank < schedule.ranks(); ++rank) {
      for (std::int32_t chunk = 0; chunk < schedule.placement.ChunksOf(rank); ++chunk) {
        first_[Chunk(rank, chunk)] = Row(schedule.StageOf(rank, chunk));
      }
    }
  }

  Done& At(std::int32_t stage, std::int32_t micro_batch) {
    return done_[Row(stage) + static_cast<std::size_t>(micro_batch)];
  }
  // By the stage and micro-batch of the action.
  Done& Of(std::int32_t rank, const Action& action) { return done_[Index(rank, action)]; }
  // Whether what the neighbouring stages must have done for the action is done.
  bool InputsReady(std::int32_t rank, const Action& action) const {
    const std::size_t index = Index(rank, action);
    if (IsForward(action.kind)) return (done_[index - micro_batches_] & kForwardDone) != 0;
    return !SendsGradient(action.kind) || (done_[index + micro_batches_] & kInputDone) != 0;
  }

 private:
  std::size_t Row(std::int32_t stage) const { return (static_cast<std::size_t>(stage) + 1) * micro_batches_; }
  std::size_t Chunk(std::int32_t rank, std::int32_t chunk) const {
    return static_cast<std::size_t>(rank) * chunks_ + static_cast<std::size_t>(chunk);
  }
  std::size_t Index(std::int32_t rank, const Action& action) const {
    return first_[Chunk(rank, action.chunk)] + static_cast<std::size_t>(action.micro_batch);
  }

  std::size_t micro_batches_;
  std::size_t chunks_;
  std::vector<Done> done_;          // [stage + 1][micro-batch], with a row before the first stage and after the last
  std::vector<std::size_t> first_;  // [rank][chunk]: its stage's row in done_
};

std::string At(const Schedule& schedule, std::int32_t rank, std::size_t position) {
  return absl::StrCat("rank ", rank, ", action ", position, " (",
                      Describe(schedule, rank, schedule.order[static_cast<std::size_t>(rank)][position]), ")");
}

// A block is one F and one B that do not need each other.
const char* WrongBlock(const Schedule& schedule, std::int32_t rank, const Action& first, const Action* second) {
  if (second == nullptr) return "is fused with nothing";
  const bool forward_first = IsForward(first.kind);
  const Action& forward = forward_first ? first : *second;
  const Action& backward = forward_first ? *second : first;
  if (!IsForward(forward.kind) || IsForward(backward.kind) || backward.kind == ActionKind::kWeightGradient ||
      second->fused) {
    return "is fused with more or other than one forward and one backward pass";
  }
  const std::int32_t stage = schedule.StageOf(rank, forward.chunk);
  const bool needed = forward.micro_batch == backward.micro_batch && stage == schedule.StageOf(rank, backward.chunk) &&
                      forward.chunk == backward.chunk;
  return needed ? "is fused with its own forward pass" : nullptr;
}

// Indices in range, nothing twice, nothing before what the same rank and stage must have done first.
absl::Status CheckRank(const Schedule& schedule, std::int32_t rank, Progress& progress) {
  const std::vector<Action>& order = schedule.order[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Action& action = order[i];
    const auto wrong = [&](const auto&... what) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", rank, ", action ", i, what...));
    };
    if (action.chunk < 0 || action.chunk >= schedule.placement.ChunksOf(rank)) {
      return wrong(", names chunk ", action.chunk, ", which the rank does not hold");
    }
    if (action.micro_batch < 0 || action.micro_batch >= schedule.micro_batches) {
      return wrong(", names micro-batch ", action.micro_batch, ", allowed: 0 to ", schedule.micro_batches - 1);
    }
    const auto error = [&](const char* what) {
      return absl::InvalidArgumentError(absl::StrCat(At(schedule, rank, i), " ", what));
    };
    if (schedule.placement.PipelineOf(rank, action.chunk) != schedule.PipelineOf(action.micro_batch)) {
      return error("is in another copy of the model than the micro-batch");
    }
    Done& done = progress.Of(rank, action);
    const Done produces = Produces(action.kind);
    if ((done & produces) != 0) return error("repeats work");
    if (action.kind != ActionKind::kForward && (done & kForwardDone) == 0)
      return error("comes before its forward pass");
    if (action.kind == ActionKind::kWeightGradient && (done & kInputDone) == 0) {
      return error("comes before its input gradient");
    }
    const Action* next = i + 1 < order.size() ? &order[i + 1] : nullptr;
    if (action.joined && next == nullptr) return error("is joined to nothing");
    if (action.fused) {
      if (const char* what = WrongBlock(schedule, rank, action, next); what != nullptr) return error(what);
    }
    done |= produces;
  }
  return absl::OkStatus();
}

// Executes ranks step by step, as far as inputs allow.
class Execution {
 public:
  explicit Execution(const Schedule& schedule)
      : schedule_(schedule), progress_(schedule), next_(schedule.order.size()) {}

  absl::Status Run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::int32_t rank = 0; rank < schedule_.ranks(); ++rank) {
        if (Advance(rank)) moved = true;
      }
    }
    for (std::int32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      if (Next(rank) < Order(rank).size()) return DescribeCycle(rank);
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<Action>& Order(std::int32_t rank) const { return schedule_.order[static_cast<std::size_t>(rank)]; }
  std::size_t& Next(std::int32_t rank) { return next_[static_cast<std::size_t>(rank)]; }

  // The first action of the rank's next step that lacks an input, given that what is before it in the step has run,
  // or the step's end. Of a block both inputs must be there before anything runs.
  std::size_t FirstBlocked(std::int32_t rank, std::size_t end) {
    const std::vector<Action>& order = Order(rank);
    const std::size_t begin = Next(rank);
    std::size_t blocked = end;
    std::size_t i = begin;
    for (; i < end; ++i) {
      if (!progress_.InputsReady(rank, order[i])) blocked = i;
      if (order[i].fused && blocked == end && !progress_.InputsReady(rank, order[i + 1])) blocked = i + 1;
      if (blocked != end) break;
      progress_.Of(rank, order[i]) |= Produces(order[i].kind);
    }
    if (blocked == end) return end;
    // Nothing of the step leaves the rank before its end: take it back.
    while (i-- > begin) progress_.Of(rank, order[i]) &= static_cast<Done>(~Produces(order[i].kind));
    return blocked;
  }

  // Runs the rank's steps up to the first that lacks an input. Whether any ran.
  bool Advance(std::int32_t rank) {
    const std::vector<Action>& order = Order(rank);
    std::size_t& next = Next(rank);
    const std::size_t before = next;
    while (next < order.size()) {
      const std::size_t end = StepEnd(order, next);
      if (FirstBlocked(rank, end) != end) break;
      next = end;
    }
    return next != before;
  }

  // Where the input of a blocked action comes from.
  struct Wait {
    std::int32_t rank = 0;  // that waits
    std::size_t action = 0;
    std::int32_t on_rank = 0;
    std::string input;
  };
  Wait WaitOf(std::int32_t rank) {
    Wait wait{rank, FirstBlocked(rank, StepEnd(Order(rank), Next(rank))), 0, ""};
    const Action& action = Order(rank)[wait.action];
    const std::int32_t stage = schedule_.StageOf(rank, action.chunk) + (IsForward(action.kind) ? -1 : 1);
    const Place source = schedule_.PlaceOf(stage, action.micro_batch);
    wait.on_rank = source.rank;
    for (const Action& candidate : Order(source.rank)) {
      const bool produces = IsForward(action.kind) ? IsForward(candidate.kind) : SendsGradient(candidate.kind);
      if (produces && candidate.chunk == source.chunk && candidate.micro_batch == action.micro_batch) {
        wait.input = Describe(schedule_, source.rank, candidate);
      }
    }
    return wait;
  }

  // Every blocked rank waits for another blocked one: following them ends in a cycle.
  absl::Status DescribeCycle(std::int32_t rank) {
    std::vector<Wait> path;
    std::vector<std::int32_t> position(schedule_.order.size(), -1);
    while (position[static_cast<std::size_t>(rank)] < 0) {
      position[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(path.size());
      path.push_back(WaitOf(rank));
      rank = path.back().on_rank;
    }
    path.erase(path.begin(), path.begin() + position[static_cast<std::size_t>(rank)]);
    std::string text = "the schedule deadlocks: ";
    for (std::size_t i = 0; i < path.size(); ++i) {
      const Wait& wait = path[i];
      absl::StrAppend(&text, i == 0 ? "" : ", and ", At(schedule_, wait.rank, wait.action), " waits for ", wait.input,
                      " of rank ", wait.on_rank, ", which comes later there");
    }
    return absl::FailedPreconditionError(text);
  }

  const Schedule& schedule_;
  Progress progress_;
  std::vector<std::size_t> next_;
};

}  // namespace

char Letter(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return 'F';
    case ActionKind::kBackward:
      return 'B';
    case ActionKind::kInputGradient:
      return 'I';
    case ActionKind::kWeightGradient:
      return 'W';
  }
  return '?';
}

bool SplitsBackward(const Schedule& schedule) {
  return std::any_of(schedule.order.begin(), schedule.order.end(), [](const std::vector<Action>& order) {
    return std::any_of(order.begin(), order.end(),
                       [](const Action& action) { return action.kind == ActionKind::kInputGradient; });
  });
}

std::string Describe(const Schedule& schedule, std::int32_t rank, const Action& action) {
  return absl::StrCat(schedule.StageOf(rank, action.chunk), std::string(1, Letter(action.kind)), action.micro_batch);
}

absl::Status Validate(const Schedule& schedule) {
  if (schedule.micro_batches < 1) return absl::InvalidArgumentError("a schedule has at least one micro-batch");
  if (schedule.order.size() != static_cast<std::size_t>(schedule.ranks())) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are orders for ", schedule.order.size(), " ranks, expected ", schedule.ranks()));
  }
  const bool assigned = schedule.pipeline_of.size() == static_cast<std::size_t>(schedule.micro_batches);
  if (!assigned && !(schedule.pipeline_of.empty() && schedule.placement.pipelines() == 1)) {
    return absl::InvalidArgumentError("with several copies of the model, each micro-batch runs through one of them");
  }
  for (const std::int32_t pipeline : schedule.pipeline_of) {
    if (pipeline < 0 || pipeline >= schedule.placement.pipelines()) {
      return absl::InvalidArgumentError(absl::StrCat("there is no copy ", pipeline, " of the model"));
    }
  }
  if (schedule.slices < 1 || schedule.micro_batches % schedule.slices != 0) {
    return absl::InvalidArgumentError("every micro-batch has the same number of slices, at least 1");
  }
  Progress progress(schedule);
  for (std::int32_t rank = 0; rank < schedule.ranks(); ++rank)
    ABSL_RETURN_IF_ERROR(CheckRank(schedule, rank, progress));
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    for (std::int32_t k = 0; k < schedule.micro_batches; ++k) {
      if (progress.At(stage, k) != (kForwardDone | kInputDone | kWeightDone)) {
        return absl::InvalidArgumentError(
            absl::StrCat("stage ", stage, " does not finish micro-batch ", k, " in both directions"));
      }
    }
  }
  return Execution(schedule).Run();
}

}  // namespace orrery::schedules
