// Tables of published schedules against what is generated and evaluated: small ones written here, and, where it is at
// hand, the public record itself.
#include "validation/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/file.h"
#include "tests/reference.h"
#include "validation/schedule_cases.h"

namespace orrery::validation {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr char kIndexHeader[] = "case,file_kind,schedule,p,m,v,F,B,W,comm,mem_limit\n";
constexpr char kEvalsHeader[] =
    "case,F,B_input,W,comm,overlap_rule,makespan,max_rank_span,idle_per_rank,peak_chunks_per_rank\n";

class SchedulesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "orrery_schedules_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void File(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  absl::StatusOr<ScheduleReport> Validate(const std::string& index, const std::string& evals,
                                          const SchedulesOptions& options = {}) const {
    File("evals.csv", kEvalsHeader + evals);
    const std::string text = kIndexHeader + index;
    NoProgress progress;
    return ValidateSchedules(CsvTable::Parse(text, (folder_ / "index.csv").string()).value(), options, progress);
  }
  ScheduleRow Only(const std::string& index, const std::string& evals) const {
    const auto report = Validate(index, evals);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() && report->rows.size() == 1 ? report->rows[0] : ScheduleRow();
  }

 private:
  fs::path folder_;
};

// 1F1B of two micro-batches on two ranks, F = 1, B = 2:
//   rank 0: 0F0 0-1, 0F1 1-2, 0B0 4-6 (1B0 ends at 4), 0B1 7-9
//   rank 1: 1F0 1-2, 1B0 2-4, 1F1 4-5, 1B1 5-7
// Makespan 9, busy 6, idle 3; rank 0 spans 0-9. Rank 0 holds both micro-batches, rank 1 one.
constexpr char k1f1b[] = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
constexpr char k1f1bRow[] = "a,compute_only,1F1B,2,2,1,,,,,\n";

TEST_F(SchedulesTest, FiguresAndOrderAreTheTables) {
  File("a.csv", k1f1b);
  // F = 2, B = 3 + 1, c = 1: 1F0 3-5, 1B0 5-9, 0B0 10-14, 1F1 9-11, 1B1 11-15, 0B1 16-20; busy 12.
  const ScheduleRow row = Only(k1f1bRow, "a,1,1,1,0,sum,9,9,3/3,2/1\na,2,3,1,1,sum,20,20,8/8,2/1\n");
  EXPECT_EQ(row.status, Status::kOk) << row.remark;
  EXPECT_EQ(row.figures, 12);
  EXPECT_EQ(row.different_figures, 0);
  ASSERT_EQ(row.made.size(), 1);
  EXPECT_EQ(row.made[0].family, "1f1b");
  EXPECT_EQ(row.made[0].order, Order::kSame);
}

TEST_F(SchedulesTest, EveryFigureThatDiffersCounts) {
  File("a.csv", k1f1b);
  const auto report = Validate(k1f1bRow, "a,1,1,1,0,sum,9.5,8,3/4,2/2\n");
  ASSERT_TRUE(report.ok()) << report.status();
  const ScheduleRow& row = report->rows[0];
  EXPECT_EQ(row.status, Status::kFailed);
  EXPECT_EQ(row.figures, 6);
  EXPECT_EQ(row.different_figures, 4);
  EXPECT_EQ(row.remark, "makespan 9, evals.csv line 2 has 9.5");
  EXPECT_EQ(report->Mismatches(), 4);
  EXPECT_EQ(Only(k1f1bRow, "a,1,1,1,0,sum,9,9,3/3/3,2/1\n").remark,
            "evals.csv line 2 has figures of other than 2 ranks");
}

TEST_F(SchedulesTest, ADifferentOrderNamesItsFirstCell) {
  File("a.csv", k1f1b);
  const auto report = Validate("a,compute_only,GPipe,2,2,1,,,,,\n", "a,1,1,1,0,sum,9,9,3/3,2/1\n");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->rows[0].status, Status::kFailed);
  EXPECT_EQ(report->rows[0].remark, "gpipe: rank 1, cell 2: 1F1, the table has 1B0");
  EXPECT_EQ(report->Mismatches(), 1);
}

// A blank cell matters in a table of slots only: there 1F1B is not what has one.
TEST_F(SchedulesTest, IdleSlotsCountInTablesOfSlots) {
  File("a.csv", "0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(Only(k1f1bRow, "").status, Status::kOk);
  const ScheduleRow row = Only("a,compute_only_slots,1F1B,2,2,1,,,,,\n", "");
  EXPECT_EQ(row.status, Status::kFailed);
  EXPECT_EQ(row.remark, "1f1b: rank 0, cell 3: 0B0, the table has an idle slot");
}

TEST_F(SchedulesTest, MessagesOfTablesAreLeftOut) {
  File("a.csv",
       "0F0,(0SEND_F0)BATCH,0F1,(0SEND_F1;0RECV_B0)POST,(0SEND_F1;0RECV_B0)WAIT,0B0,0B1\n"
       "(1RECV_F0)BATCH,1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(Only("a,compute+comm_batches,1F1B,2,2,1,,,,,\n", "").status, Status::kOk);
  const ScheduleRow row = Only("a,commands_per_step,1F1B,2,2,1,,,,,\n", "");
  EXPECT_EQ(row.status, Status::kRefused);
  EXPECT_EQ(row.remark, "tables of kind commands_per_step");
}

// Rank 0 wants the gradient of 0 before it sends 1 forward, rank 1 wants 1 first.
TEST_F(SchedulesTest, DeadlocksAreReportedAndExpectedOnlyWhereTheRecordSaysSo) {
  File("a.csv", "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n");
  const ScheduleRow known = Only(k1f1bRow, "a,1,1,1,0,sum,DEADLOCK,,,\n");
  EXPECT_EQ(known.status, Status::kOk);
  EXPECT_TRUE(known.deadlocks);
  EXPECT_THAT(known.remark, HasSubstr("(0B0) waits for 1B0 of rank 1"));
  EXPECT_THAT(known.remark, HasSubstr("(1F1) waits for 0F1 of rank 0"));
  const auto report = Validate(k1f1bRow, "a,1,1,1,0,sum,9,9,3/3,2/1\n");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->rows[0].status, Status::kFailed);
  EXPECT_EQ(report->Mismatches(), 1);
  // And the other way round.
  File("a.csv", k1f1b);
  EXPECT_EQ(Only(k1f1bRow, "a,1,1,1,0,sum,DEADLOCK,,,\n").status, Status::kFailed);
}

// F, I and W of one stage on one rank: any order without idle time spans 6. At a limit of one micro-batch (2 units, I
// frees 1) the second F must wait for the first W. A table that also fits is equal.
TEST_F(SchedulesTest, PlannedOrdersAreBetterEqualOrWorse) {
  File("a.csv", "0F0,0I0,0W0,0F1,0I1,0W1\n");
  const std::string limit = "2 (mem_f=2 mem_b=-1 mem_w=-1)";
  ScheduleRow row = Only("a,compute_only,ZB automatic (heuristic),1,2,1,1,1,1,0," + limit + "\n", "");
  EXPECT_EQ(row.status, Status::kOk) << row.remark;
  // The limit is p M_B as well.
  ASSERT_EQ(row.made.size(), 2);
  EXPECT_EQ(row.made[0].family, "zb-auto");
  EXPECT_EQ(row.made[1].family, "zb-1p");
  EXPECT_EQ(row.made[0].order, Order::kEqual);
  EXPECT_EQ(row.made[0].span, 6);

  // Rank 0: F 0-2, I0 after 1I0 (ends 3) 3-4, W0 4-5, I1 after 1I1 (F1 4-5, I1 5-6) 6-7, W1 7-8: span 8, 2 idle. With
  // W0 of rank 1 after its I1 there is 1: 1F1 3-4, 1I1 4-5, 0I1 5-6, 0W1 6-7: span 7.
  const std::string none = "None (mem_f=2 mem_b=-1 mem_w=-1)";
  File("a.csv", "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1W0,1F1,1I1,1W1\n");
  row = Only("a,compute_only,ZB automatic (heuristic),2,2,1,1,1,1,0," + none + "\n", "");
  ASSERT_EQ(row.made.size(), 1);
  EXPECT_EQ(row.made[0].order, Order::kBetter);
  EXPECT_EQ(row.made[0].span, 7);
  EXPECT_EQ(row.made[0].table_span, 8);

  // A table that holds one micro-batch at a time, at 2 units: the plan holds both, and is worse for all its speed.
  File("a.csv", "0F0,0I0,0W0,0F1,0I1,0W1\n1F0,1I0,1W0,1F1,1I1,1W1\n");
  row = Only("a,compute_only,ZB automatic (heuristic),2,2,1,1,1,1,0," + none + "\n", "");
  EXPECT_EQ(row.status, Status::kFailed);
  ASSERT_EQ(row.made.size(), 1);
  EXPECT_EQ(row.made[0].order, Order::kWorse);
  EXPECT_EQ(row.remark, "zb-auto: peak memory 4, the table has 2");
}

TEST_F(SchedulesTest, LimitsAsTheRecordWritesThem) {
  const auto planning = [](const std::string& limit) {
    const std::string text = "F,B,W,comm,p,mem_limit\n12.5,10,7.5,2.5,4,\"" + limit + "\"\n";
    const CsvTable table = CsvTable::Parse(text, "t.csv").value();
    return PlanningOfCase(Record(table, table.rows()[0]));
  };
  const auto twice = planning("2*p*M_B, M_B=34h+5as=201216 M_W=32h=73728");
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_EQ(twice->memory.forward, 201216);
  EXPECT_EQ(twice->memory.weight, 73728);
  EXPECT_EQ(twice->memory_limit, 2 * 4 * 201216);
  // In units of 2.5.
  EXPECT_EQ(twice->stages, (std::vector<schedules::PassCosts>{{5, 4, 3}}));
  EXPECT_EQ(twice->latency, 1);
  EXPECT_EQ(planning("4 chunk activations (2 per full-stage M)")->memory_limit, 4);
  EXPECT_EQ(planning("4 chunk activations (2 per full-stage M)")->memory.forward, 1);
  EXPECT_EQ(planning("12.0 (mem_f=3 mem_b=-1 mem_w=-2)")->memory_limit, 12);
  EXPECT_EQ(planning("12.0 (mem_f=3 mem_b=-1 mem_w=-2)")->memory.weight, 2);
  EXPECT_EQ(planning("None (mem_f=2 mem_b=-1 mem_w=-1)")->memory_limit, 0);
  EXPECT_THAT(planning("much").status().message(), HasSubstr("mem_limit \"much\"; allowed: as in"));
}

TEST_F(SchedulesTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(Only(k1f1bRow, "").remark, HasSubstr("a.csv: no such file"));
  File("a.csv", k1f1b);
  EXPECT_EQ(Only("a,compute_only,Mystery,2,2,1,,,,,\n", "").remark, "no family makes schedule Mystery");
  EXPECT_THAT(Only("a,compute_only,1F1B,two,2,1,,,,,\n", "").remark, HasSubstr("two"));
  SchedulesOptions options;
  options.group_column = "generator";
  EXPECT_THAT(Validate(k1f1bRow, "", options).status().message(), HasSubstr("generator"));
}

TEST_F(SchedulesTest, ReportsCountByScheduleAndFamily) {
  File("a.csv", k1f1b);
  File("b.csv", k1f1b);
  const auto report =
      Validate(k1f1bRow + std::string("b,compute_only,GPipe,2,2,1,,,,,\n"), "a,1,1,1,0,sum,9,9,3/3,2/1\n");
  ASSERT_TRUE(report.ok()) << report.status();
  const std::string text = ScheduleReportText(*report);
  EXPECT_THAT(text, HasSubstr("FAILED: gpipe: rank 1, cell 2: 1F1, the table has 1B0"));
  EXPECT_THAT(text, HasSubstr("\nmismatches: 1\n"));
  EXPECT_THAT(ScheduleReportJson(*report), HasSubstr("\"mismatches\": 1"));
  EXPECT_EQ(ScheduleReportCsv(*report),
            "id,schedule,status,figures,different_figures,deadlocks,family,order,span,table_span\n"
            "a,1F1B,ok,6,0,0,1f1b,same,,\n"
            "b,GPipe,failed,0,0,0,gpipe,different,,\n");
}

TEST(SchedulesRecordTest, NothingDiffers) {
  const std::string path = orrery::tests::ReferenceFile("schedules/index.csv");
  if (path.empty()) GTEST_SKIP() << "no public tables; tests/reference.h says where they are looked for";
  const CsvTable index = CsvTable::Parse(ReadFile(path, 1 << 24).value(), path).value();
  NoProgress progress;
  const auto report = ValidateSchedules(index, {.threads = 2}, progress);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->Mismatches(), 0);
  const ScheduleCounts all = report->All();
  EXPECT_EQ(all.rows, 339);
  EXPECT_EQ(all.refused, 1);  // DeepSpeed's commands
  EXPECT_EQ(all.failed, 0);
  EXPECT_EQ(all.deadlocks, 9);
  // (327 - 9 cases) x 3 cost vectors; makespan, span, and two for each of 1,631 ranks.
  EXPECT_EQ(all.figures, 11694);
  EXPECT_EQ(all.Of(Order::kSame), 238);
  EXPECT_EQ(all.Of(Order::kBetter) + all.Of(Order::kEqual), 131);
}

}  // namespace
}  // namespace orrery::validation
