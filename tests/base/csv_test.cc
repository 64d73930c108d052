#include "base/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "absl/strings/str_cat.h"

namespace orrery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  const absl::StatusOr<CsvTable> table = CsvTable::Parse(text, "runs.csv");
  return table.ok() ? "no error" : std::string(table.status().message());
}

TEST(CsvTest, ReadsWhatRfc4180Allows) {
  // A byte order mark, CRLF and LF, a blank line, quotes around a comma, a doubled quote and a line break, empty cells,
  // no line break at the end. The quoted line break makes the row after it begin on line 6.
  const absl::StatusOr<CsvTable> table = CsvTable::Parse(
      "\xEF\xBB\xBFid,notes,gpus\r\n"
      "a,\"8 x HDR, \"\"Selene\"\"\",32\n"
      "\n"
      "b,\"two\nlines\",\n"
      "c,5\" disk,\"\"",
      "runs.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->columns(), ElementsAre("id", "notes", "gpus"));
  ASSERT_EQ(table->rows().size(), 3u);
  EXPECT_EQ(table->rows()[0].line, 2);
  EXPECT_THAT(table->rows()[0].cells, ElementsAre("a", "8 x HDR, \"Selene\"", "32"));
  EXPECT_EQ(table->rows()[1].line, 4);
  EXPECT_THAT(table->rows()[1].cells, ElementsAre("b", "two\nlines", ""));
  EXPECT_EQ(table->rows()[2].line, 6);
  EXPECT_THAT(table->rows()[2].cells, ElementsAre("c", "5\" disk", ""));
}

TEST(CsvTest, FindsColumnsByName) {
  const absl::StatusOr<CsvTable> table = CsvTable::Parse("id,gpus,time_s\n", "runs.csv");
  ASSERT_TRUE(table.ok());
  EXPECT_TRUE(table->rows().empty());
  EXPECT_EQ(table->FindColumn("time_s"), 2u);
  EXPECT_EQ(table->FindColumn("mfu"), std::nullopt);
  EXPECT_EQ(*table->Column("gpus"), 1u);
  EXPECT_EQ(table->Column("tme_s").status().message(),
            "runs.csv: no column 'tme_s' (did you mean 'time_s'?); columns: id, gpus, time_s");
}

TEST(CsvTest, ErrorsNameTheLineAndWhatIsWrong) {
  EXPECT_EQ(ErrorOf(""), "runs.csv:1: empty; expected a header row that names the columns");
  EXPECT_EQ(ErrorOf("\n\n"), ErrorOf(""));
  EXPECT_EQ(ErrorOf("a,b\n1,2\n3\n"), "runs.csv:3: has 1 cells; the header has 2 columns");
  EXPECT_EQ(ErrorOf("a,b\n1,2,3\n"), "runs.csv:2: has 3 cells; the header has 2 columns");
  EXPECT_EQ(ErrorOf("a,b\n1,2,\n"), "runs.csv:2: has 3 cells; the header has 2 columns");
  EXPECT_EQ(ErrorOf("a,a\n"), "runs.csv:1: column 'a' occurs twice");
  EXPECT_EQ(ErrorOf("a,,b\n"), "runs.csv:1: column 2 has no name");
  EXPECT_EQ(ErrorOf("a\n1\n\"2\n3\n"), "runs.csv:3: a cell begins with a quote that is never closed");
  EXPECT_THAT(ErrorOf("a\n\"1\"2\n"), HasSubstr("runs.csv:2: text after the closing quote of a cell"));
  EXPECT_EQ(ErrorOf(std::string_view("a\n1\0\n", 5)), "runs.csv:2: contains a NUL byte; this is not a text file");
}

TEST(CsvTest, FieldsAreQuotedOnlyWhereNeededAndReadBack) {
  EXPECT_EQ(CsvField("plain text"), "plain text");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("5\""), "\"5\"\"\"");
  const std::string hard = "\"x\",\r\ny";
  const absl::StatusOr<CsvTable> table = CsvTable::Parse("a\n" + CsvField(hard) + "\n", "runs.csv");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->rows()[0].cells[0], hard);
}

// 200,000 columns take a moment; looking every one up among all before it would take half a minute.
TEST(CsvTest, ManyColumns) {
  std::string header;
  for (int i = 0; i < 200000; ++i) absl::StrAppend(&header, "column", i, ",");
  const auto begin = std::chrono::steady_clock::now();
  const absl::StatusOr<CsvTable> table = CsvTable::Parse(header + "last\n", "wide.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->columns().size(), 200001u);
  EXPECT_EQ(CsvTable::Parse(header + "column7\n", "wide.csv").status().message(),
            "wide.csv:1: column 'column7' occurs twice");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace orrery
