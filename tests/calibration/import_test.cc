#include "calibration/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "calibration/profile_file.h"
#include "sim/kernels/gemm.h"

namespace orrery::calibration {
namespace {

using testing::HasSubstr;

constexpr char kHeader[] = "source,gpu,op,m,n,k,batch_or_groups,dtype,time_us,tflops,gbps,library,note\n";

spec::LoadOptions Shipped() { return {.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = {}}; }

ImportOptions Options() {
  ImportOptions options;
  EXPECT_TRUE(spec::LoadPreset("h100-sxm-80gb", Shipped(), &options.accelerator).ok());
  options.base = options.accelerator.profile();
  options.command = "orrery calibrate import --base h100.txtpb";
  return options;
}

absl::StatusOr<ImportResult> ImportRows(const ImportOptions& options, const std::string& rows) {
  const absl::StatusOr<CsvTable> table = CsvTable::Parse(kHeader + rows, "table.csv");
  if (!table.ok()) return table.status();
  return Import(options, &*table, nullptr);
}

// 280 rows that the model itself has timed, at 0.9 of its efficiency.
std::string ModelRows(const ImportOptions& options) {
  v1::GemmProfile slower = options.base.gemm(0);
  slower.mutable_efficiency()->set_value(0.9 * slower.efficiency().value());
  const kernels::GemmModel model(options.accelerator, slower, FlopsPerSecond(989.4e12), 2);
  std::string rows;
  for (const int n : {2048, 3072, 4096, 5120, 6144, 7168, 8192, 12288, 16384, 20480}) {
    for (const int k : {4096, 8192}) {
      for (const int m : {16, 128, 256, 384, 512, 768, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384}) {
        const double us = 1e6 * model.Seconds({.m = m, .n = n, .k = k});
        absl::StrAppend(&rows, "synthetic,H100 (toy),gemm,", m, ",", n, ",", k, ",1,bf16,", us, ",,,none,\n");
      }
    }
  }
  return rows;
}

TEST(Import, TwiceGivesTheSameBytes) {
  const ImportOptions options = Options();
  const std::string rows = ModelRows(options);
  const absl::StatusOr<ImportResult> once = ImportRows(options, rows);
  ASSERT_TRUE(once.ok()) << once.status();
  EXPECT_LT(once->gemm[0].fitted.median, 0.02);
  ImportOptions again = options;
  again.base = once->profile;
  const absl::StatusOr<ImportResult> twice = ImportRows(again, rows);
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_EQ(ImportedProfileText(options, *once), ImportedProfileText(again, *twice));
  EXPECT_THAT(ImportedProfileText(options, *once), HasSubstr(options.command));
}

// No row is in FP8, so that its entry is the base's, sources and all.
TEST(Import, WhatHasNoRowsIsTheBases) {
  const ImportOptions options = Options();
  const absl::StatusOr<ImportResult> result = ImportRows(options, ModelRows(options));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->profile.gemm(1).SerializeAsString(), options.base.gemm(1).SerializeAsString());
  EXPECT_EQ(result->profile.host().SerializeAsString(), options.base.host().SerializeAsString());
  EXPECT_NE(result->profile.gemm(0).SerializeAsString(), options.base.gemm(0).SerializeAsString());
}

// A constant that is kept stays; a name that is none of them is an error.
TEST(Import, KeepsWhatItIsTold) {
  ImportOptions options = Options();
  options.keep = {"efficiency", "overhead"};
  const absl::StatusOr<ImportResult> result = ImportRows(options, ModelRows(Options()));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->gemm[0].constants.size(), FittedGemmConstants().size() - 2);
  EXPECT_EQ(result->profile.gemm(0).efficiency().SerializeAsString(),
            options.base.gemm(0).efficiency().SerializeAsString());
  options.keep = {"tile"};
  EXPECT_THAT(std::string(ImportRows(options, ModelRows(Options())).status().message()), HasSubstr("--keep tile"));
}

TEST(Import, WhatHasNoPriceIsCounted) {
  const ImportOptions options = Options();
  const absl::StatusOr<ImportResult> result = ImportRows(
      options, ModelRows(options) + "s,H100,moe_grouped_gemm,512,1536,2048,128,bf16,3000,,,x,\n" +
                   "s,H100,gemm,512,1536,2048,1,fp8 blockwise (DeepGEMM),30,,,x,\n" +
                   "s,H100,gemm,512,1536,2048,1,int8,30,,,x,\n" + "s,H100 PCIe,gemm,none,of,these,is,read,,,,x,\n");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->refused,
              testing::ElementsAre(testing::Pair("FP8 with scales per block", 1), testing::Pair("data type int8", 1),
                                   testing::Pair("grouped GEMM", 1)));
}

TEST(Import, BadInputIsOneClearError) {
  const ImportOptions options = Options();
  for (const auto& [row, what] : std::initializer_list<std::pair<const char*, const char*>>{
           {"s,H100,gemm,-1,8,8,1,bf16,30,,,x,\n", "table.csv:2: m: \"-1\"; allowed: a whole number from 1"},
           {"s,H100,gemm,0,8,8,1,bf16,30,,,x,\n", "m: \"0\""},
           {"s,H100,gemm,8.5,8,8,1,bf16,30,,,x,\n", "m: \"8.5\""},
           {"s,H100,gemm,8,99999999999999999999,8,1,bf16,30,,,x,\n", "n: \""},
           {"s,H100,gemm,100000000,100000000,8,100,bf16,30,,,x,\n", "batch x m x n"},
           {"s,H100,gemm,8,8,8,1,bf16,nan,,,x,\n", "time_us: \"nan\"; allowed: a number from 0.001 to 1e+09"},
           {"s,H100,gemm,8,8,8,1,bf16,inf,,,x,\n", "time_us: \"inf\""},
           {"s,H100,gemm,8,8,8,1,bf16,-3,,,x,\n", "time_us: \"-3\""},
           {"s,H100,gemm,8,8,8,1,bf16,,,,x,\n", "time_us: \"\""},
           {"s,A100,gemm,8,8,8,1,bf16,30,,,x,\n", "no row that names h100-sxm-80gb"}}) {
    const absl::StatusOr<ImportResult> result = ImportRows(options, row);
    ASSERT_FALSE(result.ok()) << row;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(what));
  }
  const absl::StatusOr<CsvTable> table = CsvTable::Parse("source,gpu\ns,H100\n", "table.csv");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(Import(options, &*table, nullptr).status().code(), absl::StatusCode::kNotFound);
}

TEST(Accelerators, AreKnownByTheirNamesInTables) {
  const absl::StatusOr<std::vector<v1::Accelerator>> accelerators = LoadAccelerators(Shipped());
  ASSERT_TRUE(accelerators.ok()) << accelerators.status();
  const auto find = [&](const std::string& gpu) {
    std::string found;
    for (const v1::Accelerator& accelerator : *accelerators) {
      if (IsAccelerator(accelerator, gpu)) found += accelerator.name() + ";";
    }
    return found;
  };
  EXPECT_EQ(find("H100-80GB-SXM(vidur)"), "h100-sxm-80gb;");
  EXPECT_EQ(find("H100 (assumed; not stated in excerpt)"), "h100-sxm-80gb;");
  EXPECT_EQ(find("A100-40GB"), "a100-sxm-40gb;");
  EXPECT_EQ(find("A100 SXM (ND A100 v4; stream 1.75TB/s implies 80GB)"), "a100-sxm-80gb;");
  EXPECT_EQ(find("gb200"), "gb200;");
  EXPECT_EQ(find("SM100 (B200)"), "b200;");
  EXPECT_EQ(find("H100 PCIe"), "");
  EXPECT_EQ(find("H20"), "");
  EXPECT_EQ(find("GH200 96GB"), "");
}

}  // namespace
}  // namespace orrery::calibration
