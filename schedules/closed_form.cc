#include "schedules/closed_form.h"

#include <algorithm>

#include "schedules/families.h"

namespace orrery::schedules {
namespace {

bool IsLegal(std::string_view family, const Parameters& parameters) {
  const auto found = FindFamily(family);
  return found.ok() && (*found)->check(parameters).ok();
}

// Messages that lie on the critical path; nullopt outside the ranges of the header.
std::optional<std::int64_t> InterleavedExposed(const Parameters& parameters, const UniformCosts& costs) {
  const std::int64_t p = parameters.ranks;
  const std::int64_t v = parameters.chunks;
  const std::int64_t n = InterleavedGroupSize(parameters);
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
  if (family != kInterleaved.name) return std::nullopt;
  const std::optional<std::int64_t> exposed = InterleavedExposed(parameters, costs);
  if (!exposed.has_value()) return std::nullopt;
  const std::int64_t idle = p - 1 + (v - 1) * std::max<std::int64_t>(p - m, 0);
  return both * (m * v + idle) + costs.latency * *exposed;
}

std::optional<std::int64_t> ClosedFormPeak(std::string_view family, const Parameters& parameters, std::int32_t rank) {
  if (!IsLegal(family, parameters) || rank < 0 || rank >= parameters.ranks) return std::nullopt;
  const std::int64_t m = parameters.micro_batches;
  if (family == kGpipe.name) return m;
  if (family == kOneForwardOneBackward.name) return std::min<std::int64_t>(parameters.ranks - rank, m);
  if (family != kInterleaved.name) return std::nullopt;
  return std::min<std::int64_t>(InterleavedWarmup(parameters, rank) + std::int64_t{1}, m * parameters.chunks);
}

}  // namespace orrery::schedules
