// What NCCL's choice and time depend on: where the ranks are and what links they have.
#ifndef ORRERY_SIM_COLLECTIVES_NCCL_COMMUNICATOR_H_
#define ORRERY_SIM_COLLECTIVES_NCCL_COMMUNICATOR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "orrery/v1/cluster.pb.h"
#include "sim/layout/layout.h"

namespace orrery::collectives::nccl {

// Nominal figures serve the search, which goes by link generations; achieved ones serve times. Per direction. A node is
// the GPUs of one NVLink domain.
struct Communicator {
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;
  std::int64_t ranks_per_node = 1;  // of the fullest node
  std::int64_t nics = 1;            // that the ranks of the emptiest node own
  std::int64_t compute_capability = 0;
  v1::CpuVendor cpu = v1::INTEL;
  bool nvswitch = true;
  bool nvlink = true;  // else PCIe stands in its place
  BytesPerSecond nominal_nvlink;
  BytesPerSecond nvlink_bandwidth;  // of one GPU
  BytesPerSecond nominal_nic;
  BytesPerSecond nic_bandwidth;  // of one NIC
  std::int64_t leaves = 1;
  double oversubscription = 1;

  BytesPerSecond NodeNetwork() const { return nic_bandwidth * static_cast<double>(nics); }
  // Nodes of one leaf, on average.
  double NodesPerLeaf() const { return static_cast<double>(nodes) / static_cast<double>(leaves); }
};

// Ranks placed on a resolved cluster. INVALID_ARGUMENT where it does not state the GPU's compute capability, or the
// placement has no ranks, more ranks on a node than GPUs, or more nodes than ranks.
absl::StatusOr<Communicator> DescribeCommunicator(const v1::Cluster& cluster, const layout::Placement& placement);

// The placement of `ranks` on `nodes` nodes as evenly as it goes, nodes filled leaf by leaf.
layout::Placement EvenPlacement(const v1::Cluster& cluster, std::int64_t ranks, std::int64_t nodes);

}  // namespace orrery::collectives::nccl

#endif  // ORRERY_SIM_COLLECTIVES_NCCL_COMMUNICATOR_H_
