#include "sim/collectives/collective_prices.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "sim/collectives/node_links.h"

namespace orrery::collectives {

CollectivePrices::CollectivePrices(const v1::Cluster& cluster, const v1::NcclVersion& nccl, nccl::Twins twins)
    : cluster_(cluster), nccl_(nccl), twins_(twins) {}

CollectivePrices::Priced& CollectivePrices::At(const layout::Placement& group) const {
  const auto [found, added] = groups_.try_emplace(group);
  Priced& priced = found->second;
  if (!added) return priced;
  const absl::StatusOr<nccl::Communicator> comm = CommunicatorOn(cluster_, group, twins_);
  if (comm.ok()) {
    priced.model =
        std::make_unique<nccl::Model>(*comm, nccl_, cluster_.accelerator().nccl_times(), nccl::ModelOptions());
  } else {
    status_.Update(comm.status());
  }
  return priced;
}

Price CollectivePrices::PriceOf(nccl::Operation operation, Bytes bytes, const layout::Placement& group) const {
  ORRERY_CHECK(bytes.count() >= 0 && group.ranks >= 1 && group.nodes >= 1);
  if (group.ranks == 1 || bytes.count() == 0) return {};
  Priced& priced = At(group);
  const auto [known, added] = priced.prices.try_emplace({operation, bytes.count()});
  if (!added || priced.model == nullptr) return known->second;
  const absl::StatusOr<nccl::Price> price = priced.model->PriceOf(operation, bytes.count());
  if (!price.ok()) {
    status_.Update(price.status());
    return {};
  }
  return known->second = {.seconds = SecondsFromTime(price->total()),
                          .progress = SecondsFromTime(price->progress),
                          .footprint = {.operation = operation, .variant = price->variant, .bytes = bytes.count()},
                          .channels = price->channels};
}

Price CollectivePrices::MessagePrice(Bytes bytes, std::int64_t from_rank, std::int64_t to_rank) const {
  ORRERY_CHECK(bytes.count() >= 0 && from_rank >= 0 && to_rank >= 0);
  if (from_rank == to_rank) return {};
  const std::int64_t gpus_per_node = cluster_.node().gpus();
  const std::int64_t nodes_per_leaf = std::max<std::int64_t>(1, cluster_.fabric().nodes_per_leaf());
  const std::int64_t from = from_rank / gpus_per_node;
  const std::int64_t to = to_rank / gpus_per_node;
  if (from == to) {
    return PriceOf(nccl::Operation::kSendRecv, bytes, {.ranks = 2, .max_ranks_per_node = 2, .min_ranks_per_node = 2});
  }
  return PriceOf(nccl::Operation::kSendRecv, bytes,
                 {.ranks = 2, .nodes = 2, .leaves = from / nodes_per_leaf == to / nodes_per_leaf ? 1 : 2});
}

}  // namespace orrery::collectives
