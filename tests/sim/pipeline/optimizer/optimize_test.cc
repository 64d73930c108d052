// The optimiser against every order of small pipelines, and what must hold of its answers.
#include "sim/pipeline/optimizer/optimize.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/family.h"
#include "tests/sim/pipeline/optimizer/brute_force.h"
#include "tests/sim/pipeline/optimizer/cases.h"

namespace orrery::pipeline {
namespace {

using schedules::Placement;
using ::testing::HasSubstr;

constexpr Objective kObjectives[] = {Objective::kMakespan, Objective::kLongestSpan};

std::int64_t PeakMemory(const Evaluation& evaluation) {
  std::int64_t peak = 0;
  for (const RankEvaluation& rank : evaluation.ranks) peak = std::max(peak, rank.peak_memory);
  return peak;
}

// Legal, within the limit, no better than its bound, no worse than any published order.
void ExpectSound(const OptimizeRequest& request, const Optimized& found) {
  EXPECT_TRUE(schedules::Validate(found.schedule).ok());
  EXPECT_LE(PeakMemory(found.evaluation), request.memory_limit);
  EXPECT_GE(found.value, found.lower_bound);
  for (const Published& published : found.published) EXPECT_LE(found.value, published.value) << published.family;
}

// All orders of the pipeline, at every limit from one micro-batch on.
void ExpectBest(const Placement& placement, std::int32_t micro_batches, bool fifo) {
  const std::int32_t chunks = placement.stages() / placement.ranks();
  for (const CostVector& vector : TestedCostVectors()) {
    OptimizeRequest request = Problem(placement, micro_batches, vector, 0);
    BruteForce all(placement, micro_batches, request.cuts.front().costs, fifo);
    all.Run();
    for (std::int64_t limit = std::int64_t{2} * chunks; limit <= std::int64_t{2} * chunks * micro_batches; ++limit) {
      request.memory_limit = limit;
      const BruteForce::Best best = all.Within(limit);
      for (const Objective objective : kObjectives) {
        request.objective = objective;
        SCOPED_TRACE(Name(request, vector));
        const absl::StatusOr<Optimized> found = Optimize(request);
        ASSERT_TRUE(found.ok()) << found.status();
        ExpectSound(request, *found);
        EXPECT_TRUE(found->optimal());
        EXPECT_EQ(found->value, objective == Objective::kMakespan ? best.makespan : best.span);
      }
    }
  }
}

// Orders that do not run first-in-first-out are among these: none is better.
TEST(OptimizeTest, IsTheBestOfAllOrdersOfTwoRanks) {
  for (const std::int32_t m : {1, 2, 3}) ExpectBest(Placement::Loop(2, 1), m, false);
}

TEST(OptimizeTest, IsTheBestOfAllFifoOrdersOfThreeRanks) {
  for (const std::int32_t m : {2, 3}) ExpectBest(Placement::Loop(3, 1), m, true);
}

TEST(OptimizeTest, IsTheBestOfAllFifoOrdersOfSeveralChunks) {
  ExpectBest(Placement::Wave(2, 2), 1, false);
  ExpectBest(Placement::Wave(2, 2), 2, true);
  ExpectBest(Placement::Loop(2, 2), 2, true);
}

// ZB-H1 and ZB-H2 are optimal at unit costs. p = 4, m = 8, F = I = W = 1: with p M_B and activations kept until W (so
// M_W = M_B) every rank has (p-1)(F+I-W) = 3 of idle time, makespan 27; with 2p - 1 and more, the span of rank 0 is its
// work, 24, but the last rank cannot begin before (p-1)F = 3 and the makespan is 27 all the same.
TEST(OptimizeTest, ReachesTheClosedFormsOfTheHandcraftedSchedules) {
  OptimizeRequest request = Problem(Placement::Loop(4, 1), 8, CostVectors().front(), 4);
  request.cuts.front().costs.memory = {.forward = 1, .weight = 1};
  for (const auto& [limit, makespan, span] :
       {std::array<std::int64_t, 3>{4, 27, 27}, std::array<std::int64_t, 3>{7, 27, 24}}) {
    request.memory_limit = limit;
    request.objective = Objective::kMakespan;
    EXPECT_EQ(Optimize(request)->value, makespan) << limit;
    EXPECT_EQ(Optimize(request)->lower_bound, makespan) << limit;
    request.objective = Objective::kLongestSpan;
    EXPECT_EQ(Optimize(request)->value, span) << limit;
    EXPECT_EQ(Optimize(request)->lower_bound, span) << limit;
  }
}

// Four sizes, five cost vectors, limits of p/2, p and 2p M_B, both objectives: proven optimal, and more memory never
// hurts.
TEST(OptimizeTest, ProvesSmallCasesAndMoreMemoryNeverHurts) {
  int proven = 0;
  for (const auto& [p, m] : {std::pair{2, 8}, std::pair{3, 6}, std::pair{4, 6}, std::pair{4, 8}}) {
    for (const CostVector& vector : TestedCostVectors()) {
      for (const Objective objective : kObjectives) {
        std::int64_t last = std::numeric_limits<std::int64_t>::max();
        for (const std::int64_t limit : {(p + 1) / 2, p, 2 * p}) {
          OptimizeRequest request = Problem(Placement::Loop(p, 1), m, vector, limit);
          request.objective = objective;
          SCOPED_TRACE(Name(request, vector));
          const absl::StatusOr<Optimized> found = Optimize(request);
          ASSERT_TRUE(found.ok()) << found.status();
          ExpectSound(request, *found);
          EXPECT_TRUE(found->optimal());
          EXPECT_LE(found->value, last);
          last = found->value;
          if (found->optimal()) ++proven;
        }
      }
    }
  }
  EXPECT_EQ(proven, 24 * static_cast<int>(TestedCostVectors().size()));
}

// The same of V placements, where not all cases close.
TEST(OptimizeTest, MoreMemoryNeverHurtsSmallCasesOfTheV) {
  for (const CostVector& vector : TestedCostVectors()) {
    std::int64_t last = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t limit : {2, 3, 4, 6}) {
      OptimizeRequest request = Problem(Placement::Wave(3, 2), 4, vector, limit);
      SCOPED_TRACE(Name(request, vector));
      const absl::StatusOr<Optimized> found = Optimize(request);
      ASSERT_TRUE(found.ok()) << found.status();
      ExpectSound(request, *found);
      EXPECT_TRUE(found->optimal());
      EXPECT_LE(found->value, last);
      last = found->value;
    }
  }
}

// No published order of any family and limit beats the bound, whatever the costs.
TEST(OptimizeTest, NoPublishedOrderBeatsTheBound) {
  for (const CostVector& vector : TestedCostVectors()) {
    for (const Placement& placement : {Placement::Loop(4, 1), Placement::Wave(4, 2), Placement::Loop(4, 2)}) {
      for (const Objective objective : kObjectives) {
        for (const std::int64_t limit : {4, 8, 100}) {
          OptimizeRequest request = Problem(placement, 12, vector, limit);
          request.objective = objective;
          request.effort = 0;
          SCOPED_TRACE(Name(request, vector));
          const absl::StatusOr<Optimized> found = Optimize(request);
          ASSERT_TRUE(found.ok()) << found.status();
          ExpectSound(request, *found);
          std::set<std::string> names;
          for (const Published& published : found->published) {
            EXPECT_GE(published.value, found->lower_bound) << published.family;
            EXPECT_LE(published.peak_memory, request.memory_limit) << published.family;
            names.insert(published.family);
          }
          // The same orders as 1f1b and zb-h1, with one chunk.
          if (placement.chunks() == 1) {
            EXPECT_FALSE(names.contains("grouped-1f1b"));
            EXPECT_FALSE(names.contains("interleaved-zb"));
          }
        }
      }
    }
  }
}

TEST(OptimizeTest, SearchesSeveralCutsForTheBestOfAll) {
  // A V of half stages has twice the stages at half the cost: its pipeline fills in half the time.
  OptimizeRequest request = Problem(Placement::Loop(4, 1), 8, {"", {2, 2, 2}, 0, false}, 8);
  Cut half{Placement::Wave(4, 2), {}};
  half.costs.memory = {.forward = 1, .weight = 1};
  request.cuts.front().costs.memory = {.forward = 2, .weight = 2};
  const std::int64_t loop = Optimize(request)->value;
  request.cuts.push_back(half);
  const absl::StatusOr<Optimized> both = Optimize(request);
  ASSERT_TRUE(both.ok()) << both.status();
  // (p-1)F before the last rank begins, and 48 of work; with the V half of that.
  EXPECT_EQ(loop, 54);
  EXPECT_EQ(both->value, 51);
  EXPECT_EQ(both->lower_bound, 51);
  EXPECT_EQ(both->cut, 1U);
  EXPECT_EQ(both->schedule.chunks(), 2);
}

TEST(OptimizeTest, SameRequestSameAnswer) {
  OptimizeRequest request = Problem(Placement::Wave(4, 2), 10, CostVectors()[2], 5);
  request.effort = 20'000'000;
  const absl::StatusOr<Optimized> first = Optimize(request);
  const absl::StatusOr<Optimized> second = Optimize(request);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->schedule.order, second->schedule.order);
  EXPECT_EQ(first->effort, second->effort);
  EXPECT_EQ(first->lower_bound, second->lower_bound);
  EXPECT_FALSE(first->stopped);
}

TEST(OptimizeTest, StopsWhenToldAndSaysSo) {
  OptimizeRequest request = Problem(Placement::Wave(4, 2), 12, CostVectors()[2], 6);
  int asked = 0;
  request.stop = [&] { return ++asked > 10; };
  const absl::StatusOr<Optimized> found = Optimize(request);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->stopped);
  ExpectSound(request, *found);
}

TEST(OptimizeTest, ZeroCostsAndOneRank) {
  OptimizeRequest request = Problem(Placement::Loop(1, 1), 5, {"", {3, 0, 2}, 7, false}, 1);
  EXPECT_EQ(Optimize(request)->value, 25);
  EXPECT_TRUE(Optimize(request)->optimal());
  request = Problem(Placement::Loop(3, 1), 3, {"", {0, 0, 0}, 0, false}, 1);
  EXPECT_EQ(Optimize(request)->value, 0);
}

TEST(OptimizeTest, RefusesWhatItCannotDo) {
  OptimizeRequest request = Problem(Placement::Wave(4, 2), 4, CostVectors()[0], 1);
  EXPECT_EQ(Optimize(request).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Optimize(request).status().message()), HasSubstr("one micro-batch alone holds 4"));
  request.memory_limit = 4;
  EXPECT_TRUE(Optimize(request).ok());
  request.cuts.front().placement = Placement::Bidirectional(4);
  EXPECT_EQ(Optimize(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.cuts.clear();
  EXPECT_EQ(Optimize(request).status().code(), absl::StatusCode::kInvalidArgument);
  request = Problem(Placement::Loop(2, 1), 4, CostVectors()[0], 1);
  request.cuts.front().costs.stages.resize(3);
  EXPECT_EQ(Optimize(request).status().code(), absl::StatusCode::kInvalidArgument);
  request = Problem(Placement::Loop(2, 1), 4, CostVectors()[0], 1);
  request.cuts.front().costs.stages[0].forward = -1;
  EXPECT_THAT(std::string(Optimize(request).status().message()), HasSubstr("F = -1"));
  request = Problem(Placement::Loop(2, 1), 1 << 20, CostVectors()[0], 1);
  EXPECT_THAT(std::string(Optimize(request).status().message()), HasSubstr("micro-batches"));
}

}  // namespace
}  // namespace orrery::pipeline
