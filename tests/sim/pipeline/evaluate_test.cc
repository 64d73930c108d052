// Makespans derived by hand, and random orders against an evaluator of its own.
#include "sim/pipeline/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace orrery::pipeline {
namespace {

using schedules::Action;
using schedules::ActionKind;
using schedules::Held;
using schedules::PassCosts;
using schedules::Place;
using schedules::Placement;
using schedules::Schedule;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum ActionKind;

Action Fused(Action action) {
  action.fused = true;
  return action;
}

Evaluation MustEvaluate(const Schedule& schedule, const Costs& costs) {
  absl::StatusOr<Evaluation> evaluation = Evaluate(schedule, costs, {.spans = true});
  EXPECT_TRUE(evaluation.ok()) << evaluation.status();
  if (!evaluation.ok()) return {};
  const absl::StatusOr<Evaluation> reversed = Evaluate(schedule, costs, {.spans = true, .reverse_ties = true});
  EXPECT_TRUE(reversed.ok() && reversed->spans == evaluation->spans && reversed->makespan == evaluation->makespan);
  return *std::move(evaluation);
}

// 1F1B on 2 ranks, 2 micro-batches. F = 5, I + W = 6 + 4, latency 3 on rank 0; rank 1 has F = 7, B = 11.
//   rank 0: F0 [0,5)  F1 [5,10)              B0 [29,39)         B1 [47,57)
//   rank 1:           F0 [8,15) B0 [15,26)   F1 [26,33) B1 [33,44)
// B0 of rank 1 ends at 26 and arrives at 29; B1 at 44 and 47. Rank 1 spans 8 to 44, rank 0 all 57.
TEST(EvaluateTest, UnevenStagesAndLatency) {
  Schedule schedule{Placement::Loop(2, 1), 2, {}};
  schedule.order = {{{kForward, 0, 0}, {kForward, 0, 1}, {kBackward, 0, 0}, {kBackward, 0, 1}},
                    {{kForward, 0, 0}, {kBackward, 0, 0}, {kForward, 0, 1}, {kBackward, 0, 1}}};
  Costs costs;
  costs.stages = {{5, 6, 4}, {7, 8, 3}};
  costs.latency = 3;
  const Evaluation evaluation = MustEvaluate(schedule, costs);
  EXPECT_EQ(evaluation.makespan, 57);
  EXPECT_EQ(evaluation.longest_span, 57);
  EXPECT_EQ(evaluation.messages, 4);
  ASSERT_EQ(evaluation.ranks.size(), 2u);
  EXPECT_EQ(evaluation.ranks[0].busy, 30);
  EXPECT_EQ(evaluation.ranks[1].busy, 36);
  EXPECT_EQ(evaluation.ranks[1].first_start, 8);
  EXPECT_EQ(evaluation.ranks[1].last_end, 44);
  EXPECT_EQ(evaluation.ranks[1].span(), 36);
  EXPECT_EQ(evaluation.ranks[0].peak_activations, 2);
  EXPECT_EQ(evaluation.ranks[1].peak_activations, 1);
  EXPECT_THAT(evaluation.spans[0], ElementsAre(Span{0, 5}, Span{5, 10}, Span{29, 39}, Span{47, 57}));
  EXPECT_THAT(evaluation.spans[1], ElementsAre(Span{8, 15}, Span{15, 26}, Span{26, 33}, Span{33, 44}));
}

// The gradient is sent when I ends, so W of rank 1 fills the wait of rank 0. F = I = W = 1, latency 0.
//   rank 0: F0 [0,1) F1 [1,2) -      I0 [3,4) W0 [4,5) I1 [5,6) W1 [6,7)
//   rank 1:          F0 [1,2) I0 [2,3) F1 [3,4) I1 [4,5) W0 [5,6) W1 [6,7)
// Memory with F taking 2 and W freeing 1: rank 1 holds 2, 1, 3, 2, 1, 0; in counts 1, 1, 2, 2, 1, 0.
TEST(EvaluateTest, SplitBackwardAndMemory) {
  Schedule schedule{Placement::Loop(2, 1), 2, {}};
  schedule.order = {{{kForward, 0, 0},
                     {kForward, 0, 1},
                     {kInputGradient, 0, 0},
                     {kWeightGradient, 0, 0},
                     {kInputGradient, 0, 1},
                     {kWeightGradient, 0, 1}},
                    {{kForward, 0, 0},
                     {kInputGradient, 0, 0},
                     {kForward, 0, 1},
                     {kInputGradient, 0, 1},
                     {kWeightGradient, 0, 0},
                     {kWeightGradient, 0, 1}}};
  Costs costs;
  costs.memory = {.forward = 2, .weight = 1};
  const Evaluation evaluation = MustEvaluate(schedule, costs);
  EXPECT_EQ(evaluation.makespan, 7);
  EXPECT_EQ(evaluation.longest_span, 7);
  EXPECT_EQ(evaluation.ranks[1].span(), 6);
  EXPECT_EQ(evaluation.ranks[1].peak_activations, 2);
  EXPECT_EQ(evaluation.ranks[1].peak_memory, 3);
  EXPECT_EQ(evaluation.ranks[0].peak_memory, 4);
  EXPECT_EQ(evaluation.spans[1][5], (Span{6, 7}));
}

// V on 2 ranks: stages 0 and 3 on rank 0, 1 and 2 on rank 1. One micro-batch, F = 2, B = 5, latency 1. The turn from
// stage 1 to 2 is on rank 1 and costs nothing.
//   F0 [0,2) F1 [3,5) F2 [5,7) F3 [8,10) B3 [10,15) B2 [16,21) B1 [21,26) B0 [27,32); four messages.
TEST(EvaluateTest, PlacementInAV) {
  Schedule schedule{Placement::Wave(2, 2), 1, {}};
  schedule.order = {{{kForward, 0, 0}, {kForward, 1, 0}, {kBackward, 1, 0}, {kBackward, 0, 0}},
                    {{kForward, 0, 0}, {kForward, 1, 0}, {kBackward, 1, 0}, {kBackward, 0, 0}}};
  Costs costs;
  costs.stages = {{2, 3, 2}};
  costs.latency = 1;
  const Evaluation evaluation = MustEvaluate(schedule, costs);
  EXPECT_EQ(evaluation.makespan, 32);
  EXPECT_EQ(evaluation.messages, 4);
  EXPECT_THAT(evaluation.spans[0], ElementsAre(Span{0, 2}, Span{8, 10}, Span{10, 15}, Span{27, 32}));
  EXPECT_THAT(evaluation.spans[1], ElementsAre(Span{3, 5}, Span{5, 7}, Span{16, 21}, Span{21, 26}));
  EXPECT_EQ(evaluation.ranks[0].peak_activations, 2);
}

// Two ranks, two micro-batches, F = 1, B = 2, latency 1; rank 1 runs F1 and B0 as one block of 4 instead of 3.
//   rank 0: F0 [0,1) F1 [1,2)                     B0 [8,10) B1 [10,12)
//   rank 1:          F0 [2,3)   (F1 B0) [3,7) B1 [7,9)
// The gradient of the block leaves at its end, 7. F1 arrives at 3. A block that lists B first is the same; both hold
// two activations on rank 1, F1's before B0's is freed.
TEST(EvaluateTest, BlocksAreAtomic) {
  for (const bool forward_first : {true, false}) {
    std::vector<Action> last = {{kForward, 0, 0}, Fused({kForward, 0, 1}), {kBackward, 0, 0}, {kBackward, 0, 1}};
    if (!forward_first) {
      last[1] = Fused({kBackward, 0, 0});
      last[2] = {kForward, 0, 1};
    }
    Schedule schedule{Placement::Loop(2, 1), 2, {}};
    schedule.order = {{{kForward, 0, 0}, {kForward, 0, 1}, {kBackward, 0, 0}, {kBackward, 0, 1}}, last};
    Costs costs;
    costs.latency = 1;
    costs.block = 4;
    const Evaluation evaluation = MustEvaluate(schedule, costs);
    EXPECT_EQ(evaluation.makespan, 12);
    EXPECT_EQ(evaluation.ranks[1].busy, 1 + 4 + 2);
    EXPECT_EQ(evaluation.ranks[1].peak_activations, 2);
    EXPECT_THAT(evaluation.spans[1], ElementsAre(Span{2, 3}, Span{3, 7}, Span{3, 7}, Span{7, 9}));
    // Without a cost of its own the block takes F + B = 3: everything after it is 1 earlier.
    costs.block.reset();
    EXPECT_EQ(MustEvaluate(schedule, costs).makespan, 11);
  }
}

// A table may take messages up in another order than they were sent. Rank 0: F0 [0,1) F1 [1,2); rank 1 starts with
// F1 [2,3), B1 [3,5), then F0 [5,6), B0 [6,8); rank 0: B1 [5,7), B0 [8,10).
TEST(EvaluateTest, MessagesTakenUpInAnotherOrder) {
  Schedule schedule{Placement::Loop(2, 1), 2, {}};
  schedule.order = {{{kForward, 0, 0}, {kForward, 0, 1}, {kBackward, 0, 1}, {kBackward, 0, 0}},
                    {{kForward, 0, 1}, {kBackward, 0, 1}, {kForward, 0, 0}, {kBackward, 0, 0}}};
  EXPECT_EQ(MustEvaluate(schedule, {}).makespan, 10);
  // B1 before B0 was sent second, taken up first.
  std::swap(schedule.order[0][2], schedule.order[0][3]);
  // B0 [8,10), B1 [10,12).
  EXPECT_EQ(MustEvaluate(schedule, {}).makespan, 12);
}

// Passes of no duration at the very end still have their instant.
TEST(EvaluateTest, ZeroCosts) {
  Schedule schedule{Placement::Loop(1, 1), 1, {}};
  schedule.order = {{{kForward, 0, 0}, {kInputGradient, 0, 0}, {kWeightGradient, 0, 0}}};
  Costs costs;
  costs.stages = {{0, 2, 0}};
  const Evaluation evaluation = MustEvaluate(schedule, costs);
  EXPECT_EQ(evaluation.makespan, 2);
  EXPECT_THAT(evaluation.spans[0], ElementsAre(Span{0, 0}, Span{0, 2}, Span{2, 2}));
}

TEST(EvaluateTest, WhatItRefuses) {
  Schedule schedule{Placement::Loop(2, 1), 1, {}};
  schedule.order = {{{kForward, 0, 0}, {kBackward, 0, 0}}, {{kForward, 0, 0}, {kBackward, 0, 0}}};
  const auto message = [&](const Costs& costs) { return std::string(Evaluate(schedule, costs).status().message()); };
  Costs costs;
  costs.stages = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
  EXPECT_THAT(message(costs),
              HasSubstr("costs of 3 stages for a schedule of 2; allowed: one for all, or one for each"));
  costs.stages = {{1, 1, 1}, {1, -2, 1}};
  EXPECT_THAT(message(costs), HasSubstr("cost of I on stage 1 is -2"));
  costs = {};
  costs.latency = -1;
  EXPECT_THAT(message(costs), HasSubstr("latency of a message is -1"));
  costs = {};
  costs.block = -1;
  EXPECT_THAT(message(costs), HasSubstr("cost of a block is -1"));
  costs = {};
  costs.memory = {.forward = 1, .weight = 2};
  EXPECT_THAT(message(costs), HasSubstr("frees of it 2"));
  costs = {};
  costs.stages = {{std::int64_t{1} << 61, 1, 1}};
  EXPECT_THAT(message(costs), HasSubstr("more than 2^61"));
  costs = {};
  costs.stages = {{1, std::int64_t{1} << 61, std::int64_t{1} << 61}};
  EXPECT_THAT(message(costs), HasSubstr("more than 2^61"));

  std::swap(schedule.order[0][0], schedule.order[0][1]);
  EXPECT_EQ(Evaluate(schedule, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

// Rank 0 wants the gradient of micro-batch 1 first, rank 1 runs micro-batch 0 first and its F1 waits for rank 0's.
TEST(EvaluateTest, DeadlocksAreNamed) {
  Schedule schedule{Placement::Loop(2, 1), 2, {}};
  schedule.order = {{{kForward, 0, 0}, {kBackward, 0, 0}, {kForward, 0, 1}, {kBackward, 0, 1}},
                    {{kForward, 0, 1}, {kBackward, 0, 1}, {kForward, 0, 0}, {kBackward, 0, 0}}};
  const absl::Status status = Evaluate(schedule, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("waits for"));
}

// --- Random orders. The evaluator below knows stages, not messages: it repeats whole sweeps over all ranks and looks
// every input up by (stage, micro-batch).

class PlainEvaluator {
 public:
  PlainEvaluator(const Schedule& schedule, const Costs& costs) : schedule_(schedule), costs_(costs) {
    const auto size = static_cast<std::size_t>(schedule.stages() * schedule.micro_batches);
    forward_.resize(size);
    gradient_.resize(size);
  }

  // [rank][action], or nothing where it deadlocks.
  std::optional<std::vector<std::vector<Span>>> Run() {
    std::vector<std::vector<Span>> spans(schedule_.order.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int32_t rank = 0; rank < schedule_.ranks(); ++rank) {
        const auto& order = schedule_.order[static_cast<std::size_t>(rank)];
        std::vector<Span>& done = spans[static_cast<std::size_t>(rank)];
        while (done.size() < order.size() && Step(rank, order, done)) moved = true;
      }
    }
    for (std::size_t rank = 0; rank < spans.size(); ++rank) {
      if (spans[rank].size() < schedule_.order[rank].size()) return std::nullopt;
    }
    return spans;
  }

 private:
  std::size_t Index(std::int32_t stage, std::int32_t k) const {
    return static_cast<std::size_t>(stage * schedule_.micro_batches + k);
  }

  bool Step(std::int32_t rank, const std::vector<Action>& order, std::vector<Span>& done) {
    const std::size_t first = done.size();
    const std::size_t count = order[first].fused ? 2 : 1;
    std::int64_t start = done.empty() ? 0 : done.back().end;
    std::int64_t cost = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      const std::optional<std::int64_t> ready = Ready(rank, order[i]);
      if (!ready) return false;
      start = std::max(start, *ready);
      const PassCosts& stage = costs_.Of(schedule_.StageOf(rank, order[i].chunk));
      cost += order[i].kind == kForward         ? stage.forward
              : order[i].kind == kInputGradient ? stage.input_gradient
              : order[i].kind == kBackward      ? stage.input_gradient + stage.weight_gradient
                                                : stage.weight_gradient;
    }
    if (count == 2 && costs_.block) cost = *costs_.block;
    for (std::size_t i = first; i < first + count; ++i) {
      done.push_back({start, start + cost});
      const std::size_t at = Index(schedule_.StageOf(rank, order[i].chunk), order[i].micro_batch);
      if (order[i].kind == kForward) forward_[at] = start + cost;
      if (order[i].kind == kBackward || order[i].kind == kInputGradient) gradient_[at] = start + cost;
    }
    return true;
  }

  std::optional<std::int64_t> Ready(std::int32_t rank, const Action& action) const {
    if (action.kind == kWeightGradient) return 0;
    const bool forward = action.kind == kForward;
    const std::int32_t stage = schedule_.StageOf(rank, action.chunk);
    const std::int32_t before = forward ? stage - 1 : stage + 1;
    if (before < 0 || before == schedule_.stages()) return 0;
    std::optional<std::int64_t> end = (forward ? forward_ : gradient_)[Index(before, action.micro_batch)];
    if (end && schedule_.PlaceOf(before, action.micro_batch).rank != rank) *end += costs_.latency;
    return end;
  }

  const Schedule& schedule_;
  const Costs& costs_;
  std::vector<std::optional<std::int64_t>> forward_;
  std::vector<std::optional<std::int64_t>> gradient_;
};

// Ranks, placement, and an order drawn by executing whatever may run next on a rank drawn at random. Two adjacent
// passes, one forward and one backward, become a block where chance and the dependencies allow.
class RandomSchedule {
 public:
  explicit RandomSchedule(std::uint64_t seed) : random_(seed) {}

  Schedule Draw() {
    const std::int32_t ranks = Below(4) + 1;
    const std::int32_t chunks = Below(3) + 1;
    Schedule schedule{AnyPlacement(ranks, chunks), Below(6) + 1, {}};
    schedule.order.resize(static_cast<std::size_t>(schedule.ranks()));
    if (schedule.placement.pipelines() == 2) {
      for (std::int32_t k = 0; k < schedule.micro_batches; ++k) schedule.pipeline_of.push_back(Below(2));
    }
    split_ = Below(2) == 0;
    struct Pass {
      std::int32_t rank;
      Action action;
      std::int32_t stage;
    };
    std::vector<Pass> left;
    for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
      for (std::int32_t k = 0; k < schedule.micro_batches; ++k) {
        const Place place = schedule.PlaceOf(stage, k);
        left.push_back({place.rank, {kForward, place.chunk, k}, stage});
        left.push_back({place.rank, {split_ ? kInputGradient : kBackward, place.chunk, k}, stage});
        if (split_) left.push_back({place.rank, {kWeightGradient, place.chunk, k}, stage});
      }
    }
    const auto waits_for = [&](const Pass& pass, const Pass& other) {
      if (pass.action.micro_batch != other.action.micro_batch) return false;
      const bool same = pass.stage == other.stage;
      if (pass.action.kind == kForward) return other.action.kind == kForward && other.stage == pass.stage - 1;
      if (pass.action.kind == kWeightGradient) return same && other.action.kind == kInputGradient;
      return (same && other.action.kind == kForward) ||
             (other.stage == pass.stage + 1 && other.action.kind == pass.action.kind);
    };
    while (!left.empty()) {
      std::vector<std::size_t> ready;
      for (std::size_t i = 0; i < left.size(); ++i) {
        const bool blocked =
            std::any_of(left.begin(), left.end(), [&](const Pass& o) { return waits_for(left[i], o); });
        if (!blocked) ready.push_back(i);
      }
      const std::size_t chosen = ready[static_cast<std::size_t>(Below(static_cast<std::int32_t>(ready.size())))];
      schedule.order[static_cast<std::size_t>(left[chosen].rank)].push_back(left[chosen].action);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    Fuse(schedule);
    return schedule;
  }

  Costs DrawCosts(const Schedule& schedule) {
    Costs costs;
    costs.stages.clear();
    const std::int32_t entries = Below(2) == 0 ? 1 : schedule.stages();
    for (std::int32_t i = 0; i < entries; ++i) costs.stages.push_back({Below(9), Below(9), Below(9)});
    costs.latency = Below(3) == 0 ? 0 : Below(7);
    if (Below(2) == 0) costs.block = Below(20);
    return costs;
  }

 private:
  std::int32_t Below(std::int32_t n) { return static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(n)); }

  Placement AnyPlacement(std::int32_t ranks, std::int32_t chunks) {
    switch (Below(4)) {
      case 0:
        return Placement::Loop(ranks, chunks);
      case 1:
        return Placement::Wave(ranks, chunks);
      case 2:
        return Placement::Bidirectional(ranks);
      default: {
        // Stages dealt to ranks at random; some ranks may hold none.
        std::vector<std::vector<Held>> held(static_cast<std::size_t>(ranks));
        for (std::int32_t stage = 0; stage < ranks * chunks; ++stage) {
          held[static_cast<std::size_t>(Below(ranks))].push_back({stage, 0});
        }
        return *Placement::Of(held);
      }
    }
  }

  void Fuse(Schedule& schedule) {
    for (std::vector<Action>& order : schedule.order) {
      for (std::size_t i = 0; i + 1 < order.size(); ++i) {
        if (Below(3) != 0) continue;
        order[i].fused = true;
        if (Validate(schedule).ok()) {
          ++i;
        } else {
          order[i].fused = false;
        }
      }
    }
  }

  std::mt19937_64 random_;
  bool split_ = false;
};

TEST(EvaluateTest, RandomOrders) {
  int blocks = 0;
  for (std::uint64_t seed = 0; seed < 600 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomSchedule random(seed);
    const Schedule schedule = random.Draw();
    const Costs costs = random.DrawCosts(schedule);
    const auto expected = PlainEvaluator(schedule, costs).Run();
    ASSERT_TRUE(expected.has_value());
    const Evaluation evaluation = MustEvaluate(schedule, costs);
    ASSERT_EQ(evaluation.spans, *expected);
    std::int64_t makespan = 0;
    std::int64_t longest_span = 0;
    for (std::size_t r = 0; r < expected->size(); ++r) {
      const std::vector<Span>& spans = (*expected)[r];
      if (spans.empty()) continue;
      makespan = std::max(makespan, spans.back().end);
      longest_span = std::max(longest_span, spans.back().end - spans.front().start);
      std::int64_t busy = 0;
      for (std::size_t i = 0; i < spans.size(); ++i) {
        busy += spans[i].end - spans[i].start;
        if (schedule.order[r][i].fused) ++i, ++blocks;
      }
      EXPECT_EQ(evaluation.ranks[r].busy, busy);
      EXPECT_EQ(evaluation.ranks[r].first_start, spans.front().start);
      EXPECT_EQ(evaluation.ranks[r].last_end, spans.back().end);
    }
    EXPECT_EQ(evaluation.makespan, makespan);
    EXPECT_EQ(evaluation.longest_span, longest_span);
  }
  EXPECT_GE(blocks, 100);
}

}  // namespace
}  // namespace orrery::pipeline
