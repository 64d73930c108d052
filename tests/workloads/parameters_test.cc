#include <gtest/gtest.h>

#include "tests/workloads/test_run.h"
#include "workloads/transformer.h"

namespace orrery::workloads {
namespace {

// Narayanan et al. 2021, equation 2: P = 12 L h^2 (1 + 13/(12h) + (V + s)/(12 L h)), which leaves out the final norm's
// 2h.
double Sc21Parameters(const TestModel& m) {
  const auto h = static_cast<double>(m.hidden);
  const auto l = static_cast<double>(m.layers);
  return 12 * l * h * h * (1 + 13 / (12 * h) + (static_cast<double>(m.vocab) + 2048) / (12 * l * h));
}

TEST(Parameters, Sc21Formula) {
  for (const TestModel& model : {k22B, k175B, TestModel{24, 2304, 24, 51200}, TestModel{128, 25600, 160, 51200}}) {
    const ParameterCount count =
        Parameters(MakeRun(model, 1, 1), {.layers = model.layers, .embedding = true, .head = true});
    EXPECT_DOUBLE_EQ(static_cast<double>(count.total() - 2 * model.hidden), Sc21Parameters(model));
  }
}

// SC21 Table 1 prints 1.7, 174.6 (Table 2) and 1,008.0 billion.
TEST(Parameters, PrintedTotals) {
  const auto billions = [](const TestModel& model) {
    const ParameterCount count =
        Parameters(MakeRun(model, 1, 1), {.layers = model.layers, .embedding = true, .head = true});
    return static_cast<double>(count.total()) / 1e9;
  };
  EXPECT_NEAR(billions({24, 2304, 24, 51200}), 1.7, 0.05);
  EXPECT_NEAR(billions(k175B), 174.6, 0.05);
  EXPECT_NEAR(billions({128, 25600, 160, 51200}), 1008.0, 0.05);
}

// Over 8 tensor-parallel ranks only projection and MLP-down biases (h each), norms (2h each) and positions (s h) are
// repeated.
TEST(Parameters, TensorParallelShares) {
  const ChunkShape all{.layers = 2, .embedding = true, .head = true};
  const ParameterCount whole = Parameters(MakeRun(k22B, 1, 1), all);
  const ParameterCount share = Parameters(MakeRun(k22B, 8, 1), all);
  const std::int64_t repeated = 2 * (2 * 6144 + 4 * 6144) + 2 * 6144 + 2048 * 6144;
  EXPECT_EQ(8 * share.total() - 7 * repeated, whole.total());
}

// The last stage of a pipeline has its own copy of the shared table; an untied head has its own even on the first.
TEST(Parameters, HeadOfItsOwn) {
  const v1::Run tied = MakeRun(k22B, 8, 1);
  v1::Run untied = tied;
  untied.mutable_model()->set_tied_embeddings(false);
  const std::int64_t table = 51200LL / 8 * 6144;
  const std::int64_t layers = Parameters(tied, {.layers = 4}).matmul;
  EXPECT_EQ(layers, 4LL * 12 * 6144 * 6144 / 8);
  EXPECT_EQ(Parameters(tied, {.layers = 4, .head = true}).matmul, layers + table);
  EXPECT_EQ(Parameters(tied, {.layers = 4, .embedding = true, .head = true}).matmul, layers);
  EXPECT_EQ(Parameters(untied, {.layers = 4, .embedding = true, .head = true}).matmul, layers + table);
}

TEST(Parameters, ParallelBlockHasOneNorm) {
  v1::Run run = MakeRun(k22B, 8, 1);
  const std::int64_t serial = Parameters(run, {.layers = 1}).total();
  run.mutable_model()->set_block(v1::PARALLEL);
  EXPECT_EQ(serial - Parameters(run, {.layers = 1}).total(), 2 * 6144);
}

// 50,257 tokens on 8 ranks: the next multiple of 1,024 is 51,200, as in SC21; 64,000 becomes 64,512.
TEST(Parameters, PaddedVocabulary) {
  EXPECT_EQ(PaddedVocabulary(MakeRun({1, 512, 8, 50257}, 8, 1)), 51200);
  EXPECT_EQ(PaddedVocabulary(MakeRun({1, 512, 8, 51200}, 8, 1)), 51200);
  EXPECT_EQ(PaddedVocabulary(MakeRun({1, 512, 8, 64000}, 8, 1)), 64512);
  EXPECT_EQ(PaddedVocabulary(MakeRun({1, 512, 8, 50257}, 1, 1)), 50304);
}

}  // namespace
}  // namespace orrery::workloads
