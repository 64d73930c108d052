#include "calibration/nccl_tests_log.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace orrery::calibration {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kLog[] = R"(> mpirun -np 2 /opt/all_reduce_perf -b 8 -e 1G
# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor)
#  Rank  0 Group  0 Pid   6899 on node-a device  0 [0000:04:00] NVIDIA H100 80GB HBM3
  Rank  1 Group  0 Pid   6900 on node-b device  1 [0000:05:00] NVIDIA H100 80GB HBM3
node-a:1:1 [0] NCCL INFO NCCL version 2.29.7+cuda12.9
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
           8             2     float     sum      -1    13.67    0.00    0.00      0    13.03    0.00    0.00      0
node-a:1:1 [0] NCCL INFO something 1048576 in between
     1048576        262144     float    none      -1    27.37   38.31   67.04    N/A    26.93   38.94   68.14    N/A
  1073741824     268435456     float     sum      -1     5808  184.87  365.90      0     5882  182.54  361.28      0
# Avg bus bandwidth    : 745.53
)";

TEST(NcclTestsLog, RowsAmongOtherLines) {
  const absl::StatusOr<NcclTestsLog> log = ParseNcclTestsLog(kLog, "log");
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(log->operation, collectives::nccl::Operation::kAllReduce);
  EXPECT_EQ(log->ranks, 2);
  EXPECT_EQ(log->hosts, 2);
  EXPECT_EQ(log->gpus_per_process, 1);
  EXPECT_EQ(log->version, "2.29.7");
  ASSERT_EQ(log->rows.size(), 3u);
  EXPECT_EQ(log->rows[1].bytes, 1048576);
  EXPECT_DOUBLE_EQ(log->rows[1].out_of_place, 27.37e-6);
  EXPECT_DOUBLE_EQ(log->rows[1].in_place, 26.93e-6);
  EXPECT_DOUBLE_EQ(log->rows[2].out_of_place, 5808e-6);
  EXPECT_TRUE(log->problems.empty());
}

TEST(NcclTestsLog, NonsenseIsNamedByLine) {
  const absl::StatusOr<NcclTestsLog> log = ParseNcclTestsLog(
      "8 2 float sum -1 13.67 0.00 0.00 0 13.03 0.00 0.00 0\n"
      "1048576 262144 float sum -1 27.37 99.9 67.04 0 26.93 38.94 68.14 0\n"
      "1048576 262144 float sum -1 -27.37 38.31 67.04 0 26.93 38.94 68.14 0\n"
      "0 0 float sum -1 27.37 0.00 0.00 0 26.93 0.00 0.00 0\n",
      "log");
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(log->rows.size(), 1u);
  EXPECT_THAT(log->problems,
              ElementsAre(HasSubstr("line 2: algbw 99.9"), HasSubstr("line 3: time"), HasSubstr("line 4: size")));
  EXPECT_THAT(ParseNcclTestsLog("hello\n", "log").status().message(), HasSubstr("log: no row of nccl-tests"));
}

// Every kind of damage, by line; the two sound rows are used.
TEST(NcclTestsLog, DamageIsCountedAndLocated) {
  const absl::StatusOr<NcclTestsLog> log = ParseNcclTestsLog(
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
      "#wrong\r\n"
      "8 2 float sum -1 13.67 0.00 0.00 0 13.03 0.00 0.00 0\r\n"                                // 2: sound
      "1048576 262144 float sum -1 27.37 38.31 67.04 3 26.93 38.94 68.14 0\r\n"                 // 3: wrong values
      "1048576 262144 float sum -1 27.37 nan 67.04 0 26.93 38.94 68.14 0\r\n"                   // 4
      "1048576 262144 float sum -1 inf 38.31 67.04 0 26.93 38.94 68.14 0\r\n"                   // 5
      "1048576 262144 float sum -1 27.37 38.31 -67.04 0 26.93 38.94 68.14 0\r\n"                // 6
      "1048576 262144 float sum -1 27.37 38.31 67.04 0 26.93\r\n"                               // 7: cut off
      "1048576 2621\r\n"                                                                        // 8: cut off
      "1048576 262144 float sum -1 27.37 38.31 67.04 0 26.93 38.94 68.14 0 8 2 float\r\n"       // 9: interleaved
      "1048576 262144 float sum -1 27.37 38.31 67.04 0 26.93 99.94 68.14 0\r\n"                 // 10: in-place algbw
      "8 2 float sum -1 13.67 0.00 0.00 0 13.03 0.00 0.00 0\r\n"                                // 11: as line 2
      "[1,0]<stdout>: 1048576 262144 float sum -1 27.37 38.31 67.04 0 26.93 38.94 68.14 0\r\n"  // 12: sound
      "8 2 float sum -1 14.67 0.00 0.00 0 13.03 0.00 0.00 0\r\n",                               // 13: again
      "log");
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_EQ(log->rows.size(), 3u);
  EXPECT_EQ(log->rows[0].line, 2);
  EXPECT_EQ(log->rows[1].line, 12);
  EXPECT_EQ(log->rows[2].line, 13);
  EXPECT_EQ(log->damaged, 9);
  EXPECT_EQ(GradeOf(*log), "poor");
  EXPECT_THAT(log->problems,
              ElementsAre("line 3: #wrong is 3", HasSubstr("line 4: algbw or busbw"), HasSubstr("line 5: time"),
                          HasSubstr("line 6: algbw or busbw"), "line 7: cut off: 10 columns",
                          "line 8: cut off: 2 columns", HasSubstr("line 9: 16 columns; allowed: 11 to 13"),
                          HasSubstr("line 10: in-place algbw 99.94"), "line 11: the same as line 2"));
  EXPECT_THAT(log->remarks, ElementsAre("line 13: 8 bytes again, as in line 2; both are used"));
}

TEST(NcclTestsLog, OneProgramAndVersion) {
  const std::string row = "8 2 float sum -1 13.67 0.00 0.00 0 13.03 0.00 0.00 0\n";
  EXPECT_THAT(ParseNcclTestsLog("./all_reduce_perf\n" + row + "./all_gather_perf\n" + row, "log").status().message(),
              HasSubstr("log: line 3: all_gather behind all_reduce; allowed: one per log"));
  EXPECT_THAT(ParseNcclTestsLog("NCCL version 2.21.5\n" + row + "NCCL version 2.27.3\n", "log").status().message(),
              HasSubstr("line 3: NCCL 2.27.3 behind NCCL 2.21.5"));
  // Numbers among words are no rows, before a table begins.
  const absl::StatusOr<NcclTestsLog> log = ParseNcclTestsLog("12 34\n5 6 sevens\n" + row, "log");
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(log->damaged, 0);
  EXPECT_EQ(log->skipped, 2);
  EXPECT_EQ(GradeOf(*log), "good");
}

// Two processes of two GPUs each, with one line of the list left out, said twice, or of another host.
// nccl-tests itself prints the version as a number.
TEST(NcclTestsLog, VersionAsANumber) {
  std::string numbered = kLog;
  const std::string line = "node-a:1:1 [0] NCCL INFO NCCL version 2.29.7+cuda12.9";
  numbered.replace(numbered.find(line), line.size(),
                   "# nccl-tests version 2.17.1 nccl-headers=22907 nccl-library=22907");
  EXPECT_EQ(ParseNcclTestsLog(numbered, "log")->version, "2.29.7");
}

// Of several groups at once the rows are one group's, and the ranks all.
TEST(NcclTestsLog, OneGroup) {
  std::string split = kLog;
  split.replace(split.find("Rank  1 Group  0"), 16, "Rank  1 Group  1");
  EXPECT_EQ(ParseNcclTestsLog(split, "log").status().message(),
            "log: line 4: a rank of group 1; allowed: one group of all ranks");
}

TEST(NcclTestsLog, EveryRankIsListed) {
  const auto line = [](int rank, const std::string& host) {
    return absl::StrCat("#  Rank  ", rank, " Group  0 Pid   1 on ", host, " device  0 [0000:04:00] NVIDIA H100\n");
  };
  const std::string process = "# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor)\n";
  const std::string row = "8 2 float sum -1 13.67 0.00 0.00 0 13.03 0.00 0.00 0\n";
  const auto parsed = [&](const std::string& ranks) { return ParseNcclTestsLog(process + ranks + row, "log"); };
  const std::string all = line(0, "a") + line(1, "a") + line(2, "b") + line(3, "b");
  ASSERT_TRUE(parsed(all).ok()) << parsed(all).status();
  EXPECT_EQ(parsed(all)->ranks, 4);
  EXPECT_EQ(parsed(all)->hosts, 2);
  EXPECT_EQ(parsed(all + all)->ranks, 4);  // run again
  EXPECT_EQ(parsed("")->ranks, 0);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {line(0, "a") + line(1, "a") + line(3, "b"), "log: ranks up to 3 are listed, and rank 2 is not"},
      {line(0, "a") + line(1, "a") + line(2, "b"), "log: 3 ranks are listed, and a process has 2"},
      {line(0, "a"), "log: 1 ranks are listed, and a process has 2"},
      {all + line(1, "a"), "log: rank 1 is listed 2 times, rank 0 1"},
      {line(0, "a") + line(1, "a") + line(0, "b") + line(1, "b"),
       "log: line 4: rank 0 on b behind host a; allowed: one per log"},
  };
  for (const auto& [ranks, message] : cases) {
    EXPECT_EQ(parsed(ranks).status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(parsed(ranks).status().message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace orrery::calibration
