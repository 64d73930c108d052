#include "validation/schedules.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/decimal.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/status_macros.h"
#include "schedules/text/table.h"
#include "sim/pipeline/evaluate.h"
#include "validation/schedule_cases.h"

namespace orrery::validation {
namespace {

using schedules::Family;
using schedules::Schedule;

constexpr std::int64_t kLargestTable = 256 << 20;  // bytes
constexpr std::string_view kDeadlock = "DEADLOCK";
constexpr std::string_view kSlots = "compute_only_slots";
constexpr std::string_view kKinds[] = {"compute_only", kSlots, "compute_comms", "compute+comm_posts",
                                       "compute+comm_batches"};

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// The rows of evals.csv, by case.
using Evals = std::map<std::string, std::vector<Record>, std::less<>>;

struct Expected {
  std::int64_t makespan = 0;
  std::int64_t span = 0;
  std::vector<std::int64_t> idle;  // by rank
  std::vector<std::int64_t> peak;
};

absl::StatusOr<std::int64_t> Decimal(const Record& record, std::string_view column) {
  absl::StatusOr<std::int64_t> value = ParseDecimal(record.Text(column));
  if (value.ok()) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("evals.csv: line ", record.line(), ": ", View(column), ": ", value.status().message()));
}

// "9/9/9/9", in units of `one`.
absl::StatusOr<std::vector<std::int64_t>> ByRank(const Record& record, std::string_view column, std::int64_t one) {
  std::vector<std::int64_t> values;
  for (const absl::string_view part : absl::StrSplit(View(record.Text(column)), '/')) {
    const absl::StatusOr<std::int64_t> value = ParseDecimal({part.data(), part.size()});
    if (!value.ok() || *value % one != 0) {
      return absl::InvalidArgumentError(absl::StrCat("evals.csv: line ", record.line(), ": ", View(column), ": \"",
                                                     View(record.Text(column)),
                                                     "\"; allowed: numbers by rank, as in 9/9/9/9"));
    }
    values.push_back(*value / one);
  }
  return values;
}

absl::StatusOr<Expected> ExpectedOf(const Record& record) {
  Expected expected;
  ABSL_ASSIGN_OR_RETURN(expected.makespan, Decimal(record, "makespan"));
  ABSL_ASSIGN_OR_RETURN(expected.span, Decimal(record, "max_rank_span"));
  ABSL_ASSIGN_OR_RETURN(expected.idle, ByRank(record, "idle_per_rank", 1));
  ABSL_ASSIGN_OR_RETURN(expected.peak, ByRank(record, "peak_chunks_per_rank", kDecimalOne));
  return expected;
}

absl::StatusOr<pipeline::Costs> CostsOfEval(const Record& record) {
  if (const std::string_view rule = record.Text("overlap_rule"); !rule.empty() && rule != "sum") {
    return Missing(absl::StrCat("overlap_rule ", View(rule)));
  }
  pipeline::Costs costs;
  schedules::PassCosts& pass = costs.stages.front();
  ABSL_ASSIGN_OR_RETURN(pass.forward, Decimal(record, "F"));
  ABSL_ASSIGN_OR_RETURN(pass.input_gradient, Decimal(record, "B_input"));
  ABSL_ASSIGN_OR_RETURN(pass.weight_gradient, Decimal(record, "W"));
  ABSL_ASSIGN_OR_RETURN(costs.latency, Decimal(record, "comm"));
  return costs;
}

void Remark(const std::string& text, ScheduleRow& row) {
  if (row.remark.empty()) row.remark = text;
}

void Fail(std::string_view text, ScheduleRow& row) {
  row.status = Status::kFailed;
  Remark(std::string(text), row);
}

// Counts a figure, and says so where it is not the table's.
void Compare(const Record& eval, const std::string& what, std::int64_t got, std::int64_t expected, std::int64_t one,
             ScheduleRow& row) {
  ++row.figures;
  if (got == expected) return;
  ++row.different_figures;
  const auto text = [&](std::int64_t value) { return one == 1 ? absl::StrCat(value) : FormatDecimal(value); };
  Fail(absl::StrCat(what, " ", text(got), ", evals.csv line ", eval.line(), " has ", text(expected)), row);
}

void CompareFigures(const Record& eval, const pipeline::Evaluation& got, const Expected& expected, ScheduleRow& row) {
  const std::size_t ranks = got.ranks.size();
  if (expected.idle.size() != ranks || expected.peak.size() != ranks) {
    return Fail(absl::StrCat("evals.csv line ", eval.line(), " has figures of other than ", ranks, " ranks"), row);
  }
  Compare(eval, "makespan", got.makespan, expected.makespan, kDecimalOne, row);
  Compare(eval, "longest span", got.longest_span, expected.span, kDecimalOne, row);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const pipeline::RankEvaluation& of_rank = got.ranks[rank];
    Compare(eval, absl::StrCat("idle time of rank ", rank), got.makespan - of_rank.busy, expected.idle[rank],
            kDecimalOne, row);
    Compare(eval, absl::StrCat("peak of rank ", rank), of_rank.peak_activations, expected.peak[rank], 1, row);
  }
}

// One cost vector of a case. The status is the evaluation's where the schedule cannot be executed.
absl::Status CheckEval(const Schedule& table, const Record& eval, ScheduleRow& row) {
  ABSL_ASSIGN_OR_RETURN(const pipeline::Costs costs, CostsOfEval(eval));
  ABSL_ASSIGN_OR_RETURN(const pipeline::Evaluation got, pipeline::Evaluate(table, costs));
  if (eval.Text("makespan") == kDeadlock) {
    Fail(absl::StrCat("is executed, evals.csv line ", eval.line(), " says that it deadlocks"), row);
    return absl::OkStatus();
  }
  ABSL_ASSIGN_OR_RETURN(const Expected expected, ExpectedOf(eval));
  CompareFigures(eval, got, expected, row);
  return absl::OkStatus();
}

absl::Status CheckEvals(const absl::StatusOr<Schedule>& table, const std::vector<Record>& evals, ScheduleRow& row) {
  ABSL_RETURN_IF_ERROR(table.status());
  if (evals.empty()) return schedules::Validate(*table);
  for (const Record& eval : evals) ABSL_RETURN_IF_ERROR(CheckEval(*table, eval, row));
  return absl::OkStatus();
}

// Passes by rank, in order; with idle slots where they count.
std::vector<std::vector<std::string>> Actions(const Schedule& schedule, bool slots) {
  std::vector<std::vector<std::string>> ranks = schedules::Cells(schedule);
  if (slots) return ranks;
  for (std::vector<std::string>& cells : ranks) std::erase(cells, "");
  return ranks;
}

// "" where both are the same.
std::string FirstDifference(const std::vector<std::vector<std::string>>& got,
                            const std::vector<std::vector<std::string>>& table) {
  if (got.size() != table.size()) return absl::StrCat(got.size(), " ranks, the table has ", table.size());
  const auto cell = [](const std::vector<std::string>& cells, std::size_t i) {
    if (i >= cells.size()) return std::string("nothing");
    return cells[i].empty() ? std::string("an idle slot") : cells[i];
  };
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    const auto [at, other] = std::mismatch(got[rank].begin(), got[rank].end(), table[rank].begin(), table[rank].end());
    if (at == got[rank].end() && other == table[rank].end()) continue;
    const auto i = static_cast<std::size_t>(at - got[rank].begin());
    return absl::StrCat("rank ", rank, ", cell ", i + 1, ": ", cell(got[rank], i), ", the table has ",
                        cell(table[rank], i));
  }
  return "";
}

std::int64_t Highest(const pipeline::Evaluation& evaluation, std::int64_t pipeline::RankEvaluation::*peak) {
  std::int64_t most = 0;
  for (const pipeline::RankEvaluation& rank : evaluation.ranks) most = std::max(most, rank.*peak);
  return most;
}

// Both at the costs that the order was planned for. Returns what is worse, or "".
absl::StatusOr<std::string> ComparePlans(const Schedule& plan, const Schedule& table,
                                         const schedules::PlanningCosts& planning, MadeOrder& made) {
  const pipeline::Costs costs{
      .stages = planning.stages, .latency = planning.latency, .block = {}, .memory = planning.memory};
  ABSL_ASSIGN_OR_RETURN(const pipeline::Evaluation ours, pipeline::Evaluate(plan, costs));
  ABSL_ASSIGN_OR_RETURN(const pipeline::Evaluation theirs, pipeline::Evaluate(table, costs));
  made.span = ours.longest_span;
  made.table_span = theirs.longest_span;
  made.order = made.span < made.table_span    ? Order::kBetter
               : made.span == made.table_span ? Order::kEqual
                                              : Order::kWorse;
  if (made.order == Order::kWorse) return absl::StrCat("span ", made.span, ", the table has ", made.table_span);
  for (const auto& [what, peak] : {std::pair{"peak memory", &pipeline::RankEvaluation::peak_memory},
                                   {"peak of activations", &pipeline::RankEvaluation::peak_activations}}) {
    if (Highest(ours, peak) <= Highest(theirs, peak)) continue;
    made.order = Order::kWorse;
    return absl::StrCat(what, " ", Highest(ours, peak), ", the table has ", Highest(theirs, peak));
  }
  return "";
}

absl::Status CheckOrder(const Record& record, const Family& family, const Schedule& table, ScheduleRow& row) {
  ABSL_ASSIGN_OR_RETURN(const schedules::Parameters parameters, ParametersOfCase(record, family, table));
  ABSL_RETURN_IF_ERROR(family.check(parameters));
  ABSL_ASSIGN_OR_RETURN(const Schedule schedule, family.generate(parameters));
  MadeOrder made{.family = std::string(family.name)};
  std::string difference;
  if (family.automatic) {
    ABSL_ASSIGN_OR_RETURN(difference, ComparePlans(schedule, table, parameters.planning, made));
  } else {
    const bool slots = record.Text("file_kind") == kSlots;
    difference = FirstDifference(Actions(schedule, slots), Actions(table, slots));
    made.order = difference.empty() ? Order::kSame : Order::kDifferent;
  }
  if (!difference.empty()) Fail(absl::StrCat(made.family, ": ", difference), row);
  row.made.push_back(std::move(made));
  return absl::OkStatus();
}

absl::Status CheckOrders(const Record& record, const Schedule& table, ScheduleRow& row) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<const Family*> families, FamiliesOfCase(record));
  if (families.empty()) Remark(absl::StrCat("no family makes schedule ", View(record.Text("schedule"))), row);
  for (const Family* const family : families) ABSL_RETURN_IF_ERROR(CheckOrder(record, *family, table, row));
  return absl::OkStatus();
}

ScheduleRow CheckCase(const Record& record, const std::filesystem::path& folder, const Evals& evals,
                      const SchedulesOptions& options) {
  ScheduleRow row;
  row.id = std::string(record.Text("case"));
  row.line = record.line();
  row.group = std::string(record.Text(options.group_column));
  const std::string_view kind = record.Text("file_kind");
  if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds)) {
    row.status = Status::kRefused;
    row.remark = absl::StrCat("tables of kind ", View(kind));
    return row;
  }
  const std::string file = row.id + ".csv";
  const absl::StatusOr<std::string> text = ReadFile((folder / file).string(), kLargestTable);
  const absl::StatusOr<Schedule> table = text.ok() ? ReadCaseTable(*text, file) : text.status();
  const auto found = evals.find(row.id);
  const std::vector<Record> of_case = found == evals.end() ? std::vector<Record>() : found->second;
  absl::Status status = CheckEvals(table, of_case, row);
  if (absl::IsFailedPrecondition(status)) {
    row.deadlocks = true;
    Remark(std::string(status.message()), row);
    const bool known = std::all_of(of_case.begin(), of_case.end(),
                                   [](const Record& eval) { return eval.Text("makespan") == kDeadlock; });
    if (!known) row.status = Status::kFailed;
    return row;
  }
  if (status.ok()) status = CheckOrders(record, *table, row);
  if (absl::IsUnimplemented(status)) {
    row.status = Status::kRefused;
    Remark(std::string(status.message()), row);
  } else if (!status.ok()) {
    Fail(std::string(status.message()), row);
  }
  return row;
}

absl::StatusOr<CsvTable> ReadEvals(const std::filesystem::path& folder) {
  const std::string path = (folder / "evals.csv").string();
  ABSL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestTable));
  ABSL_ASSIGN_OR_RETURN(CsvTable table, CsvTable::Parse(text, path));
  for (const char* column :
       {"case", "F", "B_input", "W", "comm", "makespan", "max_rank_span", "idle_per_rank", "peak_chunks_per_rank"}) {
    ABSL_RETURN_IF_ERROR(table.Column(column).status());
  }
  return table;
}

}  // namespace

absl::StatusOr<ScheduleReport> ValidateSchedules(const CsvTable& index, const SchedulesOptions& options,
                                                 Progress& progress) {
  for (const std::string& column :
       {std::string("case"), std::string("file_kind"), std::string("schedule"), options.group_column}) {
    ABSL_RETURN_IF_ERROR(index.Column(column).status());
  }
  ABSL_ASSIGN_OR_RETURN(const std::vector<const CsvRow*> rows, SelectRows(index, options.where));
  if (rows.empty()) return NoRows(index);
  const std::filesystem::path folder = std::filesystem::path(index.name()).parent_path();
  ABSL_ASSIGN_OR_RETURN(const CsvTable eval_table, ReadEvals(folder));
  Evals evals;
  for (const CsvRow& row : eval_table.rows()) {
    const Record record(eval_table, row);
    evals[std::string(record.Text("case"))].push_back(record);
  }
  ScheduleReport report;
  report.group_column = options.group_column;
  report.rows.resize(rows.size());
  progress.Start("validating schedules", static_cast<std::int64_t>(rows.size()));
  std::mutex one_at_a_time;
  ParallelFor(static_cast<std::int64_t>(rows.size()), options.threads, [&](std::int64_t i) {
    const auto index_of = static_cast<std::size_t>(i);
    report.rows[index_of] = CheckCase(Record(index, *rows[index_of]), folder, evals, options);
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    progress.Advance(1);
  });
  return report;
}

}  // namespace orrery::validation
