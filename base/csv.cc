#include "base/csv.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"

namespace orrery {
namespace {

// Cuts text into rows of cells, keeping count of lines.
class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  // The next row that is not blank; a row without cells at the end of the text.
  absl::StatusOr<CsvRow> NextRow() {
    CsvRow row;
    while (!AtEnd() && AtLineBreak()) SkipLineBreak();
    if (AtEnd()) return row;
    row.line = line_;
    while (true) {
      ABSL_ASSIGN_OR_RETURN(std::string cell, NextCell());
      row.cells.push_back(std::move(cell));
      if (AtEnd()) return row;
      if (AtLineBreak()) {
        SkipLineBreak();
        return row;
      }
      ++position_;  // the comma: NextCell stops at nothing else
    }
  }

  absl::Status Error(int line, std::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ":", line, ": ", absl::string_view(what.data(), what.size())));
  }

 private:
  bool AtEnd() const { return position_ == text_.size(); }
  bool AtLineBreak() const { return text_[position_] == '\n' || text_.substr(position_, 2) == "\r\n"; }
  void SkipLineBreak() {
    position_ += text_[position_] == '\n' ? 1 : 2;
    ++line_;
  }

  absl::StatusOr<std::string> NextCell() {
    if (!AtEnd() && text_[position_] == '"') return QuotedCell();
    const std::size_t begin = position_;
    while (!AtEnd() && text_[position_] != ',' && !AtLineBreak()) ++position_;
    return std::string(text_.substr(begin, position_ - begin));
  }

  absl::StatusOr<std::string> QuotedCell() {
    const int first_line = line_;
    std::string cell;
    for (++position_; !AtEnd(); ++position_) {
      const char c = text_[position_];
      if (c == '"') {
        ++position_;
        if (AtEnd() || text_[position_] == ',' || AtLineBreak()) return cell;
        if (text_[position_] != '"') {
          return Error(line_, "text after the closing quote of a cell (a quote inside a quoted cell is written twice)");
        }
      } else if (c == '\n') {
        ++line_;
      }
      cell.push_back(c);
    }
    return Error(first_line, "a cell begins with a quote that is never closed");
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t position_ = 0;
  int line_ = 1;
};

}  // namespace

absl::StatusOr<CsvTable> CsvTable::Parse(std::string_view text, std::string_view name) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());

  CsvTable table;
  table.name_ = std::string(name);
  Reader reader(text, table.name_);
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n');
    return reader.Error(static_cast<int>(line), "contains a NUL byte; this is not a text file");
  }

  ABSL_ASSIGN_OR_RETURN(CsvRow header, reader.NextRow());
  if (header.cells.empty()) return reader.Error(1, "empty; expected a header row that names the columns");
  std::set<std::string_view> seen;  // of header.cells, which stay where they are
  for (const std::string& column : header.cells) {
    if (column.empty()) {
      return reader.Error(header.line, absl::StrCat("column ", table.columns_.size() + 1, " has no name"));
    }
    if (!seen.insert(column).second) {
      return reader.Error(header.line, absl::StrCat("column '", column, "' occurs twice"));
    }
    table.columns_.push_back(column);
  }

  while (true) {
    ABSL_ASSIGN_OR_RETURN(CsvRow row, reader.NextRow());
    if (row.cells.empty()) return table;
    if (row.cells.size() != table.columns_.size()) {
      return reader.Error(row.line, absl::StrCat("has ", row.cells.size(), " cells; the header has ",
                                                 table.columns_.size(), " columns"));
    }
    table.rows_.push_back(std::move(row));
  }
}

std::optional<std::size_t> CsvTable::FindColumn(std::string_view column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  if (found == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns_.begin());
}

absl::StatusOr<std::size_t> CsvTable::Column(std::string_view column) const {
  if (const std::optional<std::size_t> index = FindColumn(column); index.has_value()) return *index;
  return absl::NotFoundError(absl::StrCat(name_, ": no column '", absl::string_view(column.data(), column.size()), "'",
                                          DidYouMean(column, columns_), "; columns: ", absl::StrJoin(columns_, ", ")));
}

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  quoted.push_back('"');
  return quoted;
}

}  // namespace orrery
