// Predicted beside measured, whatever was measured: rows, and how the errors of a set of rows are summed up.
#ifndef ORRERY_VALIDATION_REPORT_H_
#define ORRERY_VALIDATION_REPORT_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery::validation {

enum class Status : std::uint8_t { kOk, kRefused, kFailed };

struct Row {
  std::string id;
  int line = 0;
  Status status = Status::kOk;
  double measured = 0;   // in the report's unit
  double predicted = 0;  // likewise; kOk only
  // kRefused: the first missing feature. kFailed: what went wrong.
  std::string reason;
  // Blank cells that were filled in, each "field = value".
  std::vector<std::string> assumptions;
  // Remarks on a row that was predicted: "does not fit in memory".
  std::vector<std::string> flags;
  // Cell of the column by which rows are grouped.
  std::string group;
  // What the summaries tell apart besides groups ("held out"); empty: whether something was filled in.
  std::string part;
  // Of the sizes that the row is one of, over all groups ("256 MiB and more"); empty: there are none.
  std::string band;

  // Presets behind the prediction of a run, and names of the constants in use (constants.h).
  std::string software;
  std::string accelerator;
  std::set<std::string> constants;

  // predicted / measured - 1.
  double Error() const { return predicted / measured - 1; }
};

// Over rows that were predicted.
struct Summary {
  int rows = 0;
  int ok = 0;
  int refused = 0;
  int failed = 0;
  double median_abs_error = 0;
  double p90_abs_error = 0;
  double bias = 0;  // median signed error
  // Different constants in use by these rows; 0 where they were not counted.
  int constants = 0;
};
Summary Summarise(const std::vector<const Row*>& rows);

struct Report {
  std::vector<Row> rows;
  std::string group_column;
  std::string unit = "s";
  int digits = 3;  // of measured and predicted, in text

  Summary All() const;
  // Rows of which nothing was filled in, and the others.
  Summary WithAssumptions(bool with) const;
  // By group, in order of first appearance.
  std::vector<std::pair<std::string, Summary>> Groups() const;
  // All rows but those of one software level, for each level with a prediction; none where there are not two levels.
  // Nothing is refitted: constants do not depend on runs.
  std::vector<std::pair<std::string, Summary>> LeaveOneLevelOut() const;
  // By part, likewise; none where no row has one.
  std::vector<std::pair<std::string, Summary>> Parts() const;
  // Likewise, by band.
  std::vector<std::pair<std::string, Summary>> Bands() const;
};

std::string ReportText(const Report& report);
std::string ReportJson(const Report& report);
// One line per predicted row: id, measured, predicted, error.
std::string ReportCsv(const Report& report);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_REPORT_H_
