#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/loader.h"
#include "tests/proto/spec_fixture.h"

namespace orrery::spec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PresetsTest, UserFieldsOverrideThePreset) {
  const absl::StatusOr<LoadedRun> loaded = LoadRunFromText(
      "model { preset: \"tiny\" layers: 24 }"
      "cluster { preset: \"pod\" nodes: 2 node { nic { latency: 3e-6 } }"
      "  accelerator { peak { data_type: FP16 flops_per_second: 1e14 } } }"
      "software { preset: \"level\" defaults { precision: FP16 } } training { global_batch: 4 }",
      "run.txtpb", FixtureOptions());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const v1::Run& run = loaded->run;
  EXPECT_EQ(run.model().layers(), 24);
  EXPECT_EQ(run.model().hidden(), 1024);
  EXPECT_EQ(run.cluster().nodes(), 2);
  // Blocks merge: of the NIC only the latency changes, of the defaults only the precision.
  EXPECT_EQ(run.cluster().node().nic().latency(), 3e-6);
  EXPECT_EQ(run.cluster().node().nic().bandwidth(), 25e9);
  EXPECT_EQ(run.training().precision(), v1::FP16);
  EXPECT_EQ(run.training().gradient_type(), v1::FP32);
  // Lists are replaced: BF16 is gone.
  ASSERT_EQ(run.cluster().accelerator().peak_size(), 1);
  EXPECT_EQ(run.cluster().accelerator().peak(0).data_type(), v1::FP16);
  // What pod says of its accelerator stands over the accelerator's own 2e12.
  EXPECT_EQ(run.cluster().accelerator().memory_bandwidth(), 1e12);
}

TEST(PresetsTest, AnotherPresetInsideDropsWhatTheOuterOneSaid) {
  const absl::StatusOr<LoadedRun> loaded = LoadGood({"cluster.accelerator.preset=small-gpu"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const v1::Accelerator& accelerator = loaded->run.cluster().accelerator();
  EXPECT_EQ(accelerator.name(), "small-gpu");
  EXPECT_EQ(accelerator.memory_capacity_bytes(), 40000000000);
  EXPECT_EQ(accelerator.memory_bandwidth(), 2e12);
  EXPECT_EQ(loaded->run.cluster().name(), "pod");
}

TEST(PresetsTest, APresetMayStartFromAnother) {
  const absl::StatusOr<LoadedRun> loaded = LoadGood({"model.preset=tiny-parallel"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->run.model().block(), v1::PARALLEL);
  EXPECT_EQ(loaded->run.model().layers(), 12);
  EXPECT_EQ(loaded->run.model().name(), "tiny-parallel");
  EXPECT_FALSE(loaded->run.model().has_preset());
}

TEST(PresetsTest, PresetsThatStartFromEachOther) {
  EXPECT_THAT(ErrorOf(GoodText(), {"model.preset=loop-a"}),
              HasSubstr("model.preset: presets start from each other: loop-a -> loop-b -> loop-a; allowed: a chain"));
}

TEST(PresetsTest, UsersOwnHideTheShippedOnes) {
  const TemporaryFolder mine;
  mine.Write("models/tiny.txtpb", "layers: 2 hidden: 64 heads: 2 vocab: 100");
  mine.Write("models/own.txtpb", "layers: 4 hidden: 64 heads: 2 vocab: 100");
  mine.Write("models/notes.md", "not a preset");
  LoadOptions options = FixtureOptions();
  options.spec_path.insert(options.spec_path.begin(), mine.path());
  const absl::StatusOr<LoadedRun> loaded = LoadRunFromText(GoodText(), "run.txtpb", options);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->run.model().layers(), 2);
  const absl::StatusOr<std::vector<std::string>> names = ListPresets("models", options);
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, ElementsAre("broken", "loop-a", "loop-b", "own", "tiny", "tiny-parallel"));
  EXPECT_THAT(std::string(ListPresets("model", options).status().message()), HasSubstr("(did you mean 'models'?)"));
}

TEST(PresetsTest, UnknownAndImpossibleNames) {
  EXPECT_THAT(
      ErrorOf(GoodText(), {"model.preset=tinny"}),
      HasSubstr("model.preset: no preset \"tinny\"; allowed: one of broken, loop-a, loop-b, tiny, tiny-parallel (did "
                "you mean 'tiny'?)"));
  for (const char* name : {"", "../models/tiny", "/etc/passwd", "..", ".hidden", "a b"}) {
    EXPECT_THAT(ErrorOf(GoodText(), {std::string("model.preset=") + name}),
                HasSubstr("allowed: a name of letters, digits"))
        << name;
  }
  // One error each for what is missing altogether, with the names.
  EXPECT_EQ(ErrorOf("training { global_batch: 8 }"),
            "run.txtpb:1:1: model.preset: is required and missing; allowed: one of broken, loop-a, loop-b, tiny, "
            "tiny-parallel\n"
            "run.txtpb:1:1: cluster.preset: is required and missing; allowed: one of pod\n"
            "run.txtpb:1:1: software.preset: is required and missing; allowed: one of level");
}

TEST(PresetsTest, ErrorsInsideAPresetStandInItsFile) {
  const std::string error = ErrorOf(GoodText(), {"model.preset=broken"});
  EXPECT_THAT(error,
              HasSubstr("testdata/models/broken.txtpb:5:1: model.hidden: found 0; allowed: a whole number from 1"));
  EXPECT_THAT(error,
              HasSubstr("testdata/models/broken.txtpb:7:8: model.vocab: found \"many\"; allowed: a whole number"));
}

TEST(PresetsTest, LoadPresetByItself) {
  v1::Model model;
  ASSERT_TRUE(LoadPreset("tiny", FixtureOptions(), &model).ok());
  EXPECT_EQ(model.head_dim(), 64);
  EXPECT_THAT(std::string(LoadPreset("nano", FixtureOptions(), &model).message()), HasSubstr("no preset \"nano\""));
  v1::Training training;
  EXPECT_FALSE(LoadPreset("tiny", FixtureOptions(), &training).ok());
}

TEST(PresetsTest, NoDefaultClusterForAnAccelerator) {
  EXPECT_THAT(
      ErrorOf("model { preset: \"tiny\" } cluster { accelerator { preset: \"small-gpu\" } }"
              "software { preset: \"level\" } training { global_batch: 4 }"),
      HasSubstr(
          "cluster.accelerator.preset: found \"small-gpu\", for which software level level has no default cluster; "
          "allowed: a cluster preset, or one of gpu"));
}

}  // namespace
}  // namespace orrery::spec
