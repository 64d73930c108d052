#include "sim/collectives/collective_prices.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

#include "base/check.h"

namespace orrery::collectives {
namespace {

using topology::Distance;

std::int64_t CeilLog2(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
}

}  // namespace

CollectivePrices::CollectivePrices(const topology::ClusterGraph& graph, const v1::CollectiveProfile& profile) {
  // A step takes the profile's time, measured over wires of ordinary length, and at least that of the wire at hand.
  const topology::Path same_node = graph.Between(Distance::kSameNode);
  const topology::Path same_leaf = graph.Between(Distance::kSameLeaf);
  const topology::Path other_leaf = graph.Between(Distance::kOtherLeaf);
  const auto intra = [&](const v1::Constant& step) { return std::max(step.value(), same_node.latency_seconds); };
  const auto inter = [&](const v1::Constant& step) { return std::max(step.value(), same_leaf.latency_seconds); };
  protocols_.push_back(
      {profile.base_latency().value(), intra(profile.intra_step_latency()), inter(profile.inter_step_latency()), 1, 1});
  for (const v1::ProtocolProfile& protocol : profile.protocol()) {
    protocols_.push_back({protocol.base_latency().value(), intra(protocol.intra_step_latency()),
                          inter(protocol.inter_step_latency()), protocol.intra_efficiency().value(),
                          protocol.inter_efficiency().value()});
  }
  fill_bytes_ = profile.fill_bytes().value();
  tree_efficiency_ = profile.tree_efficiency().value();
  gpus_per_node_ = graph.gpus_per_node();
  nodes_per_leaf_ = graph.nodes_per_leaf();
  ring_nvlink_ = graph.NvlinkBandwidth().count() * profile.ring_efficiency().value();
  nic_share_ = graph.NodeNetworkBandwidth().count() / static_cast<double>(gpus_per_node_);
  const double nic = graph.NicBandwidth().count();
  uplink_ratio_ = std::min(1.0, other_leaf.bandwidth.count() / nic);
  crossing_latency_ = std::max(0.0, other_leaf.latency_seconds - same_leaf.latency_seconds);

  // A pair of GPUs does not use more than one NIC, nor more than its share of it.
  const double start = profile.message_latency().value();
  const double nics_per_gpu = static_cast<double>(graph.nics_per_node()) / static_cast<double>(gpus_per_node_);
  const double nic_message = graph.NicMessageBandwidth().count() * std::min(1.0, nics_per_gpu);
  message_start_[0] = start + intra(profile.intra_step_latency());
  message_start_[1] = start + inter(profile.inter_step_latency());
  message_start_[2] = message_start_[1] + crossing_latency_;
  message_bandwidth_[0] = graph.NvlinkMessageBandwidth().count() * profile.nvlink_message_efficiency().value();
  message_bandwidth_[1] = nic_message;
  message_bandwidth_[2] = nic_message * uplink_ratio_;
}

double CollectivePrices::RingBandwidth(const layout::Placement& group) const {
  const double nvlink = group.max_ranks_per_node > 1 ? ring_nvlink_ : std::numeric_limits<double>::infinity();
  if (group.nodes == 1) return nvlink;
  double network = nic_share_ * static_cast<double>(group.min_ranks_per_node);
  if (group.leaves > 1) {
    const double nodes_per_leaf = static_cast<double>(group.nodes) / static_cast<double>(group.leaves);
    network *= std::min(1.0, nodes_per_leaf * uplink_ratio_);
  }
  return std::min(nvlink, network);
}

double CollectivePrices::Fill(double steps, double chunk, double bandwidth) const {
  return steps * std::min(chunk / 2, fill_bytes_ * bandwidth / ring_nvlink_);
}

CollectivePrices::Work CollectivePrices::Ring(CollectiveType type, double bytes, const layout::Placement& group) const {
  const auto ranks = static_cast<double>(group.ranks);
  const auto nodes = static_cast<double>(group.nodes);
  const double rounds = type == CollectiveType::kAllReduce ? 2 : 1;
  const double chunk = type == CollectiveType::kBroadcast ? bytes : bytes / ranks;
  const double steps = rounds * (ranks - 1);
  Work work;
  work.inter_steps = rounds * (nodes - 1);
  work.intra_steps = steps - work.inter_steps;
  if (group.leaves > 1) work.crossing_steps = work.inter_steps * static_cast<double>(group.leaves) / nodes;
  work.bandwidth = RingBandwidth(group);
  work.moved = type == CollectiveType::kBroadcast ? bytes : steps * chunk;
  work.fill = Fill(steps, chunk, work.bandwidth);
  return work;
}

CollectivePrices::Work CollectivePrices::Tree(double bytes, const layout::Placement& group) const {
  Work work;
  work.inter_steps = 2 * static_cast<double>(CeilLog2(group.nodes));
  work.intra_steps = 2 * static_cast<double>(group.max_ranks_per_node - 1);
  work.crossing_steps = 2 * static_cast<double>(CeilLog2(group.leaves));
  work.bandwidth = RingBandwidth(group) * tree_efficiency_;
  work.moved = 2 * bytes;
  work.fill = Fill(work.inter_steps + work.intra_steps, bytes, work.bandwidth);
  return work;
}

Price CollectivePrices::Cheapest(const Work& work, bool across_nodes) const {
  Price best{.seconds = std::numeric_limits<double>::infinity()};
  for (const Protocol& protocol : protocols_) {
    const double bandwidth = work.bandwidth * (across_nodes ? protocol.inter_efficiency : protocol.intra_efficiency);
    const double seconds = protocol.base + work.intra_steps * protocol.intra + work.inter_steps * protocol.inter +
                           work.crossing_steps * crossing_latency_ + (work.moved + work.fill) / bandwidth;
    if (seconds < best.seconds) best = {.seconds = seconds, .progress = work.moved / bandwidth};
  }
  return best;
}

Price CollectivePrices::PriceOf(CollectiveType type, Bytes bytes, const layout::Placement& group) const {
  ORRERY_CHECK(bytes.count() >= 0 && group.ranks >= 1 && group.nodes >= 1);
  if (group.ranks == 1 || bytes.count() == 0) return {};
  const auto size = static_cast<double>(bytes.count());
  const Price ring = Cheapest(Ring(type, size, group), group.nodes > 1);
  if (type != CollectiveType::kAllReduce) return ring;
  const Price tree = Cheapest(Tree(size, group), group.nodes > 1);
  return tree.seconds < ring.seconds ? tree : ring;
}

std::size_t CollectivePrices::DistanceOf(std::int64_t from_rank, std::int64_t to_rank) const {
  const std::int64_t from = from_rank / gpus_per_node_;
  const std::int64_t to = to_rank / gpus_per_node_;
  return from == to ? 0 : from / nodes_per_leaf_ == to / nodes_per_leaf_ ? 1 : 2;
}

double CollectivePrices::MessageBandwidth(std::int64_t from_rank, std::int64_t to_rank) const {
  return message_bandwidth_[DistanceOf(from_rank, to_rank)];
}

Price CollectivePrices::MessagePrice(Bytes bytes, std::int64_t from_rank, std::int64_t to_rank) const {
  ORRERY_CHECK(bytes.count() >= 0 && from_rank >= 0 && to_rank >= 0);
  if (from_rank == to_rank) return {};
  const std::size_t distance = DistanceOf(from_rank, to_rank);
  const double progress = static_cast<double>(bytes.count()) / message_bandwidth_[distance];
  return {.seconds = message_start_[distance] + progress, .progress = progress};
}

}  // namespace orrery::collectives
