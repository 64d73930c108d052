#include "sim/collectives/link_loads.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace orrery::collectives {

std::vector<LinkShare> LoadsOf(const topology::Routes& routes, const std::vector<Flow>& flows, NicUse nics) {
  std::vector<double> bytes(static_cast<std::size_t>(routes.topology().links()));
  topology::Route route;
  const auto add = [&](const Flow& flow, std::int64_t number, double share) {
    routes.Between(flow.from, flow.to, number, &route);
    for (const topology::LinkShare& link : route.shares) {
      bytes[static_cast<std::size_t>(link.link)] +=
          share * static_cast<double>(link.weight) / static_cast<double>(route.denominator);
    }
  };
  for (const Flow& flow : flows) {
    const double share = static_cast<double>(flow.numerator) / static_cast<double>(flow.denominator);
    const std::size_t own = routes.NicsOf(flow.from).size();
    const auto count = static_cast<std::int64_t>(nics == NicUse::kOne ? 1 : std::max<std::size_t>(1, own));
    for (std::int64_t nic = 0; nic < count; ++nic) {
      add(flow, flow.rail * count + nic, share / static_cast<double>(count));
    }
  }
  std::vector<LinkShare> loads;
  for (std::size_t link = 0; link < bytes.size(); ++link) {
    if (bytes[link] > 0) loads.push_back({static_cast<topology::LinkId>(link), bytes[link]});
  }
  return loads;
}

engine::Route RouteOf(const topology::Topology& topology, const std::vector<LinkShare>& loads, double moved,
                      Time alone) {
  constexpr double kParts = 1e6;
  constexpr double kPicosecond = 1e-12;
  const double seconds = SecondsFromTime(alone);
  double fastest = 0;  // bytes/s
  for (const LinkShare& load : loads) fastest = std::max(fastest, load.bytes * moved / seconds);
  engine::Route route;
  route.rate = std::max<std::int64_t>(1, static_cast<std::int64_t>(fastest / kParts));
  const double units = static_cast<double>(route.rate) * seconds;
  for (const LinkShare& load : loads) {
    const std::int64_t capacity = topology.link(load.link).capacity;
    std::int64_t parts = std::max<std::int64_t>(1, std::llround(load.bytes * moved / units));
    const bool carries = load.bytes * moved <= static_cast<double>(capacity) * (seconds + kPicosecond);
    if (carries) parts = std::min(parts, std::max<std::int64_t>(1, capacity / route.rate));
    route.loads.push_back({.link = load.link, .bytes = parts});
  }
  return route;
}

}  // namespace orrery::collectives
