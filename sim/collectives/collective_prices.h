// How long the collectives and messages of a run take: NCCL's choice and time (sim/collectives/nccl) for the placements
// of its groups.
#ifndef ORRERY_SIM_COLLECTIVES_COLLECTIVE_PRICES_H_
#define ORRERY_SIM_COLLECTIVES_COLLECTIVE_PRICES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "base/units.h"
#include "orrery/v1/cluster.pb.h"
#include "orrery/v1/nccl.pb.h"
#include "sim/collectives/footprint.h"
#include "sim/collectives/nccl/model.h"
#include "sim/layout/layout.h"

namespace orrery::collectives {

// Seconds of a collective or message alone, and the last part of them in which it moves its bytes; the rest is launch
// and latency.
struct Price {
  double seconds = 0;
  double progress = 0;
  Footprint footprint;
  std::int64_t channels = 0;  // multiprocessors of its kernel
};

// Remembers what it has priced: not for several threads.
class CollectivePrices {
 public:
  // `cluster` and `nccl` must be resolved and outlive the prices. Twins::kIdle where sharing is worked out on the
  // graph.
  CollectivePrices(const v1::Cluster& cluster, const v1::NcclVersion& nccl, nccl::Twins twins);

  // Of a collective over one group. 0 for one rank and for no bytes, and where status() is not OK. `bytes` is the full
  // tensor: what all-reduce holds on every rank, all-gather's output, reduce-scatter's input.
  Price PriceOf(nccl::Operation operation, Bytes bytes, const layout::Placement& group) const;
  double Seconds(nccl::Operation operation, Bytes bytes, const layout::Placement& group) const {
    return PriceOf(operation, bytes, group).seconds;
  }

  // A message of `bytes` between two ranks; 0 between a rank and itself. Every GPU of the node may send at the same
  // time, unless twins are idle.
  Price MessagePrice(Bytes bytes, std::int64_t from_rank, std::int64_t to_rank) const;
  double MessageSeconds(Bytes bytes, std::int64_t from_rank, std::int64_t to_rank) const {
    return MessagePrice(bytes, from_rank, to_rank).seconds;
  }

  // INVALID_ARGUMENT where something had no price: what nccl::Model says, or a cluster that says too little.
  const absl::Status& status() const { return status_; }

 private:
  struct Priced {
    std::unique_ptr<nccl::Model> model;  // none where the cluster says too little
    std::map<std::pair<nccl::Operation, std::int64_t>, Price> prices;
  };
  Priced& At(const layout::Placement& group) const;

  const v1::Cluster& cluster_;
  const v1::NcclVersion& nccl_;
  const nccl::Twins twins_;
  mutable std::map<layout::Placement, Priced> groups_;
  mutable absl::Status status_;
};

}  // namespace orrery::collectives

#endif  // ORRERY_SIM_COLLECTIVES_COLLECTIVE_PRICES_H_
