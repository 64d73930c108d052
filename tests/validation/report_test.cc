#include "validation/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace orrery::validation {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Row Predicted(std::string id, double predicted, std::string group, std::vector<std::string> assumptions = {}) {
  Row row;
  row.id = std::move(id);
  row.measured = 10;
  row.predicted = predicted;
  row.group = std::move(group);
  row.assumptions = std::move(assumptions);
  return row;
}

Row Refused(std::string id, std::string reason, std::string group) {
  Row row;
  row.id = std::move(id);
  row.measured = 10;
  row.status = Status::kRefused;
  row.reason = std::move(reason);
  row.group = std::move(group);
  return row;
}

// Errors against 10 s: +20 %, -10 %, +40 %, -30 %.
Report Example() {
  Report report;
  report.group_column = "source";
  report.rows = {Predicted("a", 12, "B"), Predicted("b", 9, "A", {"vpp = 2"}), Refused("c", "mixture of experts", "A"),
                 Predicted("d", 14, "B"), Predicted("e", 7, "B", {"micro_batch = 1"})};
  report.rows.push_back(Refused("f", "time_s: not a positive number", "B"));
  report.rows.back().status = Status::kFailed;
  report.rows[3].flags = {"does not fit in memory"};
  return report;
}

// Sorted 1 2 3 4: position q x 3. Half of it lies between 2 and 3; 0.9 at 2.7, between 3 and 4.
// |errors| 0.1 0.2 0.3 0.4: median 0.25, 90th percentile 0.3 + 0.7 x 0.1. Signed -0.3 -0.1 0.2 0.4: median 0.05.
TEST(SummaryTest, CountsAndQuantiles) {
  const Summary all = Example().All();
  EXPECT_EQ(all.rows, 6);
  EXPECT_EQ(all.ok, 4);
  EXPECT_EQ(all.refused, 1);
  EXPECT_EQ(all.failed, 1);
  EXPECT_NEAR(all.median_abs_error, 0.25, 1e-12);
  EXPECT_NEAR(all.p90_abs_error, 0.37, 1e-12);
  EXPECT_NEAR(all.bias, 0.05, 1e-12);
}

TEST(SummaryTest, RowsWithAndWithoutAssumptionsApart) {
  const Report report = Example();
  // b and e: 0.1, 0.3.
  EXPECT_EQ(report.WithAssumptions(true).rows, 2);
  EXPECT_NEAR(report.WithAssumptions(true).median_abs_error, 0.2, 1e-12);
  // a and d: 0.2, 0.4; c and f were not predicted.
  EXPECT_EQ(report.WithAssumptions(false).rows, 4);
  EXPECT_EQ(report.WithAssumptions(false).ok, 2);
  EXPECT_NEAR(report.WithAssumptions(false).median_abs_error, 0.3, 1e-12);
}

TEST(SummaryTest, GroupsInOrderOfAppearance) {
  const auto groups = Example().Groups();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].first, "B");
  EXPECT_EQ(groups[0].second.rows, 4);
  EXPECT_NEAR(groups[0].second.median_abs_error, 0.3, 1e-12);
  EXPECT_EQ(groups[1].first, "A");
  EXPECT_EQ(groups[1].second.refused, 1);
}

TEST(OutputTest, TextShowsErrorsFillingsAndRefusals) {
  const std::string text = ReportText(Example());
  SCOPED_TRACE(text);
  EXPECT_THAT(text, HasSubstr("20.0 %"));
  EXPECT_THAT(text, HasSubstr("-30.0 %"));
  EXPECT_THAT(text, HasSubstr("vpp = 2"));
  EXPECT_THAT(text, HasSubstr("does not fit in memory"));
  EXPECT_THAT(text, HasSubstr("FAILED: time_s"));
  EXPECT_THAT(text, HasSubstr("by source"));
  EXPECT_THAT(text, HasSubstr("mixture of experts"));
}

TEST(OutputTest, CsvHasOneLinePerPredictedRow) {
  EXPECT_EQ(ReportCsv(Example()),
            "id,source,measured_s,predicted_s,error\n"
            "a,B,10,12.0000,0.2000\n"
            "b,A,10,9.0000,-0.1000\n"
            "d,B,10,14.0000,0.4000\n"
            "e,B,10,7.0000,-0.3000\n");
}

TEST(OutputTest, JsonNamesStatusReasonAndFillings) {
  const std::string json = ReportJson(Example());
  SCOPED_TRACE(json);
  for (const char* const part : {"\"status\": \"ok\"", "\"status\": \"refused\"", "\"status\": \"failed\"",
                                 "\"reason\": \"mixture of experts\"", "\"assumptions\"", "\"summary\"", "\"groups\"",
                                 "\"source\": \"B\"", "\"median_abs_error\"", "\"p90_abs_error\"", "\"bias\""}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
  // A group that predicted nothing has no errors, rather than errors of 0.
  Report refused;
  refused.group_column = "source";
  refused.rows = {Refused("c", "mixture of experts", "A")};
  EXPECT_THAT(ReportJson(refused), Not(HasSubstr("median_abs_error")));
  EXPECT_THAT(ReportJson(refused), Not(HasSubstr("predicted")));
}

}  // namespace
}  // namespace orrery::validation
