// A base that is read once gives what loading the file each time gives: the same runs, the same errors.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/loader.h"
#include "tests/proto/spec_fixture.h"

namespace orrery::spec {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kName[] = "run.txtpb";

absl::StatusOr<BaseRun> GoodBase(std::vector<std::string> overrides = {}) {
  return BaseRun::FromText(GoodText(), kName, FixtureOptions(std::move(overrides)));
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

TEST(BaseRunTest, ResolvesAsLoadRunDoes) {
  const BaseRun base = GoodBase({"training.seq_len=1024"}).value();
  const std::vector<std::vector<std::string>> variations = {
      {},
      {"parallelism.tp=4", "parallelism.dp=2"},
      {"model.preset=tiny-parallel"},
      {"model.hidden=2048", "perturbation.slow_gpus=[{rank: 5 factor: 1.5}]"},
      {"cluster.accelerator.peak[0].flops_per_second=1e15"},
      {"training.seq_len=512"},
      // Wrong: a degree, a preset, several at once, a path, a value, an index.
      {"parallelism.tp=3"},
      {"model.preset=tinny"},
      {"parallelism.tp=3", "training.global_batch=33", "parallelism.pp=0"},
      {"parallelism.tpp=3"},
      {"parallelism.tp=x"},
      {"cluster.accelerator.peak[9].flops_per_second=1e15"},
      // And a good one behind all that is wrong: nothing is left over.
      {"parallelism.pp=1"},
  };
  for (const std::vector<std::string>& overrides : variations) {
    std::vector<std::string> all = {"training.seq_len=1024"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    std::vector<SpecError> expected_errors;
    const absl::StatusOr<LoadedRun> expected =
        LoadRunFromText(GoodText(), kName, FixtureOptions(all), &expected_errors);
    std::vector<SpecError> errors;
    const absl::StatusOr<v1::Run> run = base.Resolve(overrides, 0, &errors);
    ASSERT_EQ(run.ok(), expected.ok()) << all.back();
    EXPECT_EQ(MessageOf(run.status()), MessageOf(expected.status()));
    EXPECT_EQ(errors.size(), expected_errors.size());
    if (run.ok()) {
      EXPECT_EQ(ResolvedText(*run), ResolvedText(expected->run)) << all.back();
    }
  }
}

// dp 4 and a micro-batch of 2: six micro-batches are a global batch of 48, whatever the file and the overrides say.
TEST(BaseRunTest, MicroBatches) {
  const BaseRun base = GoodBase({"training.micro_batch=2"}).value();
  EXPECT_EQ(base.Resolve({"training.global_batch=33"}, 6).value().training().global_batch(), 48);
  EXPECT_EQ(base.Resolve({"parallelism.gpus=8", "parallelism.dp=2"}, 6).value().training().global_batch(), 24);
  // Beyond the range of a global batch, and beyond 64 bits.
  for (const std::int64_t many : {std::int64_t{100'000'000}, std::int64_t{1} << 62}) {
    EXPECT_THAT(MessageOf(base.Resolve({}, many).status()), HasSubstr("training.global_batch: found "));
  }
  // What it depends on is wrong, and that is said alone.
  std::vector<SpecError> errors;
  EXPECT_FALSE(base.Resolve({"training.micro_batch=0"}, 6, &errors).ok());
  ASSERT_EQ(errors.size(), 1);
  EXPECT_EQ(errors[0].field, "training.micro_batch");
}

TEST(BaseRunTest, TheBaseMayBeIncomplete) {
  const std::string text = GoodText().substr(0, GoodText().find("training"));
  const BaseRun base = BaseRun::FromText(text, kName, FixtureOptions()).value();
  EXPECT_FALSE(base.Resolve({}).ok());
  EXPECT_EQ(base.Resolve({}, 2).value().training().global_batch(), 8);
}

TEST(BaseRunTest, BrokenBases) {
  const auto message = [](const std::string& text, std::vector<std::string> overrides = {}) {
    return MessageOf(BaseRun::FromText(text, kName, FixtureOptions(std::move(overrides))).status());
  };
  EXPECT_THAT(message(""), HasSubstr("run.txtpb: is empty"));
  EXPECT_THAT(message("model {"), HasSubstr("run.txtpb:1:8: "));
  EXPECT_THAT(message(GoodText(), {"parallelism.tpp=1"}), HasSubstr("no field \"tpp\""));
  EXPECT_THAT(message(GoodText(), {"nonsense"}), HasSubstr("is no override"));
  EXPECT_THAT(MessageOf(BaseRun::Read("/no/such/file", FixtureOptions()).status()), HasSubstr("/no/such/file: "));
}

TEST(BaseRunTest, CheckOverrideJudgesTheFieldAlone) {
  const BaseRun base = GoodBase().value();
  for (const char* const fine :
       {"parallelism.tp=3", "parallelism.gpus=7", "model.heads=7", "training.global_batch=1",
        "perturbation.slow_gpus=[]", "model.preset=tiny-parallel", "perturbation.jitter={mode: EXPECTED}"}) {
    EXPECT_TRUE(base.CheckOverride(fine).ok()) << fine << ": " << base.CheckOverride(fine);
  }
  const auto message = [&](const std::string& text) { return MessageOf(base.CheckOverride(text)); };
  EXPECT_THAT(message("parallelism.tp=0"), HasSubstr("parallelism.tp: found 0; allowed: a whole number from 1"));
  EXPECT_THAT(message("parallelism.tp=x"), HasSubstr("a whole number"));
  EXPECT_THAT(message("parallelism.pt=1"), AllOf(HasSubstr("no field \"pt\""), HasSubstr("did you mean")));
  EXPECT_THAT(message("model.preset=tinny"), AllOf(HasSubstr("no preset \"tinny\""), HasSubstr("tiny")));
  EXPECT_THAT(message("tp"), HasSubstr("is no override"));
}

TEST(BaseRunTest, DigestFollowsPresetsAndOverrides) {
  const BaseRun base = GoodBase().value();
  EXPECT_EQ(base.Sha256(), LoadGood().value().sha256);
  EXPECT_EQ(base.Sha256({"parallelism.pp=1"}), LoadGood({"parallelism.pp=1"}).value().sha256);
  // Also of one that is wrong.
  EXPECT_NE(base.Sha256({"parallelism.tp=3"}), base.Sha256({"parallelism.tp=5"}));
}

}  // namespace
}  // namespace orrery::spec
