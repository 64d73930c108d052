// Equal groups that carry out the same operation at the same time, on the links of a cluster.
//
// A group is on `nodes` nodes, `ranks` / `nodes` GPUs on each. Groups stand side by side: on the GPUs of the same
// nodes; where these are used up and nodes are `node_stride` apart, on the nodes between them; and where those are used
// up too, again from the first GPU on, as communicators that share GPUs.
//
//   node of member node i, group j    i stride + (j / p) mod stride,   p = GPUs of a node / (ranks / nodes)
//   first GPU on it                   (j mod p) ranks / nodes
//
// Each phase of the operation is one activity of the network (sim/network): after its fixed part, in which it moves
// nothing, it puts on every link what its flows do, all at once, and advances at its slowest link. Rates are max-min.
// Alone, where every link carries its part in the phase's progress time, it takes exactly that.
#ifndef ORRERY_SIM_COLLECTIVES_CONCURRENT_GROUPS_H_
#define ORRERY_SIM_COLLECTIVES_CONCURRENT_GROUPS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "orrery/v1/cluster.pb.h"
#include "sim/collectives/footprint.h"
#include "sim/collectives/link_loads.h"
#include "sim/collectives/message_flows.h"
#include "sim/collectives/nccl/model.h"
#include "topology/routes.h"

namespace orrery::collectives {

struct GroupPlacement {
  std::int64_t ranks = 1;  // of one group
  std::int64_t nodes = 1;
  std::int64_t groups = 1;
  std::int64_t node_stride = 1;
};

// GPUs of every group. INVALID_ARGUMENT where nodes have different numbers of GPUs, GPUs of a node are no multiple of
// those that a group has there, there are fewer nodes than asked for, or numbers are out of range.
absl::StatusOr<std::vector<RanksByNode>> PlaceGroups(const v1::Cluster& cluster, const GroupPlacement& placement);

// Who takes part in a phase: the ranks of a group, those of each node by themselves, or those of each place in their
// nodes.
enum class Among : std::uint8_t { kGroup, kNode, kRail };

// `fixed` and `progress`: alone, on links that carry the footprint in that time. Among nodes and rails there are
// all-to-alls.
struct Phase {
  Footprint footprint;
  Among among = Among::kGroup;
  Time fixed;
  Time progress;
};

// UNIMPLEMENTED for reductions in network switches.
absl::StatusOr<Phase> PhaseOf(nccl::Operation operation, std::int64_t bytes, const nccl::Price& price,
                              const RanksByNode& group);

struct ConcurrentTimes {
  Time first;  // when the first group has ended, and the last
  Time last;
  // The link that carries most of what it could have carried until `last`, and that share.
  std::optional<topology::LinkId> busiest;
  double utilisation = 0;
};

class ConcurrentGroups {
 public:
  // At most this many ranks where every rank sends to every other one.
  static constexpr std::int64_t kMostPairedRanks = 1024;

  // `routes` must outlive it.
  ConcurrentGroups(const topology::Routes& routes, std::vector<RanksByNode> groups)
      : routes_(routes), groups_(std::move(groups)) {}

  // All groups begin at 0. INVALID_ARGUMENT where that is more than the network can hold.
  absl::StatusOr<ConcurrentTimes> Run(const std::vector<Phase>& phases);

  // In which the first group alone gets a phase's bytes over every link. INVALID_ARGUMENT as above.
  absl::StatusOr<Time> LeastProgress(const Phase& phase);

  const std::vector<RanksByNode>& groups() const { return groups_; }

 private:
  // Of every group.
  absl::StatusOr<const std::vector<LinkLoads>*> LoadsOf(const Phase& phase);

  const topology::Routes& routes_;
  const std::vector<RanksByNode> groups_;
  std::map<std::tuple<nccl::Operation, v1::NcclAlgorithm, Among>, std::vector<LinkLoads>> loads_;
};

}  // namespace orrery::collectives

#endif  // ORRERY_SIM_COLLECTIVES_CONCURRENT_GROUPS_H_
