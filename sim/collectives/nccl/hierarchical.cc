#include "sim/collectives/nccl/hierarchical.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace orrery::collectives::nccl {
namespace {

Communicator InsideNode(Communicator comm) {
  comm.ranks = comm.ranks_per_node;
  comm.nodes = 1;
  comm.leaves = 1;
  comm.nodes_per_leaf = 1;
  comm.node_seconds.all_to_all = comm.node_seconds.inside_nodes;
  return comm;
}

// The ranks of one place, while those of all others do the same: a rank has its share of the node's NICs.
Communicator BetweenNodes(Communicator comm) {
  const double nics = static_cast<double>(comm.nics) / static_cast<double>(comm.ranks_per_node);
  comm.ranks = comm.nodes;
  comm.nics = std::max<std::int64_t>(1, comm.nics / comm.ranks_per_node);
  comm.nic_bandwidth = comm.nic_bandwidth * std::min(1.0, nics);
  comm.uplink_bandwidth = comm.uplink_bandwidth * std::min(1.0, nics);
  comm.ranks_per_node = 1;
  comm.node_seconds.all_to_all = comm.node_seconds.on_rails;
  return comm;
}

Views Each(Communicator (*phase)(Communicator), const Views& views) {
  Views seen;
  for (const Communicator& view : views) seen.push_back(phase(view));
  return seen;
}

ModelOptions Limited(const ChannelLimits& channels) {
  ModelOptions options;
  options.channels = channels;
  return options;
}

}  // namespace

Price TwoPhasePrice::Sum() const {
  Price sum = inside;
  if (between.total() == Time()) return sum;
  sum.variant = between.variant;
  sum.channels = std::max(inside.channels, between.channels);
  sum.fixed += between.fixed;
  sum.progress += between.progress;
  sum.bytes.nic = between.bytes.nic;
  sum.bytes.uplink = between.bytes.uplink;
  return sum;
}

HierarchicalAllToAll::HierarchicalAllToAll(const Views& views, const v1::NcclVersion& version,
                                           const v1::NcclTimes& times, const ChannelLimits& channels)
    : inside_(Each(InsideNode, views), version, times, Limited(channels)),
      between_(Each(BetweenNodes, views), version, times, Limited(channels)) {
  for (const Communicator& comm : views) {
    if (comm.ranks == comm.nodes * comm.ranks_per_node) continue;
    status_ = absl::InvalidArgumentError(absl::StrCat("hierarchical all-to-all: ", comm.ranks, " ranks on ", comm.nodes,
                                                      " nodes; allowed: as many on every node"));
  }
}

absl::StatusOr<TwoPhasePrice> HierarchicalAllToAll::PriceOf(std::int64_t bytes) const {
  ABSL_RETURN_IF_ERROR(status_);
  TwoPhasePrice price;
  ABSL_ASSIGN_OR_RETURN(price.inside, inside_.PriceOf(Operation::kAllToAll, bytes));
  ABSL_ASSIGN_OR_RETURN(price.between, between_.PriceOf(Operation::kAllToAll, bytes));
  return price;
}

}  // namespace orrery::collectives::nccl
