#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/check.h"
#include "schedules/lowering.h"
#include "schedules/steps.h"

namespace orrery::schedules {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::size_t Index(std::int32_t i) { return static_cast<std::size_t>(i); }

// All messages, by (from_rank, producer).
std::vector<Message> FindMessages(const Schedule& schedule) {
  const std::int32_t stages = schedule.stages();
  const auto slot = [&](bool forward, std::int32_t stage, std::int32_t k) {
    return (std::size_t{forward ? 1u : 0u} * Index(stages) + Index(stage)) * Index(schedule.micro_batches) + Index(k);
  };
  // Positions of the passes that take messages in.
  std::vector<std::int32_t> position(2 * Index(stages) * Index(schedule.micro_batches));
  const auto for_each = [&](const auto& visit) {
    for (std::int32_t rank = 0; rank < schedule.ranks(); ++rank) {
      for (std::size_t i = 0; i < schedule.order[Index(rank)].size(); ++i) {
        const Action& action = schedule.order[Index(rank)][i];
        if (action.kind != ActionKind::kWeightGradient) {
          visit(rank, static_cast<std::int32_t>(i), IsForward(action.kind), schedule.StageOf(rank, action.chunk),
                action.micro_batch);
        }
      }
    }
  };
  for_each([&](std::int32_t, std::int32_t i, bool forward, std::int32_t stage, std::int32_t k) {
    position[slot(forward, stage, k)] = i;
  });
  std::vector<Message> messages;
  for_each([&](std::int32_t rank, std::int32_t i, bool forward, std::int32_t stage, std::int32_t k) {
    const std::int32_t to = forward ? stage + 1 : stage - 1;
    if (to < 0 || to >= stages) return;
    const std::int32_t to_rank = schedule.PlaceOf(to, k).rank;
    if (to_rank != rank) messages.push_back({forward, stage, k, rank, to_rank, i, position[slot(forward, to, k)]});
  });
  return messages;
}

std::int64_t UnitCost(ActionKind kind) { return kind == ActionKind::kBackward ? 2 : 1; }

// Executes a schedule with unit costs and one batch of messages per boundary, and writes down at which boundary every
// message is received: the rule of schedule.h.
class UnitExecution {
 public:
  UnitExecution(const Schedule& schedule, const std::vector<Message>& messages)
      : schedule_(schedule),
        messages_(messages),
        ranks_(Index(schedule.ranks())),
        received_at_(messages.size(), -1),
        posted_(messages.size(), kNever),
        next_message_(ranks_.size(), messages.size()) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].input.resize(schedule.order[r].size(), -1);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      ranks_[Index(messages[i].to_rank)].input[Index(messages[i].consumer)] = static_cast<std::int32_t>(i);
    }
    for (std::size_t i = messages.size(); i-- > 0;) next_message_[Index(messages[i].from_rank)] = i;
  }

  std::vector<std::int32_t> Run() {
    std::int64_t now = 0;
    while (now != kNever) {
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (ranks_[r].busy_until == now) Finish(r, now);
      }
      for (Rank& rank : ranks_) rank.has_inputs = rank.at_boundary && HasInputs(rank);
      for (Rank& rank : ranks_) {
        if (rank.at_boundary) Accept(rank, now);
      }
      std::int64_t next = kNever;
      bool waiting = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        Rank& rank = ranks_[r];
        if (rank.at_boundary && rank.has_inputs && SendsAccepted(rank)) Start(r, now);
        waiting = waiting || (rank.at_boundary && !rank.incoming.empty());
        next = std::min(next, rank.busy_until);
      }
      // A message that was passed over in a tie is accepted as soon as time moves on.
      now = waiting ? now + 1 : next;
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) ORRERY_CHECK(ranks_[r].first == schedule_.order[r].size());
    return std::move(received_at_);
  }

 private:
  struct Rank {
    std::size_t first = 0;  // the next step's first action, and the one after its last
    std::size_t end = 0;
    bool at_boundary = true;
    bool has_inputs = false;  // of the next step
    std::int64_t busy_until = kNever;
    std::vector<std::int32_t> sends;     // of the boundary
    std::vector<std::int32_t> incoming;  // sent to it, not received yet
    std::vector<std::int32_t> input;     // message that an action takes in, or -1
  };

  // Ends the step of rank r: what it produced is sent.
  void Finish(std::size_t r, std::int64_t now) {
    Rank& rank = ranks_[r];
    rank.busy_until = kNever;
    rank.at_boundary = true;
    rank.sends.clear();
    for (std::size_t& i = next_message_[r]; i < messages_.size(); ++i) {
      if (messages_[i].from_rank != static_cast<std::int32_t>(r) || Index(messages_[i].producer) >= rank.end) break;
      rank.sends.push_back(static_cast<std::int32_t>(i));
      posted_[i] = now;
      ranks_[Index(messages_[i].to_rank)].incoming.push_back(static_cast<std::int32_t>(i));
    }
    rank.first = rank.end;
  }

  bool HasInputs(const Rank& rank) const {
    const std::vector<Action>& order = schedule_.order[static_cast<std::size_t>(&rank - ranks_.data())];
    if (rank.first == order.size()) return false;
    const std::size_t end = StepEnd(order, rank.first);
    for (std::size_t i = rank.first; i < end; ++i) {
      if (rank.input[i] >= 0 && posted_[Index(rank.input[i])] == kNever) return false;
    }
    return true;
  }

  void Accept(Rank& rank, std::int64_t now) {
    std::vector<std::int32_t> passed_over;
    const std::vector<Action>& order = schedule_.order[static_cast<std::size_t>(&rank - ranks_.data())];
    const std::size_t end = rank.first < order.size() ? StepEnd(order, rank.first) : rank.first;
    for (const std::int32_t i : rank.incoming) {
      const Message& message = messages_[Index(i)];
      const bool needed = Index(message.consumer) < end;
      const bool tie = posted_[Index(i)] == now && rank.has_inputs && !ranks_[Index(message.from_rank)].has_inputs;
      if (needed || !tie) {
        received_at_[Index(i)] = static_cast<std::int32_t>(rank.first);
      } else {
        passed_over.push_back(i);
      }
    }
    rank.incoming = std::move(passed_over);
  }

  bool SendsAccepted(const Rank& rank) const {
    return std::all_of(rank.sends.begin(), rank.sends.end(),
                       [&](std::int32_t i) { return received_at_[Index(i)] >= 0; });
  }

  void Start(std::size_t r, std::int64_t now) {
    Rank& rank = ranks_[r];
    rank.end = StepEnd(schedule_.order[r], rank.first);
    rank.at_boundary = false;
    rank.busy_until = now;
    for (std::size_t i = rank.first; i < rank.end; ++i) rank.busy_until += UnitCost(schedule_.order[r][i].kind);
  }

  const Schedule& schedule_;
  const std::vector<Message>& messages_;
  std::vector<Rank> ranks_;
  std::vector<std::int32_t> received_at_;  // boundary of the receiver, by message
  std::vector<std::int64_t> posted_;       // instant of the send, by message
  std::vector<std::size_t> next_message_;  // first that a rank has not sent yet, by rank
};

}  // namespace

Lowering Lower(const Schedule& schedule) {
  Lowering lowering;
  lowering.messages = FindMessages(schedule);
  lowering.boundaries.resize(schedule.order.size());
  for (std::size_t r = 0; r < schedule.order.size(); ++r) {
    lowering.boundaries[r].resize(schedule.order[r].size() + 1);
  }
  const std::vector<std::int32_t> received_at = UnitExecution(schedule, lowering.messages).Run();
  for (std::size_t i = 0; i < lowering.messages.size(); ++i) {
    const Message& message = lowering.messages[i];
    const std::vector<Action>& order = schedule.order[Index(message.from_rank)];
    const std::size_t sent = StepEnd(order, Index(message.producer));
    const auto index = static_cast<std::int32_t>(i);
    lowering.boundaries[Index(message.from_rank)][sent].sends.push_back(index);
    lowering.boundaries[Index(message.to_rank)][Index(received_at[i])].receives.push_back(index);
  }
  return lowering;
}

}  // namespace orrery::schedules
