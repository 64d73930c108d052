#include "validation/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace orrery::validation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CsvTable Table(const std::string& text) { return *CsvTable::Parse(text, "table.csv"); }

TEST(RecordTest, BlankMissingAndBrokenCells) {
  const CsvTable table = Table("a,b,c\n12,,3.5x\n");
  const Record record(table, table.rows()[0]);
  EXPECT_EQ(record.line(), 2);
  EXPECT_EQ(record.Text("a"), "12");
  EXPECT_TRUE(record.Blank("b"));
  EXPECT_TRUE(record.Blank("no such column"));
  EXPECT_EQ(**record.Integer("a"), 12);
  EXPECT_EQ(**record.Number("a"), 12.0);
  EXPECT_FALSE(record.Integer("b")->has_value());
  EXPECT_FALSE(record.Number("no such column")->has_value());
  const absl::Status broken = record.Number("c").status();
  EXPECT_EQ(broken.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(broken.message()), HasSubstr("c: \"3.5x\"; allowed: a number, or blank"));
  EXPECT_FALSE(record.Integer("c").ok());
}

TEST(ConditionTest, SplitsAtTheFirstEqualsSign) {
  const absl::StatusOr<Condition> condition = ParseCondition("notes=a=b");
  ASSERT_TRUE(condition.ok());
  EXPECT_EQ(condition->column, "notes");
  EXPECT_EQ(condition->prefix, "a=b");
  EXPECT_EQ(ParseCondition("blank=")->prefix, "");
  for (const char* const wrong : {"", "no equals", "=x"}) {
    const absl::Status status = ParseCondition(wrong).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(std::string(status.message()), HasSubstr("COLUMN=PREFIX"));
  }
}

// Rows: paper A with 8 and 64 GPUs, paper AB with 8, paper C with 8.
TEST(SelectRowsTest, OneColumnOrDifferentColumnsAnd) {
  const CsvTable table = Table("id,source,gpus\n1,A,8\n2,A,64\n3,AB,8\n4,C,8\n");
  const auto select = [&](const std::vector<std::string>& texts) {
    std::vector<Condition> conditions;
    for (const std::string& text : texts) conditions.push_back(*ParseCondition(text));
    const absl::StatusOr<std::vector<const CsvRow*>> rows = SelectRows(table, conditions);
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<std::string> ids;
    for (const CsvRow* row : *rows) ids.push_back(row->cells[0]);
    return ids;
  };
  EXPECT_THAT(select({}), ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(select({"source=A"}), ElementsAre("1", "2", "3")) << "a prefix";
  EXPECT_THAT(select({"source=AB", "source=C"}), ElementsAre("3", "4")) << "either";
  EXPECT_THAT(select({"source=A", "gpus=8"}), ElementsAre("1", "3")) << "both";
  EXPECT_THAT(select({"source=C", "source=A", "gpus=6"}), ElementsAre("2"));
  EXPECT_THAT(select({"source=Z"}), ElementsAre());
  const absl::Status unknown = SelectRows(table, {{"sorce", "A"}}).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("source"));
}

}  // namespace
}  // namespace orrery::validation
