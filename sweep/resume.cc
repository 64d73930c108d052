#include "sweep/resume.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace orrery::sweep {
namespace {

absl::Status OtherSweep(std::int64_t line, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, " ", std::string(what),
                                                 "; allowed: the file of the same sweep (same spec, presets, --set, "
                                                 "--vary, --list, format and version of orrery)"));
}

}  // namespace

absl::StatusOr<Done> ReadRows(std::string_view contents, const Table& table, const Points& points,
                              const std::function<void(const Row&)>& row) {
  Done done;
  std::int64_t line_number = 0;
  const std::string header = table.Header();
  bool header_is_due = !header.empty();
  while (done.bytes < contents.size()) {
    const std::size_t end = contents.find('\n', done.bytes);
    ++line_number;
    const std::string_view line = contents.substr(done.bytes, end - done.bytes);
    if (header_is_due) {
      // Of a torn header the beginning must be right: else it is somebody else's file.
      const std::string expected =
          end == std::string_view::npos ? header.substr(0, line.size()) : header.substr(0, header.size() - 1);
      if (line != expected) return OtherSweep(line_number, "is not the header of this sweep");
    }
    if (end == std::string_view::npos) break;
    if (!header_is_due) {
      if (done.rows == points.size()) return OtherSweep(line_number, "is behind the last row of this sweep");
      const absl::StatusOr<Row> read = table.Parse(line, points.At(done.rows));
      if (!read.ok()) return OtherSweep(line_number, std::string(read.status().message()));
      row(*read);
      ++done.rows;
    }
    header_is_due = false;
    done.bytes = end + 1;
  }
  return done;
}

}  // namespace orrery::sweep
