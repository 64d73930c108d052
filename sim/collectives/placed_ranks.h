// Ranks of a communicator on the nodes of a cluster, whatever these are and however many each of them gets.
#ifndef ORRERY_SIM_COLLECTIVES_PLACED_RANKS_H_
#define ORRERY_SIM_COLLECTIVES_PLACED_RANKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "orrery/v1/cluster.pb.h"
#include "sim/collectives/message_flows.h"
#include "sim/collectives/nccl/communicator.h"
#include "sim/collectives/node_links.h"
#include "topology/topology.h"

namespace orrery::collectives {

struct PlacedRanks {
  std::int64_t ranks = 1;
  std::vector<NodeSort> sorts;  // each once
  nccl::Views views;
  // GPUs. Where the nodes are not all alike, those of a node in an order in which the first ones have a NIC each, as
  // far as there are NICs.
  RanksByNode gpus;
  // Generated nodes of one kind, as many ranks on each: formulas hold what all links carry. Else a price must be held
  // against the links (ConcurrentGroups::LeastProgress).
  bool is_regular = true;
  std::vector<std::string> assumptions = {};
};

// On the first `nodes` nodes as evenly as their GPUs allow, one more on the first ones; 0 nodes: as few as hold the
// ranks; 0 ranks: all GPUs of the nodes, of one where those are 0 too. `topology` must be built from `cluster`.
//
// INVALID_ARGUMENT where there are fewer nodes or GPUs, or more nodes than ranks; otherwise as
// topology::FindNodeKinds and CommunicatorOn.
absl::StatusOr<PlacedRanks> PlaceRanks(const v1::Cluster& cluster, const topology::Topology& topology,
                                       std::int64_t ranks, std::int64_t nodes, nccl::Twins twins);

}  // namespace orrery::collectives

#endif  // ORRERY_SIM_COLLECTIVES_PLACED_RANKS_H_
