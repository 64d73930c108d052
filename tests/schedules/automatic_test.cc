// Automatic families at odd costs and limits: legal orders within the limit that no bound forbids, refusals that name
// the least limit, the same order every time, and no longer a span with more memory.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/family.h"
#include "tests/schedules/split_evaluator.h"

namespace orrery::schedules {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kWithLimit[] = {"zb-auto", "zb-v-greedy", "v-auto"};

bool IsSanitized() { return std::getenv("ORRERY_SANITIZER") != nullptr; }

Parameters Asked(std::string_view family, std::int32_t p, std::int32_t m, const PassCosts& costs, std::int64_t latency,
                 const PassMemory& memory = {}, std::int64_t limit = 0) {
  Parameters parameters{p, (*FindFamily(family))->fixed_chunks, m};
  parameters.planning = {{costs}, latency, memory, limit};
  return parameters;
}

std::string What(std::string_view family, const Parameters& q) {
  std::string text(family);
  const PassCosts& c = q.planning.stages.front();
  for (const std::int64_t value :
       {std::int64_t{q.ranks}, std::int64_t{q.micro_batches}, c.forward, c.input_gradient, c.weight_gradient,
        q.planning.latency, q.planning.memory.forward, q.planning.memory.weight, q.planning.memory_limit}) {
    text.append(1, ' ').append(std::to_string(value));
  }
  return text.append(" (p m F I W c M_B M_W limit)");
}

// No order of equal stages has a smaller makespan: the rank at the end of the pipe gets its first input after all F's
// before it and then has all its work; the first micro-batch goes there and back. On a V the last rank is the turn.
std::int64_t MakespanBound(const Parameters& q) {
  const PassCosts& c = q.planning.stages.front();
  const std::int64_t stages = std::int64_t{q.ranks} * q.chunks;
  const std::int64_t latency = q.planning.latency;
  const std::int64_t work = (c.forward + c.backward()) * q.micro_batches * q.chunks;
  const std::int64_t there = (c.forward + latency) * (q.ranks - 1);
  const std::int64_t messages = std::int64_t{2} * q.chunks * (q.ranks - 1);
  return std::max(there + work, stages * (c.forward + c.input_gradient) + messages * latency + c.weight_gradient);
}

// Nor a shorter span: rank 0 holds M_B for every micro-batch from its F until the I that comes back.
std::int64_t SpanBound(const Parameters& q) {
  const PassCosts& c = q.planning.stages.front();
  const std::int64_t work = (c.forward + c.backward()) * q.micro_batches * q.chunks;
  const std::int64_t limit = q.planning.memory_limit;
  if (limit == 0 || q.planning.memory.forward == 0) return work;
  const std::int64_t passes = c.forward + c.input_gradient;
  const std::int64_t messages = std::int64_t{2} * q.chunks * (q.ranks - 1);
  std::int64_t stay = passes * q.ranks * q.chunks + messages * q.planning.latency;
  if (q.chunks == 2) stay += passes;
  return std::max(work, stay * q.micro_batches * q.planning.memory.forward / limit);
}

// The span, or -1 where the limit is refused; the order is checked.
std::int64_t SpanOf(std::string_view family, const Parameters& parameters) {
  const auto schedule = Generate(family, parameters);
  if (!schedule.ok()) {
    EXPECT_EQ(schedule.status().code(), absl::StatusCode::kResourceExhausted)
        << What(family, parameters) << ": " << schedule.status();
    return -1;
  }
  EXPECT_TRUE(Validate(*schedule).ok()) << What(family, parameters) << ": " << Validate(*schedule);
  const auto evaluation = EvaluateSplit(*schedule, parameters.planning);
  EXPECT_TRUE(evaluation.has_value()) << What(family, parameters);
  if (!evaluation) return -1;
  EXPECT_GE(evaluation->makespan, MakespanBound(parameters)) << What(family, parameters);
  EXPECT_GE(evaluation->longest_span, SpanBound(parameters)) << What(family, parameters);
  const std::int64_t limit = parameters.planning.memory_limit;
  if (limit > 0) {
    EXPECT_LE(evaluation->peak_memory, limit) << What(family, parameters);
  }
  return evaluation->longest_span;
}

const PassCosts kCosts[] = {{1, 1, 1}, {5, 6, 4}, {2, 2, 3}, {0, 0, 0},   {0, 1, 0},
                            {3, 0, 0}, {0, 0, 5}, {1, 9, 2}, {1, 1, 100}, {1'000'000'000'000, 999'999'999'999, 3}};
const PassMemory kMemories[] = {{2, 1}, {3, 0}, {0, 0}};

TEST(AutomaticTest, EveryDefaultIsALegalOrder) {
  for (const Family& family : Families()) {
    if (!family.automatic) continue;
    for (const std::int32_t p : {1, 2, 5}) {
      for (const std::int32_t m : {1, 3, 7}) {
        if (IsSanitized() && p * m > 6) continue;
        for (const PassCosts& costs : kCosts) {
          for (const PassMemory& memory : kMemories) {
            EXPECT_GE(SpanOf(family.name, Asked(family.name, p, m, costs, 1, memory)), 0);
          }
        }
      }
    }
  }
}

TEST(AutomaticTest, StagesMayDiffer) {
  for (const Family& family : Families()) {
    if (!family.automatic) continue;
    Parameters parameters = Asked(family.name, 3, 6, {1, 1, 1}, 2);
    parameters.planning.stages.clear();
    for (std::int64_t s = 0; s < std::int64_t{3} * parameters.chunks; ++s)
      parameters.planning.stages.push_back({s + 1, 7 - s, s % 2});
    const auto schedule = Generate(family.name, parameters);
    ASSERT_TRUE(schedule.ok()) << family.name << ": " << schedule.status();
    EXPECT_TRUE(Validate(*schedule).ok()) << family.name;
  }
}

TEST(AutomaticTest, MoreMemoryNeverHurts) {
  for (const std::string_view family : kWithLimit) {
    for (const std::int32_t p : {1, 2, 3}) {
      for (const std::int32_t m : {2, 5, 8}) {
        if (IsSanitized() && p * m > 6) continue;
        for (const PassCosts& costs : {PassCosts{1, 1, 1}, {5, 6, 4}, {2, 2, 3}}) {
          const std::int64_t chunks = (*FindFamily(family))->fixed_chunks;
          std::int64_t before = -1;
          for (std::int64_t limit = 1; limit <= std::int64_t{4} * p * chunks + 3; limit += IsSanitized() ? 5 : 1) {
            const Parameters parameters = Asked(family, p, m, costs, 1, {2, 1}, limit);
            const std::int64_t span = SpanOf(family, parameters);
            if (before >= 0) {
              EXPECT_GE(span, 0) << "refused with more memory: " << What(family, parameters);
              EXPECT_LE(span, before) << What(family, parameters);
            }
            before = span;
          }
        }
      }
    }
  }
}

// And for the profiled costs of a model.
TEST(AutomaticTest, MoreMemoryNeverHurtsAtProfiledCosts) {
  if (IsSanitized()) GTEST_SKIP() << "small cases only under a sanitizer";
  for (const std::string_view family : kWithLimit) {
    const std::int64_t full = std::int64_t{16} * (*FindFamily(family))->fixed_chunks;
    std::int64_t before = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t percent : {50, 75, 100, 125, 150, 200, 300}) {
      if (family == "zb-v-greedy" && percent < 100) continue;
      const std::int64_t limit = full * percent / 100;
      const std::int64_t span = SpanOf(family, Asked(family, 8, 24, {18522, 18086, 9337}, 601, {2, 1}, limit));
      EXPECT_GE(span, 0) << family << " " << percent;
      EXPECT_LE(span, before) << family << " " << percent;
      before = span;
    }
  }
}

// M_B = 3: one activation on a loop, both chunks of a micro-batch on a V; the greedy order holds all 2m = 4 chunks. In
// micro-batches of a rank that is 1, 1 and 2.
TEST(AutomaticTest, RefusalsNameTheLeastLimitInMicroBatches) {
  const struct {
    std::string_view family;
    std::int64_t least;
    std::string_view shown;
  } cases[] = {{"zb-auto", 3, "1"}, {"v-auto", 6, "1"}, {"zb-v-greedy", 12, "2"}};
  for (const auto& [family, least, shown] : cases) {
    const auto at = [name = family](std::int64_t limit) {
      return Generate(name, Asked(name, 4, 2, {5, 6, 4}, 1, {3, 1}, limit)).status();
    };
    EXPECT_EQ(at(least - 1).code(), absl::StatusCode::kResourceExhausted) << family;
    EXPECT_THAT(std::string(at(least - 1).message()),
                HasSubstr("the smallest memory limit that works is " + std::string(shown) + " (activations of one"));
    EXPECT_TRUE(at(least).ok()) << family << ": " << at(least);
  }
}

TEST(AutomaticTest, TheOrderIsTheSameEveryTime) {
  for (const Family& family : Families()) {
    if (!family.automatic) continue;
    const Parameters parameters = Asked(family.name, 4, 9, {5, 6, 4}, 1);
    EXPECT_EQ(Generate(family.name, parameters)->order, Generate(family.name, parameters)->order) << family.name;
  }
}

// What the families state of F = I = W, no latency: zb-1p as ZB-H1; the others no bubble in the span, and (p - 1)
// passes of idle time, within p (of a V, in chunks: 2p) and 2p activations.
TEST(AutomaticTest, EqualCosts) {
  const struct {
    std::string_view family;
    std::int64_t span_bubble;  // times p - 1
    std::int64_t held;         // times p M_B
  } cases[] = {{"zb-1p", 1, 1}, {"zb-2p", 0, 2}, {"zb-v-greedy", 0, 2}};
  for (const auto& [family, span_bubble, held] : cases) {
    for (const std::int32_t p : {1, 2, 3, 4, 6, 8}) {
      for (const std::int32_t m : {2 * p, 2 * p + 1, 4 * p}) {
        const Parameters parameters = Asked(family, p, m, {1, 1, 1}, 0);
        const auto evaluation = EvaluateSplit(*Generate(family, parameters), parameters.planning);
        const std::int64_t work = std::int64_t{3} * m * parameters.chunks;
        EXPECT_EQ(evaluation->longest_span, work + span_bubble * (p - 1)) << What(family, parameters);
        EXPECT_EQ(evaluation->makespan, work + p - 1) << What(family, parameters);
        EXPECT_LE(evaluation->peak_memory, held * p * parameters.planning.memory.forward) << What(family, parameters);
      }
    }
  }
}

}  // namespace
}  // namespace orrery::schedules
