// From rows of the two tables of memory to specs: what is taken, filled in and refused; and, where it is at hand, the
// public record itself.
#include "validation/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "tests/reference.h"
#include "tests/sim/training/example_runs.h"
#include "validation/megatron_memory.h"

namespace orrery::validation {
namespace {

using ::testing::HasSubstr;
using training::testing::ShippedSpecs;

using Cells = std::vector<std::pair<std::string, std::string>>;

// A small GPT on one node; measured is what the hand count below gives.
Cells TestCells() {
  return {{"test_case", "gpt/small"},
          {"recipe_nodesxgpus", "gb200:2x4;h100:1x8"},
          {"environment", "dev_dgx_h100"},
          {"mem_max_allocated_bytes", "2000000000"},
          {"num-layers", "12"},
          {"hidden-size", "512"},
          {"num-attention-heads", "8"},
          {"seq-length", "1024"},
          {"micro-batch-size", "4"},
          {"global-batch-size", "32"},
          {"tensor-model-parallel-size", "1"},
          {"pipeline-model-parallel-size", "2"},
          {"context-parallel-size", ""},
          {"num-layers-per-virtual-pipeline-stage", ""},
          {"sequence-parallel", ""},
          {"use-distributed-optimizer", ""},
          {"num-experts", ""},
          {"recompute-granularity", ""},
          {"recompute-method", ""},
          {"recompute-num-layers", ""},
          {"swiglu", ""},
          {"bf16", "true"},
          {"fp16", ""},
          {"fp8-format", ""},
          {"attention-backend", "unfused"},
          {"untie-embeddings-and-output-weights", ""},
          {"transformer-impl", "transformer_engine"},
          {"use-megatron-fsdp", ""}};
}

std::string TableText(const Cells& cells, const Cells& changes) {
  std::string header;
  std::string row;
  for (const auto& [column, usual] : cells) {
    std::string cell = usual;
    for (const auto& [changed, value] : changes) {
      if (changed == column) cell = value;
    }
    header += (header.empty() ? "" : ",") + column;
    row += (row.empty() ? "" : ",") + cell;
  }
  return header + "\n" + row + "\n";
}

class MemoryRows : public ::testing::Test {
 protected:
  static const Catalogue& Presets() {
    static const Catalogue catalogue = *Catalogue::Load(ShippedSpecs());
    return catalogue;
  }
  static absl::StatusOr<RunOfRow> Read(const Cells& changes) {
    const absl::StatusOr<CsvTable> table = CsvTable::Parse(TableText(TestCells(), changes), "test.csv");
    if (!table.ok()) return table.status();
    return MegatronTestRun(Record(*table, table->rows()[0]), Presets());
  }
  static v1::Run Run(const Cells& changes) {
    const absl::StatusOr<RunOfRow> run = Read(changes);
    EXPECT_TRUE(run.ok()) << run.status();
    return run.ok() ? run->run : v1::Run();
  }
  static std::string Refusal(const Cells& changes) {
    const absl::StatusOr<RunOfRow> run = Read(changes);
    EXPECT_EQ(run.status().code(), absl::StatusCode::kUnimplemented) << run.status();
    return std::string(run.status().message());
  }
};

TEST_F(MemoryRows, ArgumentsBecomeFields) {
  const v1::Run run = Run({});
  EXPECT_EQ(run.model().layers(), 12);
  EXPECT_EQ(run.model().vocab(), 50257);
  EXPECT_TRUE(run.model().tied_embeddings());
  EXPECT_EQ(run.parallelism().pp(), 2);
  EXPECT_EQ(run.parallelism().dp(), 4);
  EXPECT_EQ(run.parallelism().zero_stage(), 0);
  EXPECT_EQ(run.training().gradient_type(), v1::FP32);
  EXPECT_EQ(run.software().attention_kernel(), v1::UNFUSED);
}

TEST_F(MemoryRows, ArgumentsImplyOthers) {
  EXPECT_EQ(Run({{"bf16", ""}, {"fp16", "true"}}).training().gradient_type(), v1::FP16);
  // 12 layers on 2 ranks, 2 a stage: 3 stages each.
  const v1::Run interleaved = Run({{"num-layers-per-virtual-pipeline-stage", "2"}});
  EXPECT_EQ(interleaved.parallelism().virtual_stages(), 3);
  EXPECT_EQ(interleaved.schedule().name(), "interleaved-1f1b");
  // 4 x 512 x 2 / 3 = 1,365 -> 21 x 64.
  EXPECT_EQ(Run({{"swiglu", "true"}}).model().ffn_hidden(), 1344);
  EXPECT_EQ(Run({{"recompute-granularity", "full"}, {"recompute-method", "block"}, {"recompute-num-layers", "2"}})
                .training()
                .recompute_layers(),
            2);
  EXPECT_EQ(Run({{"test_case", "gpt/small_rope_embeddings"}}).model().positions(), v1::ROTARY);
}

TEST_F(MemoryRows, AttentionFollowsBackendAndContainer) {
  const auto kernel = [](const char* backend, const char* implementation, const char* environment) {
    return Run({{"attention-backend", backend}, {"transformer-impl", implementation}, {"environment", environment}})
        .software()
        .attention_kernel();
  };
  EXPECT_EQ(kernel("flash", "transformer_engine", "dev_dgx_a100"), v1::FLASH_ATTENTION_2);
  EXPECT_EQ(kernel("", "transformer_engine", "dev_dgx_a100"), v1::FLASH_ATTENTION_2);
  EXPECT_EQ(kernel("", "transformer_engine", "lts_dgxa100_dracooci"), v1::UNFUSED);
  EXPECT_EQ(kernel("", "local", "dev_dgx_a100"), v1::UNFUSED);
}

TEST_F(MemoryRows, RefusesNamingTheFeature) {
  EXPECT_EQ(Refusal({{"num-experts", "8"}}), "mixture of experts");
  EXPECT_EQ(Refusal({{"context-parallel-size", "2"}}), "context parallelism");
  EXPECT_EQ(Refusal({{"fp8-format", "hybrid"}}), "FP8");
  EXPECT_EQ(Refusal({{"use-megatron-fsdp", "true"}}), "Megatron-FSDP");
  EXPECT_EQ(Refusal({{"test_case", "gpt/dynamic_inference"}}), "inference");
  EXPECT_EQ(Refusal({{"recipe_nodesxgpus", ""}, {"global-batch-size", ""}}), "a number of GPUs");
  EXPECT_EQ(Refusal({{"environment", "dev_dgx_v100"}}), "an accelerator of environment dev_dgx_v100");
}

TEST_F(MemoryRows, MalformedCellsAreErrors) {
  for (const Cells& changes :
       {Cells{{"num-layers", "many"}}, Cells{{"hidden-size", "-4"}}, Cells{{"recipe_nodesxgpus", "h100:1"}}}) {
    EXPECT_EQ(Read(changes).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// The last of two ranks holds 6 layers. Parameters: a layer 12 h h + 13 h = 3,152,384; table 50,304 h = 25,755,648;
// final norm 2 h: 44,670,976, of 18 bytes 804 MB. Activations a layer (Korthikanti et al., tp 1): s b h (34 + 5 a s /
// h) = 2,097,152 x 114 = 239 MB, six 1,434 MB; logits 6 s b V = 1,236 MB. With 100 MB of workspaces 3,575 MB; the rest,
// such as messages and the first layer's temporaries, is some MB.
TEST_F(MemoryRows, PredictsTheClosedForm) {
  const absl::StatusOr<CsvTable> table =
      CsvTable::Parse(TableText(TestCells(), {{"mem_max_allocated_bytes", "3575000000"}}), "test.csv");
  NoProgress progress;
  const absl::StatusOr<Report> report = ValidateMemory(*table, {.load = ShippedSpecs()}, progress);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->unit, "GiB");
  ASSERT_EQ(report->rows.size(), 1u);
  ASSERT_EQ(report->rows[0].status, Status::kOk) << report->rows[0].reason;
  EXPECT_EQ(report->rows[0].group, "gpt");
  EXPECT_NEAR(report->rows[0].Error(), 0, 0.015);
}

Cells PublishedCells() {
  return {{"source", "pytorch/torchtitan benchmarks/llama3_h100_202412_torchtitan.md"},
          {"model", "Llama3.1-8B"},
          {"gpu", "H100 96GB HBM2e 500W"},
          {"n_gpus", "64"},
          {"dp_or_fsdp", "64"},
          {"tp", "1"},
          {"pp", "1"},
          {"cp", "1"},
          {"ep", "1"},
          {"seq", "8192"},
          {"mbs", "1"},
          {"gbs", ""},
          {"precision_optimizer", "bf16 AdamW"},
          {"recompute", "full AC"},
          {"other", "FSDP+compile"},
          {"metric", "peak"},
          {"value_GiB", "20"}};
}

Row PublishedRow(const Cells& changes) {
  const absl::StatusOr<CsvTable> table = CsvTable::Parse(TableText(PublishedCells(), changes), "test.csv");
  NoProgress progress;
  const absl::StatusOr<Report> report = ValidateMemory(*table, {.load = ShippedSpecs()}, progress);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? report->rows[0] : Row();
}

TEST(PublishedPeaks, AreTakenOrRefused) {
  const Row row = PublishedRow({});
  ASSERT_EQ(row.status, Status::kOk) << row.reason;
  EXPECT_THAT(row.assumptions, ::testing::ElementsAre("global batch = 64"));
  EXPECT_TRUE(row.flags.empty());
  const auto reason = [](const Cells& changes) {
    const Row refused = PublishedRow(changes);
    EXPECT_EQ(refused.status, Status::kRefused);
    return refused.reason;
  };
  EXPECT_EQ(reason({{"other", "FSDP+compile+float8"}}), "FP8");
  EXPECT_EQ(reason({{"cp", "2"}}), "context parallelism");
  EXPECT_EQ(reason({{"source", "a note"}}), "a software level of a note");
  EXPECT_EQ(reason({{"model", "Mixtral-8x7B"}}), "model Mixtral-8x7B");
  EXPECT_THAT(reason({{"metric", "allocated at OOM"}}), HasSubstr("the metric is allocated at OOM"));
}

TEST(MemoryTables, MustBeKnown) {
  const absl::StatusOr<CsvTable> table = CsvTable::Parse("id,time_s\nrow,1\n", "test.csv");
  NoProgress progress;
  EXPECT_EQ(ValidateMemory(*table, {.load = ShippedSpecs()}, progress).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// The public record: median at most 4 % and 90th percentile at most 10 % of the GPT tests, median at most 8 % of
// published peaks.
TEST(PublicRecord, MeetsItsThresholds) {
  if (orrery::tests::ReferenceFile("memory/memory_measured.csv").empty()) GTEST_SKIP() << "no reference data";
  const auto summary = [&](const std::string& file, std::vector<Condition> where) {
    const std::string path = orrery::tests::ReferenceFile("memory/" + file);
    const absl::StatusOr<std::string> text = ReadFile(path, 1 << 28);
    const absl::StatusOr<CsvTable> table = CsvTable::Parse(*text, path);
    NoProgress progress;
    return ValidateMemory(*table, {.load = ShippedSpecs(), .where = std::move(where)}, progress)->All();
  };
  const Summary tests = summary("megatron_golden_memory.csv", {{"test_case", "gpt/"}});
  EXPECT_GE(tests.ok, tests.rows / 2);
  EXPECT_LE(tests.median_abs_error, 0.04);
  EXPECT_LE(tests.p90_abs_error, 0.10);
  const Summary peaks = summary("memory_measured.csv", {{"metric", "peak"}});
  EXPECT_GE(peaks.ok, 2);
  EXPECT_LE(peaks.median_abs_error, 0.08);
}

}  // namespace
}  // namespace orrery::validation
