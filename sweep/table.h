// The rows of a sweep as text: CSV, or one JSON object a line. A row is always one line.
//
// Columns: the varied fields; status, reason; what the run does (blank where it was refused); the id of the sweep,
// which tells where a row came from, also in a file that holds rows of several sweeps.
#ifndef ORRERY_SWEEP_TABLE_H_
#define ORRERY_SWEEP_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace orrery::sweep {

enum class Status : std::uint8_t { kOk, kRefused, kDoesNotFit };
// "ok", "refused", "does_not_fit".
std::string_view NameOf(Status status);

// What a run does, and the errors to expect of its iteration time where they are known.
struct Figures {
  double iteration_time_s = 0;
  double mfu = 0;
  double tokens_per_s_per_gpu = 0;
  double bubble_fraction = 0;
  double span_bubble_fraction = 0;
  double exposed_communication_fraction = 0;
  std::int64_t allocator_peak_bytes = 0;
  std::int64_t device_peak_bytes = 0;
  bool fits = false;
  bool has_expected_error = false;
  double expected_error_p50 = 0;
  double expected_error_p90 = 0;
};

struct Row {
  std::vector<std::string> fields;  // cells of the varied fields
  Status status = Status::kOk;
  // Of a refusal, or of what does not fit: one line.
  std::string reason;
  Figures figures;  // not of a refused row
};

enum class Format : std::uint8_t { kCsv, kJson };

class Table {
 public:
  Table(std::vector<std::string> fields, std::string id, Format format)
      : fields_(std::move(fields)), id_(std::move(id)), format_(format) {}

  const std::vector<std::string>& fields() const { return fields_; }
  const std::string& id() const { return id_; }

  // The first line, with its end; "" where the format has none.
  std::string Header() const;
  // One line with its end.
  std::string Line(const Row& row) const;
  // The other way round: the row with these cells of varied fields whose Line is `line` and its end. INVALID_ARGUMENT
  // where there is none.
  absl::StatusOr<Row> Parse(std::string_view line, std::vector<std::string> fields) const;

 private:
  std::vector<std::string> Columns() const;

  std::vector<std::string> fields_;
  std::string id_;
  Format format_;
};

}  // namespace orrery::sweep

#endif  // ORRERY_SWEEP_TABLE_H_
