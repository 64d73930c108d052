#include "sim/collectives/expert_exchange.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace orrery::collectives {
namespace {

// The exchange with what follows from it.
struct Shape {
  double nodes = 1;  // N
  double ranks = 1;  // n
  double limit = 1;  // G
  double pool = 1;   // P
  double experts_per_node = 1;
  double experts_per_rank = 1;
  double bytes = 0;  // B
};

absl::StatusOr<Shape> ShapeOf(const ExpertExchange& exchange, const ExpertRanks& ranks) {
  const auto refuse = [](const auto&... words) { return absl::InvalidArgumentError(absl::StrCat(words...)); };
  if (exchange.tokens < 1 || exchange.hidden < 1 || !(exchange.element_bytes > 0) || exchange.top_k < 1) {
    return refuse("expert exchange: tokens, hidden, bytes per element and top-k: found ", exchange.tokens, ", ",
                  exchange.hidden, ", ", exchange.element_bytes, ", ", exchange.top_k, "; allowed: above 0");
  }
  if (ranks.ranks < 1 || ranks.ranks_per_node < 1 ||
      (ranks.ranks > ranks.ranks_per_node && ranks.ranks % ranks.ranks_per_node != 0)) {
    return refuse("expert exchange: found ", ranks.ranks, " ranks; allowed: up to one node of ", ranks.ranks_per_node,
                  ", or a multiple");
  }
  if (!(ranks.nvlink.count() > 0) || !(ranks.nic.count() > 0)) {
    return refuse("expert exchange: bandwidths of NVLink and NIC: found ", ranks.nvlink.count(), " and ",
                  ranks.nic.count(), " bytes/s; allowed: above 0");
  }
  if (exchange.experts < 1 || exchange.experts % ranks.ranks != 0) {
    return refuse("expert exchange: found ", exchange.experts, " experts; allowed: a multiple of ", ranks.ranks,
                  " ranks");
  }
  if (ranks.leaving_leaf > 0 && !(ranks.uplink.count() > 0)) {
    return refuse("expert exchange: bandwidth above the leaf: found ", ranks.uplink.count(),
                  " bytes/s; allowed: above 0");
  }
  if (exchange.max_nodes < 0) {
    return refuse("expert exchange: nodes per token: found ", exchange.max_nodes, "; allowed: from 0 (any)");
  }
  if (!(exchange.imbalance >= 1) || std::isinf(exchange.imbalance)) {
    return refuse("expert exchange: imbalance: found ", exchange.imbalance, "; allowed: from 1");
  }
  const std::int64_t nodes = std::max<std::int64_t>(1, ranks.ranks / ranks.ranks_per_node);
  const std::int64_t limit = exchange.max_nodes == 0 ? nodes : std::min(exchange.max_nodes, nodes);
  const std::int64_t pool = limit * (exchange.experts / nodes);
  if (exchange.top_k > pool) {
    return refuse("expert exchange: found top-k ", exchange.top_k, "; allowed: up to the ", pool, " experts on ", limit,
                  " nodes");
  }
  Shape shape;
  shape.nodes = static_cast<double>(nodes);
  shape.ranks = static_cast<double>(ranks.ranks);
  shape.limit = static_cast<double>(limit);
  shape.pool = static_cast<double>(pool);
  const std::int64_t per_node = exchange.experts / nodes;
  const std::int64_t per_rank = exchange.experts / ranks.ranks;
  shape.experts_per_node = static_cast<double>(per_node);
  shape.experts_per_rank = static_cast<double>(per_rank);
  shape.bytes = static_cast<double>(exchange.tokens) * static_cast<double>(exchange.hidden) * exchange.element_bytes;
  return shape;
}

// Chance that none of a token's experts is in a set of `size` of the pool.
double Miss(const Shape& shape, double size, std::int64_t top_k) {
  double miss = 1;
  for (std::int64_t i = 0; i < top_k; ++i) {
    const auto drawn = static_cast<double>(i);
    miss *= std::max(0.0, shape.pool - size - drawn) / (shape.pool - drawn);
  }
  return miss;
}

ExpertTraffic ReachOf(const Shape& shape, std::int64_t top_k) {
  ExpertTraffic traffic;
  traffic.nodes = shape.limit * (1 - Miss(shape, shape.experts_per_node, top_k));
  traffic.ranks = shape.limit * (shape.ranks / shape.nodes) * (1 - Miss(shape, shape.experts_per_rank, top_k));
  return traffic;
}

// `logical_bytes` are those that DeepEP would divide by the time.
ExpertTime Priced(const ExpertTraffic& traffic, double seconds, double logical_bytes) {
  const BytesPerSecond logical(seconds > 0 ? logical_bytes / seconds : 0);
  return {.seconds = seconds, .traffic = traffic, .logical_bandwidth = logical};
}

// Seconds that the network takes for what a rank sends into it.
double OnNetwork(const ExpertTraffic& traffic, const ExpertRanks& ranks) {
  const double nic = traffic.nic_bytes / ranks.nic.count();
  return traffic.uplink_bytes > 0 ? std::max(nic, traffic.uplink_bytes / ranks.uplink.count()) : nic;
}

}  // namespace

absl::StatusOr<ExpertTime> ThroughputExchange(const ExpertExchange& exchange, const ExpertRanks& ranks,
                                              const v1::ExpertTransport& transport) {
  ABSL_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(exchange, ranks));
  ExpertTraffic traffic = ReachOf(shape, exchange.top_k);
  const double copies = shape.bytes * traffic.ranks;
  traffic.nic_bytes = shape.bytes * traffic.nodes * (shape.nodes - 1) / shape.nodes;
  traffic.uplink_bytes = shape.bytes * traffic.nodes * ranks.leaving_leaf;
  // A copy that crossed the network ends on its rank with one chance in those of the node, as does one that did not.
  traffic.nvlink_bytes = copies * (1 - shape.nodes / shape.ranks);
  const double moved_per_second =
      std::min(ranks.nvlink.count(), transport.sms().value() * transport.bandwidth_per_sm().value());
  const double slowest = std::max(OnNetwork(traffic, ranks), copies / moved_per_second);
  return Priced(traffic, transport.start_latency().value() + exchange.imbalance * slowest,
                shape.bytes * (shape.nodes > 1 ? traffic.nodes : traffic.ranks));
}

absl::StatusOr<ExpertTime> LowLatencyExchange(const ExpertExchange& exchange, const ExpertRanks& ranks,
                                              const v1::ExpertTransport& transport) {
  ABSL_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(exchange, ranks));
  ExpertTraffic traffic = ReachOf(shape, exchange.top_k);
  const double copies = shape.bytes * static_cast<double>(exchange.top_k);
  traffic.nic_bytes = copies * (shape.nodes - 1) / shape.nodes;
  traffic.uplink_bytes = copies * ranks.leaving_leaf;
  traffic.nvlink_bytes = copies * (1 / shape.nodes - 1 / shape.ranks);
  const double slowest = std::max(OnNetwork(traffic, ranks), traffic.nvlink_bytes / ranks.nvlink.count());
  return Priced(traffic, transport.low_latency_start().value() + exchange.imbalance * slowest, copies);
}

absl::StatusOr<std::int64_t> AllToAllBytes(const ExpertExchange& exchange, const ExpertRanks& ranks) {
  ABSL_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(exchange, ranks));
  const double bytes = exchange.imbalance * shape.bytes * static_cast<double>(exchange.top_k);
  constexpr double kMost = 1e15;
  if (!(bytes <= kMost)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expert exchange: found ", bytes, " bytes of a rank; allowed: up to ", kMost));
  }
  return static_cast<std::int64_t>(std::ceil(bytes));
}

absl::StatusOr<ExpertTime> AllToAllTime(const ExpertExchange& exchange, const ExpertRanks& ranks, double seconds) {
  ABSL_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(exchange, ranks));
  ExpertTraffic traffic = ReachOf(shape, exchange.top_k);
  const double copies = shape.bytes * static_cast<double>(exchange.top_k);
  traffic.nic_bytes = copies * (shape.nodes - 1) / shape.nodes;
  traffic.uplink_bytes = copies * ranks.leaving_leaf;
  // Forwarded over NVLink to the rail that it leaves by, or straight to a rank of the node: but for its own rail.
  traffic.nvlink_bytes = copies * (1 - shape.nodes / shape.ranks);
  return Priced(traffic, seconds, copies);
}

}  // namespace orrery::collectives
