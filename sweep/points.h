// The points of a sweep: what each one changes in the base run.
//
// An axis is one field with its values, or several fields that change together (the rows of a list). The points are the
// cartesian product of the axes in the order given, the last one changing fastest.
#ifndef ORRERY_SWEEP_POINTS_H_
#define ORRERY_SWEEP_POINTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/loader.h"

namespace orrery::sweep {

// Points of one sweep. Beyond it somebody has multiplied more than they meant to.
inline constexpr std::int64_t kMostPoints = 1'000'000;

// A name for a path that is varied often: {"tp", "parallelism.tp"}.
struct ShortName {
  std::string_view name;
  std::string_view path;
};
const std::vector<ShortName>& ShortNames();

struct Axis {
  // As the user wrote them: short names or paths. They name the columns of the result.
  std::vector<std::string> fields;
  // One cell per field; an empty cell leaves its field as the base has it.
  std::vector<std::vector<std::string>> values;
};

// "tp=1,2,4". Commas inside brackets and quotes belong to a value. Of whole numbers also a:b, a:b:step and a:b:*factor,
// both ends included. `schedule=all` is every registered family. Errors: no "=", no value, a value twice.
absl::StatusOr<Axis> ParseVary(std::string_view text);
// A CSV table (base/csv.h): the header names fields, each row is one value of the axis. `name` begins every error.
absl::StatusOr<Axis> ParseList(std::string_view csv, std::string_view name);

// What one point changes, for spec::BaseRun::Resolve.
struct Variation {
  std::vector<std::string> overrides;
  std::int64_t micro_batches = 0;
};

class Points {
 public:
  // INVALID_ARGUMENT where there is no axis, two set the same field, or the product exceeds kMostPoints.
  static absl::StatusOr<Points> Make(std::vector<Axis> axes);

  std::int64_t size() const { return size_; }
  const std::vector<std::string>& fields() const { return fields_; }
  // The cells of point `index`, one per field.
  std::vector<std::string> At(std::int64_t index) const;
  // A schedule that always has the same number of stages per rank brings it along, unless the point says its own.
  Variation VariationOf(std::int64_t index) const;

  // Whether every field exists and every value could be legal in some run (for a field with very many values, the first
  // ones): what is wrong everywhere is a mistake of the user, not of a point.
  absl::Status Check(const spec::BaseRun& base) const;
  // Files that points read into their runs.
  std::vector<std::string> Files() const;
  // A digest of the base and of the points, which tells one sweep from another.
  std::string Sha256(const spec::BaseRun& base) const;

 private:
  std::vector<Axis> axes_;
  std::vector<std::string> fields_;
  std::vector<std::string> paths_;  // of the fields
  std::int64_t size_ = 0;
};

}  // namespace orrery::sweep

#endif  // ORRERY_SWEEP_POINTS_H_
