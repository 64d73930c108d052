#include "sim/network/flow_network.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace orrery::network {
namespace {

constexpr Rate kMaxRate(kMaxCapacity.count() * kRatePerUnit);

absl::Status CheckCapacity(BytesPerSecondInteger capacity) {
  if (capacity.count() >= 1 && capacity <= kMaxCapacity) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("capacity ", capacity.count(), " bytes/s: must be in [1, ", kMaxCapacity.count(), "]"));
}

absl::Status TooSmall(const Activity& activity, const char* what, std::int64_t value, std::int64_t least) {
  return absl::InvalidArgumentError(
      absl::StrCat("activity of key ", activity.key, ": ", what, " ", value, " must be at least ", least));
}

absl::Status TooLong(const Activity& activity) {
  return absl::InvalidArgumentError(absl::StrCat("activity of key ", activity.key, ": takes more than 106 days"));
}

}  // namespace

// --- Checks.

absl::StatusOr<LinkId> FlowNetwork::AddLink(BytesPerSecondInteger capacity) {
  ABSL_RETURN_IF_ERROR(CheckCapacity(capacity));
  Link& link = links_.emplace_back();
  link.capacity = Rate(capacity.count() * kRatePerUnit);
  link.spare = link.capacity.count();
  traffic_.emplace_back();
  reported_.emplace_back().capacity_since = now_;
  return static_cast<LinkId>(links_.size()) - 1;
}

absl::Status FlowNetwork::CheckLink(LinkId link) const {
  if (HasLink(link)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("unknown link ", link, ": there are ", links_.size()));
}

absl::Status FlowNetwork::DescribeLoads(const Activity& activity) {
  if (!activity.of_one.empty() && activity.of_one.size() != activity.loads.size())
    return absl::InvalidArgumentError(absl::StrCat("activity of key ", activity.key, ": ", activity.of_one.size(),
                                                   " loads of one for ", activity.loads.size(), " loads"));
  for (const LinkLoad& load : activity.loads) {
    if (!HasLink(load.link)) return CheckLink(load.link);
    FetchBytes(&links_[Index(load.link)], sizeof(Link));
    if (load.bytes_per_unit < 1) return TooSmall(activity, "bytes per unit", load.bytes_per_unit, 1);
  }
  for (const std::int64_t of_one : activity.of_one) {
    if (of_one < 1) return TooSmall(activity, "bytes per unit of one", of_one, 1);
  }
  std::vector<Hop>& hops = described_hops_;
  hops.clear();
  // More than the capacity would be refused anyway; so sums cannot overflow.
  constexpr std::int64_t kTooMuch = kMaxRate.count() + 1;
  for (const LinkLoad& load : activity.loads) {
    std::int32_t& index = links_[Index(load.link)].described;
    if (index == kNone) {
      index = static_cast<std::int32_t>(hops.size());
      hops.push_back({load.link, 0, kNone, kNone, std::min(load.bytes_per_unit, kTooMuch), false});
    } else {
      Hop& hop = hops[Index(index)];
      hop.load += std::min(load.bytes_per_unit, kTooMuch - hop.load);
    }
  }
  described_.is_several = !activity.of_one.empty();
  described_of_one_.assign(described_.is_several ? hops.size() : 0, 0);
  for (std::size_t i = 0; i < activity.of_one.size(); ++i) {
    std::int64_t& sum = described_of_one_[Index(links_[Index(activity.loads[i].link)].described)];
    sum += std::min(activity.of_one[i], kTooMuch - sum);
  }
  for (const Hop& hop : hops) LinkOf(hop).described = kNone;
  return absl::OkStatus();
}

absl::Status FlowNetwork::Describe(const Activity& activity) {
  const std::int64_t cap = activity.rate_cap.value_or(kMaxRate).count();
  if (activity.work < Work())
    return absl::InvalidArgumentError(absl::StrCat("activity of key ", activity.key, ": negative work"));
  if (activity.min_duration < Time()) return TooSmall(activity, "minimal duration", activity.min_duration.count(), 0);
  if (activity.weight < 1) return TooSmall(activity, "weight", activity.weight, 1);
  if (activity.count < 1) return TooSmall(activity, "count", activity.count, 1);
  if (activity.alike < 1) return TooSmall(activity, "number alike", activity.alike, 1);
  if (cap < 1) return TooSmall(activity, "rate cap", cap, 1);
  ABSL_RETURN_IF_ERROR(DescribeLoads(activity));
  if (activity.loads.empty() && !activity.rate_cap.has_value() && activity.min_duration == Time())
    return absl::InvalidArgumentError(
        absl::StrCat("activity of key ", activity.key, ": no link, cap or duration limits it"));

  Description& described = described_;
  described.limit = std::min(kMaxRate, Rate(cap));
  if (activity.min_duration > Time()) {
    // Rounded up: the minimal duration itself sees to it that the activity is not too fast.
    const Int128 rate = CeilOfRatio(activity.work.count(), activity.min_duration.count());
    if (rate < described.limit.count())
      described.limit = Rate(std::max(std::int64_t{1}, static_cast<std::int64_t>(rate)));
  }
  described.alone = AloneRate(described.limit, described_hops_, described_of_one_);
  if (described.alone < Rate(1))
    return absl::InvalidArgumentError(
        absl::StrCat("activity of key ", activity.key, ": bytes per unit above a link's capacity"));
  if (activity.work >= WorkAt(described.alone, kNever)) return TooLong(activity);
  described.weight = activity.weight;
  described.count = activity.count;
  described.alike = activity.alike;
  described.work = activity.work;
  described.min_duration = activity.min_duration;
  described.key = activity.key;
  return absl::OkStatus();
}

// With it, every share on its links is at least 1.
absl::Status FlowNetwork::CheckShares() const {
  std::int64_t of_load = 0;
  const bool overflows = __builtin_mul_overflow(described_.weight, described_.count, &of_load);
  for (const Hop& hop : described_hops_) {
    const Link& link = links_[Index(hop.link)];
    std::int64_t demand = 0;
    if (!overflows && !__builtin_mul_overflow(of_load, hop.load, &demand) &&
        demand <= link.capacity.count() - link.unit_demand)
      continue;
    return absl::InvalidArgumentError(absl::StrCat("activity of key ", described_.key, ": too much for link ", hop.link,
                                                   " of ", link.capacity.count() / kRatePerUnit,
                                                   " bytes/s: shares would round to 0"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Time> FlowNetwork::DurationAlone(const Activity& activity) {
  ABSL_RETURN_IF_ERROR(Describe(activity));
  return std::max(described_.min_duration, EndOf(Time(), described_.work, described_.alone));
}

// --- Changes.

absl::Status FlowNetwork::MoveTo(Time time) {
  if (time < now_)
    return absl::InvalidArgumentError(absl::StrCat("time ", time.count(), " ps is before now, ", now_.count(), " ps"));
  if (time == now_) return absl::OkStatus();
  Refresh();
  const Time first = finishes_.First();
  if (!ended_.empty() || first < time)
    return absl::FailedPreconditionError(
        absl::StrCat("completions before ", time.count(), " ps have not been taken: call AdvanceTo first"));
  now_ = time;
  if (first == time) EndAllOf(time);
  return absl::OkStatus();
}

absl::StatusOr<Handle> FlowNetwork::Start(Time time, const Activity& activity) {
  ABSL_RETURN_IF_ERROR(MoveTo(time));
  ABSL_RETURN_IF_ERROR(Describe(activity));
  ABSL_RETURN_IF_ERROR(CheckShares());
  if (activity.min_duration >= kNever - now_) return TooLong(activity);
  const std::int32_t s = TakeSlot();
  Join(s);
  changed_slots_.push_back(s);
  return Handle{s, slots_[Index(s)].serial};
}

absl::Status FlowNetwork::SetCapacity(LinkId l, Time time, BytesPerSecondInteger capacity) {
  ABSL_RETURN_IF_ERROR(CheckLink(l));
  ABSL_RETURN_IF_ERROR(CheckCapacity(capacity));
  ABSL_RETURN_IF_ERROR(MoveTo(time));
  Link& link = links_[Index(l)];
  const Rate rate(capacity.count() * kRatePerUnit);
  if (link.unit_demand > rate.count())
    return absl::InvalidArgumentError(absl::StrCat("capacity ", capacity.count(), " bytes/s of link ", l,
                                                   ": shares of the activities on it would round to 0"));
  Reported& reported = reported_[Index(l)];
  reported.could_carry += WorkAt(link.capacity, now_ - reported.capacity_since);
  reported.capacity_since = now_;
  for (std::int32_t h = link.first_hop; h != kNone; h = hops_[Index(h)].next) {
    const std::int32_t s = hops_[Index(h)].slot;
    Slot& slot = slots_[Index(s)];
    Settle(slot);
    CloseDelays(slot);
    Demand(slot, -1);
    slot.stale = true;
    changed_slots_.push_back(s);
  }
  link.spare += (rate - link.capacity).count();
  link.capacity = rate;
  for (std::int32_t h = link.first_hop; h != kNone; h = hops_[Index(h)].next) {
    const std::int32_t s = hops_[Index(h)].slot;
    Slot& slot = slots_[Index(s)];
    slot.alone = AloneRate(terms_[Index(s)].limit, HopsOf(slot), LoadsOfOne(slot));
    Demand(slot, 1);
  }
  return absl::OkStatus();
}

// --- Completions.

void FlowNetwork::EndAllOf(Time time) {
  now_ = time;
  ending_.clear();
  while (finishes_.First() == time) finishes_.TakeFirst(ending_);
  for (std::size_t i = 0; i < ending_.size(); ++i) {
    // Memory is asked for what is known by then of those that come next.
    const std::size_t left = ending_.size() - i;
    if (left > 3 * kAhead) FetchBytes(&slots_[Index(ending_[i + 3 * kAhead])], sizeof(Slot));
    if (left > 2 * kAhead) {
      const Slot& slot = slots_[Index(ending_[i + 2 * kAhead])];
      FetchBytes(HopsOf(slot).data(), HopsOf(slot).size_bytes());
      if (slot.bottleneck != kNoLink) FetchBytes(&reported_[Index(slot.bottleneck)], sizeof(Reported));
    }
    if (left > kAhead) {
      for (const Hop& hop : HopsOf(slots_[Index(ending_[i + kAhead])])) {
        FetchBytes(&LinkOf(hop), sizeof(Link));
        FetchBytes(&traffic_[Index(hop.link)], sizeof(Traffic));
      }
    }
    End(ending_[i]);
  }
}

void FlowNetwork::End(std::int32_t s) {
  Slot& slot = slots_[Index(s)];
  Settle(slot);
  Completion& completion = ended_.emplace_back();
  completion.activity = {s, slot.serial};
  completion.key = slot.key;
  completion.start = slot.start;
  completion.end = now_;
  completion.bypassed = slot.bypassed;
  if (options_.attribute_delays) {
    SlowOn(s, kNoLink);
    ChargeForLeaver(s);
  }
  if (slot.first_delay != kNone) ReportDelays(s, completion);
  Leave(s);
  slot.active = false;
  ++slot.serial;
  free_slots_.push_back(s);
  active_ -= slot.count;
  completed_ += slot.count;
  if (slot.bypassed) bypassed_ += slot.count;
  if (completion.delay == Time()) never_slowed_ += slot.count;
}

Time FlowNetwork::NextEvent() {
  if (!ended_.empty()) return now_;
  Refresh();
  return finishes_.First();
}

absl::StatusOr<std::span<const Completion>> FlowNetwork::AdvanceTo(Time time) {
  if (time < now_)
    return absl::InvalidArgumentError(absl::StrCat("time ", time.count(), " ps is before now, ", now_.count(), " ps"));
  Refresh();
  for (Time next = finishes_.First(); next <= time && next != kNever; next = finishes_.First()) {
    EndAllOf(next);
    if (next == time) break;  // the caller may still change something at this instant
    Refresh();
  }
  now_ = time;
  taken_.clear();
  std::swap(taken_, ended_);
  const auto comes_before = [](const Completion& a, const Completion& b) {
    return std::tie(a.end, a.key, a.activity.slot, a.activity.serial) <
           std::tie(b.end, b.key, b.activity.slot, b.activity.serial);
  };
  if (!std::is_sorted(taken_.begin(), taken_.end(), comes_before))
    std::sort(taken_.begin(), taken_.end(), comes_before);
  return std::span<const Completion>(taken_);
}

}  // namespace orrery::network
