// Parts of a cluster that is described by its nodes and fabric.
#ifndef ORRERY_TOPOLOGY_GENERATOR_H_
#define ORRERY_TOPOLOGY_GENERATOR_H_

#include "absl/status/statusor.h"
#include "orrery/v1/cluster.pb.h"
#include "topology/parts.h"

namespace orrery::topology {

// Errors as of Topology::Build.
absl::StatusOr<Parts> Generate(const v1::Cluster& cluster);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_GENERATOR_H_
