// The memory report: what is live adds up to the ledger, and advice does what it says.
#include "reports/memory_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/fit_advice.h"
#include "tests/sim/training/example_runs.h"

namespace orrery::reports {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;
using training::testing::Simulated;
using training::testing::SmallRun;

// As the command line does it: overrides after the run's own.
Reload ReloadOf(const std::vector<std::string>& own) {
  return [own](const std::vector<std::string>& more) -> absl::StatusOr<v1::Run> {
    std::vector<std::string> all = own;
    all.insert(all.end(), more.begin(), more.end());
    try {
      return SmallRun(all);
    } catch (const std::exception& error) {
      return absl::InvalidArgumentError(error.what());
    }
  };
}

FitAdvice AdviceOf(const std::vector<std::string>& own, training::Result* result) {
  NoProgress progress;
  *result = Simulated(SmallRun(own));
  return Advise(*result, ReloadOf(own), progress);
}

std::string Capacity(std::int64_t bytes) {
  return "cluster.accelerator.memory_capacity_bytes=" + std::to_string(bytes);
}

TEST(Holders, AddUpToActivationsAndLogits) {
  for (const char* const chunks : {"1", "2"}) {
    const training::Result result = Simulated(SmallRun({std::string("parallelism.virtual_stages=") + chunks}));
    for (const training::PipelineRankResult& rank : result.pipeline_ranks) {
      Bytes activations;
      Bytes logits;
      for (const memory::Holder& holder : HoldersOf(*result.plan, rank)) {
        EXPECT_GT(holder.bytes, Bytes(0));
        (holder.activation_class == workloads::ActivationClass::kLogits ? logits : activations) += holder.bytes;
      }
      EXPECT_EQ(activations + logits, rank.memory.activations + rank.memory.logits);
    }
  }
}

TEST(Advice, FitsAndIsOrderedByTime) {
  // A tenth less than what it needs.
  const std::int64_t needed = DevicePeak(Simulated(SmallRun({"training.micro_batch=2"})));
  const std::vector<std::string> own = {"training.micro_batch=2", Capacity(needed / 10 * 9)};
  training::Result result;
  const FitAdvice advice = AdviceOf(own, &result);
  ASSERT_FALSE(result.Fits());
  ASSERT_FALSE(advice.changes.empty());
  for (std::size_t i = 0; i < advice.changes.size(); ++i) {
    const Change& change = advice.changes[i];
    const absl::StatusOr<v1::Run> run = ReloadOf(own)(change.overrides);
    ASSERT_TRUE(run.ok()) << run.status();
    const training::Result changed = Simulated(*run);
    EXPECT_TRUE(changed.Fits()) << change.description;
    EXPECT_EQ(SecondsFromTime(changed.iteration_time), change.iteration_seconds);
    EXPECT_DOUBLE_EQ(change.cost, change.iteration_seconds / SecondsFromTime(result.iteration_time) - 1);
    EXPECT_EQ(DevicePeak(changed), change.device_peak_bytes);
    // The same GPUs.
    EXPECT_EQ(run->parallelism().gpus(), result.gpus);
    EXPECT_GE(change.iteration_seconds, advice.changes[i == 0 ? 0 : i - 1].iteration_seconds);
  }
  EXPECT_THAT(MemoryReportText(result, advice), HasSubstr("--set "));
}

TEST(Advice, SaysSoWhereNothingHelps) {
  training::Result result;
  const FitAdvice advice = AdviceOf({Capacity(1000000000)}, &result);
  EXPECT_TRUE(advice.changes.empty());
  EXPECT_GT(advice.tried, 10);
  EXPECT_THAT(MemoryReportText(result, advice), HasSubstr("no change that was tried makes it fit"));
}

// 32 sequences on 4 replicas: micro-batches of 1, 2, 4 and 8. The largest that fits does, and the next does not.
TEST(Advice, NamesTheLargestMicroBatch) {
  const auto peak = [](int micro_batch) {
    return DevicePeak(Simulated(SmallRun({"training.micro_batch=" + std::to_string(micro_batch)})));
  };
  training::Result result;
  const FitAdvice advice = AdviceOf({Capacity((peak(2) + peak(4)) / 2)}, &result);
  ASSERT_TRUE(result.Fits());
  EXPECT_EQ(advice.largest_micro_batch, 2);
  EXPECT_TRUE(advice.changes.empty());
}

TEST(MemoryReportJson, HasThePeakWhatIsLiveAndAdvice) {
  training::Result result;
  const FitAdvice advice = AdviceOf({Capacity(8000000000)}, &result);
  const ordered_json json = ordered_json::parse(MemoryReportJson(result, advice));
  EXPECT_EQ(json["fits"], result.Fits());
  ASSERT_EQ(json["pipeline_ranks"].size(), 4u);
  for (const ordered_json& rank : json["pipeline_ranks"]) {
    std::int64_t live = 0;
    for (const ordered_json& holder : rank["live"]) live += holder["bytes"].get<std::int64_t>();
    EXPECT_EQ(live, rank["activations"].get<std::int64_t>() + rank["logits"].get<std::int64_t>());
    EXPECT_TRUE(rank["peak"].contains("operator"));
    // 13 to 35 % (the profile's).
    EXPECT_GT(rank["reserved_low_bytes"], rank["allocator_peak_bytes"]);
    EXPECT_GT(rank["reserved_high_bytes"], rank["reserved_low_bytes"]);
  }
  EXPECT_EQ(json["advice"].size(), advice.changes.size());
}

}  // namespace
}  // namespace orrery::reports
