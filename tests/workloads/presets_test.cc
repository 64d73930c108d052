// The shipped models against what their authors and others print of them.
#include <gtest/gtest.h>

#include <string>

#include "proto/loader.h"
#include "workloads/transformer.h"

namespace orrery::workloads {
namespace {

v1::Run RunOf(const std::string& preset, std::int64_t seq_len) {
  v1::Run run;
  const spec::LoadOptions shipped{.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = {}};
  const absl::Status status = spec::LoadPreset(preset, shipped, run.mutable_model());
  EXPECT_TRUE(status.ok()) << status;
  run.mutable_parallelism()->set_tp(1);
  run.mutable_training()->set_seq_len(seq_len);
  run.mutable_training()->set_global_batch(1);
  return run;
}

std::int64_t Count(const std::string& preset, std::int64_t seq_len = 2048) {
  return ModelParameters(RunOf(preset, seq_len)).total();
}

// Model cards and the sums of their checkpoints' tensors.
TEST(Presets, PublishedParameterCounts) {
  EXPECT_EQ(Count("llama2-7b"), 6'738'415'616);
  EXPECT_EQ(Count("llama2-13b"), 13'015'864'320);
  EXPECT_EQ(Count("llama2-70b"), 68'976'648'192);
  EXPECT_EQ(Count("llama3-8b"), 8'030'261'248);
  EXPECT_EQ(Count("llama3-70b"), 70'553'706'496);
  EXPECT_EQ(Count("llama3-405b"), 405'853'388'800);
  EXPECT_EQ(Count("bloom-176b"), 176'247'271'424);
  EXPECT_EQ(Count("mpt-7b"), 6'649'286'656);
  // One norm per layer (weight and bias) instead of two.
  EXPECT_EQ(Count("gpt-neox-20b"), 20'554'567'680 - std::int64_t{44} * 2 * 6144);
}

// llm-foundry's throughput tables, column NumParams: equal to the last parameter only with biases and 50,368 tokens.
// 1.3B, 2.7B and 6.7B at 2,048 tokens; another table's 7B has 8,192 positions, 6,144 x 4,096 more.
TEST(Presets, LlmFoundryParameterCounts) {
  EXPECT_EQ(Count("mpt-1b"), 1'315'950'592);
  EXPECT_EQ(Count("mpt-3b"), 2'651'837'440);
  EXPECT_EQ(Count("mpt-7b-learned"), 6'658'859'008);
  EXPECT_EQ(Count("mpt-7b-learned", 8192) - Count("mpt-7b-learned"), 6144 * 4096);
  // Printed in billions.
  EXPECT_NEAR(static_cast<double>(Count("mpt-125m")) / 1e9, 0.125, 0.0005);
  EXPECT_NEAR(static_cast<double>(Count("mpt-350m")) / 1e9, 0.356, 0.0005);
  EXPECT_NEAR(static_cast<double>(Count("mpt-760m")) / 1e9, 0.760, 0.0005);
  EXPECT_NEAR(static_cast<double>(Count("mpt-13b")) / 1e9, 12.854, 0.0005);
  EXPECT_NEAR(static_cast<double>(Count("mpt-30b-learned")) / 1e9, 29.975, 0.0005);
  EXPECT_NEAR(static_cast<double>(Count("mpt-70b")) / 1e9, 64.862, 0.0005);
}

// Table 1 of either report: billions in embeddings (both tables) and else.
TEST(Presets, NemotronParameterCounts) {
  const auto expect = [](const std::string& preset, double embedding, double other) {
    const v1::Run run = RunOf(preset, 4096);
    const double tables = 2.0 * 256000 * static_cast<double>(run.model().hidden());
    EXPECT_NEAR(tables / 1e9, embedding, 0.06) << preset;
    EXPECT_NEAR((static_cast<double>(ModelParameters(run).total()) - tables) / 1e9, other, 0.06) << preset;
  };
  expect("nemotron4-15b", 3.2, 12.5);
  expect("nemotron4-340b", 9.4, 331.6);
}

// Released as 30B; no exact count is printed.
TEST(Presets, Mpt30B) { EXPECT_NEAR(static_cast<double>(Count("mpt-30b")) / 1e9, 29.95, 0.01); }

double TflopPerToken(const std::string& preset, std::int64_t seq_len, const char* convention) {
  return ModelFlops(RunOf(preset, seq_len), convention, false)->count() / static_cast<double>(seq_len) / 1e12;
}

// TFLOP per token that follow from frameworks' tables of TFLOP/s and tokens/s: NeMo and MLPerf until 2025-07 with full
// attention, after that with half of it.
TEST(Presets, FlopsPerToken) {
  const auto near = [](double value, double expected) { EXPECT_NEAR(value, expected, 0.001 * expected); };
  near(TflopPerToken("llama3-8b", 8192, "model"), 0.05791);
  near(TflopPerToken("llama3-70b", 8192, "model"), 0.4814);
  near(TflopPerToken("llama3-405b", 8192, "model"), 2.6255);
  near(TflopPerToken("llama3-8b", 8192, "model-causal"), 0.05147);
  near(TflopPerToken("llama3-70b", 8192, "model-causal"), 0.4492);
  near(TflopPerToken("llama3-405b", 8192, "model-causal"), 2.524);
  near(TflopPerToken("gpt3-175b", 2048, "model"), 1.0764);
  near(TflopPerToken("nemotron4-340b", 4096, "model"), 2.105);
  near(TflopPerToken("nemotron4-15b", 4096, "model"), 0.0940);
}

}  // namespace
}  // namespace orrery::workloads
