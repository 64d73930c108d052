// Orders that public generators wrote, read for tests: index.csv names the cases, <case>.csv holds one line per rank
// and one action per cell in PyTorch's notation (blank: an idle slot). A reader of its own, without code under test.
#ifndef ORRERY_TESTS_SCHEDULES_TABLES_H_
#define ORRERY_TESTS_SCHEDULES_TABLES_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/csv.h"
#include "schedules/schedule.h"
#include "tests/reference.h"

namespace orrery::schedules {

// A row of index.csv.
struct TableCase {
  std::map<std::string, std::string> cells;  // by column

  const std::string& Cell(const std::string& column) const { return cells.at(column); }
  double Number(const std::string& column) const { return std::atof(Cell(column).c_str()); }
  const std::string& name() const { return Cell("case"); }
  const std::string& kind() const { return Cell("file_kind"); }
  const std::string& schedule() const { return Cell("schedule"); }
  std::int32_t ranks() const { return std::atoi(Cell("p").c_str()); }
  std::int32_t micro_batches() const { return std::atoi(Cell("m").c_str()); }
  std::int32_t chunks() const { return std::atoi(Cell("v").c_str()); }

  // The number after the last `tag` of the name ("_N" of "..._N5"), or `otherwise`.
  std::int32_t Tagged(std::string_view tag, std::int32_t otherwise) const {
    const std::size_t at = name().rfind(tag);
    if (at == std::string::npos) return otherwise;
    char* end = nullptr;
    const char* const begin = name().c_str() + at + tag.size();
    const long value = std::strtol(begin, &end, 10);
    return end == begin ? otherwise : static_cast<std::int32_t>(value);
  }
};

inline std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// All rows of index.csv, or none where it is not at hand (tests/reference.h).
inline std::vector<TableCase> TableCases() {
  const std::string path = orrery::tests::ReferenceFile("schedules/index.csv");
  if (path.empty()) return {};
  const auto table = CsvTable::Parse(ReadText(path), path);
  std::vector<TableCase> cases;
  for (const CsvRow& row : table.value().rows()) {
    TableCase& a_case = cases.emplace_back();
    for (std::size_t i = 0; i < row.cells.size(); ++i) a_case.cells[table->columns()[i]] = row.cells[i];
  }
  return cases;
}

// One action of a table, by stage.
struct TableAction {
  std::int32_t slot = 0;  // column
  std::int32_t stage = 0;
  ActionKind kind = ActionKind::kForward;
  std::int32_t micro_batch = 0;
  bool fused = false;
};

// "5B12", or "(1F2;0B3)OVERLAP_F_B": a block. Nothing for a blank cell.
inline std::vector<TableAction> ReadCell(std::string cell, std::int32_t slot) {
  std::vector<TableAction> actions;
  if (!cell.empty() && cell.front() == '(') cell = cell.substr(1, cell.find(')') - 1);
  std::istringstream parts(cell);
  for (std::string part; std::getline(parts, part, ';');) {
    const std::size_t letter = part.find_first_of("FBIW");
    if (letter == std::string::npos) continue;
    if (!actions.empty()) actions.back().fused = true;
    const auto kind = static_cast<ActionKind>(std::string_view("FBIW").find(part[letter]));
    actions.push_back({slot, std::stoi(part.substr(0, letter)), kind, std::stoi(part.substr(letter + 1)), false});
  }
  return actions;
}

inline std::vector<std::vector<TableAction>> ReadActions(const std::string& name) {
  std::vector<std::vector<TableAction>> ranks;
  std::ifstream file(orrery::tests::ReferenceFile("schedules/" + name + ".csv"));
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && line.back() == '\r') line.pop_back();
    std::vector<TableAction>& actions = ranks.emplace_back();
    std::istringstream cells(line);
    std::int32_t slot = 0;
    for (std::string cell; std::getline(cells, cell, ','); ++slot) {
      for (const TableAction& action : ReadCell(cell, slot)) actions.push_back(action);
    }
  }
  return ranks;
}

// Copies of the model in a case.
inline std::int32_t TablePipelines(const TableCase& a_case) {
  return a_case.Cell("placement").rfind("bidirectional", 0) != 0 ? 1 : a_case.Tagged("_d", 2);
}

inline bool IsComputeTable(const TableCase& a_case) {
  return a_case.kind() == "compute_only" || a_case.kind() == "compute_only_slots";
}

// PyTorch's own table of Schedule1F1B starts the last rank at micro-batch 1 and cannot be executed; what it executes is
// in the tables torchrt_1f1b_*.
inline bool IsKnownIllegal(const TableCase& a_case) { return a_case.name().rfind("torch_1f1b_", 0) == 0; }

inline bool IsOnV(const TableCase& a_case) {
  const std::string& text = a_case.Cell("placement");
  return text.rfind("v-shape", 0) == 0 || text == "dualpipe_v";
}

// Where the stages of a case are: by name, and with several copies from the table, chunk k of a rank in copy k.
inline Placement TablePlacement(const TableCase& a_case, const std::vector<std::vector<TableAction>>& ranks) {
  if (IsOnV(a_case)) return Placement::Wave(a_case.ranks(), 2);
  const std::int32_t pipelines = TablePipelines(a_case);
  if (pipelines == 1) return Placement::Loop(a_case.ranks(), a_case.chunks());
  std::vector<std::vector<Held>> held(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::int32_t k = 0; k < pipelines; ++k) held[rank].push_back({0, k});
    for (const TableAction& action : ranks[rank]) {
      const std::int32_t k = action.micro_batch * pipelines / a_case.micro_batches();
      held[rank][static_cast<std::size_t>(k)].stage = action.stage;
    }
  }
  return Placement::Of(held).value();
}

// The order of a `compute_only` or `compute_only_slots` case; of the latter with its time slots. No action is joined.
inline Schedule ReadTable(const TableCase& a_case) {
  const auto ranks = ReadActions(a_case.name());
  Schedule schedule{TablePlacement(a_case, ranks), a_case.micro_batches(), {}};
  const std::int32_t pipelines = TablePipelines(a_case);
  if (pipelines > 1) {
    for (std::int32_t k = 0; k < schedule.micro_batches; ++k) {
      schedule.pipeline_of.push_back(k * pipelines / schedule.micro_batches);
    }
  }
  // Micro-batches of a sliced table count slices.
  if (a_case.schedule() == "Seq1F1B") {
    schedule.slices = a_case.Tagged("_s", 1);
    schedule.micro_batches *= schedule.slices;
  }
  for (const std::vector<TableAction>& actions : ranks) {
    std::vector<Action>& order = schedule.order.emplace_back();
    std::vector<std::int32_t> slots;
    for (const TableAction& action : actions) {
      const Place place = schedule.PlaceOf(action.stage, action.micro_batch);
      order.push_back({action.kind, place.chunk, action.micro_batch, false, action.fused});
      slots.push_back(action.slot);
    }
    if (a_case.kind() == "compute_only_slots") schedule.slots.push_back(slots);
  }
  return schedule;
}

// `order` as tables write it, which do not say what is joined.
inline std::vector<std::vector<Action>> WithoutJoins(std::vector<std::vector<Action>> order) {
  for (auto& actions : order) {
    for (Action& action : actions) action.joined = false;
  }
  return order;
}

// For messages of tests: the first difference of two orders, or "".
inline std::string FirstDifference(const Schedule& got, const Schedule& expected) {
  for (std::size_t rank = 0; rank < expected.order.size(); ++rank) {
    if (rank >= got.order.size()) return "rank " + std::to_string(rank) + " is missing";
    const auto& a = got.order[rank];
    const auto& b = expected.order[rank];
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const auto text = [&](const Schedule& schedule, const std::vector<Action>& order) {
        if (i >= order.size()) return std::string("nothing");
        return Describe(schedule, static_cast<std::int32_t>(rank), order[i]) + (order[i].fused ? " fused" : "");
      };
      const std::string left = text(got, a);
      const std::string right = text(expected, b);
      if (left != right) {
        return "rank " + std::to_string(rank) + ", action " + std::to_string(i) + ": " + left + ", expected " + right;
      }
    }
  }
  return got.order.size() == expected.order.size() ? "" : "too many ranks";
}

}  // namespace orrery::schedules

#endif  // ORRERY_TESTS_SCHEDULES_TABLES_H_
