// A sweep of one collective over sizes, in nccl-tests' columns, with what the library chose.
#ifndef ORRERY_REPORTS_COLLECTIVE_REPORT_H_
#define ORRERY_REPORTS_COLLECTIVE_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/nccl/model.h"

namespace orrery::reports {

struct CollectiveSweep {
  // With groups at once on the links of the cluster: what one takes alone on them, when the first and the last has
  // ended, and the link that is used most.
  struct Shared {
    Time alone;
    Time first;
    Time last;
    std::string busiest;
    double utilisation = 0;
  };
  struct Row {
    std::int64_t bytes = 0;
    collectives::nccl::Price price;  // where nothing is in its way
    std::optional<Shared> shared = std::nullopt;

    Time time() const { return shared.has_value() ? shared->last : price.total(); }
  };
  std::string cluster;
  std::string version;  // of NCCL
  std::string times;
  collectives::nccl::Operation operation = collectives::nccl::Operation::kAllReduce;
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;
  std::int64_t groups = 1;
  std::int64_t node_stride = 1;
  bool hierarchical = false;             // all-to-all in two phases
  std::vector<std::string> assumptions;  // in words
  std::vector<Row> rows;
};

// Lines that are no rows begin with "#", as nccl-tests has them. A size that takes longer than a larger one, for the
// library's tables choose badly, is marked.
std::string CollectiveText(const CollectiveSweep& sweep);
std::string CollectiveJson(const CollectiveSweep& sweep);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_COLLECTIVE_REPORT_H_
