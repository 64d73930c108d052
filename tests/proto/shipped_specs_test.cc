// Everything under specs/ loads.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "orrery/v1/nccl.pb.h"
#include "proto/loader.h"

namespace orrery::spec {
namespace {

const char kSpecs[] = ORRERY_SOURCE_DIR "/specs";

LoadOptions Shipped() { return {.spec_path = {kSpecs}, .overrides = {}}; }

template <typename Type>
void LoadAll(const char* kind) {
  const absl::StatusOr<std::vector<std::string>> names = ListPresets(kind, Shipped());
  ASSERT_TRUE(names.ok());
  EXPECT_FALSE(names->empty()) << kind;
  for (const std::string& name : *names) {
    Type message;
    EXPECT_TRUE(LoadPreset(name, Shipped(), &message).ok()) << LoadPreset(name, Shipped(), &message);
    EXPECT_EQ(message.name(), name);
  }
}

TEST(ShippedSpecsTest, EveryPresetIsComplete) {
  LoadAll<v1::Accelerator>("accelerators");
  LoadAll<v1::Cluster>("clusters");
  LoadAll<v1::Model>("models");
  LoadAll<v1::NcclTimes>("nccl_times");
  LoadAll<v1::NcclVersion>("nccl");
  LoadAll<v1::Profile>("profiles");
  LoadAll<v1::Software>("software");
}

TEST(ShippedSpecsTest, EveryRunLoads) {
  int runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(kSpecs) + "/runs")) {
    const absl::StatusOr<LoadedRun> loaded = LoadRun(entry.path().string(), Shipped());
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    ++runs;
  }
  EXPECT_GE(runs, 7);
}

TEST(ShippedSpecsTest, EveryFileSaysWhatItIs) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kSpecs)) {
    if (entry.path().extension() != ".txtpb") continue;
    std::ifstream file(entry.path());
    std::string first, second;
    std::getline(file, first);
    std::getline(file, second);
    EXPECT_THAT(first, testing::StartsWith("# proto-file: orrery/v1/")) << entry.path();
    EXPECT_THAT(second, testing::StartsWith("# proto-message: orrery.v1.")) << entry.path();
  }
}

// Every link and every constant names its source.
TEST(ShippedSpecsTest, NumbersHaveSources) {
  for (const char* name : {"selene", "megascale-clos"}) {
    v1::Cluster cluster;
    ASSERT_TRUE(LoadPreset(name, Shipped(), &cluster).ok());
    EXPECT_FALSE(cluster.node().nvlink().source().empty()) << name;
    EXPECT_FALSE(cluster.node().nic().source().empty()) << name;
  }
}

// Parameters of SC21's Table 1 by its equation 2: P = 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)), which the paper
// prints in billions with one digit (1T as 1008).
TEST(ShippedSpecsTest, ModelsHaveTheirParameters) {
  for (const auto& [name, billions] : std::initializer_list<std::pair<const char*, double>>{{"gpt-1.7b", 1.7},
                                                                                            {"gpt-3.6b", 3.6},
                                                                                            {"gpt-7.5b", 7.5},
                                                                                            {"gpt-18.4b", 18.4},
                                                                                            {"gpt-39.1b", 39.1},
                                                                                            {"gpt-76.1b", 76.1},
                                                                                            {"gpt-145.6b", 145.6},
                                                                                            {"gpt-310.1b", 310.1},
                                                                                            {"gpt-529.6b", 529.6},
                                                                                            {"gpt-1008b", 1008.0}}) {
    v1::Model model;
    ASSERT_TRUE(LoadPreset(name, Shipped(), &model).ok());
    const double l = static_cast<double>(model.layers());
    const double h = static_cast<double>(model.hidden());
    const double parameters =
        12 * l * h * h * (1 + 13 / (12 * h) + (static_cast<double>(model.vocab()) + 2048) / (12 * l * h));
    EXPECT_NEAR(parameters / 1e9, billions, 0.051) << name;
  }
}

TEST(ShippedSpecsTest, TheTemplateLoads) {
  const absl::StatusOr<LoadedRun> loaded = LoadRunFromText(NewRunText(), "new.txtpb", Shipped());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->run.model().name(), "gpt-22b");
  // Its optional lines are true: with them, the run is the same but for its name, sigma and the slow GPU.
  std::string all;
  std::istringstream lines(NewRunText());
  for (std::string line; std::getline(lines, line);) {
    const std::size_t hash = line.find("# ");
    const bool is_field = hash != std::string::npos && line.find_first_not_of(' ') == hash &&
                          line.find(": ", hash) != std::string::npos && !line.starts_with("# proto");
    if (is_field) line.erase(hash, 2);
    all += line + "\n";
  }
  const absl::StatusOr<LoadedRun> complete = LoadRunFromText(all, "all.txtpb", Shipped());
  ASSERT_TRUE(complete.ok()) << complete.status();
  v1::Run expected = loaded->run;
  expected.set_name("my run");
  expected.mutable_perturbation()->mutable_jitter()->set_sigma(0.01);
  v1::SlowGpu* slow = expected.mutable_perturbation()->add_slow_gpus();
  slow->set_rank(0);
  slow->set_factor(1.1);
  EXPECT_EQ(ResolvedText(complete->run), ResolvedText(expected));
}

}  // namespace
}  // namespace orrery::spec
