// What a FlowNetwork says about its activities and links.
#include <algorithm>
#include <numeric>

#include "base/status_macros.h"
#include "sim/network/flow_network.h"

namespace orrery::network {

Rate FlowNetwork::RateOf(Handle activity) {
  Refresh();
  if (activity.slot < 0 || Index(activity.slot) >= slots_.size()) return Rate();
  const Slot& slot = slots_[Index(activity.slot)];
  return slot.active && slot.serial == activity.serial ? slot.rate : Rate();
}

std::vector<Progress> FlowNetwork::UnderWay() {
  Refresh();
  std::vector<Progress> all;
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    const Slot& slot = slots_[s];
    if (!slot.active) continue;
    const Handle handle{static_cast<std::int32_t>(s), slot.serial};
    all.push_back({handle, slot.start, slot.left, slot.since, slot.rate, slot.bottleneck});
  }
  return all;
}

// The delay of the activity on the link, from now on among its delays.
FlowNetwork::Delay& FlowNetwork::DelayOn(Slot& slot, LinkId l) {
  for (std::int32_t d = slot.first_delay; d != kNone; d = delays_[Index(d)].next)
    if (delays_[Index(d)].link == l) return delays_[Index(d)];
  if (free_delay_ == kNone) {
    free_delay_ = static_cast<std::int32_t>(delays_.size());
    delays_.emplace_back();
  }
  Delay& delay = delays_[Index(free_delay_)];
  const std::int32_t next_free = delay.next;
  delay = {Work(), Time(), l, slot.first_delay};
  slot.first_delay = free_delay_;
  free_delay_ = next_free;
  return delay;
}

void FlowNetwork::DropDelays(Slot& slot) {
  for (std::int32_t d = slot.first_delay; d != kNone;) {
    const std::int32_t next = delays_[Index(d)].next;
    delays_[Index(d)].next = free_delay_;
    free_delay_ = d;
    d = next;
  }
  slot.first_delay = kNone;
}

// Turns lost work into time while the alone rate is still the one at which it was lost.
void FlowNetwork::CloseDelays(const Slot& slot) {
  for (std::int32_t d = slot.first_delay; d != kNone; d = delays_[Index(d)].next) {
    Delay& delay = delays_[Index(d)];
    delay.time += Time(static_cast<std::int64_t>(delay.lost.count() / slot.alone.count()));
    delay.lost = Work();
  }
}

void FlowNetwork::ReportDelays(std::int32_t s, Completion& completion) {
  Slot& slot = slots_[Index(s)];
  CloseDelays(slot);
  Time most;
  for (std::int32_t d = slot.first_delay; d != kNone; d = delays_[Index(d)].next) {
    const Delay& delay = delays_[Index(d)];
    if (delay.time == Time()) continue;
    completion.delay += delay.time;
    if (delay.time > most || (delay.time == most && delay.link < completion.bottleneck)) {
      most = delay.time;
      completion.bottleneck = delay.link;
    }
    Reported& reported = reported_[Index(delay.link)];
    reported.delay += delay.time * (slot.count * terms_[Index(s)].alike);
    if (delay.time < reported.most.delay) continue;
    const Victim victim = VictimOn(delay.link, s, delay.time);
    if (victim < reported.most) reported.most = victim;
  }
  DropDelays(slot);
}

// So far, up to now.
Work FlowNetwork::DoneOf(const Slot& slot) const {
  return slot.work - slot.left + std::min(slot.left, WorkAt(slot.rate, now_ - slot.since));
}

LinkUse FlowNetwork::Use(LinkId l) const {
  const Link& link = links_[Index(l)];
  const Traffic& traffic = traffic_[Index(l)];
  const Reported& reported = reported_[Index(l)];
  LinkUse use{l, traffic.bytes, traffic.busy, 0, traffic.activities, reported.delay, reported.most};
  for (std::int32_t h = link.first_hop; h != kNone; h = hops_[Index(h)].next) {
    const Hop& hop = hops_[Index(h)];
    const Slot& slot = slots_[Index(hop.slot)];
    use.bytes += DoneOf(slot) * (Int128{slot.count} * hop.load);
  }
  if (link.first_hop != kNone) use.busy += now_ - link.busy_since;
  const Work could_carry = reported.could_carry + WorkAt(link.capacity, now_ - reported.capacity_since);
  if (could_carry > Work())
    use.utilisation = static_cast<double>(use.bytes.count()) / static_cast<double>(could_carry.count());
  return use;
}

absl::StatusOr<LinkUse> FlowNetwork::UseOf(LinkId link) const {
  ABSL_RETURN_IF_ERROR(CheckLink(link));
  return Use(link);
}

std::vector<LinkUse> FlowNetwork::Busiest(std::size_t count) const {
  std::vector<LinkUse> uses;
  uses.reserve(links_.size());
  for (std::size_t l = 0; l < links_.size(); ++l) uses.push_back(Use(static_cast<LinkId>(l)));
  count = std::min(count, uses.size());
  std::partial_sort(uses.begin(), uses.begin() + static_cast<std::ptrdiff_t>(count), uses.end(),
                    [](const LinkUse& a, const LinkUse& b) {
                      return a.utilisation != b.utilisation ? a.utilisation > b.utilisation : a.link < b.link;
                    });
  uses.resize(count);
  return uses;
}

}  // namespace orrery::network
