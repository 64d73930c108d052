// Generated orders against the tables of public generators (PyTorch, Megatron-LM, DeepSpeed, zero-bubble and others),
// where they are at hand: tests/reference.h. Blank cells are ignored.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "schedules/family.h"
#include "tests/schedules/tables.h"
#include "validation/schedule_cases.h"

namespace orrery::schedules {
namespace {

TEST(TablesTest, EveryComputeTableIsReadAndLegal) {
  const std::vector<TableCase> cases = TableCases();
  if (cases.empty()) GTEST_SKIP() << "no public tables";
  int legal = 0;
  int illegal = 0;
  for (const TableCase& a_case : cases) {
    if (!IsComputeTable(a_case)) continue;
    const absl::Status status = Validate(ReadTable(a_case));
    EXPECT_EQ(status.ok(), !IsKnownIllegal(a_case)) << a_case.name() << ": " << status;
    ++(status.ok() ? legal : illegal);
  }
  EXPECT_GE(legal, 300);
  EXPECT_EQ(illegal, 9);
}

Parameters ParametersOf(const TableCase& a_case, const std::string& family) {
  Parameters parameters{a_case.ranks(), a_case.chunks(), a_case.micro_batches()};
  if (family == "grouped-1f1b") parameters.group_size = a_case.Tagged("_g", 0);
  if (family == "interleaved-1f1b" || family == "combined-1f1b") parameters.group_size = a_case.Tagged("_N", 0);
  if (family == "seq1f1b") parameters.slices = a_case.Tagged("_s", 1);
  return parameters;
}

void ExpectEqual(const TableCase& a_case, const std::string& family, const Parameters& parameters) {
  const absl::StatusOr<Schedule> schedule = Generate(family, parameters);
  ASSERT_TRUE(schedule.ok()) << a_case.name() << ": " << schedule.status();
  const Schedule table = ReadTable(a_case);
  EXPECT_EQ(FirstDifference(*schedule, table), "") << family << " against " << a_case.name();
  EXPECT_EQ(WithoutJoins(schedule->order), table.order) << family << " against " << a_case.name();
  EXPECT_EQ(schedule->placement, table.placement) << a_case.name();
  EXPECT_EQ(schedule->micro_batches, table.micro_batches) << a_case.name();
  EXPECT_EQ(schedule->slices, table.slices) << a_case.name();
}

TEST(TablesTest, GeneratedOrdersEqualPublicTables) {
  const std::vector<TableCase> cases = TableCases();
  if (cases.empty()) GTEST_SKIP() << "no public tables";
  std::map<std::string, int> compared;
  for (const TableCase& a_case : cases) {
    const Family* const family = validation::FamilyOfSchedule(a_case.schedule());
    ASSERT_NE(family, nullptr) << a_case.schedule();
    if (family->automatic || !IsComputeTable(a_case) || IsKnownIllegal(a_case)) continue;
    if (IsOnV(a_case) || TablePipelines(a_case) > 1) continue;  // v_tables_test.cc
    const std::string name(family->name);
    ExpectEqual(a_case, name, ParametersOf(a_case, name));
    ++compared[name];
  }
  const std::map<std::string, int> expected = {{"gpipe", 11},
                                               {"1f1b", 23},
                                               {"interleaved-1f1b", 29},
                                               {"interleaved-1f1b-torch", 21},
                                               {"looped-bfs", 13},
                                               {"interleaved-zb", 18},
                                               {"zb-h1", 4},
                                               {"zb-h2", 3},
                                               {"combined-1f1b", 10},
                                               {"1f1b-overlap", 6},
                                               {"seq1f1b", 6},
                                               {"grouped-1f1b", 5}};
  EXPECT_EQ(compared, expected);
}

// With equal groups PyTorch's interleaved schedule is Megatron-LM's; with one stage per rank its zero-bubble schedule
// is ZB-H1.
TEST(TablesTest, TorchTablesAlsoEqualTheGeneralFamilies) {
  const std::vector<TableCase> cases = TableCases();
  if (cases.empty()) GTEST_SKIP() << "no public tables";
  int compared = 0;
  for (const TableCase& a_case : cases) {
    if (!IsComputeTable(a_case)) continue;
    const std::int32_t p = a_case.ranks();
    const std::int32_t m = a_case.micro_batches();
    if (a_case.schedule() == "Interleaved1F1B") {
      ExpectEqual(a_case, "interleaved-1f1b", {p, a_case.chunks(), m, m / std::max(1, m / p)});
      ++compared;
    } else if (a_case.schedule() == "InterleavedZeroBubble" && a_case.chunks() == 1) {
      ExpectEqual(a_case, "zb-h1", {p, 1, m});
      ++compared;
    }
  }
  EXPECT_GE(compared, 25);
}

}  // namespace
}  // namespace orrery::schedules
