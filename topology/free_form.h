// Parts of a cluster that is given device by device.
#ifndef ORRERY_TOPOLOGY_FREE_FORM_H_
#define ORRERY_TOPOLOGY_FREE_FORM_H_

#include "absl/status/statusor.h"
#include "orrery/v1/cluster.pb.h"
#include "topology/parts.h"

namespace orrery::topology {

// Devices that hang together without network switches become a node. Errors as of Topology::Build.
absl::StatusOr<Parts> FromGraph(const v1::Graph& graph);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_FREE_FORM_H_
