// Comma-separated values as RFC 4180 has them: a header row names the columns; a cell in double quotes may contain
// commas, line breaks and doubled quotes; lines end in LF or CRLF. Also accepted: a UTF-8 byte order mark, a last line
// without a line break, blank lines (skipped), and a quote inside a cell that does not begin with one (kept as it is).
#ifndef ORRERY_BASE_CSV_H_
#define ORRERY_BASE_CSV_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace orrery {

struct CsvRow {
  int line = 0;                    // where the row begins, from 1
  std::vector<std::string> cells;  // one per column
};

class CsvTable {
 public:
  // Reads `text`; `name` (a file name) begins every error, followed by the line. Errors (kInvalidArgument): no header,
  // an empty or repeated column name, a row with more or fewer cells than the header, a quote never closed, text after
  // a closing quote, a NUL byte.
  static absl::StatusOr<CsvTable> Parse(std::string_view text, std::string_view name);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& columns() const { return columns_; }
  const std::vector<CsvRow>& rows() const { return rows_; }

  std::optional<std::size_t> FindColumn(std::string_view column) const;
  // Like FindColumn; a missing column is an error (kNotFound) that names the nearest one or all of them.
  absl::StatusOr<std::size_t> Column(std::string_view column) const;

 private:
  std::string name_;
  std::vector<std::string> columns_;
  std::vector<CsvRow> rows_;
};

// `text` as one cell of output: in quotes where it needs them.
std::string CsvField(std::string_view text);

}  // namespace orrery

#endif  // ORRERY_BASE_CSV_H_
