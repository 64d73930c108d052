// Flow-level contention: activities that share links, over time.
//
// A link is one direction of a cable. An activity is coupled: one unit of its progress puts bytes_per_unit bytes on
// each of its links, all at once, so that it advances at its slowest hop and is one variable however many hops it has.
// A message is the case of one path with one byte per unit; a ring all-reduce loads every hop of its ring. At any
// instant the rates of progress are weighted max-min (progressive_filling.h) under the links' capacities and each
// activity's alone rate,
//
//   alone_i = min(rate cap, work / minimal duration, min over its links of C_l / a_il),
//
// what it would have if nothing shared. A link can bind only if sum_i a_il alone_i > C_l. Those that cannot are left
// out of the solver, which does not change the rates; an activity that no link can slow bypasses it. When activities
// start or end or a capacity changes, what is connected to the change through links that can bind is solved again, and
// nothing else.
//
// Arithmetic is integer, so that results do not depend on order, bundling, how much is solved again, or the compiler:
//   rates       1e-3 units/s, rounded down: fine enough that what rounding leaves to others stays far below 1e-6 of a
//   share work        1e-15 units on 128 bits: a rate times a Time in picoseconds, exactly completion  rounded up to a
//   picosecond
// An activity that never shared takes exactly max(minimal duration, ceil(work / alone)): DurationAlone.
//
// Who slowed whom. Activity i is slowed on link l while l is its bottleneck and rate_i < alone_i; its delay there is
// the integral of (alone_i - rate_i) / alone_i over that time. Of it, activity j takes the share
//
//   B_ijl / sum over j of B_ijl,   B_ijl = bytes that j put on l while i was slowed there,
//
// where activities of one key are one, and the others that i stands for or is bundled with are among them. Bytes are
// exact, so that shares do not depend on order, bundling or what is solved again either.
//
// All changes of one instant apply before any rate is computed again. Time 0 is the beginning; it never goes back.
// Source: D. Bertsekas and R. Gallager, "Data Networks", 2nd edition, section 6.5.2; validity (large transfers under a
// transport that shares fairly): P. Velho et al., "On the validity of flow-level TCP network models", TOMACS 23(4),
// 2013.
#ifndef ORRERY_SIM_NETWORK_FLOW_NETWORK_H_
#define ORRERY_SIM_NETWORK_FLOW_NETWORK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "sim/network/finish_queue.h"
#include "sim/network/progressive_filling.h"
#include "sim/network/work.h"

namespace orrery::network {

using LinkId = std::int32_t;  // from 0, in the order of AddLink
inline constexpr LinkId kNoLink = ProgressiveFilling::kOwnCap;

using BytesPerSecondInteger = Quantity<struct BytesPerSecondIntegerTag, std::int64_t>;
// One petabyte per second, thousands of times the fastest port: sums stay far inside 64 bits.
inline constexpr BytesPerSecondInteger kMaxCapacity(1'000'000'000'000'000);

struct LinkLoad {
  LinkId link = 0;
  // At least 1. The unit of progress is the caller's: one that makes loads small numbers (at most about a million)
  // keeps rates precise.
  std::int64_t bytes_per_unit = 1;
};

struct Activity {
  // Links named twice add up. May be empty where there is a cap or a minimal duration.
  std::span<const LinkLoad> loads;
  Work work;                // at least 0
  std::int64_t weight = 1;  // at least 1: its share of a contended link, in proportion, of progress
  // A bundle of that many equal activities, each with these loads and this work; they progress and end together.
  std::int64_t count = 1;
  // It stands for that many, each on links like these, where the loads are those of all on one link: weighs the delays
  // that links sum up. By load, at least 1, what one of them puts on such a link, which is what it has to itself alone;
  // empty: all of it.
  std::int64_t alike = 1;
  std::span<const std::int64_t> of_one = {};
  std::optional<Rate> rate_cap;  // protocol limit, at least 1
  Time min_duration;             // never shorter than this, as if the cap were work / min_duration
  // Orders completions of one instant; distinct keys make their order total. Names it in reports.
  std::uint64_t key = 0;
};

struct Handle {
  std::int32_t slot = -1;
  std::uint32_t serial = 0;
  friend bool operator==(const Handle&, const Handle&) = default;
};

struct Completion {
  Handle activity;
  std::uint64_t key = 0;
  Time start;
  Time end;
  // How much earlier it would have ended had it not had to share, and the link that caused most of that; kNoLink where
  // it was never slowed.
  Time delay;
  LinkId bottleneck = kNoLink;
  bool bypassed = false;  // never in the solver: no link that it used could have slowed it
};

// What an activity lost on a link.
struct Victim {
  Time delay;
  std::uint64_t key = 0;
  // With attribute_delays: key of the activity that took most of that, the smallest where several, and how much.
  std::uint64_t taken_by = 0;
  Time taken;

  // Greater delays come first, of equal ones the smallest key.
  friend bool operator<(const Victim& a, const Victim& b) {
    return std::tuple(-a.delay.count(), a.key, a.taken_by, -a.taken.count()) <
           std::tuple(-b.delay.count(), b.key, b.taken_by, -b.taken.count());
  }
};

// One link from time 0 until now.
struct LinkUse {
  LinkId link = 0;
  Work bytes;                   // carried, in 1e-15 bytes
  Time busy;                    // with at least one activity on it
  double utilisation = 0;       // bytes carried / bytes that it could have carried
  std::int64_t activities = 0;  // that used it and ended
  Time delay;                   // by which it slowed them: the sum over them
  Victim most;                  // the greatest
};

// How far an activity in progress is.
struct Progress {
  Handle activity;
  Time start;
  Work left;   // at `since`
  Time since;  // when progress was booked
  Rate rate;   // since then
  LinkId bottleneck = kNoLink;
};

struct FlowNetworkOptions {
  // False: every change solves everything again. The answers are the same; for tests.
  bool incremental = true;
  // Says who took what activities lost (Victim::taken_by). Costs time where many share links.
  bool attribute_delays = false;
};

class FlowNetwork {
 public:
  explicit FlowNetwork(FlowNetworkOptions options = {}) : options_(options) {}

  // InvalidArgument: capacity outside [1, kMaxCapacity].
  absl::StatusOr<LinkId> AddLink(BytesPerSecondInteger capacity);

  // What the activity takes when it shares with nobody, with the capacities of now. InvalidArgument: as Start, but for
  // what others or the time make impossible.
  absl::StatusOr<Time> DurationAlone(const Activity& activity);

  // InvalidArgument, naming the culprit: unknown link, load, weight, count or cap below 1, negative work or duration,
  // no limit at all, more than 106 days alone, a link with so much on it that a share would round to 0, time before
  // now. FailedPrecondition: completions before `time` have not been taken. An activity that is refused changes nothing
  // but now.
  absl::StatusOr<Handle> Start(Time time, const Activity& activity);

  // Asks memory for what an activity with these loads will look at. Changes nothing; the links must exist.
  void Fetch(std::span<const LinkLoad> loads) const {
    for (const LinkLoad& load : loads) {
      FetchBytes(&links_[Index(load.link)], sizeof(Link));
      FetchBytes(&traffic_[Index(load.link)], sizeof(Traffic));
    }
  }

  // The capacity from `time` on. Errors as Start and AddLink.
  absl::Status SetCapacity(LinkId link, Time time, BytesPerSecondInteger capacity);

  // The next completion if nothing else happens; kNever if none within 106 days.
  Time NextEvent();

  // Moves to `time`; all that ended by then, by (end, key), each once, valid until the next call. Nothing can start in
  // the past: whoever reacts to completions advances to NextEvent at most. InvalidArgument: time before now.
  absl::StatusOr<std::span<const Completion>> AdvanceTo(Time time);

  Time now() const { return now_; }
  std::size_t num_links() const { return links_.size(); }
  std::int64_t active() const { return active_; }        // activities in progress; a bundle counts as `count`
  std::int64_t completed() const { return completed_; }  // likewise
  std::int64_t bypassed() const { return bypassed_; }    // of the completed: never in the solver
  // Of the completed: without delay, those that were in the solver and had their alone rate all the same included.
  std::int64_t never_slowed() const { return never_slowed_; }
  std::int64_t solves() const { return solves_; }  // fillings, of however many activities

  // Of all activities in progress, in no order, as they go on from now.
  std::vector<Progress> UnderWay();
  // The rate from now on; 0 for an activity that ended.
  Rate RateOf(Handle activity);
  // InvalidArgument: unknown link.
  absl::StatusOr<LinkUse> UseOf(LinkId link) const;
  // The `count` busiest links, by utilisation, then id.
  std::vector<LinkUse> Busiest(std::size_t count) const;

 private:
  static constexpr std::int32_t kNone = -1;
  static constexpr std::size_t kCacheLine = 64;
  // How many activities or links ahead memory is asked for: enough to hide its latency; 3 to 8 are equally fast.
  static constexpr std::size_t kAhead = 4;

  // One activity on one link; those of a link are a list.
  struct Hop {
    LinkId link = 0;
    std::int32_t slot = 0;
    std::int32_t next = kNone;  // in hops_
    std::int32_t previous = kNone;
    std::int64_t load = 0;
    bool can_bind = false;  // the link: here, too, because most cannot, and need not be looked at then
  };
  // What starting and solving look at: one cache line.
  struct alignas(kCacheLine) Link {
    Int128 spare = 0;  // capacity - sum of count x load x alone rate; it can bind where that is negative
    Rate capacity;
    std::int64_t unit_demand = 0;  // sum of count x load x weight
    Time busy_since;
    std::int32_t first_hop = kNone;
    std::int32_t local = 0;   // index in filling_, of this visit
    std::uint64_t visit = 0;  // the last in which it was looked at
    bool can_bind = false;
    bool changed = false;            // in changed_links_
    std::int32_t described = kNone;  // in described_hops_, while there
  };
  // Of the activities that ended.
  struct Traffic {
    Work bytes;
    std::int64_t activities = 0;
    Time busy;
  };
  struct alignas(kCacheLine) Reported {
    Work could_carry;  // before `capacity_since`
    Time capacity_since;
    Time delay;
    // The greatest, and who took most of it.
    Victim most;
  };
  struct Delay {
    Work lost;  // (alone rate - rate) x time since the alone rate changed
    Time time;  // before that
    LinkId link = 0;
    std::int32_t next = kNone;  // in delays_
  };
  // What is asked of an activity, beside its hops.
  struct Description {
    Work work;
    Time min_duration;
    Rate limit;  // what caps it beside its links
    Rate alone;
    std::int64_t weight = 1;
    std::int64_t count = 1;
    std::int64_t alike = 1;
    std::uint64_t key = 0;
    bool is_several = false;  // has loads of one
  };
  struct alignas(kCacheLine) Slot {
    // What solving looks at: one cache line.
    std::int32_t first_hop = 0;  // in hops_
    std::int32_t num_hops = 0;
    std::int32_t binding = 0;  // those whose link can bind
    LinkId bottleneck = kNoLink;
    std::uint64_t visit = 0;
    Rate alone;
    Rate rate;
    std::int64_t weight = 1;
    std::int64_t count = 1;
    bool active = false;
    bool bypassed = true;
    bool is_several = false;  // has loads of one
    bool stale = true;        // has no rate, or one for another alone rate
    std::uint32_t serial = 0;
    // What booking progress and ending look at: another.
    Work left;   // at `since`
    Time since;  // when progress was booked
    Time start;
    Work work;
    std::uint64_t key = 0;
    std::int32_t first_delay = kNone;  // in delays_
    std::int32_t room = 0;             // hops reserved
  };
  // What is seldom looked at.
  struct SlotTerms {
    Time min_duration;
    Rate limit;  // what caps it beside its links
    std::int64_t alike = 1;
  };
  // Bytes that activities of a key put on a link while another was slowed there. While that lasts, without what those
  // in progress had put there when it began.
  struct ChargeOfKey {
    LinkId link = 0;
    std::uint64_t key = 0;
    Work bytes;
  };
  struct Charges {
    LinkId slowed_on = kNoLink;
    std::vector<ChargeOfKey> all;  // by (link, key)
  };

  static std::size_t Index(std::int32_t i) { return static_cast<std::size_t>(i); }
  // Asks memory for what is looked at soon. Inlined, or g++ 12 finds that calling it has no effect and drops the call.
  [[gnu::always_inline]] static void FetchBytes(const void* at, std::size_t size) {
    for (std::size_t i = 0; i < size; i += kCacheLine) __builtin_prefetch(static_cast<const char*>(at) + i, 1);
  }
  bool HasLink(LinkId link) const { return link >= 0 && Index(link) < links_.size(); }
  Link& LinkOf(const Hop& hop) { return links_[Index(hop.link)]; }
  std::span<Hop> HopsOf(const Slot& slot) { return {hops_.data() + slot.first_hop, Index(slot.num_hops)}; }
  // Loads of one, by hop; empty: all of it is.
  std::span<const std::int64_t> LoadsOfOne(const Slot& slot) const {
    if (!slot.is_several) return {};
    return {loads_of_one_.data() + slot.first_hop, Index(slot.num_hops)};
  }

  // Checks; the activity goes to described_ and described_hops_.
  absl::Status CheckLink(LinkId link) const;
  absl::Status Describe(const Activity& activity);
  absl::Status DescribeLoads(const Activity& activity);
  absl::Status CheckShares() const;
  absl::Status MoveTo(Time time);
  Rate AloneRate(Rate limit, std::span<const Hop> hops, std::span<const std::int64_t> of_one) const;

  // What one activity is on its links.
  std::int32_t TakeSlot();
  void Join(std::int32_t s);
  void Leave(std::int32_t s);
  void Demand(const Slot& slot, int sign);
  void Flip(LinkId l);
  void MarkChanged(LinkId l);

  // Rates.
  void Refresh();
  void ResolveSlot(std::int32_t s);
  void ResolveLink(LinkId l);
  void BeginProblem();
  void Open(std::int32_t s);
  void Touch(LinkId l);
  void SolveProblem();
  void FillProblem();
  bool OpenTheMoved(bool all);
  void Settle(Slot& slot);
  void SetRate(std::int32_t s, Rate rate, LinkId bottleneck);

  // Completions.
  void EndAllOf(Time time);
  void End(std::int32_t s);

  // Reports.
  void CloseDelays(const Slot& slot);
  void DropDelays(Slot& slot);
  Delay& DelayOn(Slot& slot, LinkId l);
  void ReportDelays(std::int32_t s, Completion& completion);
  Work DoneOf(const Slot& slot) const;
  LinkUse Use(LinkId l) const;

  // Who took what was lost.
  void SlowOn(std::int32_t s, LinkId l);
  void ChargeUsers(std::int32_t s, LinkId l, int sign);
  void Charge(std::int32_t s, LinkId l, std::uint64_t key, Work bytes);
  void ChargeForLeaver(std::int32_t s);
  Victim VictimOn(LinkId l, std::int32_t s, Time delay) const;

  FlowNetworkOptions options_;
  Time now_;
  std::vector<Link> links_;
  std::vector<Traffic> traffic_;    // by link
  std::vector<Reported> reported_;  // by link
  std::vector<Slot> slots_;
  std::vector<SlotTerms> terms_;  // by slot
  std::vector<Delay> delays_;
  std::int32_t free_delay_ = kNone;  // in delays_
  std::vector<Hop> hops_;
  std::vector<std::int64_t> loads_of_one_;  // by hop, of activities that are several
  std::vector<Charges> charges_;            // by slot; empty unless delays are attributed
  std::vector<std::int32_t> free_slots_;
  std::int64_t active_ = 0;
  std::int64_t completed_ = 0;
  std::int64_t bypassed_ = 0;
  std::int64_t never_slowed_ = 0;
  std::int64_t solves_ = 0;

  // What the changes of this instant may have moved.
  std::vector<LinkId> changed_links_;
  std::vector<std::int32_t> changed_slots_;

  FinishQueue finishes_;
  std::vector<Completion> ended_;
  std::vector<Completion> taken_;

  // The problem being solved.
  struct Outsider {
    std::int32_t slot = 0;
    LinkId link = 0;
    std::int64_t level = 0;
  };
  std::uint64_t visit_ = 0;  // its number
  std::vector<LinkId> problem_links_;
  std::vector<std::int32_t> problem_slots_;
  std::vector<Outsider> outsiders_;

  // Scratch.
  std::vector<std::int32_t> ending_;
  ProgressiveFilling filling_;
  Description described_;
  std::vector<Hop> described_hops_;
  std::vector<std::int64_t> described_of_one_;
};

}  // namespace orrery::network

#endif  // ORRERY_SIM_NETWORK_FLOW_NETWORK_H_
