#include <algorithm>
#include <map>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/family.h"
#include "schedules/lowering.h"
#include "tests/schedules/evaluator.h"

namespace orrery::schedules {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Executes a lowering by rendezvous: a rank posts all of a boundary's messages when it reaches it, and goes on when all
// have been posted by both sides and have then taken `latency`. Nothing if it deadlocks.
std::optional<std::int64_t> Execute(const Schedule& schedule, const Lowering& lowering, std::int64_t forward,
                                    std::int64_t backward, std::int64_t latency) {
  const auto ranks = schedule.order.size();
  std::vector<int> posted(lowering.messages.size());
  std::vector<std::int64_t> ready(lowering.messages.size());
  std::vector<std::size_t> at(ranks);
  std::vector<std::int64_t> clock(ranks);
  std::vector<bool> waiting(ranks);
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t r = 0; r < ranks; ++r) {
      while (at[r] < lowering.boundaries[r].size()) {
        const Boundary& boundary = lowering.boundaries[r][at[r]];
        std::vector<std::int32_t> batch = boundary.sends;
        batch.insert(batch.end(), boundary.receives.begin(), boundary.receives.end());
        if (!waiting[r]) {
          for (const std::int32_t i : batch) {
            ++posted[static_cast<std::size_t>(i)];
            auto& instant = ready[static_cast<std::size_t>(i)];
            instant = std::max(instant, clock[r]);
          }
          waiting[r] = true;
          moved = true;
        }
        if (std::any_of(batch.begin(), batch.end(),
                        [&](std::int32_t i) { return posted[static_cast<std::size_t>(i)] < 2; }))
          break;
        for (const std::int32_t i : batch) clock[r] = std::max(clock[r], ready[static_cast<std::size_t>(i)] + latency);
        if (at[r] < schedule.order[r].size()) {
          clock[r] += schedule.order[r][at[r]].kind == ActionKind::kForward ? forward : backward;
        }
        ++at[r];
        waiting[r] = false;
        moved = true;
      }
    }
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    if (at[r] < lowering.boundaries[r].size()) return std::nullopt;
  }
  return *std::max_element(clock.begin(), clock.end());
}

// Every message once on either side, after its producer and before its consumer, and on every link the k-th send is the
// k-th receive. Returns the number of messages.
std::size_t CheckPosting(const Schedule& schedule, const Lowering& lowering) {
  using Link = std::tuple<bool, std::int32_t, std::int32_t>;
  std::map<Link, std::vector<std::int32_t>> sends;
  std::map<Link, std::vector<std::int32_t>> receives;
  const auto link = [&](std::int32_t i) {
    const Message& message = lowering.messages[static_cast<std::size_t>(i)];
    return Link(message.forward, message.from_rank, message.to_rank);
  };
  for (std::size_t r = 0; r < schedule.order.size(); ++r) {
    EXPECT_EQ(lowering.boundaries[r].size(), schedule.order[r].size() + 1);
    for (std::size_t b = 0; b < lowering.boundaries[r].size(); ++b) {
      for (const std::int32_t i : lowering.boundaries[r][b].sends) {
        const Message& message = lowering.messages[static_cast<std::size_t>(i)];
        EXPECT_EQ(message.from_rank, static_cast<std::int32_t>(r));
        // Right after the producer's step: nothing but joined actions in between.
        const auto producer = static_cast<std::size_t>(message.producer);
        EXPECT_LT(producer, b);
        for (std::size_t a = producer; a + 1 < b; ++a) EXPECT_TRUE(schedule.order[r][a].joined);
        EXPECT_FALSE(schedule.order[r][b - 1].joined);
        sends[link(i)].push_back(i);
      }
      for (const std::int32_t i : lowering.boundaries[r][b].receives) {
        const Message& message = lowering.messages[static_cast<std::size_t>(i)];
        EXPECT_EQ(message.to_rank, static_cast<std::int32_t>(r));
        EXPECT_LE(b, static_cast<std::size_t>(message.consumer));
        EXPECT_FALSE(b > 0 && schedule.order[r][b - 1].joined);
        receives[link(i)].push_back(i);
      }
    }
  }
  EXPECT_EQ(sends, receives);
  std::vector<std::int32_t> all;
  for (const auto& [_, indices] : sends) all.insert(all.end(), indices.begin(), indices.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  EXPECT_EQ(all.size(), lowering.messages.size());
  return all.size();
}

TEST(LoweringTest, NeverDeadlocksAndKeepsLinksInOrder) {
  int cases = 0;
  for (std::int32_t p = 1; p <= 8; ++p) {
    for (std::int32_t m = 1; m <= 24; ++m) {
      std::vector<std::pair<std::string_view, Parameters>> list = {{"gpipe", {p, 1, m, 1}}, {"1f1b", {p, 1, m, 1}}};
      for (std::int32_t v = 1; p > 1 && v <= 4; ++v) {
        for (const std::int32_t n : LegalGroupSizes(p, m)) list.push_back({"interleaved-1f1b", {p, v, m, n}});
      }
      for (const auto& [family, parameters] : list) {
        const Schedule schedule = *Generate(family, parameters);
        const Lowering lowering = Lower(schedule);
        // S - 1 boundaries between stages, each crossed by m activations and m gradients, if there are ranks to cross.
        const std::size_t expected = p == 1 ? 0 : static_cast<std::size_t>(2 * m * (p * parameters.chunks - 1));
        ASSERT_EQ(CheckPosting(schedule, lowering), expected);
        // Times do not matter to a deadlock: one odd set of costs is enough.
        const auto makespan = Execute(schedule, lowering, 7, 3, 1);
        ASSERT_TRUE(makespan.has_value())
            << family << " p " << p << " v " << parameters.chunks << " m " << m << " N " << parameters.group_size;
        ASSERT_GE(*makespan, *Evaluate(schedule, Uniform(schedule, 7, 3, 1)));
        ++cases;
      }
    }
  }
  EXPECT_EQ(cases, 3688);
}

// The executor above can find a deadlock: receives right before their consumers, on an interleaved schedule. Rank 0
// sends its first activations while rank 1 still waits to hand back chunk 0's.
TEST(LoweringTest, PostingReceivesLateDeadlocks) {
  const Schedule schedule = *Generate("interleaved-1f1b", {2, 2, 6, 3});
  Lowering lowering = Lower(schedule);
  for (auto& boundaries : lowering.boundaries) {
    for (Boundary& boundary : boundaries) boundary.receives.clear();
  }
  for (std::size_t i = 0; i < lowering.messages.size(); ++i) {
    const Message& message = lowering.messages[i];
    auto consumer = static_cast<std::size_t>(message.consumer);
    const auto& order = schedule.order[static_cast<std::size_t>(message.to_rank)];
    while (consumer > 0 && order[consumer - 1].joined) --consumer;
    lowering.boundaries[static_cast<std::size_t>(message.to_rank)][consumer].receives.push_back(
        static_cast<std::int32_t>(i));
  }
  EXPECT_FALSE(Execute(schedule, lowering, 1, 2, 0).has_value());
}

std::vector<std::string> Text(const Lowering& lowering, std::size_t rank) {
  std::vector<std::string> texts;
  for (const Boundary& boundary : lowering.boundaries[rank]) {
    std::string text;
    const auto add = [&](const char* verb, const std::vector<std::int32_t>& messages) {
      for (const std::int32_t i : messages) {
        const Message& message = lowering.messages[static_cast<std::size_t>(i)];
        text += std::string(text.empty() ? "" : " ") + verb + (message.forward ? "F" : "B") +
                std::to_string(message.micro_batch);
      }
    };
    add("send", boundary.sends);
    add("recv", boundary.receives);
    texts.push_back(text);
  }
  return texts;
}

// 1F1B with p = 2, m = 3: what Megatron-LM posts (send forward with receive backward, send backward with receive
// forward). Rank 0: F0 F1 B0 F2 B1 B2. Rank 1: F0 B0 F1 B1 F2 B2.
TEST(LoweringTest, OneForwardOneBackwardExchangesLikeMegatron) {
  const Lowering lowering = Lower(*Generate("1f1b", {2, 1, 3, 1}));
  EXPECT_THAT(Text(lowering, 0), ElementsAre("", "sendF0", "sendF1 recvB0", "", "sendF2 recvB1", "recvB2", ""));
  EXPECT_THAT(Text(lowering, 1), ElementsAre("recvF0", "", "sendB0 recvF1", "", "sendB1 recvF2", "", "sendB2"));
}

TEST(LoweringTest, StagesOfOneRankExchangeNothing) {
  const Schedule schedule{Placement::Loop(1, 2),
                          1,
                          {{{ActionKind::kForward, 0, 0},
                            {ActionKind::kForward, 1, 0},
                            {ActionKind::kBackward, 1, 0},
                            {ActionKind::kBackward, 0, 0}}}};
  ASSERT_TRUE(Validate(schedule).ok());
  EXPECT_THAT(Lower(schedule).messages, IsEmpty());
}

// Rendezvous without latency costs next to nothing: a batch per boundary keeps to the eager makespan within 1 % when F
// : B is near 1 : 2. (Posting between the passes of a pair would cost half as much again on 8 ranks.)
TEST(LoweringTest, BatchesWithoutLatencyKeepToTheEagerMakespan) {
  for (const Parameters& parameters : {Parameters{8, 6, 48, 8}, Parameters{8, 2, 64, 8}, Parameters{5, 2, 60, 5},
                                       Parameters{7, 3, 63, 7}, Parameters{12, 3, 48, 12}, Parameters{4, 2, 64, 8}}) {
    const Schedule schedule = *Generate("interleaved-1f1b", parameters);
    const Lowering lowering = Lower(schedule);
    for (const std::int64_t backward : {200, 190, 300}) {
      const auto eager = static_cast<double>(*Evaluate(schedule, Uniform(schedule, 100, backward, 0)));
      EXPECT_LE(static_cast<double>(*Execute(schedule, lowering, 100, backward, 0)), 1.01 * eager)
          << parameters.ranks << " ranks, backward " << backward;
    }
  }
}

}  // namespace
}  // namespace orrery::schedules
