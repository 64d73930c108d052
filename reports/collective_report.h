// A sweep of one collective over sizes, in nccl-tests' columns, with what the library chose.
#ifndef ORRERY_REPORTS_COLLECTIVE_REPORT_H_
#define ORRERY_REPORTS_COLLECTIVE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/collectives/nccl/model.h"

namespace orrery::reports {

struct CollectiveSweep {
  struct Row {
    std::int64_t bytes = 0;
    collectives::nccl::Price price;
  };
  std::string cluster;
  std::string version;  // of NCCL
  std::string times;
  collectives::nccl::Operation operation = collectives::nccl::Operation::kAllReduce;
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;
  std::vector<Row> rows;
};

absl::StatusOr<CollectiveSweep> SweepCollective(const collectives::nccl::Model& model,
                                                collectives::nccl::Operation operation,
                                                const std::vector<std::int64_t>& sizes);

// Lines that are no rows begin with "#", as nccl-tests has them.
std::string CollectiveText(const CollectiveSweep& sweep);
std::string CollectiveJson(const CollectiveSweep& sweep);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_COLLECTIVE_REPORT_H_
