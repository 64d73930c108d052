// Who took what delayed activities lost: bytes on a link while another was slowed there.
//
// What an activity in progress has put on a link follows from its progress. So a charge is that at the end of the time
// in which another is slowed, less that at its beginning: only these instants and the ends of activities are looked at.
#include <algorithm>
#include <tuple>

#include "sim/network/flow_network.h"

namespace orrery::network {

// The activity is slowed on this link from now on, or on none.
void FlowNetwork::SlowOn(std::int32_t s, LinkId l) {
  LinkId& slowed_on = charges_[Index(s)].slowed_on;
  if (slowed_on == l) return;
  if (slowed_on != kNoLink) ChargeUsers(s, slowed_on, 1);
  if (l != kNoLink) ChargeUsers(s, l, -1);
  slowed_on = l;
}

// Adds (sign 1) or takes away (-1) what is on the link by now, but for what one of the activity itself put there.
void FlowNetwork::ChargeUsers(std::int32_t s, LinkId l, int sign) {
  for (std::int32_t h = links_[Index(l)].first_hop; h != kNone; h = hops_[Index(h)].next) {
    const Hop& hop = hops_[Index(h)];
    const Slot& user = slots_[Index(hop.slot)];
    Int128 load = Int128{user.count} * hop.load;
    if (hop.slot == s) load -= user.is_several ? loads_of_one_[Index(h)] : hop.load;
    if (load > 0) Charge(s, l, user.key, DoneOf(user) * (sign * load));
  }
}

void FlowNetwork::Charge(std::int32_t s, LinkId l, std::uint64_t key, Work bytes) {
  std::vector<ChargeOfKey>& all = charges_[Index(s)].all;
  auto place = std::lower_bound(all.begin(), all.end(), std::pair(l, key),
                                [](const ChargeOfKey& a, const auto& b) { return std::pair(a.link, a.key) < b; });
  if (place == all.end() || place->link != l || place->key != key) place = all.insert(place, {l, key, Work()});
  place->bytes += bytes;
}

// To those that are slowed on its links, before it leaves them.
void FlowNetwork::ChargeForLeaver(std::int32_t s) {
  const Slot& leaver = slots_[Index(s)];
  for (const Hop& left : HopsOf(leaver)) {
    const Work bytes = DoneOf(leaver) * (Int128{leaver.count} * left.load);
    for (std::int32_t h = LinkOf(left).first_hop; h != kNone; h = hops_[Index(h)].next) {
      const std::int32_t other = hops_[Index(h)].slot;
      if (other != s && charges_[Index(other)].slowed_on == left.link) Charge(other, left.link, leaver.key, bytes);
    }
  }
}

// What an activity that has ended lost on a link, and to whom most.
Victim FlowNetwork::VictimOn(LinkId l, std::int32_t s, Time delay) const {
  Victim victim{delay, slots_[Index(s)].key, 0, Time()};
  if (!options_.attribute_delays) return victim;
  Work all;
  Work most;
  for (const ChargeOfKey& charge : charges_[Index(s)].all) {
    if (charge.link != l) continue;
    all += charge.bytes;
    if (charge.bytes <= most) continue;
    most = charge.bytes;
    victim.taken_by = charge.key;
  }
  if (most == Work()) return victim;
  const double share = static_cast<double>(most.count()) / static_cast<double>(all.count());
  victim.taken = Time(static_cast<std::int64_t>(static_cast<double>(delay.count()) * share));
  return victim;
}

}  // namespace orrery::network
