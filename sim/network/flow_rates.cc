// The part of FlowNetwork that keeps rates true: which links can bind, what has to be solved again, progress.
#include <algorithm>

#include "sim/network/flow_network.h"

namespace orrery::network {

Rate FlowNetwork::AloneRate(Rate limit, std::span<const Hop> hops, std::span<const std::int64_t> of_one) const {
  for (std::size_t i = 0; i < hops.size(); ++i) {
    const Rate capacity = links_[Index(hops[i].link)].capacity;
    const std::int64_t load = of_one.empty() ? hops[i].load : of_one[i];
    // Dividing is slow, and seldom needed.
    if (Int128{limit.count()} * load > capacity.count()) limit = std::min(limit, capacity / load);
  }
  return limit;
}

// --- What one activity is on its links.

// A slot with what has been described.
std::int32_t FlowNetwork::TakeSlot() {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::int32_t>(slots_.size()));
    slots_.emplace_back();
    terms_.emplace_back();
  }
  const std::int32_t s = free_slots_.back();
  free_slots_.pop_back();
  if (!free_slots_.empty()) FetchBytes(&slots_[Index(free_slots_.back())], sizeof(Slot));
  Slot& slot = slots_[Index(s)];
  slot.num_hops = static_cast<std::int32_t>(described_hops_.size());
  slot.binding = 0;
  slot.bottleneck = kNoLink;
  slot.alone = described_.alone;
  slot.rate = Rate();
  slot.weight = described_.weight;
  slot.count = described_.count;
  slot.active = true;
  slot.bypassed = true;
  slot.is_several = described_.is_several;
  slot.stale = true;
  slot.left = slot.work = described_.work;
  slot.start = slot.since = now_;
  slot.key = described_.key;
  terms_[Index(s)] = {described_.min_duration, described_.limit, described_.alike};
  if (slot.num_hops > slot.room) {
    // The old room is given up; doubling bounds what is lost that way.
    slot.room = std::max(slot.num_hops, 2 * slot.room);
    slot.first_hop = static_cast<std::int32_t>(hops_.size());
    hops_.resize(hops_.size() + Index(slot.room));
  }
  if (options_.attribute_delays) {
    charges_.resize(slots_.size());
    charges_[Index(s)].all.clear();
  }
  active_ += slot.count;
  return s;
}

void FlowNetwork::Join(std::int32_t s) {
  Slot& slot = slots_[Index(s)];
  for (std::size_t i = 0; i < described_hops_.size(); ++i) {
    const std::int32_t h = slot.first_hop + static_cast<std::int32_t>(i);
    Hop& hop = hops_[Index(h)];
    hop = described_hops_[i];
    Link& link = LinkOf(hop);
    hop.slot = s;
    hop.next = link.first_hop;
    if (link.first_hop == kNone)
      link.busy_since = now_;
    else
      hops_[Index(link.first_hop)].previous = h;
    link.first_hop = h;
    hop.can_bind = link.can_bind;
    if (link.can_bind) ++slot.binding;
  }
  if (slot.is_several) {
    loads_of_one_.resize(hops_.size());
    std::copy(described_of_one_.begin(), described_of_one_.end(), loads_of_one_.begin() + slot.first_hop);
  }
  Demand(slot, 1);
}

void FlowNetwork::Leave(std::int32_t s) {
  const Slot& slot = slots_[Index(s)];
  Demand(slot, -1);
  for (const Hop& hop : HopsOf(slot)) {
    Link& link = LinkOf(hop);
    Traffic& traffic = traffic_[Index(hop.link)];
    (hop.previous == kNone ? link.first_hop : hops_[Index(hop.previous)].next) = hop.next;
    if (hop.next != kNone) hops_[Index(hop.next)].previous = hop.previous;
    if (link.first_hop == kNone) traffic.busy += now_ - link.busy_since;
    const std::int64_t load = slot.count * hop.load;
    traffic.bytes += slot.work * load;
    traffic.activities += slot.count;
  }
}

// Adds (sign 1) or takes away (-1) what the activity asks of its links.
void FlowNetwork::Demand(const Slot& slot, int sign) {
  const std::int64_t count = sign * slot.count;
  const std::int64_t weight = count * slot.weight;
  for (const Hop& hop : HopsOf(slot)) {
    Link& link = LinkOf(hop);
    const std::int64_t load = count * hop.load;
    link.spare -= Int128{load} * slot.alone.count();
    link.unit_demand += weight * hop.load;
    const bool can_bind = link.spare < 0;
    if (can_bind || link.can_bind) MarkChanged(hop.link);
    if (can_bind != link.can_bind) Flip(hop.link);
  }
}

void FlowNetwork::Flip(LinkId l) {
  Link& link = links_[Index(l)];
  link.can_bind = !link.can_bind;
  for (std::int32_t h = link.first_hop; h != kNone; h = hops_[Index(h)].next) {
    hops_[Index(h)].can_bind = link.can_bind;
    slots_[Index(hops_[Index(h)].slot)].binding += link.can_bind ? 1 : -1;
  }
}

void FlowNetwork::MarkChanged(LinkId l) {
  if (links_[Index(l)].changed) return;
  links_[Index(l)].changed = true;
  changed_links_.push_back(l);
}

// --- Rates.
//
// A rate follows from its level, and levels are right when each is the smallest of the activity's own and of those at
// which its links close, where the level at which a link closes follows from the levels of its users
// (progressive_filling.h). Only one set of levels is right: from the lowest up, each has no choice. So it suffices to
// correct levels until no link objects.
//
// A problem is a set of open activities, whose levels are sought, and of links: all of theirs that can bind. Other
// users of those links are outsiders, which keep their rates: the filling takes each for a variable with its rate for a
// cap. Where it comes out lower, or where its bottleneck is no longer closed at its level, it has to be opened too, and
// the problem is solved again. When none is left, nothing outside can tell that anything has changed.

// Brings rates up to date with all changes of this instant.
void FlowNetwork::Refresh() {
  if (changed_links_.empty() && changed_slots_.empty()) return;
  const std::uint64_t first_visit = visit_ + 1;
  if (!options_.incremental) {
    BeginProblem();
    for (std::size_t s = 0; s < slots_.size(); ++s)
      if (slots_[s].active) Open(static_cast<std::int32_t>(s));
    SolveProblem();
  }
  for (std::size_t i = 0; i < changed_slots_.size(); ++i) {
    if (i + kAhead < changed_slots_.size()) FetchBytes(&slots_[Index(changed_slots_[i + kAhead])], sizeof(Slot));
    ResolveSlot(changed_slots_[i]);
  }
  for (std::size_t i = 0; i < changed_links_.size(); ++i) {
    if (i + kAhead < changed_links_.size()) FetchBytes(&links_[Index(changed_links_[i + kAhead])], sizeof(Link));
    Link& link = links_[Index(changed_links_[i])];
    link.changed = false;
    if (link.visit < first_visit) ResolveLink(changed_links_[i]);
  }
  changed_links_.clear();
  changed_slots_.clear();
}

void FlowNetwork::ResolveSlot(std::int32_t s) {
  Slot& slot = slots_[Index(s)];
  if (!slot.active || !slot.stale) return;
  if (slot.binding == 0) {
    slot.stale = false;
    SetRate(s, slot.alone, kNoLink);
    return;
  }
  BeginProblem();
  Open(s);
  SolveProblem();
}

// Only ends of activities changed the link since it was last looked at: what it does not hold back stays.
void FlowNetwork::ResolveLink(LinkId l) {
  BeginProblem();
  for (std::int32_t h = links_[Index(l)].first_hop; h != kNone; h = hops_[Index(h)].next) {
    const std::int32_t s = hops_[Index(h)].slot;
    if (slots_[Index(s)].bottleneck != l) continue;
    if (slots_[Index(s)].binding == 0)
      SetRate(s, slots_[Index(s)].alone, kNoLink);
    else
      Open(s);
  }
  if (!problem_slots_.empty()) SolveProblem();
}

void FlowNetwork::BeginProblem() {
  ++visit_;
  problem_links_.clear();
  problem_slots_.clear();
}

void FlowNetwork::Open(std::int32_t s) {
  if (slots_[Index(s)].visit == visit_) return;
  slots_[Index(s)].visit = visit_;
  problem_slots_.push_back(s);
}

// Opens what the link holds back, too: it moves when anything else on the link does.
void FlowNetwork::Touch(LinkId l) {
  Link& link = links_[Index(l)];
  link.visit = visit_;
  problem_links_.push_back(l);
  for (std::int32_t h = link.first_hop; h != kNone; h = hops_[Index(h)].next) {
    Slot& user = slots_[Index(hops_[Index(h)].slot)];
    user.bypassed = false;
    if (user.stale || user.bottleneck == l) Open(hops_[Index(h)].slot);
  }
}

void FlowNetwork::SolveProblem() {
  // Opening only what has to be is cheap while changes stay near. Where they go far, it is better to take whole
  // neighbourhoods.
  constexpr int kCarefulRounds = 8;
  std::size_t reached = 0;
  int round = 0;
  do {
    for (; reached < problem_slots_.size(); ++reached) {
      for (const Hop& hop : HopsOf(slots_[Index(problem_slots_[reached])]))
        if (hop.can_bind && LinkOf(hop).visit != visit_) Touch(hop.link);
    }
    FillProblem();
    filling_.Solve();
    ++solves_;
  } while (OpenTheMoved(++round > kCarefulRounds));
  for (std::size_t i = 0; i < problem_slots_.size(); ++i) {
    const auto variable = static_cast<std::int32_t>(i);
    slots_[Index(problem_slots_[i])].stale = false;
    SetRate(problem_slots_[i], Rate(filling_.Rate(variable)), filling_.Bottleneck(variable));
  }
}

// Variables: the open activities. Outsiders are local to each link.
void FlowNetwork::FillProblem() {
  filling_.Clear();
  outsiders_.clear();
  for (const LinkId l : problem_links_) {
    Link& link = links_[Index(l)];
    link.local = filling_.AddLink(l, link.capacity.count());
    for (std::int32_t h = link.first_hop; h != kNone; h = hops_[Index(h)].next) {
      const Hop& hop = hops_[Index(h)];
      const Slot& slot = slots_[Index(hop.slot)];
      if (slot.visit == visit_) continue;
      const std::int64_t level = ProgressiveFilling::LevelOf(slot.rate.count(), slot.weight);
      const std::int64_t load = hop.load * slot.count;
      filling_.AddLocal(level, load * slot.rate.count(), load * slot.weight);
      outsiders_.push_back({hop.slot, l, level});
    }
  }
  for (const std::int32_t s : problem_slots_) {
    const Slot& slot = slots_[Index(s)];
    filling_.AddVariable(slot.alone.count(), slot.weight, slot.count);
    for (const Hop& hop : HopsOf(slot))
      if (hop.can_bind) filling_.AddLoad(LinkOf(hop).local, hop.load);
  }
}

// Opens the outsiders that could not stay as they are (or all); whether there were any.
bool FlowNetwork::OpenTheMoved(bool all) {
  const std::size_t open = problem_slots_.size();
  for (const auto [s, l, level] : outsiders_) {
    const LinkId bottleneck = slots_[Index(s)].bottleneck;
    const std::int64_t closed_at = filling_.ClosedAt(links_[Index(l)].local);
    const bool falls = closed_at != 0 && closed_at < level;
    const bool may_rise = bottleneck == l && closed_at != level;
    const bool changes_bottleneck = l < bottleneck && closed_at == level;
    if (all || falls || may_rise || changes_bottleneck) Open(s);
  }
  return problem_slots_.size() > open;
}

// Books progress, and what was lost to the bottleneck, up to now.
void FlowNetwork::Settle(Slot& slot) {
  const Time elapsed = now_ - slot.since;
  if (elapsed == Time()) return;
  slot.since = now_;
  slot.left = std::max(Work(), slot.left - WorkAt(slot.rate, elapsed));
  if (slot.rate >= slot.alone) return;
  DelayOn(slot, slot.bottleneck).lost += WorkAt(slot.alone - slot.rate, elapsed);
}

void FlowNetwork::SetRate(std::int32_t s, Rate rate, LinkId bottleneck) {
  Slot& slot = slots_[Index(s)];
  if (options_.attribute_delays) SlowOn(s, rate < slot.alone ? bottleneck : kNoLink);
  if (slot.rate == rate && slot.bottleneck == bottleneck) return;
  Settle(slot);
  slot.rate = rate;
  slot.bottleneck = bottleneck;
  finishes_.Set(s, std::max(slot.start + terms_[Index(s)].min_duration, EndOf(now_, slot.left, rate)));
}

}  // namespace orrery::network
