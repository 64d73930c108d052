// The result of `orrery simulate` as JSON: the keys of docs/results.md.
#ifndef ORRERY_REPORTS_JSON_H_
#define ORRERY_REPORTS_JSON_H_

#include <cstdint>
#include <optional>
#include <string>

#include "reports/waterfall.h"
#include "sim/training/simulate.h"

namespace orrery::reports {

// Errors of predictions of published runs of one family: half and nine tenths of them stay below.
struct ExpectedError {
  double p50 = 0;
  double p90 = 0;
  std::string family;
  std::int64_t runs = 0;
};

// Where a result comes from.
struct Provenance {
  std::string version;
  std::string spec_sha256;
  std::string profile;
  std::string software;
  std::optional<ExpectedError> expected_error;
};

// Cost of the simulation itself.
struct SimulatorCost {
  double wall_seconds = 0;
  std::int64_t peak_rss_bytes = 0;
};

// `cost` null: without the `simulator` object, the only one that may differ between machines and ways of simulating.
std::string ResultJson(const training::Result& result, const Waterfall& waterfall, const Provenance& provenance,
                       const SimulatorCost* cost);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_JSON_H_
