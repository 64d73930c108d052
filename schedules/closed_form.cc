#include "schedules/closed_form.h"

#include <algorithm>
#include <array>
#include <utility>

#include "schedules/families.h"

namespace orrery::schedules {
namespace {

bool IsLegal(std::string_view family, const Parameters& parameters) {
  const auto found = FindFamily(family);
  return found.ok() && (*found)->check(parameters).ok();
}

std::int64_t Pipelines(const Parameters& parameters) { return parameters.pipelines == 0 ? 2 : parameters.pipelines; }

// N, with each family's default.
std::int64_t GroupSize(std::string_view family, const Parameters& parameters) {
  const std::int32_t m = parameters.micro_batches;
  if (family == kInterleavedTorch.name || family == kInterleavedZb.name) return m / std::max(1, m / parameters.ranks);
  if (family == kGrouped.name) return parameters.group_size == 0 ? parameters.ranks : parameters.group_size;
  return InterleavedGroupSize(parameters);
}

// Messages that lie on the critical path; nullopt outside the ranges of the header.
std::optional<std::int64_t> InterleavedExposed(const Parameters& parameters, std::int64_t n,
                                               const UniformCosts& costs) {
  const std::int64_t p = parameters.ranks;
  const std::int64_t v = parameters.chunks;
  const Time shortest = std::min(costs.forward, costs.backward);
  const Time zero;
  const std::int64_t ends = 2 * (p - 1);
  if (costs.latency == zero) return 0;
  if (costs.latency > shortest) return std::nullopt;
  if (v == 1) return ends;
  if (n <= p) return 2 * (p * v - 1);
  const std::int64_t rest = parameters.micro_batches % n;
  if (costs.latency * p > shortest * (n - p)) return std::nullopt;
  if (rest == p) return ends + (v - 1) * p;
  if (rest > 0 && costs.latency * p > shortest * (rest - p)) return std::nullopt;
  return ends;
}

// Chunk after chunk, each direction is a flow shop of equal stages: what returns to rank 0 waits for it, or it for
// that.
Time LoopedMakespan(const Parameters& parameters, const UniformCosts& costs) {
  const std::int64_t p = parameters.ranks;
  const Time latency = p == 1 ? Time() : costs.latency;
  Time makespan;
  for (const Time pass : {costs.forward, costs.backward}) {
    const Time all = pass * parameters.micro_batches;
    makespan += std::max(all, (pass + latency) * p) * (parameters.chunks - 1) + (pass + latency) * (p - 1) + all;
  }
  return makespan;
}

using IdleForm = std::optional<std::int64_t> (*)(const Parameters& parameters, const ChunkCosts& costs);

std::optional<std::int64_t> If(bool holds, std::int64_t value) { return holds ? std::optional(value) : std::nullopt; }

bool AreEqual(const PassCosts& c) { return c.forward == c.input_gradient && c.forward == c.weight_gradient; }

std::int64_t BlockOf(const ChunkCosts& costs) {
  return costs.block.value_or(costs.passes.forward + costs.passes.backward());
}

bool BlocksOverlapNothing(const ChunkCosts& costs) {
  return costs.latency == 0 && BlockOf(costs) == costs.passes.forward + costs.passes.backward();
}

std::optional<std::int64_t> FusedIdle(const Parameters& parameters, const ChunkCosts& costs) {
  const std::int64_t p = parameters.ranks;
  const std::int64_t hops = p - 1 + (parameters.chunks - 1) * std::max<std::int64_t>(p - parameters.micro_batches, 0);
  return If(BlocksOverlapNothing(costs), hops * BlockOf(costs));
}

std::optional<std::int64_t> SlicedIdle(const Parameters& parameters, const ChunkCosts& costs) {
  return If(costs.latency == 0, (parameters.ranks - 1) * (costs.passes.forward + costs.passes.backward()));
}

std::optional<std::int64_t> GroupedIdle(const Parameters& parameters, const ChunkCosts& costs) {
  const std::int64_t p = parameters.ranks;
  const std::int64_t m = parameters.micro_batches;
  const std::int64_t n = GroupSize(kGrouped.name, parameters);
  const PassCosts& c = costs.passes;
  if (costs.latency > 0 || m % n != 0 || (n < p && !AreEqual(c))) return std::nullopt;
  return (p - 1) * (c.forward + c.input_gradient) + (parameters.chunks - 1) * (p - n) * c.forward;
}

std::optional<std::int64_t> ZbH1Idle(const Parameters& parameters, const ChunkCosts& costs) {
  const std::int64_t p = parameters.ranks;
  const std::int64_t m = parameters.micro_batches;
  const auto& [f, i, w] = costs.passes;
  if (w > std::min(f, i)) return std::nullopt;
  const bool hidden = m > p && p > 1 && parameters.chunks == 1 && 2 * costs.latency <= w;
  return If(costs.latency == 0 || hidden, (p - 1) * (f + i + 4 * costs.latency) - (std::min(p, m) - 1) * w);
}

std::optional<std::int64_t> InterleavedZbIdle(const Parameters& parameters, const ChunkCosts& costs) {
  if (parameters.chunks > 1 && parameters.micro_batches < parameters.ranks) return std::nullopt;
  return ZbH1Idle(parameters, costs);
}

std::optional<std::int64_t> ZbH2Idle(const Parameters& parameters, const ChunkCosts& costs) {
  const std::int64_t p = parameters.ranks;
  const auto& [f, i, w] = costs.passes;
  if (w > std::min(f, i) || parameters.micro_batches < 2 * p - 1) return std::nullopt;
  const bool hidden = AreEqual(costs.passes) && costs.latency <= f;
  return If(costs.latency == 0 || hidden, (p - 1) * (std::max(f, f + i - 2 * w) + costs.latency));
}

std::optional<std::int64_t> ZbVIdle(const Parameters& parameters, const ChunkCosts& costs) {
  const std::int64_t p = parameters.ranks;
  const auto& [f, i, w] = costs.passes;
  const bool holds = costs.latency == 0 && w <= f && f <= i && parameters.micro_batches >= 2 * p - 1;
  return If(holds, (p - 1) * std::max(i, 2 * (i - w)));
}

std::optional<std::int64_t> VHalfIdle(const Parameters& parameters, const ChunkCosts& costs) {
  const std::int64_t p = parameters.ranks;
  const bool holds = costs.latency == 0 && AreEqual(costs.passes) && p >= 3 && parameters.micro_batches >= 2 * p;
  return If(holds, (3 * p - (p % 2 == 0 ? 7 : 4)) * costs.passes.forward);
}

std::optional<std::int64_t> VMinIdle(const Parameters& parameters, const ChunkCosts& costs) {
  const std::int64_t p = parameters.ranks;
  const bool holds = costs.latency == 0 && AreEqual(costs.passes) && p >= 2 && parameters.micro_batches >= 2 * p;
  return If(holds, (4 * p - (p % 3 == 0 ? 7 : 5)) * costs.passes.forward);
}

// `arm`: ranks from where a direction enters to where it turns or meets the other.
std::optional<std::int64_t> DualIdle(std::int64_t arm, const ChunkCosts& costs) {
  const auto& [f, i, w] = costs.passes;
  return If(costs.latency == 0 && w <= i && i <= f, (arm - 1) * (BlockOf(costs) + f - 2 * w));
}

std::optional<std::int64_t> DualPipeIdle(const Parameters& parameters, const ChunkCosts& costs) {
  return DualIdle(parameters.ranks / 2, costs);
}

std::optional<std::int64_t> DualPipeVIdle(const Parameters& parameters, const ChunkCosts& costs) {
  return DualIdle(parameters.ranks, costs);
}

std::optional<std::int64_t> ChimeraIdle(const Parameters& parameters, const ChunkCosts& costs) {
  const std::int64_t f = costs.passes.forward;
  const std::int64_t b = costs.passes.backward();
  const bool holds = costs.latency == 0 && (parameters.micro_batches == parameters.ranks || f == b);
  return If(holds, 2 * (parameters.ranks / Pipelines(parameters) - 1) * std::max(f, b));
}

constexpr std::array<std::pair<std::string_view, IdleForm>, 13> kIdleForms = {{{"1f1b-overlap", &FusedIdle},
                                                                               {"combined-1f1b", &FusedIdle},
                                                                               {"seq1f1b", &SlicedIdle},
                                                                               {"grouped-1f1b", &GroupedIdle},
                                                                               {"interleaved-zb", &InterleavedZbIdle},
                                                                               {"zb-h1", &ZbH1Idle},
                                                                               {"zb-h2", &ZbH2Idle},
                                                                               {"zb-v", &ZbVIdle},
                                                                               {"v-half", &VHalfIdle},
                                                                               {"v-min", &VMinIdle},
                                                                               {"dualpipe", &DualPipeIdle},
                                                                               {"dualpipe-v", &DualPipeVIdle},
                                                                               {"chimera", &ChimeraIdle}}};

}  // namespace

std::optional<Time> ClosedFormMakespan(std::string_view family, const Parameters& parameters,
                                       const UniformCosts& costs) {
  if (!IsLegal(family, parameters)) return std::nullopt;
  const std::int64_t p = parameters.ranks;
  const std::int64_t v = parameters.chunks;
  const std::int64_t m = parameters.micro_batches;
  const Time both = costs.forward + costs.backward;
  if (family == kGpipe.name) return both * (m + p - 1) + costs.latency * (2 * (p - 1));
  if (family == kOneForwardOneBackward.name) {
    return both * (m + p - 1) + costs.latency * (2 * (p - 2 + m - (m + p - 2) / p));
  }
  if (family == kLoopedBfs.name) return LoopedMakespan(parameters, costs);
  if (family != kInterleaved.name && family != kInterleavedTorch.name) return std::nullopt;
  if (p == 1) return both * (m * v);
  const std::optional<std::int64_t> exposed = InterleavedExposed(parameters, GroupSize(family, parameters), costs);
  if (!exposed.has_value()) return std::nullopt;
  const std::int64_t idle = p - 1 + (v - 1) * std::max<std::int64_t>(p - m, 0);
  return both * (m * v + idle) + costs.latency * *exposed;
}

std::optional<std::int64_t> ClosedFormUnevenMakespan(std::string_view family, const Parameters& parameters,
                                                     const std::vector<PassCosts>& stages) {
  if (!IsLegal(family, parameters) || stages.size() != static_cast<std::size_t>(parameters.ranks)) return std::nullopt;
  PassCosts most{0, 0, 0};  // the longest F and B, as I
  std::int64_t sum = 0;
  for (const PassCosts& costs : stages) {
    most.forward = std::max(most.forward, costs.forward);
    most.input_gradient = std::max(most.input_gradient, costs.backward());
    sum += costs.forward + costs.backward();
  }
  const std::int64_t makespan = (parameters.micro_batches - 1) * (most.forward + most.input_gradient) + sum;
  if (family == kGpipe.name) return makespan;
  const bool last = stages.back().forward == most.forward && stages.back().backward() == most.input_gradient;
  return family == kOneForwardOneBackward.name && last ? std::optional(makespan) : std::nullopt;
}

std::optional<std::int64_t> ClosedFormIdle(std::string_view family, const Parameters& parameters,
                                           const ChunkCosts& costs) {
  if (!IsLegal(family, parameters)) return std::nullopt;
  const PassCosts& passes = costs.passes;
  const UniformCosts full = {Time(passes.forward), Time(passes.backward()), Time(costs.latency)};
  if (const std::optional<Time> makespan = ClosedFormMakespan(family, parameters, full)) {
    const std::int64_t work = passes.forward + passes.backward();
    return makespan->count() - work * parameters.micro_batches * parameters.chunks;
  }
  for (const auto& [name, form] : kIdleForms) {
    if (name == family) return form(parameters, costs);
  }
  return std::nullopt;
}

std::optional<std::int64_t> ClosedFormSpanBubble(std::string_view family, const Parameters& parameters,
                                                 const ChunkCosts& costs) {
  if (!IsLegal(family, parameters) || costs.latency > 0) return std::nullopt;
  const auto& [f, i, w] = costs.passes;
  const std::int64_t m = parameters.micro_batches;
  const std::int64_t p = parameters.ranks;
  if (family == "zb-v") {
    return w <= f && f <= i && m >= 2 * p - 1 ? std::optional(2 * (p - 1) * (i - w)) : std::nullopt;
  }
  if (w > std::min(f, i)) return std::nullopt;
  if (family == "zb-h1" && m >= p) return (p - 1) * (f + i - w);
  if (family == "zb-h2" && m >= 2 * p - 1 && f + i >= 2 * w) return (p - 1) * (f + i - 2 * w);
  return std::nullopt;
}

std::optional<std::int64_t> ClosedFormPeak(std::string_view family, const Parameters& parameters, std::int32_t rank) {
  if (!IsLegal(family, parameters) || rank < 0 || rank >= parameters.ranks) return std::nullopt;
  const std::int64_t m = parameters.micro_batches;
  const std::int64_t p = parameters.ranks;
  const std::int64_t left = p - rank;
  const std::int64_t all = m * parameters.chunks;
  const std::int64_t ahead = (parameters.chunks - 1) * GroupSize(family, parameters);
  if (family == "gpipe" || family == "looped-bfs") return all;
  if (family == "1f1b") return std::min(left, m);
  if (family == "1f1b-overlap") return std::min(2 * left, m);
  if (family == "seq1f1b") return std::min(left - 1 + parameters.slices, m * parameters.slices);
  if (family == "interleaved-1f1b" || family == "interleaved-1f1b-torch") {
    return std::min(2 * (left - 1) + ahead + 1, all);
  }
  if (family == "combined-1f1b") return std::min(2 * (left - 1) + ahead + 2, all);
  if (family == "grouped-1f1b" && m % GroupSize(family, parameters) == 0) return std::min(left + ahead, all);
  if (family == "zb-h1") return std::min(p, m);
  if (family == "zb-h2") return std::min(2 * p - 1, m);
  if (family == "interleaved-zb") return std::min(p + ahead, all);
  if (family == "zb-v" && m >= 2 * p - 1) return 2 * p;
  if (family == "dualpipe") return p + 1;
  if (family == "dualpipe-v") return 2 * p + 1;
  if (family == "chimera") {
    const std::int64_t stretch = 2 * p / Pipelines(parameters);
    return p - stretch / 2 + 1 + std::min(rank % stretch, stretch - 1 - rank % stretch);
  }
  return std::nullopt;
}

std::optional<std::int64_t> ClosedFormWorstPeak(std::string_view family, const Parameters& parameters) {
  const std::int64_t p = parameters.ranks;
  std::optional<std::int64_t> worst;
  for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) {
    worst = std::max(worst, ClosedFormPeak(family, parameters, rank));
  }
  if (worst || !IsLegal(family, parameters) || p < 2 || parameters.micro_batches < 3 * p) return worst;
  if (family == "v-half") return 2 * ((p + 2) / 2);
  if (family == "v-min") return 2 * ((p + 4) / 3);
  if (family == "1f1b-v") return 2 * (2 * p / 3) + 2;
  return std::nullopt;
}

std::optional<std::int64_t> ClosedFormPeakMemory(std::string_view family, const Parameters& parameters,
                                                 std::int32_t rank, const PassMemory& memory) {
  const std::optional<std::int64_t> most = ClosedFormPeak(family, parameters, 0);
  if (!most || rank < 0 || rank >= parameters.ranks) return std::nullopt;
  const std::int64_t p = parameters.ranks;
  if (family == "zb-h1" && *most == p) return (p - rank) * memory.forward + rank * memory.weight;
  if (family == "zb-h2" && *most == 2 * p - 1)
    return (2 * (p - rank) - 1) * memory.forward + std::int64_t{2} * rank * memory.weight;
  return std::nullopt;
}

}  // namespace orrery::schedules
