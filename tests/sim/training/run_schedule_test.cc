// Which schedules a run may have, and what its user's own table does.
#include "sim/training/run_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "schedules/text/table.h"
#include "sim/training/plan.h"
#include "tests/sim/training/example_runs.h"

namespace orrery::training::testing {
namespace {

using ::testing::HasSubstr;

// On 4 pipeline ranks with 8 micro-batches.
v1::Run RunWith(const std::string& schedule, std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(), "schedule.name=" + schedule);
  return SmallRun(overrides);
}

std::string TableOf(const std::string& family, std::int32_t ranks, std::int32_t chunks, std::int32_t micro_batches) {
  return schedules::WriteTable(
      *schedules::Generate(family, {.ranks = ranks, .chunks = chunks, .micro_batches = micro_batches}));
}

v1::Run RunOfTable(const std::string& table) {
  v1::Run run = SmallRun();
  run.mutable_schedule()->set_name(kTableSchedule);
  run.mutable_schedule()->set_table(table);
  return run;
}

// The one problem of a run.
std::string ProblemOf(const v1::Run& run) {
  const std::vector<spec::FieldProblem> problems = ScheduleProblems(run);
  EXPECT_EQ(problems.size(), 1u);
  return problems.empty() ? "" : problems.front().fields.front() + ": " + problems.front().message;
}

TEST(RunSchedule, FamiliesWithAFixedNumberOfStagesSetIt) {
  EXPECT_EQ(RunWith("zb-v").parallelism().virtual_stages(), 2);
  EXPECT_EQ(RunWith("zb-h1").parallelism().virtual_stages(), 1);
  EXPECT_EQ(RunWith("looped-bfs").parallelism().virtual_stages(), 1);
  EXPECT_EQ(RunWith("hanayo").parallelism().virtual_stages(), 2);
  EXPECT_TRUE(ScheduleProblems(RunWith("hanayo")).empty());
  EXPECT_EQ(RunWith("looped-bfs", {"parallelism.virtual_stages=3"}).parallelism().virtual_stages(), 3);
}

TEST(RunSchedule, WhatIsNotLegalIsRefused) {
  EXPECT_THAT(ProblemOf(RunWith("1f1b", {"parallelism.virtual_stages=2"})), HasSubstr("chunks = 2, allowed: 1"));
  EXPECT_THAT(ProblemOf(RunWith("zb-v", {"parallelism.virtual_stages=1"})), HasSubstr("chunks = 1, allowed: 2"));
  EXPECT_THAT(ProblemOf(RunWith("zb-v", {"software.split_message_mode=BLOCKING"})),
              HasSubstr("found BLOCKING with schedule zb-v, which has 2 stages on a rank"));
  EXPECT_THAT(ProblemOf(RunWith("dualpipe", {"software.split_message_mode=BLOCKING"})),
              HasSubstr("has 2 stages on a rank"));
  EXPECT_THAT(ProblemOf(RunWith("seq1f1b")), HasSubstr("not modelled in training runs"));
  EXPECT_THAT(ProblemOf(RunWith("hanayo", {"parallelism.virtual_stages=1"})),
              HasSubstr("hanayo: chunks = 1 (virtual_stages), allowed: even numbers from 2"));
  EXPECT_THAT(
      ProblemOf(RunWith("zb-1p", {"schedule.memory_limit=3"})),
      HasSubstr("zb-1p: has a memory limit of its own, allowed: none, or 4 (1 x ranks) micro-batches; zb-auto"));
  EXPECT_THAT(ProblemOf(RunWith("zb-v-greedy", {"schedule.memory_limit=1"})),
              HasSubstr("schedule.memory_limit: found 1, within which zb-v-greedy has no order; allowed: at least 4"));
  EXPECT_THAT(ProblemOf(RunWith("table")), HasSubstr("found \"table\" without one"));
}

TEST(RunSchedule, SplitSchedulesHaveAModeOfTheirOwn) {
  EXPECT_TRUE(ScheduleProblems(RunWith("zb-v", {"software.message_mode=BLOCKING"})).empty());
  const v1::Run run = RunWith("1f1b", {"software.message_mode=BATCHED"});
  EXPECT_EQ(MakePlan(run)->message_mode(), v1::BATCHED);
  EXPECT_EQ(MakePlan(RunWith("zb-h1", {"software.message_mode=BATCHED"}))->message_mode(), v1::EAGER);
}

TEST(RunSchedule, BlockingMessagesOfOneStagePerRankAreFine) {
  EXPECT_TRUE(ScheduleProblems(RunWith("zb-h1", {"software.split_message_mode=BLOCKING"})).empty());
}

TEST(RunSchedule, ATableRunsAsTheFamilyItWasWrittenFrom) {
  for (const char* family : {"1f1b", "gpipe", "zb-h2", "dualpipe"}) {
    const Result expected = Simulated(RunWith(family));
    const Result got = Simulated(RunOfTable(TableOf(family, 4, 1, 8)));
    EXPECT_EQ(got.iteration_time, expected.iteration_time) << family;
    ASSERT_EQ(got.pipeline_ranks.size(), expected.pipeline_ranks.size());
  }
}

TEST(RunSchedule, ATableOfTwoStagesPerRankSetsThem) {
  v1::Schedule schedule;
  schedule.set_name(kTableSchedule);
  schedule.set_table(TableOf("zb-v", 4, 2, 8));
  EXPECT_EQ(StagesPerRank(schedule), 2);
}

TEST(RunSchedule, TablesThatDoNotFitTheRunAreRefused) {
  EXPECT_THAT(ProblemOf(RunOfTable(TableOf("1f1b", 2, 1, 8))),
              HasSubstr("has 2 ranks (rows); allowed: parallelism.pp = 4"));
  EXPECT_THAT(ProblemOf(RunOfTable(TableOf("1f1b", 4, 1, 6))), HasSubstr("has 6 micro-batches"));
  EXPECT_THAT(ProblemOf(RunOfTable(TableOf("zb-v", 4, 2, 8))), HasSubstr("has 8 stages"));
  EXPECT_THAT(ProblemOf(RunOfTable("0F0,0B0\n1F0,2F0\n")), HasSubstr("stage 1 does not finish micro-batch 0"));
  // Rank 0 waits for a gradient that rank 1 computes from what rank 0 has not run yet.
  EXPECT_THAT(ProblemOf(RunOfTable("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n")), HasSubstr("rank"));
}

TEST(RunSchedule, AFileIsReadIntoTheRun) {
  const std::string path = ::testing::TempDir() + "/schedule.csv";
  const std::string table = TableOf("zb-h1", 4, 1, 8);
  ASSERT_TRUE(WriteFile(path, table).ok());
  const v1::Run run = SmallRun({"schedule.file=" + path});
  EXPECT_EQ(run.schedule().name(), kTableSchedule);
  EXPECT_EQ(run.schedule().table(), table);
  EXPECT_FALSE(run.schedule().has_file());
  EXPECT_TRUE(ScheduleProblems(run).empty());
}

}  // namespace
}  // namespace orrery::training::testing
