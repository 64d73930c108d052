// `orrery validate schedules INDEX.csv`: orders that public generators wrote, evaluated and generated anew.
//
// INDEX.csv names the cases, one a row; beside it lie <case>.csv, a table of actions (schedules/text/table.h), and
// evals.csv, what the tables cost. Columns of INDEX.csv: case, file_kind, schedule (the generator's name of it), p, m,
// v, and where the generator plans F, B (input gradient), W, comm, mem_limit. Columns of evals.csv: case, F, B_input,
// W, comm, overlap_rule (sum: a block costs its members), makespan (or DEADLOCK), max_rank_span, idle_per_rank and
// peak_chunks_per_rank (by rank, "9/9/9/9").
//
// Three questions for every case:
//   * does the table cost what evals.csv says, exactly, at every cost vector there; or deadlock where it says so?
//   * where the schedule's definition fixes the order: is the generated one the table's, action for action? Idle slots
//     count in tables of slots only.
//   * where the order is planned: at the case's own costs and limit, is the span shorter, the same or longer, at a peak
//     not above the table's? A plan with a higher peak counts as worse.
#ifndef ORRERY_VALIDATION_SCHEDULES_H_
#define ORRERY_VALIDATION_SCHEDULES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/csv.h"
#include "base/progress.h"
#include "validation/record.h"
#include "validation/report.h"

namespace orrery::validation {

enum class Order : std::uint8_t { kSame, kDifferent, kBetter, kEqual, kWorse };
inline constexpr int kOrders = 5;

// An order that a family made for a case.
struct MadeOrder {
  std::string family;
  Order order = Order::kSame;
  // Of a planned order and the table's: longest span, in the case's units.
  std::int64_t span = 0;
  std::int64_t table_span = 0;
};

struct ScheduleRow {
  std::string id;
  int line = 0;
  std::string group;
  // kOk: all is as in the tables, or better. kFailed: something differs, or cannot be read. kRefused: no such tables.
  Status status = Status::kOk;
  std::int64_t figures = 0;  // compared: makespan, span, and idle time and peak of every rank, at every cost vector
  std::int64_t different_figures = 0;
  bool deadlocks = false;
  // By each family that makes the schedule: one, none, or several that plan under the case's limit.
  std::vector<MadeOrder> made;
  // First difference, why there is no comparison, or which rank waits for what.
  std::string remark;
};

struct ScheduleCounts {
  int rows = 0;
  int ok = 0;
  int refused = 0;
  int failed = 0;
  int deadlocks = 0;
  std::int64_t figures = 0;
  std::int64_t different_figures = 0;
  int orders[kOrders] = {};  // by Order

  int Of(Order order) const { return orders[static_cast<int>(order)]; }
  void Add(const ScheduleRow& row);
};

struct ScheduleReport {
  std::vector<ScheduleRow> rows;
  std::string group_column;

  ScheduleCounts All() const;
  // In order of first appearance.
  std::vector<std::pair<std::string, ScheduleCounts>> Groups() const;
  // Orders by the family that made them, in alphabetical order; rows are those with such an order.
  std::map<std::string, ScheduleCounts> Families() const;
  // Figures and orders that differ, plans that are worse, and rows that could not be compared at all.
  std::int64_t Mismatches() const;
};

struct SchedulesOptions {
  std::vector<Condition> where = {};
  std::string group_column = "schedule";
  int threads = 1;
};

// NOT_FOUND where evals.csv or a column is missing, or no row is left.
absl::StatusOr<ScheduleReport> ValidateSchedules(const CsvTable& index, const SchedulesOptions& options,
                                                 Progress& progress);

std::string ScheduleReportText(const ScheduleReport& report);
std::string ScheduleReportJson(const ScheduleReport& report);
// One line per row, and one more for each further order of it: id, group, status, figures, different_figures,
// deadlocks, family, order, span, table_span.
std::string ScheduleReportCsv(const ScheduleReport& report);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_SCHEDULES_H_
