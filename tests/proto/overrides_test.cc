#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/loader.h"
#include "tests/proto/spec_fixture.h"

namespace orrery::spec {
namespace {

using testing::HasSubstr;

TEST(OverridesTest, SetScalarsBlocksAndLists) {
  const absl::StatusOr<LoadedRun> loaded = LoadGood({
      "parallelism.tp=4",
      "parallelism.dp=2",
      "model.preset=tiny-parallel",  // a name without quotes
      "name=\"with quotes\"",
      "perturbation.jitter={mode: EXPECTED}",
      "perturbation.slow_gpus={rank: 3 factor: 1.1}",
      "perturbation.slow_gpus=[{rank: 5 factor: 1.5}, {rank: 6 factor: 1.1}]",
      "perturbation.slow_gpus[1].factor=1.2",
      "training={micro_batch: 2 seq_len: 1024}",
      "cluster.accelerator.peak[0].flops_per_second=1e15",
      "cluster.node.nic.bandwidth=5e10",
  });
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const v1::Run& run = loaded->run;
  EXPECT_EQ(run.parallelism().tp(), 4);
  EXPECT_EQ(run.model().name(), "tiny-parallel");
  EXPECT_EQ(run.model().block(), v1::PARALLEL);
  EXPECT_EQ(run.name(), "with quotes");
  EXPECT_EQ(run.perturbation().jitter().mode(), v1::EXPECTED);
  // The second list replaced the first.
  ASSERT_EQ(run.perturbation().slow_gpus_size(), 2);
  EXPECT_EQ(run.perturbation().slow_gpus(0).rank(), 5);
  EXPECT_EQ(run.perturbation().slow_gpus(1).factor(), 1.2);
  // A block is merged: the file's global batch stays.
  EXPECT_EQ(run.training().global_batch(), 32);
  EXPECT_EQ(run.training().micro_batch(), 2);
  EXPECT_EQ(run.training().seq_len(), 1024);
  // An element of a list that came from a preset.
  EXPECT_EQ(run.cluster().accelerator().peak(0).flops_per_second(), 1e15);
  EXPECT_EQ(run.cluster().accelerator().peak(0).data_type(), v1::BF16);
  EXPECT_EQ(run.cluster().node().nic().bandwidth(), 5e10);
  // Beside it the preset still holds.
  EXPECT_EQ(run.cluster().node().nic().efficiency(), 0.9);
}

TEST(OverridesTest, TheLastOneWins) {
  const absl::StatusOr<LoadedRun> loaded = LoadGood({"training.seq_len=512", "training.seq_len=1024"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->run.training().seq_len(), 1024);
}

TEST(OverridesTest, ABlockMayStandAsInAFile) {
  const absl::StatusOr<LoadedRun> loaded = LoadGood({"training {seq_len: 512 micro_batch: 2}"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->run.training().seq_len(), 512);
  EXPECT_EQ(loaded->run.training().micro_batch(), 2);
}

TEST(OverridesTest, ErrorsNameTheOverride) {
  const auto error = [](const std::string& text) { return ErrorOf(GoodText(), {text}); };
  EXPECT_EQ(error("parallelism.tp=0"),
            "--set parallelism.tp=0: parallelism.tp: found 0; allowed: a whole number from 1 to 1024");
  EXPECT_EQ(error("paralelism.tp=2"),
            "--set paralelism.tp=2: paralelism.tp: no field \"paralelism\"; allowed: one of name, model, cluster, "
            "parallelism, "
            "training, software, schedule, perturbation, simulation (did you mean 'parallelism'?)");
  EXPECT_THAT(error("parallelism.tpp=2"), HasSubstr("no field \"tpp\" in parallelism"));
  EXPECT_THAT(error("parallelism.tp.x=2"), HasSubstr("parallelism.tp has no fields"));
  EXPECT_THAT(error("perturbation.slow_gpus.rank=2"), HasSubstr("perturbation.slow_gpus is a list; allowed: "));
  EXPECT_THAT(error("perturbation.slow_gpus[0].rank=2"), HasSubstr("slow_gpus has 0 elements"));
  EXPECT_THAT(error("perturbation.slow_gpus[x].rank=2"), HasSubstr("found \"slow_gpus[x]\" in the path"));
  EXPECT_THAT(error("perturbation.slow_gpus[-1].rank=2"), HasSubstr("found \"slow_gpus[-1]\" in the path"));
  EXPECT_THAT(error("parallelism[0].tp=2"), HasSubstr("parallelism is no list of blocks"));
  EXPECT_THAT(error("parallelism=2"), HasSubstr("parallelism: found \"2\"; allowed: a block { ... } of tp, pp"));
  EXPECT_THAT(error("parallelism.tp=2 3"), HasSubstr("found \"3\" behind the value"));
  EXPECT_THAT(error("parallelism={tp: 2"), HasSubstr("is not closed at the end; allowed: \"}\""));
  EXPECT_THAT(error("parallelism={tq: 2}"), HasSubstr("parallelism.tq: no such field"));
  EXPECT_THAT(error("parallelism.tp="), HasSubstr("found the end; allowed: a whole number"));
  EXPECT_THAT(error("parallelism.tp"), HasSubstr("is no override; allowed: path=value"));
  EXPECT_THAT(error("=3"), HasSubstr("is no override; allowed: path=value"));
  EXPECT_THAT(error("{tp: 2}"), HasSubstr("is no override; allowed: path=value"));
  EXPECT_THAT(error("parallelism {tq: 2}"), HasSubstr("parallelism.tq: no such field"));
  EXPECT_THAT(error("parallelism..tp=3"), HasSubstr("no field \"\" in parallelism"));
  EXPECT_THAT(error("[0]=3"), HasSubstr("no field \"\""));
}

}  // namespace
}  // namespace orrery::spec
