#include "sim/collectives/link_loads.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace orrery::collectives {
namespace {

constexpr std::int64_t kMostParts = 1'000'000;

// Capped: what does not fit is rounded.
std::int64_t CommonDenominator(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(std::min<Int128>(kMostParts, Int128{a / std::gcd(a, b)} * b));
}

double ValueOf(Fraction fraction) {
  return static_cast<double>(fraction.numerator) / static_cast<double>(fraction.denominator);
}

void Divide(std::int64_t* a, std::int64_t* b) {
  const std::int64_t divisor = std::gcd(*a, *b);
  *a /= divisor;
  *b /= divisor;
}

}  // namespace

void LinkLoadSum::Add(std::int32_t link, Fraction share, Fraction of_share) {
  const auto place = static_cast<std::size_t>(link);
  if (place >= bytes_.size()) bytes_.resize(place + 1);
  if (bytes_[place] == 0) loaded_.push_back(link);
  bytes_[place] += ValueOf(share) * ValueOf(of_share);
  // Most links of a route carry equal shares.
  const std::pair<Fraction, Fraction> factors(share, of_share);
  if (denominator_ == kMostParts || factors == last_) return;
  last_ = factors;
  Divide(&share.numerator, &share.denominator);
  Divide(&of_share.numerator, &of_share.denominator);
  Divide(&share.numerator, &of_share.denominator);
  Divide(&of_share.numerator, &share.denominator);
  const auto denominator = std::min<Int128>(kMostParts, Int128{share.denominator} * of_share.denominator);
  denominator_ = CommonDenominator(denominator_, static_cast<std::int64_t>(denominator));
}

LinkLoads LinkLoadSum::Take() {
  LinkLoads loads;
  loads.denominator = std::exchange(denominator_, 1);
  std::sort(loaded_.begin(), loaded_.end());
  for (const std::int32_t link : loaded_) {
    loads.shares.push_back({link, std::exchange(bytes_[static_cast<std::size_t>(link)], 0)});
  }
  loaded_.clear();
  last_ = {};
  return loads;
}

LinkLoads LoadsOf(const topology::Routes& routes, const std::vector<Flow>& flows, NicUse nics) {
  LinkLoadSum sum;
  topology::Route route;
  for (const Flow& flow : flows) {
    const std::size_t own = routes.NicsOf(flow.from).size();
    const auto count = static_cast<std::int64_t>(nics == NicUse::kOne ? 1 : std::max<std::size_t>(1, own));
    for (std::int64_t nic = 0; nic < count; ++nic) {
      routes.Between(flow.from, flow.to, flow.rail * count + nic, &route);
      for (const topology::LinkShare& link : route.shares) {
        sum.Add(link.link, {flow.numerator, flow.denominator * count}, {link.weight, route.denominator});
      }
    }
  }
  return sum.Take();
}

engine::Route RouteOf(const LinkLoads& loads, double moved, Time alone, std::span<const std::int64_t> capacities) {
  constexpr double kPicosecond = 1e-12;
  const double seconds = SecondsFromTime(alone);
  const auto capacity = [&](const LinkShare& share) { return capacities[static_cast<std::size_t>(share.link)]; };
  const auto carries = [&](const LinkShare& share) {
    return share.bytes * moved <= static_cast<double>(capacity(share)) * (seconds + kPicosecond);
  };
  // One unit of progress is the least that puts whole bytes on all links.
  std::vector<std::int64_t> parts;
  std::int64_t unit = loads.denominator;
  for (const LinkShare& share : loads.shares) {
    const double exact = share.bytes * static_cast<double>(loads.denominator);
    parts.push_back(std::max<std::int64_t>(1, std::llround(exact)));
    unit = std::gcd(unit, parts.back());
  }
  const double asked = moved / seconds * static_cast<double>(unit) / static_cast<double>(loads.denominator);
  double rate = asked;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] /= unit;
    if (carries(loads.shares[i])) {
      rate = std::min(rate, static_cast<double>(capacity(loads.shares[i])) / static_cast<double>(parts[i]));
    }
  }
  engine::Route route;
  route.rate = std::max<std::int64_t>(1, static_cast<std::int64_t>(rate));
  // What whole rates lose, loads gain.
  const double gain = asked / static_cast<double>(route.rate);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const LinkShare& share = loads.shares[i];
    std::int64_t bytes = std::max<std::int64_t>(1, std::llround(static_cast<double>(parts[i]) * gain));
    if (carries(share)) bytes = std::min(bytes, std::max<std::int64_t>(1, capacity(share) / route.rate));
    route.loads.push_back({.link = share.link, .bytes = bytes});
  }
  return route;
}

void EqualiseUnits(std::span<const std::int64_t> capacities, std::vector<engine::Route>* routes) {
  constexpr std::int64_t kFinest = 16;
  const auto seconds_of = [&](const engine::Route& route) {
    double seconds = 0;
    for (const engine::LinkLoad& load : route.loads) {
      const auto capacity = static_cast<double>(capacities[static_cast<std::size_t>(load.link)]);
      seconds = std::max(seconds, static_cast<double>(load.bytes) / capacity);
    }
    return seconds;
  };
  double longest = 0;
  for (const engine::Route& route : *routes) longest = std::max(longest, seconds_of(route));
  // Units of which `parts` make one of the longest, the fewest that all of them divide.
  const auto fit = [&](std::int64_t parts) {
    return std::all_of(routes->begin(), routes->end(), [&](const engine::Route& route) {
      const double seconds = seconds_of(route);
      if (seconds == 0) return true;
      const double factor = static_cast<double>(parts) * longest / seconds;
      return std::abs(factor - std::round(factor)) < 1e-5 * factor;
    });
  };
  std::int64_t parts = 1;
  while (parts < kFinest && !fit(parts)) ++parts;
  for (engine::Route& route : *routes) {
    const double seconds = seconds_of(route);
    if (seconds == 0) continue;
    const auto factor = std::llround(static_cast<double>(parts) * longest / seconds);
    route.rate = std::max<std::int64_t>(1, route.rate / factor);
    for (engine::LinkLoad& load : route.loads) load.bytes *= factor;
  }
}

}  // namespace orrery::collectives
