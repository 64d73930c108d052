// What no file says: the accelerator's specification, how much of a link's bandwidth is reached, latencies. They come
// from presets.
#ifndef ORRERY_TOPOLOGY_IMPORT_BASIS_H_
#define ORRERY_TOPOLOGY_IMPORT_BASIS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "orrery/v1/cluster.pb.h"
#include "proto/loader.h"
#include "topology/import/findings.h"

namespace orrery::topology {

// A cluster preset whose links stand for those of the imported cluster.
struct Basis {
  std::string name;
  v1::Cluster cluster;      // resolved
  std::string accelerator;  // preset of the imported cluster
};

struct BasisOptions {
  std::string accelerator;  // a preset; empty: that of `like`, or the only one of `compute_capability`
  std::string like;  // a preset; empty: one with this accelerator, if possible with as many GPUs per node, of those the
                     // one whose NICs reach most of their bandwidth
  int compute_capability = 0;      // 0: not known
  std::int64_t gpus_per_node = 0;  // 0: not known
};

// INVALID_ARGUMENT says what is missing, or which presets there are.
absl::StatusOr<Basis> FindBasis(const BasisOptions& options, const spec::LoadOptions& load, Findings* findings);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_BASIS_H_
