// Generated cases for the flow network, what it makes of them, and two independent judges: a solver in long double that
// looks at every link, and a check of the max-min conditions.
#ifndef ORRERY_TESTS_SIM_NETWORK_NETWORK_CASE_H_
#define ORRERY_TESTS_SIM_NETWORK_NETWORK_CASE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/network/flow_network.h"

namespace orrery::network {

// Draws in sequence from one seed.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  std::int64_t Within(std::int64_t least, std::int64_t most);  // inclusive
  bool OneIn(std::int64_t n) { return Within(1, n) == 1; }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

struct CaseActivity {
  Time start;
  std::vector<LinkLoad> loads;
  std::int64_t units = 0;
  std::int64_t weight = 1;
  std::int64_t count = 1;
  std::optional<std::int64_t> cap;  // units/s
  Time min_duration;
};

struct CapacityChange {
  Time time;
  LinkId link = 0;
  std::int64_t capacity = 0;  // bytes/s
};

struct NetworkCase {
  std::vector<std::int64_t> capacities;  // bytes/s, by link
  std::vector<CaseActivity> activities;
  std::vector<CapacityChange> changes;  // by time
};

std::string Print(const NetworkCase& network_case);

enum class CaseKind {
  kFlows,     // one path each, one byte per unit
  kCoupled,   // several paths each, with different bytes per unit
  kAnything,  // both, with bundles, caps, minimal durations and capacity changes
};
NetworkCase GenerateCase(CaseKind kind, std::uint64_t seed);

struct CaseRun {
  std::vector<Completion> ends;  // by activity
  std::vector<LinkUse> uses;     // by link, when all has ended
  std::int64_t bypassed = 0;
  std::int64_t solves = 0;
  std::string violation;  // the first breach of the max-min conditions, if any
};

// Replays the case. The activities of an instant start in the order of `order` (indices); empty: 0, 1, 2, ... With
// `check`, the max-min conditions are checked after every change.
CaseRun RunCase(const NetworkCase& network_case, FlowNetworkOptions options = {}, std::vector<std::size_t> order = {},
                bool check = false);

// End of each activity in seconds.
std::vector<long double> ReferenceEnds(const NetworkCase& network_case);

// Empty if `rates` (units/s, of one of the count, by index of the activities in progress) are max-min fair within
// rounding, else what is wrong: a link above its capacity, a cap exceeded, or an activity without a bottleneck.
std::string MaxMinViolation(const NetworkCase& network_case, const std::vector<std::int64_t>& capacities,
                            const std::map<std::size_t, long double>& rates);

}  // namespace orrery::network

#endif  // ORRERY_TESTS_SIM_NETWORK_NETWORK_CASE_H_
