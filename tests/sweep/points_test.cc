// What is varied: values, axes, lists, and what a point changes in the base.
#include "sweep/points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "schedules/family.h"

namespace orrery::sweep {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Cells of an axis of one field; the message where it is none.
std::vector<std::string> ValuesOf(const std::string& vary) {
  const absl::StatusOr<Axis> axis = ParseVary(vary);
  if (!axis.ok()) return {std::string(axis.status().message())};
  std::vector<std::string> values;
  for (const std::vector<std::string>& value : axis->values) values.push_back(value.at(0));
  return values;
}

absl::StatusOr<Points> PointsOf(const std::vector<std::string>& varied) {
  std::vector<Axis> axes;
  for (const std::string& vary : varied) axes.push_back(ParseVary(vary).value());
  return Points::Make(std::move(axes));
}

spec::BaseRun Base(std::vector<std::string> overrides = {}) {
  return spec::BaseRun::Read(ORRERY_SOURCE_DIR "/specs/runs/megatron_175b_12288.txtpb",
                             {.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = std::move(overrides)})
      .value();
}

std::string Problem(const std::vector<std::string>& varied) {
  return std::string(PointsOf(varied).value().Check(Base()).message());
}

TEST(ParseVaryTest, Values) {
  EXPECT_THAT(ValuesOf("tp=1,2,4"), ElementsAre("1", "2", "4"));
  EXPECT_THAT(ValuesOf("model.preset=gpt-22b"), ElementsAre("gpt-22b"));
  // Commas in brackets and quotes are part of a value.
  EXPECT_THAT(ValuesOf("perturbation.slow_gpus=[{rank: 1, factor: 1.1}, {rank: 2}],[]"),
              ElementsAre("[{rank: 1, factor: 1.1}, {rank: 2}]", "[]"));
  EXPECT_THAT(ValuesOf("name=\"a,b\",c"), ElementsAre("\"a,b\"", "c"));
}

TEST(ParseVaryTest, Ranges) {
  EXPECT_THAT(ValuesOf("pp=1:4"), ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(ValuesOf("pp=2:9:3,16"), ElementsAre("2", "5", "8", "16"));
  EXPECT_THAT(ValuesOf("pp=2:40:*4"), ElementsAre("2", "8", "32"));
  EXPECT_THAT(ValuesOf("pp=9223372036854775806:9223372036854775807"),
              ElementsAre("9223372036854775806", "9223372036854775807"));
  for (const char* const bad : {"pp=4:1", "pp=1:4:0", "pp=1:4:*1", "pp=0:4:*2", "pp=1:4:x", "pp=1:4:"}) {
    EXPECT_THAT(ValuesOf(bad), ElementsAre(AllOf(HasSubstr("range"), HasSubstr("allowed")))) << bad;
  }
  EXPECT_THAT(ValuesOf("pp=1:1000001"), ElementsAre(HasSubstr("too many values")));
  // No range, since it does not begin with two numbers.
  EXPECT_THAT(ValuesOf("perturbation.jitter={mode: EXPECTED}"), ElementsAre("{mode: EXPECTED}"));
}

TEST(ParseVaryTest, AllSchedules) {
  std::vector<std::string> names;
  for (const schedules::Family& family : schedules::Families()) names.emplace_back(family.name);
  EXPECT_EQ(ValuesOf("schedule=all"), names);
  EXPECT_EQ(ValuesOf("schedule.name=all"), names);
  EXPECT_THAT(ValuesOf("software.preset=all"), ElementsAre("all"));
}

TEST(ParseVaryTest, Mistakes) {
  for (const char* const bad : {"tp", "=1", ""}) EXPECT_THAT(ValuesOf(bad), ElementsAre(HasSubstr("names no field")));
  for (const char* const bad : {"tp=", "tp=1,,2", "tp=1,"}) {
    EXPECT_THAT(ValuesOf(bad), ElementsAre(HasSubstr("empty value")));
  }
  EXPECT_THAT(ValuesOf("tp=1,2,1"), ElementsAre(HasSubstr("the value 1 twice")));
  EXPECT_THAT(ValuesOf("name=a\nb"), ElementsAre(HasSubstr("line break")));
}

TEST(ParseListTest, RowsAndEmptyCells) {
  const Axis axis = ParseList("tp,schedule\n1,gpipe\n2,\n", "points.csv").value();
  EXPECT_THAT(axis.fields, ElementsAre("tp", "schedule"));
  EXPECT_THAT(axis.values, ElementsAre(ElementsAre("1", "gpipe"), ElementsAre("2", "")));
  EXPECT_THAT(std::string(ParseList("tp\n", "points.csv").status().message()), HasSubstr("points.csv: has no row"));
  EXPECT_THAT(std::string(ParseList("name\n\"a\nb\"\n", "points.csv").status().message()),
              HasSubstr("points.csv:2: found a value with a line break"));
}

// The last axis changes fastest.
TEST(PointsTest, ProductInOrder) {
  const Points points = PointsOf({"tp=1,2", "pp=4,8,16"}).value();
  ASSERT_EQ(points.size(), 6);
  EXPECT_THAT(points.fields(), ElementsAre("tp", "pp"));
  EXPECT_THAT(points.At(0), ElementsAre("1", "4"));
  EXPECT_THAT(points.At(1), ElementsAre("1", "8"));
  EXPECT_THAT(points.At(3), ElementsAre("2", "4"));
  EXPECT_THAT(points.At(5), ElementsAre("2", "16"));
}

TEST(PointsTest, TooMany) {
  EXPECT_EQ(PointsOf({"tp=1:1000", "pp=1:1000"}).value().size(), kMostPoints);
  const std::string message(PointsOf({"tp=1:1000", "pp=1:1001"}).status().message());
  EXPECT_THAT(message, AllOf(HasSubstr("1000 x 1001"), HasSubstr("1000000")));
  // The product overflows 64 bits: 10^24.
  EXPECT_FALSE(PointsOf({"tp=1:1000000", "pp=1:1000000", "dp=1:1000000", "cp=1:1000000"}).ok());
  EXPECT_FALSE(PointsOf({}).ok());
}

TEST(PointsTest, OneFieldByTwoNames) {
  EXPECT_THAT(std::string(PointsOf({"tp=1", "parallelism.tp=2"}).status().message()),
              HasSubstr("parallelism.tp is varied twice"));
  // Both set the global batch.
  EXPECT_THAT(std::string(PointsOf({"microbatches=8", "global_batch=64"}).status().message()),
              HasSubstr("training.global_batch is varied twice"));
}

TEST(PointsTest, WhatAPointChanges) {
  const Points points = PointsOf({"tp=2", "zero=1", "microbatches=16", "training.precision=BF16"}).value();
  const Variation variation = points.VariationOf(0);
  EXPECT_THAT(variation.overrides,
              ElementsAre("parallelism.tp=2", "parallelism.zero_stage=1", "training.precision=BF16"));
  EXPECT_EQ(variation.micro_batches, 16);
  // An empty cell changes nothing.
  const Axis list = ParseList("tp,pp\n4,\n", "").value();
  EXPECT_THAT(Points::Make({list}).value().VariationOf(0).overrides, ElementsAre("parallelism.tp=4"));
}

TEST(PointsTest, ScheduleBringsItsStages) {
  for (const schedules::Family& family : schedules::Families()) {
    const std::string name(family.name);
    const std::vector<std::string> overrides = PointsOf({"schedule=" + name}).value().VariationOf(0).overrides;
    const std::string stages = "parallelism.virtual_stages=" + std::to_string(family.fixed_chunks);
    EXPECT_THAT(overrides, Contains("schedule.name=" + name));
    EXPECT_EQ(overrides.size(), family.fixed_chunks > 0 ? 2 : 1) << name;
    if (family.fixed_chunks > 0) {
      EXPECT_THAT(overrides, Contains(stages));
    }
    // Unless the point says otherwise.
    EXPECT_THAT(PointsOf({"schedule=" + name, "virtual_stages=7"}).value().VariationOf(0).overrides,
                AllOf(Contains("parallelism.virtual_stages=7"), ::testing::SizeIs(2)));
  }
}

TEST(PointsTest, MistakesAreNamed) {
  EXPECT_EQ(Problem({"tp=1,3", "pp=5", "schedule=all", "model.preset=gpt-22b"}), "");  // each could be legal somewhere
  EXPECT_THAT(Problem({"tpp=1"}), AllOf(HasSubstr("tpp: is no field"), HasSubstr("did you mean 'tp'?")));
  EXPECT_THAT(Problem({"parallelism.tpp=1"}),
              AllOf(HasSubstr("no field \"tpp\""), HasSubstr("allowed: one of tp, pp")));
  EXPECT_THAT(Problem({"tp=1,x"}), AllOf(HasSubstr("tp: "), HasSubstr("\"x\""), HasSubstr("a whole number")));
  EXPECT_THAT(Problem({"tp=0"}), AllOf(HasSubstr("found 0"), HasSubstr("a whole number from 1")));
  EXPECT_THAT(Problem({"microbatches=0"}), AllOf(HasSubstr("microbatches: found \"0\""), HasSubstr("from 1")));
  EXPECT_THAT(Problem({"schedule=2f2b"}), AllOf(HasSubstr("schedule: "), HasSubstr("2f2b"), HasSubstr("gpipe")));
  EXPECT_THAT(Problem({"model.preset=gpt-23b"}), AllOf(HasSubstr("no preset \"gpt-23b\""), HasSubstr("gpt-22b")));
  EXPECT_THAT(Problem({"training.recompute=SOME"}), AllOf(HasSubstr("SOME"), HasSubstr("SELECTIVE")));
}

// What depends on other fields is for the points to find out.
TEST(PointsTest, ValuesThatDependOnOthersPass) {
  EXPECT_EQ(Problem({"parallelism.gpus=100"}), "");  // no multiple of tp x pp
  EXPECT_EQ(Problem({"model.heads=7"}), "");         // does not divide hidden
  EXPECT_EQ(Problem({"cluster.accelerator.preset=h100-sxm-80gb"}), "");
}

TEST(PointsTest, DigestTellsSweepsApart) {
  const auto digest = [](const std::vector<std::string>& varied, std::vector<std::string> overrides = {}) {
    return PointsOf(varied).value().Sha256(Base(std::move(overrides)));
  };
  const std::string one = digest({"tp=1,2", "pp=4"});
  EXPECT_EQ(digest({"tp=1,2", "pp=4"}), one);
  EXPECT_NE(digest({"tp=1,2", "pp=8"}), one);
  EXPECT_NE(digest({"pp=4", "tp=1,2"}), one);
  EXPECT_NE(digest({"tp=1", "pp=2,4"}), one);
  EXPECT_NE(digest({"tp=1,2", "pp=4"}, {"training.seq_len=4096"}), one);
  // Which must not change an answer.
  EXPECT_EQ(digest({"tp=1,2", "pp=4"}, {"simulation.fold=OFF"}), one);
}

}  // namespace
}  // namespace orrery::sweep
