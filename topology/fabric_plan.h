// How many switches and cables a generated fabric has: arithmetic only.
#ifndef ORRERY_TOPOLOGY_FABRIC_PLAN_H_
#define ORRERY_TOPOLOGY_FABRIC_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "orrery/v1/cluster.pb.h"

namespace orrery::topology {

// Cables that leave a switch upwards, all alike.
struct Uplinks {
  std::int64_t cables = 0;    // of one switch
  std::int64_t capacity = 0;  // of one cable, achieved, bytes/s
};

// A network is what is joined by switches alone: one per plane, and per rail where rails are separate. Leaves stand in
// columns, one per rail (or a single one), and groups of nodes_per_leaf nodes.
struct FabricPlan {
  std::int64_t planes = 1;
  std::int64_t columns = 1;          // of leaves, in every plane
  std::int64_t networks = 1;         // planes, or planes x columns
  std::int64_t network_columns = 1;  // columns / networks of a plane
  std::int64_t groups = 1;
  std::int64_t pods = 1;
  std::int64_t groups_per_pod = 1;  // of a full pod
  std::int64_t spines = 0;          // of a pod and network; 0: a network of one leaf
  std::int64_t cores = 0;           // of a network that one spine of every pod is joined to; 0: a single pod
  Uplinks leaf;
  Uplinks spine;
};

// Of what all nodes together hang below the fabric. INVALID_ARGUMENT names the field where nodes_per_pod is no multiple
// of nodes_per_leaf, rails are separate without rails, a capacity comes out as zero, or no number of spines (cores) has
// enough ports and divides the uplinks of a leaf (spine).
absl::StatusOr<FabricPlan> PlanFabric(const v1::Cluster& cluster);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_FABRIC_PLAN_H_
