// Orders with V and bidirectional placements against the tables that public generators wrote (PyTorch, zero-bubble,
// DualPipe, PP-Schedule-Visualization, MindSpeed), where they are at hand: tests/reference.h.
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "schedules/family.h"
#include "tests/schedules/tables.h"
#include "validation/schedule_cases.h"

namespace orrery::schedules {
namespace {

// Family and parameters that make a case; no family where the case is of none of these.
struct Recipe {
  std::string family;
  Parameters parameters;
};

Recipe RecipeOf(const TableCase& a_case) {
  const Family* const family = validation::FamilyOfSchedule(a_case.schedule());
  const bool here = IsOnV(a_case) || TablePipelines(a_case) > 1;
  if (family == nullptr || family->automatic || !here) return {};
  Parameters parameters{a_case.ranks(), a_case.chunks(), a_case.micro_batches()};
  if (family->name == "chimera") parameters.pipelines = a_case.Tagged("_d", 0);
  return {std::string(family->name), parameters};
}

TEST(VTablesTest, GeneratedOrdersEqualPublicTables) {
  const auto cases = TableCases();
  if (cases.empty()) GTEST_SKIP() << "no public tables; tests/reference.h says where they are looked for";
  std::map<std::string, int> equal;
  for (const TableCase& a_case : cases) {
    if (!IsComputeTable(a_case)) continue;
    const Recipe recipe = RecipeOf(a_case);
    if (recipe.family.empty()) continue;
    const auto schedule = Generate(recipe.family, recipe.parameters);
    ASSERT_TRUE(schedule.ok()) << a_case.name() << ": " << schedule.status();
    const Schedule expected = ReadTable(a_case);
    EXPECT_EQ(FirstDifference(*schedule, expected), "") << a_case.name();
    EXPECT_TRUE(schedule->placement == expected.placement) << a_case.name();
    EXPECT_EQ(schedule->pipeline_of, expected.pipeline_of) << a_case.name();
    EXPECT_EQ(schedule->slots, expected.slots) << a_case.name();
    if (schedule->order == expected.order) ++equal[recipe.family];
  }
  const std::map<std::string, int> expected = {{"1f1b-v", 6},  {"chimera", 7}, {"dualpipe", 11}, {"dualpipe-v", 19},
                                               {"v-half", 14}, {"v-min", 13},  {"zb-v", 8}};
  EXPECT_EQ(equal, expected);
}

// The passes of a table that lists messages, too, as generated orders describe them; "&" after the first of a block.
std::vector<std::vector<std::string>> PassesBesideMessages(const std::string& name) {
  std::vector<std::vector<std::string>> ranks;
  std::ifstream file(orrery::tests::ReferenceFile("schedules/" + name + ".csv"));
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string>& passes = ranks.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) {
      while (!cell.empty() && cell.back() == '\r') cell.pop_back();
      const bool block = cell.find("OVERLAP") != std::string::npos;
      // Messages and gathered parameters are words, and batches of messages have parentheses.
      if (!block && cell.find_first_not_of("0123456789FBIW") != std::string::npos) continue;
      for (const TableAction& action : ReadCell(cell, 0)) {
        passes.push_back(std::to_string(action.stage) + Letter(action.kind) + std::to_string(action.micro_batch) +
                         (action.fused ? "&" : ""));
      }
    }
  }
  return ranks;
}

TEST(VTablesTest, GeneratedOrdersEqualThePassesOfTablesWithMessages) {
  const auto cases = TableCases();
  if (cases.empty()) GTEST_SKIP() << "no public tables; tests/reference.h says where they are looked for";
  int compared = 0;
  for (const TableCase& a_case : cases) {
    if (a_case.kind() != "compute_comms" && a_case.kind() != "compute+comm_batches") continue;
    const Recipe recipe = RecipeOf(a_case);
    if (recipe.family.empty()) continue;
    const auto schedule = Generate(recipe.family, recipe.parameters);
    ASSERT_TRUE(schedule.ok()) << a_case.name() << ": " << schedule.status();
    std::vector<std::vector<std::string>> passes(schedule->order.size());
    for (std::size_t rank = 0; rank < passes.size(); ++rank) {
      for (const Action& action : schedule->order[rank]) {
        passes[rank].push_back(Describe(*schedule, static_cast<std::int32_t>(rank), action) +
                               (action.fused ? "&" : ""));
      }
    }
    EXPECT_EQ(passes, PassesBesideMessages(a_case.name())) << a_case.name();
    ++compared;
  }
  EXPECT_GE(compared, 7);
}

}  // namespace
}  // namespace orrery::schedules
