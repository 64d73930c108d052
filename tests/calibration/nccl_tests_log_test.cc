#include "calibration/nccl_tests_log.h"

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

}  // namespace
}  // namespace orrery::calibration
