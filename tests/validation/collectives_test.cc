// Measured collectives: a small table here, the public one where it is at hand (tests/reference.h).
#include "validation/collectives.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/reference.h"

namespace orrery::validation {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

CollectivesOptions Shipped() {
  return {.load = {.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = {}}, .where = {}, .group_column = ""};
}

constexpr char kHeader[] =
    "hardware,nodes,gpus,collective,bytes,time_us,harness,algorithm,tuning,use,nccl_version,network\n";

absl::StatusOr<Report> ValidateTable(const std::string& text) {
  const absl::StatusOr<CsvTable> table = CsvTable::Parse(text, "t.csv");
  EXPECT_TRUE(table.ok()) << table.status();
  NoProgress progress;
  return ValidateCollectives(*table, Shipped(), progress);
}

absl::StatusOr<Report> Validate(const std::string& rows) { return ValidateTable(kHeader + rows); }

Row OnlyRow(const std::string& text) { return ValidateTable(text)->rows.front(); }

TEST(Collectives, PredictedRefusedAndFailed) {
  const absl::StatusOr<Report> report = Validate(
      "8xH100-SXM,1,8,all_reduce,8589934592,31391,nccl-tests,,default,fit,2.18.5,\n"
      "8xH200-SXM,1,8,all_reduce,17179869184,81875.7,nccl-tests,Ring,default,fit,unstated,\n"
      "8xH100 (VM),2,16,all_reduce,8,50,nccl-tests,,vm,check,unstated,\n"
      "TPU v9,2,16,all_reduce,8,50,nccl-tests,,default,fit,unstated,\n"
      "8xH100,1,8,all_reduce,8,-50,nccl-tests,,default,fit,unstated,\n"
      "8xH100,1,16,all_reduce,8,50,nccl-tests,,default,fit,unstated,\n"
      "8xA100-SXM,1,8,all_reduce,17179869184,127997,python,NVLS,default,fit,unstated,\n");
  ASSERT_TRUE(report.ok()) << report.status();
  const std::vector<Row>& rows = report->rows;
  EXPECT_EQ(rows[0].status, Status::kOk);
  EXPECT_NEAR(rows[0].Error(), 0, 0.05);
  EXPECT_THAT(rows[0].flags, Contains("NVLS Simple"));
  EXPECT_THAT(rows[1].flags, Contains("Ring Simple"));
  EXPECT_THAT(rows[1].assumptions, Contains("nccl_version = 2.21"));
  EXPECT_NEAR(rows[1].Error(), 0, 0.05);
  EXPECT_EQ(rows[2].reason, "a network as virtual machines see it");
  EXPECT_THAT(rows[3].reason, HasSubstr("hardware TPU v9 (known: 8xA100, "));
  EXPECT_EQ(rows[3].status, Status::kRefused);
  EXPECT_EQ(rows[4].status, Status::kFailed);
  EXPECT_THAT(rows[4].reason, HasSubstr("time_us"));
  EXPECT_EQ(rows[5].status, Status::kFailed);
  EXPECT_EQ(rows[6].status, Status::kRefused);
  EXPECT_THAT(rows[6].reason, HasSubstr("NVLS"));
}

// What the text says of a row that could not be read: no time, and why.
TEST(Collectives, FailedRowsHaveNoTime) {
  const absl::StatusOr<Report> report = Validate("8xH100,1,8,all_reduce,8,-50,nccl-tests,,default,fit,unstated,\n");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(ReportText(*report), AllOf(HasSubstr("FAILED: "), Not(HasSubstr(" 0.0 "))));
}

// Settings among free text: of the network the fewest channels, of the source what was forced.
TEST(Collectives, SettingsInFreeText) {
  const auto row = [](const std::string& algorithm, const std::string& network, const std::string& source) {
    return OnlyRow("source,hardware,nodes,gpus,collective,bytes,time_us,algorithm,network\n" + source +
                   ",8xB200-SXM,1,8,all_reduce,1073741824,3000," + algorithm + "," + network + "\n");
  };
  EXPECT_THAT(row("", "", "paper").flags, Not(Contains("Ring LL128")));
  EXPECT_THAT(row("", "", "paper (forced Ring/LL128)").flags, Contains("Ring LL128"));
  EXPECT_THAT(row("Ring", "", "paper (forced Ring/LL128)").flags, Contains("Ring LL128"));
  EXPECT_EQ(row("Ring", "", "paper (forced Tree/LL128)").reason,
            "algorithm: Ring, and source says forced Tree/LL128; allowed: the same");
  EXPECT_THAT(row("", "", "paper (forced Rung/LL128)").reason, HasSubstr("Rung"));
  EXPECT_EQ(row("", "NVLS MIN_CTAS=24", "paper").status, Status::kOk);
  for (const char* value : {"abc", "-3", "0", "65", ""}) {
    const Row wrong = row("", std::string("NVLS MIN_CTAS=") + value, "paper");
    EXPECT_EQ(wrong.status, Status::kFailed) << value;
    EXPECT_EQ(wrong.reason, std::string("network: MIN_CTAS=") + value + "; allowed: a whole number from 1 to 64");
  }
}

// Behind the NVSwitches of one node every group has its own ports: each takes as long as one alone.
TEST(Collectives, SeveralGroups) {
  const auto row = [](const std::string& nodes, const std::string& gpus, const std::string& groups) {
    return OnlyRow("hardware,nodes,gpus,collective,bytes,time_us,harness,concurrent_groups\n8xH100-SXM," + nodes + "," +
                   gpus + ",all_reduce,1073741824,5000,xla," + groups + "\n");
  };
  EXPECT_EQ(row("1", "4", "2").predicted, row("1", "4", "1").predicted);
  EXPECT_THAT(row("1", "4", "2").assumptions, Contains("2 groups side by side share no link of NVSwitches"));
  EXPECT_EQ(row("1", "4", "3").reason, "several groups on the same GPUs");
  EXPECT_EQ(row("2", "8", "2").reason, "several groups that share links");
  EXPECT_EQ(row("1", "4", "0").status, Status::kFailed);
  EXPECT_EQ(row("1", "1", "1").reason, "one GPU, which communicates with none");
}

// The totals of a size are over all groups of it, whatever the hardware and the collective.
TEST(Collectives, TotalsByBandOfSize) {
  const absl::StatusOr<Report> report = Validate(
      "8xH100-SXM,1,8,all_reduce,8589934592,31391,nccl-tests,,default,fit,2.18.5,\n"
      "8xH100-SXM,1,8,all_gather,268435456,1000,nccl-tests,,default,fit,2.18.5,\n"
      "8xA100-SXM,1,8,all_reduce,268435456,2000,nccl-tests,,default,fit,2.18.5,\n"
      "8xH100-SXM,1,8,all_reduce,134217728,1000,nccl-tests,,default,fit,2.18.5,\n");
  ASSERT_TRUE(report.ok()) << report.status();
  const auto bands = report->Bands();
  ASSERT_EQ(bands.size(), 2u);
  EXPECT_EQ(bands[0].first, "256 MiB and more");
  EXPECT_EQ(bands[0].second.ok, 3);
  EXPECT_EQ(bands[1].first, "1 to 256 MiB");
  EXPECT_EQ(bands[1].second.ok, 1);
  std::vector<double> errors;
  for (std::size_t i = 0; i < 3; ++i) errors.push_back(std::fabs(report->rows[i].Error()));
  std::sort(errors.begin(), errors.end());
  EXPECT_EQ(bands[0].second.median_abs_error, errors[1]);
  EXPECT_THAT(ReportText(*report), HasSubstr("all, 256 MiB and more"));
  EXPECT_THAT(ReportJson(*report), HasSubstr("\"band\": \"256 MiB and more\""));
}

// What a release promises of the public table.
TEST(Collectives, PublicTable) {
  const std::string file = tests::ReferenceFile("collectives/measured.csv");
  if (file.empty()) GTEST_SKIP() << "collectives/measured.csv is not at hand";
  const absl::StatusOr<CsvTable> table = CsvTable::Parse(*ReadFile(file, 256 << 20), file);
  ASSERT_TRUE(table.ok());
  CollectivesOptions options = Shipped();
  options.where = {*ParseCondition("use=fit")};
  NoProgress progress;
  const absl::StatusOr<Report> report = ValidateCollectives(*table, options, progress);
  ASSERT_TRUE(report.ok()) << report.status();
  const Summary all = report->All();
  std::cout << file << ": " << all.ok << " of " << all.rows << " rows, median " << all.median_abs_error << "\n";
  EXPECT_EQ(all.failed, 0);
  EXPECT_LE(all.median_abs_error, 0.08);
  EXPECT_LE(all.p90_abs_error, 0.3);
}

}  // namespace
}  // namespace orrery::validation
