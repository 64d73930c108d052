// One node of a kind, with device numbers from 0: GPUs, NVSwitches, PCIe switches, CPUs, NICs.
#ifndef ORRERY_TOPOLOGY_NODE_DESIGN_H_
#define ORRERY_TOPOLOGY_NODE_DESIGN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "orrery/v1/cluster.pb.h"
#include "topology/parts.h"

namespace orrery::topology {

struct NodeDesign {
  std::vector<Device> devices;
  std::vector<Cable> cables;
  Hosting hosting;
  DeviceId first_nic = 0;
};

// `path` is the node's in messages. INVALID_ARGUMENT where GPUs and NICs cannot share evenly, GPUs have fewer NVLinks
// than NVSwitches or nvlink_pair takes, a pair is no pair, hosts do not divide what they hold, or a link has no
// capacity; RESOURCE_EXHAUSTED beyond kMostCables. A node with `cpus` 0 (no spec has one) has its NICs at its GPUs.
absl::StatusOr<NodeDesign> DesignNode(const std::string& path, const v1::Node& node);

// INVALID_ARGUMENT where GPUs and NICs of a node cannot share evenly.
absl::Status CheckSharing(const std::string& path, const v1::Node& node);

// Achieved bytes/s of a link, rounded. INVALID_ARGUMENT names `path` where that is none, or more than an int64 counts.
absl::StatusOr<std::int64_t> Capacity(const std::string& path, const v1::Link& link, double share = 1);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_NODE_DESIGN_H_
