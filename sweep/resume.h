// Where an interrupted sweep goes on: the rows of its file.
#ifndef ORRERY_SWEEP_RESUME_H_
#define ORRERY_SWEEP_RESUME_H_

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "sweep/points.h"
#include "sweep/table.h"

namespace orrery::sweep {

struct Done {
  std::int64_t rows = 0;
  // Of the header and the rows; what follows them is a line that was never finished.
  std::size_t bytes = 0;
};

// Reads what a sweep has written and passes each complete row to `row`. INVALID_ARGUMENT where the header is another
// one, or a line is not the row of its point in this sweep, byte for byte what would be written again.
absl::StatusOr<Done> ReadRows(std::string_view contents, const Table& table, const Points& points,
                              const std::function<void(const Row&)>& row);

}  // namespace orrery::sweep

#endif  // ORRERY_SWEEP_RESUME_H_
