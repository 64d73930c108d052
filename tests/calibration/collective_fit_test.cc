#include "calibration/collective_fit.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/csv.h"
#include "calibration/measured_collectives.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace orrery::calibration {
namespace {

// Rings of H100 nodes as a machine would measure them whose channels are a third slower than `base`'s, the rest alike.
class CollectiveFitTest : public testing::Test {
 protected:
  CollectiveFitTest()
      : record_(*CollectiveRecord::Load({.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = {}})) {}

  std::vector<MeasuredCollective> Rings(const std::vector<int>& nodes) {
    std::string text = "hardware,nodes,gpus,collective,bytes,time_us,algorithm,source,harness\n";
    for (const int n : nodes) {
      for (std::int64_t bytes = 64 << 20; bytes <= std::int64_t{4} << 30; bytes *= 2) {
        absl::StrAppend(&text, "8xH100 SXM,", n, ",", 8 * n, ",all_reduce,", bytes, ",1000,Ring,s", n, "-", bytes,
                        ",\n");
      }
    }
    const CsvTable table = *CsvTable::Parse(text, "rings.csv");
    std::vector<MeasuredCollective> rows;
    for (const CsvRow& row : table.rows()) rows.push_back(*record_.Read(table, row));
    base_ = *rows.front().times;
    v1::NcclTimes truth = base_;
    truth.mutable_channel_bandwidth()->set_value(kSlower * base_.channel_bandwidth().value());
    for (MeasuredCollective& row : rows) row.seconds = *PredictCollective(row, truth);
    return rows;
  }

  static constexpr double kSlower = 2.0 / 3;
  CollectiveRecord record_;
  v1::NcclTimes base_;
};

// One node's rings have 24 channels at every size: whether these or the links are slow does not show.
TEST_F(CollectiveFitTest, OneNodeDoesNotTellChannelsFromLinks) {
  const std::vector<MeasuredCollective> rows = Rings({1});
  const CollectiveFit fit = *FitCollectives(base_, rows);
  EXPECT_EQ(fit.times.channel_bandwidth().value(), base_.channel_bandwidth().value());
  EXPECT_LT(fit.times.nvlink_share().value(), base_.nvlink_share().value());
  for (const Determination& constant : fit.constants) EXPECT_NE(constant.constant, "channel_bandwidth");
}

TEST_F(CollectiveFitTest, TwoNumbersOfNodesDo) {
  const std::vector<MeasuredCollective> rows = Rings({1, 4});
  const CollectiveFit fit = *FitCollectives(base_, rows);
  EXPECT_NEAR(fit.times.channel_bandwidth().value(), kSlower * base_.channel_bandwidth().value(),
              0.05 * base_.channel_bandwidth().value());
  EXPECT_LT(fit.fitted.median, 0.01);
}

}  // namespace
}  // namespace orrery::calibration
