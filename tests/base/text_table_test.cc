#include "base/text_table.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(TextTableTest, AlignsColumnsAndLeavesNoTrailingSpace) {
  TextTable table({{"step", TextTable::Align::kLeft}, {"points", TextTable::Align::kRight}, {"why"}});
  table.AddRow({"jitter", "1.25", "late ranks"});
  table.AddRow({"µ", "12.5"});  // two bytes, one character
  table.AddRule();
  table.AddRow({"sum", "13.75", ""});
  EXPECT_EQ(table.Render(),
            "step    points  why\n"
            "--------------------------\n"
            "jitter    1.25  late ranks\n"
            "µ         12.5\n"
            "--------------------------\n"
            "sum      13.75\n");
}

}  // namespace
}  // namespace orrery
