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
// All changes of one instant apply before any rate is computed again. Time 0 is the beginning; it never goes back.
// Source: D. Bertsekas and R. Gallager, "Data Networks", 2nd edition, section 6.5.2; validity (large transfers under a
// transport that shares fairly): P. Velho et al., "On the validity of flow-level TCP network models", TOMACS 23(4),
// 2013.
#ifndef ORRERY_SIM_NETWORK_FLOW_NETWORK_H_
#define ORRERY_SIM_NETWORK_FLOW_NETWORK_H_

#include <cstdint>
#include <optional>
#include <span>
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
  std::optional<Rate> rate_cap;  // protocol limit, at least 1
  Time min_duration;             // never shorter than this, as if the cap were work / min_duration
  std::uint64_t key = 0;         // orders completions of one instant; distinct keys make their order total
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

// One link from time 0 until now.
struct LinkUse {
  LinkId link = 0;
  Work bytes;                      // carried, in 1e-15 bytes
  Time busy;                       // with at least one activity on it
  double utilisation = 0;          // bytes carried / bytes that it could have carried
  std::int64_t activities = 0;     // that used it and ended
  Time delay;                      // by which it slowed them: the sum over them
  std::uint64_t most_delayed = 0;  // key of the activity that it slowed most, the smallest where several; if delay > 0
  Time most_delay;
};

struct FlowNetworkOptions {
  // False: every change solves everything again. The answers are the same; for tests.
  bool incremental = true;
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
      __builtin_prefetch(&links_[Index(load.link)], 1);
      __builtin_prefetch(&traffic_[Index(load.link)], 1);
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
  std::int64_t bypassed() const { return bypassed_; }    // of the completed
  std::int64_t solves() const { return solves_; }        // fillings, of however many activities

  // The rate from now on; 0 for an activity that ended.
  Rate RateOf(Handle activity);
  // InvalidArgument: unknown link.
  absl::StatusOr<LinkUse> UseOf(LinkId link) const;
  // The `count` busiest links, by utilisation, then id.
  std::vector<LinkUse> Busiest(std::size_t count) const;

 private:
  static constexpr std::int32_t kNone = -1;

  // One activity on one link; those of a link are a list.
  struct Hop {
    LinkId link = 0;
    std::int32_t slot = 0;
    std::int32_t next = kNone;  // in hops_
    std::int32_t previous = kNone;
    std::int64_t load = 0;
  };
  // What starting and solving look at: one cache line.
  struct alignas(64) Link {
    Int128 demand = 0;  // sum of count x load x alone rate
    Rate capacity;
    std::int64_t unit_demand = 0;  // sum of count x load x weight
    Time busy_since;
    std::int32_t first_hop = kNone;
    std::int32_t local = 0;   // index in filling_, of this visit
    std::uint64_t visit = 0;  // the last in which it was looked at
    bool can_bind = false;
    bool changed = false;  // in changed_links_
  };
  // Of the activities that ended.
  struct Traffic {
    Work bytes;
    std::int64_t activities = 0;
    Time busy;
  };
  struct Reported {
    Time capacity_since;
    Work could_carry;  // before that
    Time delay;
    Time most_delay;
    std::uint64_t most_delayed = 0;
  };
  struct Delay {
    LinkId link = 0;
    Work lost;  // (alone rate - rate) x time since the alone rate changed
    Time time;  // before that
  };
  struct Slot {
    std::int32_t first_hop = 0;  // in hops_
    std::int32_t num_hops = 0;
    std::int32_t room = 0;     // hops reserved
    std::int32_t binding = 0;  // hops whose link can bind
    std::uint32_t serial = 0;
    std::uint64_t visit = 0;
    LinkId bottleneck = kNoLink;
    bool active = false;
    bool bypassed = true;
    bool stale = true;  // has no rate, or one for another alone rate
    Rate alone;
    Rate rate;
    Work left;   // at `since`
    Time since;  // when progress was booked
    Time start;
    Time min_duration;
    std::int64_t weight = 1;
    std::int64_t count = 1;
    Work work;
    std::uint64_t key = 0;
    Rate limit;  // what caps it beside its links
    std::vector<Delay> delays;
  };

  static std::size_t Index(std::int32_t i) { return static_cast<std::size_t>(i); }
  Link& LinkOf(const Hop& hop) { return links_[Index(hop.link)]; }
  std::span<Hop> HopsOf(const Slot& slot) { return {hops_.data() + slot.first_hop, Index(slot.num_hops)}; }

  // Checks; the activity goes to described_ and described_hops_.
  absl::Status CheckLink(LinkId link) const;
  absl::Status Describe(const Activity& activity);
  absl::Status DescribeLoads(const Activity& activity);
  absl::Status CheckShares() const;
  absl::Status MoveTo(Time time);
  Rate AloneRate(Rate limit, std::span<const Hop> hops) const;

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
  static void CloseDelays(Slot& slot);
  void ReportDelays(Slot& slot, Completion& completion);
  LinkUse Use(LinkId l) const;

  FlowNetworkOptions options_;
  Time now_;
  std::vector<Link> links_;
  std::vector<Traffic> traffic_;    // by link
  std::vector<Reported> reported_;  // by link
  std::vector<Slot> slots_;
  std::vector<Hop> hops_;
  std::vector<std::int32_t> free_slots_;
  std::int64_t active_ = 0;
  std::int64_t completed_ = 0;
  std::int64_t bypassed_ = 0;
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
  };
  std::uint64_t visit_ = 0;  // its number
  std::vector<LinkId> problem_links_;
  std::vector<std::int32_t> problem_slots_;
  std::vector<Outsider> outsiders_;

  // Scratch.
  std::vector<std::int32_t> ending_;
  ProgressiveFilling filling_;
  Slot described_;
  std::vector<Hop> described_hops_;
  std::vector<std::int32_t> hop_of_link_;  // [link], of described_: 1 + index, 0 where it has none
};

}  // namespace orrery::network

#endif  // ORRERY_SIM_NETWORK_FLOW_NETWORK_H_
