#include "reports/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/summary.h"
#include "tests/sim/training/example_runs.h"

namespace orrery::reports {
namespace {

using nlohmann::ordered_json;
using ::testing::ElementsAre;
using training::testing::Simulated;
using training::testing::SmallRun;

constexpr SimulatorCost kCost = {.wall_seconds = 0.25, .peak_rss_bytes = 4096};

std::vector<std::string> Keys(const ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

ordered_json JsonOf(const v1::Run& run, const SimulatorCost* cost = &kCost) {
  const training::Result result = Simulated(run);
  const Provenance provenance{
      .version = "1.2.3",
      .spec_sha256 = "abc",
      .profile = "a100",
      .software = "level",
      .expected_error = ExpectedError{.p50 = 0.04, .p90 = 0.1, .family = "level on a100", .runs = 9}};
  return ordered_json::parse(ResultJson(result, *MakeWaterfall(run, result), provenance, cost));
}

// The keys that scripts rely on, and no others. What only a later feature can produce is absent: exposed_cp,
// exposed_ep, wait_cp, wait_ep.
TEST(ResultJson, HasExactlyTheDocumentedKeys) {
  const ordered_json json = JsonOf(SmallRun());
  EXPECT_THAT(Keys(json),
              ElementsAre("iteration_time_s", "first_iteration_time_s", "mfu", "hfu", "flops_convention", "peak_tflops",
                          "model_tflops_per_gpu", "tokens_per_s", "tokens_per_s_per_gpu", "gpus", "time_account",
                          "bubble_fraction", "span_bubble_fraction", "exposed_communication_fraction", "waterfall",
                          "memory", "pipeline_ranks", "expected_error", "warnings", "provenance", "simulator"));
  const auto classes = ElementsAre("compute", "exposed_tp", "exposed_pp", "exposed_dp", "wait_tp", "wait_dp", "bubble",
                                   "host", "optimizer", "data");
  EXPECT_THAT(Keys(json["time_account"]), classes);
  EXPECT_THAT(Keys(json["memory"]),
              ElementsAre("fits", "capacity_bytes", "allocator_peak_bytes", "device_peak_bytes", "pipeline_ranks"));
  ASSERT_EQ(json["memory"]["pipeline_ranks"].size(), 4u);
  EXPECT_THAT(Keys(json["memory"]["pipeline_ranks"][0]),
              ElementsAre("pipeline_rank", "weights", "gradients", "optimizer", "activations", "logits", "buffers",
                          "workspaces", "update", "runtime", "allocator_peak_bytes"));
  ASSERT_EQ(json["pipeline_ranks"].size(), 4u);
  EXPECT_THAT(Keys(json["pipeline_ranks"][0]), ElementsAre("pipeline_rank", "layers", "seconds"));
  EXPECT_THAT(Keys(json["pipeline_ranks"][0]["seconds"]), classes);
  ASSERT_EQ(json["waterfall"].size(), 10u);
  for (const ordered_json& step : json["waterfall"]) {
    EXPECT_THAT(Keys(step), ElementsAre("name", "seconds", "mfu_points"));
  }
  EXPECT_EQ(json["waterfall"][9]["name"], "remainder");
  EXPECT_THAT(Keys(json["expected_error"]), ElementsAre("p50", "p90", "family", "runs"));
  EXPECT_THAT(Keys(json["provenance"]), ElementsAre("version", "spec_sha256", "profile", "software", "schedule"));
  EXPECT_THAT(Keys(json["simulator"]),
              ElementsAre("ranks_simulated", "events", "tasks", "wall_time_s", "peak_rss_bytes"));
}

TEST(ResultJson, WithoutCostThereIsNoSimulator) { EXPECT_FALSE(JsonOf(SmallRun(), nullptr).contains("simulator")); }

// SmallRun: 32 GPUs, 32 sequences of 2048 tokens. Figures that are defined by each other agree.
TEST(ResultJson, FiguresAgree) {
  const ordered_json json = JsonOf(SmallRun());
  const double seconds = json["iteration_time_s"];
  EXPECT_EQ(json["gpus"], 32);
  EXPECT_DOUBLE_EQ(json["tokens_per_s"], 32 * 2048 / seconds);
  EXPECT_DOUBLE_EQ(json["tokens_per_s_per_gpu"], 2048 / seconds);
  EXPECT_DOUBLE_EQ(json["peak_tflops"], 312);
  EXPECT_DOUBLE_EQ(json["model_tflops_per_gpu"].get<double>() / 312, json["mfu"]);
  double account = 0;
  double exposed = 0;
  for (const auto& [key, value] : json["time_account"].items()) {
    account += value.get<double>();
    if (key.starts_with("exposed_")) exposed += value.get<double>();
  }
  EXPECT_NEAR(account, 1, 1e-12);
  EXPECT_NEAR(json["exposed_communication_fraction"], exposed, 1e-12);
  EXPECT_EQ(json["bubble_fraction"], json["time_account"]["bubble"]);
  double points = 100 * json["mfu"].get<double>();
  for (const ordered_json& step : json["waterfall"]) points += step["mfu_points"].get<double>();
  EXPECT_NEAR(points, 100, 1e-9);
  for (const ordered_json& rank : json["pipeline_ranks"]) {
    double sum = 0;
    for (const auto& [key, value] : rank["seconds"].items()) sum += value.get<double>();
    EXPECT_NEAR(sum, seconds, 1e-9);
    EXPECT_EQ(rank["layers"], 24 / 4);
  }
  std::int64_t allocator_peak = 0;
  std::int64_t device_peak = 0;
  for (const ordered_json& rank : json["memory"]["pipeline_ranks"]) {
    std::int64_t sum = 0;
    for (const char* const part :
         {"weights", "gradients", "optimizer", "activations", "logits", "buffers", "workspaces", "update"}) {
      sum += rank[part].get<std::int64_t>();
    }
    EXPECT_EQ(rank["allocator_peak_bytes"], sum);
    allocator_peak = std::max(allocator_peak, sum);
    device_peak = std::max(device_peak, sum + rank["runtime"].get<std::int64_t>());
  }
  EXPECT_EQ(json["memory"]["allocator_peak_bytes"], allocator_peak);
  EXPECT_EQ(json["memory"]["device_peak_bytes"], device_peak);
  EXPECT_EQ(json["memory"]["fits"], device_peak <= json["memory"]["capacity_bytes"].get<std::int64_t>());
  EXPECT_EQ(json["provenance"]["schedule"], "1f1b");
  EXPECT_EQ(json["simulator"]["wall_time_s"], 0.25);
  EXPECT_EQ(json["simulator"]["peak_rss_bytes"], 4096);
}

TEST(ResultJson, SaysWhoWasSlowedByWhom) {
  const v1::Run run = SmallRun();
  training::Result result = Simulated(run);
  const training::LinkReport slowed{.from = "node0/nic0",
                                    .to = "leaf0",
                                    .alike = 8,
                                    .capacity = 25'000'000'000,
                                    .bytes = 1e9,
                                    .utilisation = 0.5,
                                    .busy_share = 0.75,
                                    .delay = TimeFromSeconds(4),
                                    .users = {{"dp", 6e8}, {"pp", 4e8}},
                                    .most_delayed = {"F0 chunk 0 of rank 3", TimeFromSeconds(2)},
                                    .most_taken = {"reduce gradients, chunk 1 of rank 0", TimeFromSeconds(1.5)}};
  training::LinkReport quiet = slowed;
  quiet.most_delayed = quiet.most_taken = {};
  result.links =
      training::LinkSummary{.links = {slowed, quiet}, .transfers = 100, .bypassed_solver = 60, .never_slowed = 70};
  const Provenance provenance{
      .version = "1", .spec_sha256 = "abc", .profile = "p", .software = "s", .expected_error = std::nullopt};
  const ordered_json json = ordered_json::parse(ResultJson(result, *MakeWaterfall(run, result), provenance, &kCost));
  EXPECT_THAT(Keys(json["links"][0]), ElementsAre("from", "to", "alike", "capacity_bytes_per_s", "bytes", "utilisation",
                                                  "busy_fraction", "delay_s", "bytes_by", "most_delayed"));
  EXPECT_EQ(json["links"][0]["most_delayed"],
            ordered_json::parse(R"({"transfer": "F0 chunk 0 of rank 3", "delay_s": 2.0,
                                    "by": {"transfer": "reduce gradients, chunk 1 of rank 0", "delay_s": 1.5}})"));
  EXPECT_FALSE(json["links"][1].contains("most_delayed"));
  EXPECT_EQ(json["simulator"]["transfers"], 100);
  EXPECT_EQ(json["simulator"]["transfers_bypassed_solver"], 60);
  EXPECT_EQ(json["simulator"]["transfers_never_slowed"], 70);

  const std::string text = Summary(result, *MakeWaterfall(run, result), provenance, kCost);
  EXPECT_THAT(text, ::testing::HasSubstr(
                        "F0 chunk 0 of rank 3, 2000.000 ms  reduce gradients, chunk 1 of rank 0, 1500.000 ms"));
  EXPECT_THAT(text, ::testing::HasSubstr("100 transfers over links that others use: 60 bypassed the solver of shared "
                                         "rates, 70 were never slowed\n"));
  result.links->links[0].most_taken.transfer = "F0 chunk 0 of rank 3";
  EXPECT_THAT(Summary(result, *MakeWaterfall(run, result), provenance, kCost),
              ::testing::HasSubstr("others like it, 1500.000 ms"));
}

// What does not fit is timed as if it did, and says so.
TEST(ResultJson, WarnsWhatDoesNotFit) {
  const ordered_json json = JsonOf(SmallRun({"cluster.accelerator.memory_capacity_bytes=4000000000"}));
  EXPECT_EQ(json["memory"]["fits"], false);
  ASSERT_EQ(json["warnings"].size(), 1u);
  EXPECT_THAT(json["warnings"][0].get<std::string>(), ::testing::HasSubstr("does not fit"));
  EXPECT_EQ(json["iteration_time_s"], JsonOf(SmallRun())["iteration_time_s"]);
}

}  // namespace
}  // namespace orrery::reports
