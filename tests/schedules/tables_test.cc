// Generated orders against the tables that public generators wrote (PyTorch, Megatron-LM, DeepSpeed, zero-bubble),
// where they are at hand: tests/reference.h.
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "schedules/schedule.h"
#include "tests/reference.h"

namespace orrery::schedules {
namespace {

namespace fs = std::filesystem;

fs::path Tables() { return orrery::tests::ReferenceFile("schedules"); }

std::vector<std::string> Split(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

// "5B12" -> stage 5, backward, micro-batch 12; blank cells are idle slots.
std::vector<std::vector<Action>> ReadTable(const fs::path& path, std::int32_t ranks) {
  std::vector<std::vector<Action>> table;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::vector<Action>& order = table.emplace_back();
    for (const std::string& cell : Split(line)) {
      const std::size_t kind = cell.find_first_of("FB");
      if (kind == std::string::npos) continue;
      order.push_back({cell[kind] == 'F' ? ActionKind::kForward : ActionKind::kBackward,
                       std::stoi(cell.substr(0, kind)) / ranks, std::stoi(cell.substr(kind + 1))});
    }
  }
  return table;
}

// The group size that a case was generated with: in its name (_N5), else PyTorch's m / max(1, m / p), else p.
std::int32_t GroupSize(const std::string& name, const std::string& schedule, std::int32_t p, std::int32_t m) {
  const std::size_t at = name.rfind("_N");
  if (at != std::string::npos) return std::stoi(name.substr(at + 2));
  return schedule == "Interleaved1F1B" ? m / std::max(1, m / p) : p;
}

TEST(TablesTest, GeneratedOrdersEqualPublicTables) {
  const fs::path folder = Tables();
  if (!fs::exists(folder / "index.csv")) GTEST_SKIP() << "no public tables at " << folder;
  const std::map<std::string, std::string> families = {{"GPipe", "gpipe"},
                                                       {"1F1B", "1f1b"},
                                                       {"1f1b", "1f1b"},
                                                       {"Interleaved1F1B", "interleaved-1f1b"},
                                                       {"interleaved 1F1B", "interleaved-1f1b"},
                                                       {"interleave", "interleaved-1f1b"}};
  std::map<std::string, int> compared;
  std::ifstream index(folder / "index.csv");
  for (std::string line; std::getline(index, line);) {
    const std::vector<std::string> row = Split(line);
    const auto family = row.size() < 8 ? families.end() : families.find(row[2]);
    if (family == families.end() || row[1] != "compute_only") continue;
    // PyTorch's own table of Schedule1F1B starts the last rank at micro-batch 1 and cannot be executed; what it
    // executes is in the tables torchrt_1f1b_*.
    if (row[0].rfind("torch_1f1b_", 0) == 0) continue;
    const std::int32_t p = std::stoi(row[5]);
    const std::int32_t m = std::stoi(row[6]);
    const std::int32_t v = std::stoi(row[7]);
    const auto schedule = Generate(family->second, {p, v, m, GroupSize(row[0], row[2], p, m)});
    ASSERT_TRUE(schedule.ok()) << row[0] << ": " << schedule.status();
    std::vector<std::vector<Action>> order = schedule->order;
    for (auto& actions : order) {
      for (Action& action : actions) action.joined = false;
    }
    EXPECT_EQ(order, ReadTable(folder / (row[0] + ".csv"), p)) << row[0];
    ++compared[family->second];
  }
  EXPECT_GE(compared["gpipe"], 10);
  EXPECT_GE(compared["1f1b"], 15);
  EXPECT_GE(compared["interleaved-1f1b"], 40);
}

}  // namespace
}  // namespace orrery::schedules
