// What NCCL's choice and time depend on: where the ranks are and what links they have.
#ifndef ORRERY_SIM_COLLECTIVES_NCCL_COMMUNICATOR_H_
#define ORRERY_SIM_COLLECTIVES_NCCL_COMMUNICATOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "orrery/v1/cluster.pb.h"
#include "sim/layout/layout.h"

namespace orrery::collectives::nccl {

// Seconds that the most loaded link of a node takes for every byte that an operation moves, by who sends to whom
// (sim/collectives/node_links.h). 0: no bound, as where NVSwitches join the node's GPUs.
struct NodeSeconds {
  double ring = 0;
  double tree = 0;
  double chain = 0;  // a tree inside each node
  double pat = 0;
  double all_to_all = 0;
  double send_recv = 0;
  // The two phases of an all-to-all.
  double inside_nodes = 0;
  double on_rails = 0;

  friend bool operator==(const NodeSeconds&, const NodeSeconds&) = default;
};

// Nominal figures serve the search, which goes by link generations; achieved ones serve times. Per direction. A node is
// the GPUs of one NVLink domain. Where nodes differ, this is the communicator as nodes of one sort see it.
struct Communicator {
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;
  std::int64_t ranks_per_node = 1;  // of the fullest node
  std::int64_t nics = 1;            // that the ranks of the emptiest node own: those nearest to their GPUs
  std::int64_t compute_capability = 0;
  v1::CpuVendor cpu = v1::INTEL;
  bool nvswitch = true;
  bool nvlink = true;  // else PCIe stands in its place
  BytesPerSecond nominal_nvlink;
  BytesPerSecond nvlink_bandwidth;  // of one GPU
  BytesPerSecond nominal_nic;
  BytesPerSecond nic_bandwidth;  // of one NIC
  BytesPerSecond nic_message;    // of one message over it
  // Of the wires above the leaf, a NIC's part where nothing is oversubscribed: PCIe does not narrow it.
  BytesPerSecond uplink_bandwidth;
  // Wires and switches of the cluster, which count where they take longer than the library's steps; the last, between
  // two leaves, comes on top.
  double nvlink_latency = 0;  // seconds
  double net_latency = 0;
  double crossing_latency = 0;
  std::int64_t leaves = 1;
  double nodes_per_leaf = 1;  // of the fullest leaf
  bool rails = true;          // a leaf for every NIC of a node, else one for all
  double oversubscription = 1;
  NodeSeconds node_seconds;

  BytesPerSecond NodeNetwork() const { return nic_bandwidth * static_cast<double>(nics); }
  // What a node has above its leaves.
  BytesPerSecond NodeUplinks() const { return uplink_bandwidth * (static_cast<double>(nics) / oversubscription); }
  // What of all that its nodes send to each other evenly leaves a leaf, at most over the leaves, over what the nodes of
  // the fullest leaf send in all: m nodes on a leaf send (N - m) / N of theirs to other leaves.
  double LeavingLeaf() const;

  friend bool operator==(const Communicator&, const Communicator&) = default;
};

// One for each sort of a communicator's nodes, alike in what they are and in the ranks that they hold. All agree in
// ranks, nodes, leaves and GPUs.
using Views = std::vector<Communicator>;

// What the library takes all nodes to be: no faster than any, the fullest node's ranks; CPUs of two vendors count as
// AMD, as the library's limits of LL have it.
Communicator CommonOf(const Views& views);

// Who else sends at the same time.
enum class Twins : std::uint8_t {
  // The other groups of the kind, all GPUs of the cluster together: a group has its share of the NICs and of the ways
  // up from a leaf.
  kActive,
  // Nobody: sharing is worked out elsewhere.
  kIdle,
};

// Ranks placed on a resolved cluster, without node_seconds. Fabric may be missing: wires without latency then.
// INVALID_ARGUMENT where it does not state the GPU's compute capability, or one that its nccl_times do not serve, or
// the placement has no ranks, more ranks on a node than GPUs, or more nodes than ranks.
absl::StatusOr<Communicator> DescribeCommunicator(const v1::Cluster& cluster, const layout::Placement& placement,
                                                  Twins twins = Twins::kActive);

// The placement of `ranks` on `nodes` nodes as evenly as it goes, nodes filled leaf by leaf.
layout::Placement EvenPlacement(const v1::Cluster& cluster, std::int64_t ranks, std::int64_t nodes);

}  // namespace orrery::collectives::nccl

#endif  // ORRERY_SIM_COLLECTIVES_NCCL_COMMUNICATOR_H_
