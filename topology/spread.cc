#include "topology/spread.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <span>

namespace orrery::topology {
namespace {

// Whether the cables of two links have one capacity, but for its rounding to whole bytes per second.
bool AlikePerCable(const Cable& a, const Cable& b) {
  const Int128 left = Int128{a.capacity} * b.cables;
  const Int128 right = Int128{b.capacity} * a.cables;
  const Int128 difference = left > right ? left - right : right - left;
  return difference <= Int128{a.cables} * b.cables;
}

// Small whole numbers in proportion to the capacities of the links: their cables where those are alike, else the
// capacities without common factor, to a thousandth where these are large. Returns the sum. Parts are 1 before.
std::int64_t Proportions(const Topology::Impl& impl, std::span<std::pair<LinkId, std::int64_t>> parts) {
  const Cable& first = impl.CableOf(parts.front().first);
  const bool same = std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
    const Cable& cable = impl.CableOf(part.first);
    return cable.capacity == first.capacity && cable.cables == first.cables;
  });
  if (same) return static_cast<std::int64_t>(parts.size());  // each part is 1
  bool alike = true;
  std::int64_t common = 0;
  std::int64_t most = 0;
  for (const auto& [link, part] : parts) {
    const Cable& cable = impl.CableOf(link);
    alike = alike && AlikePerCable(cable, first);
    common = std::gcd(common, cable.capacity);
    most = std::max(most, cable.capacity);
  }
  constexpr std::int64_t kFine = 1024;
  const bool small = most / common <= kFine;
  std::int64_t divisor = 0;
  for (auto& [link, part] : parts) {
    const Cable& cable = impl.CableOf(link);
    if (alike) {
      part = cable.cables;
    } else if (small) {
      part = cable.capacity / common;
    } else {
      part = std::max<std::int64_t>(1, std::llround(static_cast<double>(cable.capacity) / static_cast<double>(most) *
                                                    static_cast<double>(kFine)));
    }
    divisor = std::gcd(divisor, part);
  }
  std::int64_t sum = 0;
  for (auto& [link, part] : parts) sum += part /= divisor;
  return sum;
}

}  // namespace

Spreader::Spreader(const Topology::Impl& impl, Route* route) : impl_(impl), route_(route) {
  route_->shares.clear();
  route_->denominator = 1;
  route_->latency = Time();
  route_->links = 0;
  route_->network_links = 0;
  route_->from_nic = route_->to_nic = route_->forwarder = kNoDevice;
}

void Spreader::AddLeg(DeviceId from, DeviceId to, NextLinks next_links, const Choose* choose) {
  denominator_ = 1;
  places_.assign(1, {from, 1, Time()});
  while (fits_ && places_.front().at != to) Advance(next_links, choose);
  route_->latency += places_.front().latency;
}

// One link further on every way.
void Spreader::Advance(NextLinks next_links, const Choose* choose) {
  parts_.clear();
  ends_.clear();
  wholes_.clear();
  std::int64_t multiple = 1;
  for (const Place& place : places_) {
    next_links(place.at, &links_);
    const std::size_t first = parts_.size();
    if (choose != nullptr && links_.size() > 1) links_.assign(1, links_[(*choose)(place.at, links_)]);
    for (const LinkId link : links_) parts_.emplace_back(link, 1);
    const auto whole = links_.size() == 1 ? 1 : Proportions(impl_, std::span(parts_).subspan(first));
    wholes_.push_back(whole);
    ends_.push_back(parts_.size());
    if (whole == multiple) continue;
    const std::int64_t factor = whole / std::gcd(multiple, whole);
    fits_ = fits_ && !__builtin_mul_overflow(multiple, factor, &multiple);
  }
  fits_ = fits_ && !__builtin_mul_overflow(denominator_, multiple, &denominator_);
  if (!fits_) return;
  reached_.clear();
  std::size_t part = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::int64_t unit = wholes_[i] == multiple ? places_[i].weight : places_[i].weight * (multiple / wholes_[i]);
    for (; part < ends_[i]; ++part) {
      const auto [link, share] = parts_[part];
      const std::int64_t weight = unit * share;
      route_->shares.push_back({link, weight});
      reached_.push_back({impl_.To(link), weight, places_[i].latency + impl_.CableOf(link).latency});
    }
  }
  steps_.push_back({route_->shares.size(), denominator_});
  ++route_->links;
  if (IsNetwork(impl_.CableOf(route_->shares.back().link).kind)) ++route_->network_links;
  Merge();
}

// Ways that meet at a device are one place.
void Spreader::Merge() {
  const auto before = [](const Place& a, const Place& b) {
    return a.at != b.at ? a.at < b.at : a.weight != b.weight ? a.weight < b.weight : a.latency < b.latency;
  };
  const auto by_device = [](const Place& a, const Place& b) { return a.at < b.at; };
  // In a fat tree they come in order.
  if (!std::is_sorted(reached_.begin(), reached_.end(), by_device)) {
    std::sort(reached_.begin(), reached_.end(), before);
  }
  places_.clear();
  for (const Place& place : reached_) {
    if (!places_.empty() && places_.back().at == place.at) {
      places_.back().weight += place.weight;
    } else {
      places_.push_back(place);
    }
  }
}

bool Spreader::Finish() {
  std::int64_t common = 1;
  for (const Step& step : steps_) {
    const std::int64_t factor = step.denominator / std::gcd(common, step.denominator);
    fits_ = fits_ && !__builtin_mul_overflow(common, factor, &common);
  }
  if (!fits_) return false;
  std::size_t share = 0;
  std::int64_t divisor = common;
  for (const Step& step : steps_) {
    const std::int64_t factor = common / step.denominator;
    for (; share < step.end; ++share) {
      std::int64_t& weight = route_->shares[share].weight;
      weight *= factor;
      if (divisor > 1) divisor = std::gcd(divisor, weight);
    }
  }
  for (std::size_t i = 0; i < route_->shares.size() && divisor > 1; ++i) route_->shares[i].weight /= divisor;
  route_->denominator = common / divisor;
  return true;
}

std::int64_t CountWays(const Topology::Impl& impl, DeviceId from, DeviceId to, Spreader::NextLinks next_links) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::vector<std::pair<DeviceId, std::int64_t>> places = {{from, 1}};
  std::vector<std::pair<DeviceId, std::int64_t>> reached;
  std::vector<LinkId> links;
  while (places.front().first != to) {
    reached.clear();
    for (const auto& [at, ways] : places) {
      next_links(at, &links);
      for (const LinkId link : links) reached.emplace_back(impl.To(link), ways);
    }
    std::sort(reached.begin(), reached.end());
    places.clear();
    for (const auto& [at, ways] : reached) {
      if (places.empty() || places.back().first != at) {
        places.emplace_back(at, ways);
      } else {
        places.back().second = std::min(kMost, places.back().second + std::min(ways, kMost - 1));
      }
    }
  }
  return places.front().second;
}

}  // namespace orrery::topology
