// The published record: a CSV file, the rows that a question is about, and typed access to their cells.
#ifndef ORRERY_VALIDATION_RECORD_H_
#define ORRERY_VALIDATION_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/csv.h"

namespace orrery::validation {

// UNIMPLEMENTED: what a row needs and Orrery does not have.
absl::Status Missing(std::string_view feature);

// One row of a table. A column that the table does not have reads as blank.
class Record {
 public:
  Record(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}

  int line() const { return row_.line; }
  std::string_view Text(std::string_view column) const;
  bool Blank(std::string_view column) const { return Text(column).empty(); }
  // INVALID_ARGUMENT names the column and the cell where it is neither blank nor a number.
  absl::StatusOr<std::optional<std::int64_t>> Integer(std::string_view column) const;
  absl::StatusOr<std::optional<double>> Number(std::string_view column) const;
  // An integer from 1 on. A blank cell is Missing, or `otherwise`.
  absl::StatusOr<std::int64_t> Positive(std::string_view column) const;
  absl::StatusOr<std::int64_t> PositiveOr(std::string_view column, std::int64_t otherwise) const;

 private:
  const CsvTable& table_;
  const CsvRow& row_;
};

// COLUMN=PREFIX: keeps rows whose cell begins with PREFIX. Conditions on one column are alternatives; all columns must
// hold.
struct Condition {
  std::string column;
  std::string prefix;
};
// INVALID_ARGUMENT unless of the form COLUMN=PREFIX.
absl::StatusOr<Condition> ParseCondition(std::string_view text);
// NOT_FOUND where a condition names a column that the table lacks.
absl::StatusOr<std::vector<const CsvRow*>> SelectRows(const CsvTable& table, const std::vector<Condition>& conditions);

// NOT_FOUND: the table has no rows, or none meets the conditions.
absl::Status NoRows(const CsvTable& table);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_RECORD_H_
