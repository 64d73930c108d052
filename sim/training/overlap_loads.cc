#include "sim/training/overlap_loads.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "sim/training/pass_prices.h"

namespace orrery::training {
namespace {

using collectives::nccl::Operation;

// Bytes that a rank reads from its memory and has written to it.
double RingTraffic(Operation operation, double bytes, const layout::Placement& group) {
  const auto ranks = static_cast<double>(group.ranks);
  const bool both_ways = operation == Operation::kAllReduce;
  const double received = (both_ways ? 2 : 1) * (ranks - 1) / ranks * bytes;
  const double crossing = group.nodes > 1 ? static_cast<double>(group.nodes) / ranks : 0;
  const double tensors = both_ways ? 2 * bytes : bytes + bytes / ranks;
  return 2 * received + 2 * received * crossing + tensors;
}

std::int64_t ShareOfRate(double share) {
  return std::llround(std::clamp(share, 0.0, 1.0) * static_cast<double>(engine::kWholeRate));
}

// What takes `factor` times as long loses this.
std::int64_t LossOf(double factor) {
  return engine::kWholeRate - std::llround(static_cast<double>(engine::kWholeRate) / factor);
}

}  // namespace

Taken OverlapPricer::Shares(std::int64_t channels, double traffic, double seconds) const {
  const v1::Accelerator& accelerator = run_.cluster().accelerator();
  return {.multiprocessors = static_cast<double>(channels) / static_cast<double>(accelerator.sms()),
          .memory_bandwidth = traffic / (seconds * accelerator.memory_bandwidth())};
}

Taken OverlapPricer::OfCollective(const collectives::Price& price, const layout::Placement& group) const {
  if (run_.simulation().overlap() != v1::DYNAMIC || price.seconds <= 0) return {};
  const collectives::Footprint& footprint = price.footprint;
  const double traffic = RingTraffic(footprint.operation, static_cast<double>(footprint.bytes), group);
  return Shares(price.channels, traffic, price.seconds);
}

Taken OverlapPricer::OfMessage(const collectives::Price& price, bool is_send, bool across_nodes) const {
  if (run_.simulation().overlap() != v1::DYNAMIC || price.seconds <= 0) return {};
  const double copies = is_send && !across_nodes ? 1 : 3;
  return Shares(price.channels, copies * static_cast<double>(price.footprint.bytes), price.seconds);
}

std::int16_t OverlapLoads::IndexOf(const Communication& communication, v1::Axis axis) {
  if (communication.duration == Time()) return -1;
  const std::int64_t multiprocessors = ShareOfRate(communication.taken.multiprocessors);
  const std::int64_t memory = ShareOfRate(communication.taken.memory_bandwidth);
  engine::Load load;
  load.takes[kUpdateMemory] = memory;
  const auto beside = [&](const v1::OverlapRule* rule, KernelKind matrix_kind, KernelKind memory_kind) {
    if (axis != v1::DP || rule == nullptr) {
      load.takes[matrix_kind] = multiprocessors;
      load.takes[memory_kind] = memory;
      return;
    }
    for (const KernelKind kind : {matrix_kind, memory_kind}) {
      load.at_least[kind] = LossOf(rule->compute_factor());
      load.slows[kind] = LossOf(rule->communication_factor());
    }
  };
  beside(forward_, kForwardMatrix, kForwardMemory);
  beside(backward_, kBackwardMatrix, kBackwardMemory);
  if (load == engine::Load()) return -1;
  const auto known = std::find(loads_.begin(), loads_.end(), load);
  if (known != loads_.end()) return static_cast<std::int16_t>(known - loads_.begin());
  ORRERY_CHECK(loads_.size() < static_cast<std::size_t>(std::numeric_limits<std::int16_t>::max()));
  loads_.push_back(load);
  return static_cast<std::int16_t>(loads_.size() - 1);
}

}  // namespace orrery::training
