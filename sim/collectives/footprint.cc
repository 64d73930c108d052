#include "sim/collectives/footprint.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "sim/collectives/message_flows.h"
#include "sim/collectives/nccl/node_edges.h"
#include "sim/collectives/nccl/time.h"

namespace orrery::collectives {
namespace {

using nccl::Operation;
using Nodes = std::vector<std::vector<std::int64_t>>;

// Ranks of the emptiest node.
std::int64_t LeastRanks(const Nodes& nodes) {
  std::size_t least = nodes.front().size();
  for (const std::vector<std::int64_t>& ranks : nodes) least = std::min(least, ranks.size());
  return static_cast<std::int64_t>(least);
}

class FlowBuilder {
 public:
  FlowBuilder(const Footprint& footprint, const Nodes& nodes)
      : footprint_(footprint), nodes_(nodes), rails_(LeastRanks(nodes)) {}

  std::vector<Flow> Build() {
    switch (footprint_.variant.algorithm) {
      case v1::RING:
        Rings();
        break;
      case v1::TREE:
        for (const std::vector<std::int64_t>& ranks : nodes_) Chain(ranks);
        Trees(1, 1);
        break;
      case v1::NVLS:
        for (const std::vector<std::int64_t>& ranks : nodes_) Loop(ranks, 1, 1);
        break;
      case v1::NVLS_TREE: {
        for (const std::vector<std::int64_t>& ranks : nodes_) Ports(ranks);
        // S over the network, of (1 + 1 / g) S that ports see.
        Trees(rails_, rails_ + 1);
        break;
      }
      case v1::PAT:
        Distances();
        break;
      default:
        ORRERY_CHECK(false);
    }
    return std::move(flows_);
  }

 private:
  void Add(std::int64_t from, std::int64_t to, std::int64_t rail, std::int64_t numerator, std::int64_t denominator) {
    flows_.push_back({.from = from, .to = to, .rail = rail, .numerator = numerator, .denominator = denominator});
  }

  void Loop(const std::vector<std::int64_t>& ranks, std::int64_t numerator, std::int64_t denominator) {
    if (ranks.size() < 2) return;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      Add(ranks[i], ranks[(i + 1) % ranks.size()], 0, numerator, denominator);
    }
  }

  // (1 + 1 / g) S, of what the ports of the emptiest node see.
  void Ports(const std::vector<std::int64_t>& ranks) {
    const auto local = static_cast<std::int64_t>(ranks.size());
    if (local == rails_) return Loop(ranks, 1, 1);
    Loop(ranks, (local + 1) * rails_, local * (rails_ + 1));
  }

  void Chain(const std::vector<std::int64_t>& ranks) {
    for (std::size_t i = 0; i + 1 < ranks.size(); ++i) {
      Add(ranks[i], ranks[i + 1], 0, 1, 1);
      Add(ranks[i + 1], ranks[i], 0, 1, 1);
    }
  }

  // From the ranks of a node to those of another, rail by rail: as many channels of the same width as the emptiest node
  // has ranks with a NIC for them.
  void Between(const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to, std::int64_t numerator,
               std::int64_t denominator) {
    for (std::int64_t rail = 0; rail < rails_; ++rail) {
      const auto place = static_cast<std::size_t>(rail);
      Add(from[place], to[place], rail, numerator, denominator * rails_);
    }
  }

  void Rings() {
    const bool several = nodes_.size() > 1;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const auto local = static_cast<std::int64_t>(nodes_[n].size());
      Loop(nodes_[n], several ? local - 1 : 1, several ? local : 1);
      if (several) Between(nodes_[n], nodes_[(n + 1) % nodes_.size()], 1, 1);
    }
  }

  void Trees(std::int64_t numerator, std::int64_t denominator) {
    const auto edge = [&](std::int64_t a, std::int64_t b) {
      Between(nodes_[static_cast<std::size_t>(a)], nodes_[static_cast<std::size_t>(b)], numerator, 2 * denominator);
      Between(nodes_[static_cast<std::size_t>(b)], nodes_[static_cast<std::size_t>(a)], numerator, 2 * denominator);
    };
    nccl::ForEachTreeEdge(static_cast<std::int64_t>(nodes_.size()), edge);
  }

  void Distances() {
    const auto count = static_cast<std::int64_t>(nodes_.size());
    nccl::ForEachPatMessage(count, [&](std::int64_t from, std::int64_t to, std::int64_t share) {
      Between(nodes_[static_cast<std::size_t>(from)], nodes_[static_cast<std::size_t>(to)], share, count - 1);
    });
  }

  const Footprint& footprint_;
  const Nodes& nodes_;
  const std::int64_t rails_;
  std::vector<Flow> flows_;
};

}  // namespace

std::vector<Flow> FlowsOf(const Footprint& footprint, const Nodes& nodes) {
  if (footprint.operation == Operation::kAllToAll) return AllToAllFlows(nodes);
  if (footprint.operation == Operation::kSendRecv) return SendRecvFlows(nodes);
  return FlowBuilder(footprint, nodes).Build();
}

double MovedBy(const Footprint& footprint, const Nodes& nodes) {
  if (footprint.operation == Operation::kAllToAll || footprint.operation == Operation::kSendRecv) {
    return static_cast<double>(footprint.bytes) * nccl::Wire(footprint.variant.protocol);
  }
  double ranks = 0;
  for (const std::vector<std::int64_t>& of_node : nodes) ranks += static_cast<double>(of_node.size());
  return nccl::MovedBytes(footprint.operation, footprint.variant, static_cast<double>(footprint.bytes), ranks,
                          static_cast<double>(LeastRanks(nodes)));
}

}  // namespace orrery::collectives
