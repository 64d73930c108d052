// Rows as text and back, what an interrupted file holds, and the ranking.
#include "sweep/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sweep/points.h"
#include "sweep/ranking.h"
#include "sweep/resume.h"

namespace orrery::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Row OkRow(std::vector<std::string> fields, double tokens) {
  return {.fields = std::move(fields),
          .status = Status::kOk,
          .reason = {},
          .figures = {.iteration_time_s = 0.1,
                      .mfu = 0.5,
                      .tokens_per_s_per_gpu = tokens,
                      .bubble_fraction = 0.25,
                      .span_bubble_fraction = 1e-9,
                      .exposed_communication_fraction = 0,
                      .allocator_peak_bytes = 7,
                      .device_peak_bytes = 9000000000000000000,
                      .fits = true}};
}

Row RefusedRow(std::vector<std::string> fields, std::string reason) {
  return {.fields = std::move(fields), .status = Status::kRefused, .reason = std::move(reason), .figures = {}};
}

TEST(TableTest, Csv) {
  const Table table({"tp", "name"}, "id", Format::kCsv);
  EXPECT_EQ(table.Header(),
            "tp,name,status,reason,iteration_time_s,mfu,tokens_per_s_per_gpu,bubble_fraction,span_bubble_fraction,"
            "exposed_communication_fraction,allocator_peak_bytes,device_peak_bytes,fits,expected_error_p50,"
            "expected_error_p90,sweep\n");
  EXPECT_EQ(table.Line(OkRow({"1", "a"}, 300)), "1,a,ok,,0.1,0.5,300,0.25,1e-09,0,7,9000000000000000000,true,,,id\n");
  EXPECT_EQ(table.Line(RefusedRow({"1", "a,b"}, "no \"x\"")), "1,\"a,b\",refused,\"no \"\"x\"\"\",,,,,,,,,,,,id\n");
}

TEST(TableTest, JsonLines) {
  const Table table({"tp", "name"}, "7", Format::kJson);
  EXPECT_EQ(table.Header(), "");
  Row row = OkRow({"1", "1f1b"}, 300);
  row.status = Status::kDoesNotFit;
  row.reason = "too \"big\"";
  row.figures.fits = false;
  row.figures.has_expected_error = true;
  row.figures.expected_error_p50 = 0.04;
  row.figures.expected_error_p90 = 0.09;
  EXPECT_EQ(table.Line(row),
            "{\"tp\":1,\"name\":\"1f1b\",\"status\":\"does_not_fit\",\"reason\":\"too \\\"big\\\"\","
            "\"iteration_time_s\":0.1,\"mfu\":0.5,\"tokens_per_s_per_gpu\":300,\"bubble_fraction\":0.25,"
            "\"span_bubble_fraction\":1e-09,\"exposed_communication_fraction\":0,\"allocator_peak_bytes\":7,"
            "\"device_peak_bytes\":9000000000000000000,\"fits\":false,\"expected_error_p50\":0.04,"
            "\"expected_error_p90\":0.09,\"sweep\":\"7\"}\n");
  EXPECT_EQ(table.Line(RefusedRow({"", "true"}, "no")),
            "{\"name\":true,\"status\":\"refused\",\"reason\":\"no\",\"sweep\":\"7\"}\n");
}

TEST(TableTest, ParseIsTheInverseOfLine) {
  for (const Format format : {Format::kCsv, Format::kJson}) {
    const Table table({"tp", "name"}, "1234", format);
    Row unfitting = OkRow({"2", ""}, 1.0 / 3);
    unfitting.status = Status::kDoesNotFit;
    unfitting.reason = "it, is \"large\"";
    unfitting.figures.fits = false;
    for (const Row& row : {OkRow({"1", "{a: \"b\", c: 1}"}, 1e300), unfitting, RefusedRow({"-1", "1e5"}, "a; b"),
                           RefusedRow({"-0", "1.50"}, "\xff"), RefusedRow({"99999999999999999999", "\xff"}, "")}) {
      const std::string line = table.Line(row);
      const absl::StatusOr<Row> read = table.Parse(std::string_view(line).substr(0, line.size() - 1), row.fields);
      ASSERT_TRUE(read.ok()) << line;
      EXPECT_EQ(table.Line(*read), line);
      EXPECT_EQ(read->fields, row.fields);
      EXPECT_EQ(read->status, row.status);
      EXPECT_FALSE(table.Parse(std::string_view(line).substr(0, line.size() - 1), {"3", "a"}).ok());
      EXPECT_EQ(read->figures.tokens_per_s_per_gpu, row.figures.tokens_per_s_per_gpu);
    }
    EXPECT_FALSE(table.Parse("", {"1", "a"}).ok());
    EXPECT_FALSE(table.Parse("{}", {"1", "a"}).ok());
    EXPECT_FALSE(table.Parse("1,2,3", {"1", "a"}).ok());
    // Of another sweep.
    const std::string foreign = Table({"tp", "name"}, "5678", format).Line(OkRow({"1", "a"}, 3));
    EXPECT_FALSE(table.Parse(std::string_view(foreign).substr(0, foreign.size() - 1), {"1", "a"}).ok());
  }
}

// Points 1, 2, 3 of one field.
class ReadRowsTest : public ::testing::TestWithParam<Format> {
 protected:
  // Rows read, or -1; and how many bytes they and the header are.
  std::pair<std::int64_t, std::size_t> Read(const std::string& contents) {
    fields_.clear();
    const absl::StatusOr<Done> done =
        ReadRows(contents, table_, points_, [&](const Row& row) { fields_.push_back(row.fields.at(0)); });
    return done.ok() ? std::pair(done->rows, done->bytes) : std::pair(std::int64_t{-1}, std::size_t{0});
  }

  const Points points_ = Points::Make({ParseVary("tp=1,2,3").value()}).value();
  const Table table_{{"tp"}, "id", GetParam()};
  const std::string header_ = table_.Header();
  const std::string one_ = table_.Line(OkRow({"1"}, 10));
  const std::string two_ = table_.Line(RefusedRow({"2"}, "no"));
  const std::string three_ = table_.Line(OkRow({"3"}, 10));
  std::vector<std::string> fields_;
};

TEST_P(ReadRowsTest, CompleteRowsCount) {
  EXPECT_EQ(Read(header_ + one_ + two_ + three_),
            std::pair(std::int64_t{3}, header_.size() + one_.size() + two_.size() + three_.size()));
  EXPECT_THAT(fields_, ElementsAre("1", "2", "3"));
  EXPECT_EQ(Read(header_ + one_), std::pair(std::int64_t{1}, header_.size() + one_.size()));
  EXPECT_EQ(Read(header_), std::pair(std::int64_t{0}, header_.size()));
  EXPECT_EQ(Read(""), std::pair(std::int64_t{0}, std::size_t{0}));
}

// Wherever a process is killed, what remains is a number of whole rows.
TEST_P(ReadRowsTest, TornAnywhere) {
  const std::string whole = header_ + one_ + two_;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    std::int64_t rows = 0;
    std::size_t bytes = 0;
    if (size >= header_.size()) bytes = header_.size();
    if (size >= header_.size() + one_.size()) rows = 1, bytes += one_.size();
    if (size >= whole.size()) rows = 2, bytes += two_.size();
    EXPECT_EQ(Read(whole.substr(0, size)), std::pair(rows, bytes)) << size;
  }
}

TEST_P(ReadRowsTest, AnotherSweepIsRefused) {
  EXPECT_EQ(Read(header_ + two_).first, -1);                           // not its point
  EXPECT_EQ(Read(header_ + one_ + two_ + three_ + three_).first, -1);  // more rows than points
  EXPECT_EQ(Read(header_ + Table({"tp"}, "other", GetParam()).Line(OkRow({"1"}, 10))).first, -1);
  EXPECT_EQ(Read(header_ + "something else\n").first, -1);
  if (!header_.empty()) {
    EXPECT_EQ(Read("pp" + header_.substr(2) + one_).first, -1);
    EXPECT_EQ(Read("something else").first, -1);
  }
}

// By hand: another status, another truth value, a reason too many, a number written another way. A number of the form
// that a sweep writes is believed.
TEST_P(ReadRowsTest, EditedRowsAreRefusedWhereASweepWouldNotWriteThem) {
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string row = one_;
    const std::size_t at = row.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return Read(header_ + row.replace(at, from.size(), to)).first;
  };
  EXPECT_EQ(edited("ok", "does_not_fit"), -1);
  EXPECT_EQ(edited("true", "false"), -1);
  EXPECT_EQ(edited("true", "yes"), -1);
  EXPECT_EQ(edited("0.25", "0.250"), -1);
  EXPECT_EQ(edited("0.25", "x"), -1);
  if (GetParam() == Format::kCsv) {
    EXPECT_EQ(edited("ok,,", "ok,why,"), -1);
  }
  EXPECT_EQ(edited("0.25", "0.35"), 1);
}

INSTANTIATE_TEST_SUITE_P(Formats, ReadRowsTest, ::testing::Values(Format::kCsv, Format::kJson));

TEST(RankingTest, BestFirstAndEqualOnesInOrder) {
  Ranking ranking(2);
  ranking.Add(RefusedRow({"a"}, "because"));
  ranking.Add(OkRow({"b"}, 10));
  ranking.Add(OkRow({"c"}, 30));
  ranking.Add(OkRow({"d"}, 30));
  ranking.Add(OkRow({"e"}, 20));
  EXPECT_EQ(ranking.ok(), 4);
  EXPECT_EQ(ranking.rows(), 5);
  const std::string text = ranking.Text({"x"});
  EXPECT_THAT(text, HasSubstr("5 points: 4 ok, 0 do not fit, 1 refused"));
  EXPECT_LT(text.find("\nc "), text.find("\nd "));
  EXPECT_NE(text.find("\nd "), std::string::npos);
  EXPECT_THAT(text, Not(HasSubstr("\ne ")));
}

TEST(RankingTest, NothingLegal) {
  Ranking ranking(2);
  ranking.Add(RefusedRow({"a"}, "because"));
  EXPECT_EQ(ranking.Text({"x"}), "1 point: 0 ok, 0 do not fit, 1 refused\nno point is legal; the first: because\n");
}

}  // namespace
}  // namespace orrery::sweep
