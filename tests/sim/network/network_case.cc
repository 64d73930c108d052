#include "tests/sim/network/network_case.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/random.h"

namespace orrery::network {
namespace {

constexpr std::int64_t kMicrosecond = 1'000'000;  // ps

// Of the long doubles here; rates are good to 1e-3 units/s per activity on a link.
constexpr long double kSlack = 1e-9L;

std::size_t Index(std::int64_t i) { return static_cast<std::size_t>(i); }

std::vector<LinkLoad> RandomPath(Draws& draws, std::int64_t links, std::int64_t hops, std::int64_t load) {
  std::vector<LinkLoad> path;
  for (std::int64_t h = 0; h < std::min(hops, links); ++h) {
    const auto link = static_cast<LinkId>(draws.Within(0, links - 1));
    if (std::none_of(path.begin(), path.end(), [link](const LinkLoad& l) { return l.link == link; }))
      path.push_back({link, load});
  }
  return path;
}

CaseActivity RandomActivity(CaseKind kind, Draws& draws, std::int64_t links, bool staggered, bool weighted) {
  static constexpr std::int64_t kWeights[] = {1, 2, 3, 4, 6, 12};
  CaseActivity activity;
  if (staggered) activity.start = Time(draws.Within(0, 20'000) * kMicrosecond);
  if (weighted) activity.weight = kWeights[draws.Within(0, 5)];
  const bool coupled = kind == CaseKind::kCoupled || (kind == CaseKind::kAnything && draws.OneIn(2));
  const std::int64_t paths = coupled ? draws.Within(2, 6) : 1;
  for (std::int64_t p = 0; p < paths; ++p) {
    const std::vector<LinkLoad> path = RandomPath(draws, links, draws.Within(1, 5), coupled ? draws.Within(1, 9) : 1);
    activity.loads.insert(activity.loads.end(), path.begin(), path.end());
  }
  activity.units = draws.Within(1, 200) * 1'000'000;
  if (kind != CaseKind::kCoupled && draws.OneIn(5)) activity.cap = draws.Within(1, 100) * 100'000'000;
  if (kind == CaseKind::kAnything) {
    if (draws.OneIn(4)) activity.count = draws.Within(2, 5);
    if (draws.OneIn(4)) activity.min_duration = Time(draws.Within(0, 20'000) * kMicrosecond);
  }
  return activity;
}

}  // namespace

std::int64_t Draws::Within(std::int64_t least, std::int64_t most) {
  const auto range = static_cast<std::uint64_t>(most - least + 1);
  return least + static_cast<std::int64_t>(HashCombine(seed_, next_++) % range);
}

NetworkCase GenerateCase(CaseKind kind, std::uint64_t seed) {
  static constexpr std::int64_t kCapacities[] = {10'000'000'000, 12'500'000'000, 25'000'000'000, 50'000'000'000};
  Draws draws(HashCombine(static_cast<std::uint64_t>(kind), seed));
  NetworkCase result;
  const std::int64_t links = draws.Within(1, 12);
  const bool uniform = draws.OneIn(2);
  for (std::int64_t l = 0; l < links; ++l) result.capacities.push_back(kCapacities[uniform ? 1 : draws.Within(0, 3)]);
  const bool staggered = !draws.OneIn(3);
  const bool weighted = draws.OneIn(3);
  const std::int64_t activities = draws.Within(2, draws.OneIn(4) ? 60 : 15);
  for (std::int64_t a = 0; a < activities; ++a)
    result.activities.push_back(RandomActivity(kind, draws, links, staggered, weighted));
  if (kind != CaseKind::kAnything || draws.OneIn(2)) return result;
  Time time;
  for (std::int64_t c = draws.Within(1, 4); c > 0; --c) {
    time += Time(draws.Within(0, 10'000) * kMicrosecond);
    result.changes.push_back(
        {time, static_cast<LinkId>(draws.Within(0, links - 1)), draws.Within(1, 50) * 1'000'000'000});
  }
  return result;
}

std::string Print(const NetworkCase& network_case) {
  std::string text;
  for (std::size_t l = 0; l < network_case.capacities.size(); ++l)
    absl::StrAppend(&text, "link ", l, ": ", network_case.capacities[l], " bytes/s\n");
  for (std::size_t i = 0; i < network_case.activities.size(); ++i) {
    const CaseActivity& a = network_case.activities[i];
    absl::StrAppend(&text, "activity ", i, ": start ", a.start.count(), " units ", a.units, " weight ", a.weight,
                    " count ", a.count, " cap ", a.cap.value_or(0), " min ", a.min_duration.count(), " loads");
    for (const LinkLoad& load : a.loads) absl::StrAppend(&text, " ", load.link, "x", load.bytes_per_unit);
    absl::StrAppend(&text, "\n");
  }
  for (const CapacityChange& c : network_case.changes)
    absl::StrAppend(&text, "at ", c.time.count(), " link ", c.link, " gets ", c.capacity, " bytes/s\n");
  return text;
}

std::string MaxMinViolation(const NetworkCase& network_case, const std::vector<std::int64_t>& capacities,
                            const std::map<std::size_t, long double>& rates) {
  std::vector<long double> used(capacities.size());
  std::vector<long double> highest_level(capacities.size());
  std::vector<long double> rounding(capacities.size());
  for (const auto& [i, rate] : rates) {
    const CaseActivity& a = network_case.activities[i];
    for (const LinkLoad& load : a.loads) {
      const auto l = Index(load.link);
      used[l] += static_cast<long double>(load.bytes_per_unit * a.count) * rate;
      rounding[l] += 1e-3L * static_cast<long double>(load.bytes_per_unit * a.count * a.weight);
      highest_level[l] = std::max(highest_level[l], rate / static_cast<long double>(a.weight));
    }
  }
  for (std::size_t l = 0; l < capacities.size(); ++l)
    if (used[l] > static_cast<long double>(capacities[l]) * (1 + 1e-15L))
      return absl::StrCat("link ", l, " carries ", static_cast<double>(used[l]), " bytes/s");
  for (const auto& [i, rate] : rates) {
    const CaseActivity& a = network_case.activities[i];
    long double cap = a.cap ? static_cast<long double>(*a.cap) : 1e30L;
    if (a.min_duration > Time())
      cap = std::min(cap, static_cast<long double>(a.units) * 1e12L / static_cast<long double>(a.min_duration.count()));
    if (rate > cap + 1e-3L) return absl::StrCat("activity ", i, " exceeds its cap");
    bool bound = rate >= cap - 1e-3L;
    for (const LinkLoad& load : a.loads) {
      const auto l = Index(load.link);
      const long double capacity = static_cast<long double>(capacities[l]);
      // Full but for what rounding leaves; nobody there is on a higher level.
      bound |= used[l] >= capacity - rounding[l] - capacity * kSlack / 1e3L &&
               rate / static_cast<long double>(a.weight) >= highest_level[l] * (1 - kSlack) - 1e-3L;
    }
    if (!bound) return absl::StrCat("activity ", i, " has no bottleneck at ", static_cast<double>(rate), " units/s");
  }
  return "";
}

namespace {

class Replayer {
 public:
  Replayer(const NetworkCase& network_case, FlowNetworkOptions options, bool check)
      : case_(network_case), network_(options), check_(check), capacities_(network_case.capacities) {
    for (const std::int64_t capacity : capacities_)
      ORRERY_CHECK(network_.AddLink(BytesPerSecondInteger(capacity)).ok());
    run_.ends.resize(network_case.activities.size());
    handles_.resize(network_case.activities.size());
  }

  CaseRun Run(std::vector<std::size_t> order) {
    std::sort(order.begin(), order.end(), [&, rank = Ranks(order)](std::size_t a, std::size_t b) {
      return std::pair(case_.activities[a].start, rank[a]) < std::pair(case_.activities[b].start, rank[b]);
    });
    std::size_t next_start = 0;
    std::size_t next_change = 0;
    while (true) {
      Time time = network_.NextEvent();
      if (next_start < order.size()) time = std::min(time, case_.activities[order[next_start]].start);
      if (next_change < case_.changes.size()) time = std::min(time, case_.changes[next_change].time);
      if (time == kNever) break;
      Take(time);
      while (next_start < order.size() && case_.activities[order[next_start]].start == time) Start(order[next_start++]);
      while (next_change < case_.changes.size() && case_.changes[next_change].time == time)
        Change(case_.changes[next_change++]);
      if (check_) Check();
    }
    for (std::size_t l = 0; l < capacities_.size(); ++l) run_.uses.push_back(*network_.UseOf(static_cast<LinkId>(l)));
    run_.bypassed = network_.bypassed();
    run_.solves = network_.solves();
    return std::move(run_);
  }

 private:
  static std::vector<std::size_t> Ranks(const std::vector<std::size_t>& order) {
    std::vector<std::size_t> ranks(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) ranks[order[i]] = i;
    return ranks;
  }

  void Take(Time time) {
    const absl::StatusOr<std::span<const Completion>> ends = network_.AdvanceTo(time);
    ORRERY_CHECK(ends.ok());
    for (const Completion& end : *ends) {
      run_.ends[end.key] = end;
      in_progress_.erase(end.key);
    }
  }

  void Start(std::size_t i) {
    const CaseActivity& a = case_.activities[i];
    Activity activity;
    activity.loads = a.loads;
    activity.work = WorkOfUnits(a.units);
    activity.weight = a.weight;
    activity.count = a.count;
    if (a.cap) activity.rate_cap = Rate(*a.cap * kRatePerUnit);
    activity.min_duration = a.min_duration;
    activity.key = i;
    const absl::StatusOr<Handle> handle = network_.Start(a.start, activity);
    ORRERY_CHECK(handle.ok());
    in_progress_[i] = *handle;
  }

  void Change(const CapacityChange& change) {
    ORRERY_CHECK(network_.SetCapacity(change.link, change.time, BytesPerSecondInteger(change.capacity)).ok());
    capacities_[Index(change.link)] = change.capacity;
  }

  void Check() {
    std::map<std::size_t, long double> rates;
    for (const auto& [i, handle] : in_progress_)
      rates[i] = static_cast<long double>(network_.RateOf(handle).count()) / kRatePerUnit;
    if (run_.violation.empty()) run_.violation = MaxMinViolation(case_, capacities_, rates);
  }

  const NetworkCase& case_;
  FlowNetwork network_;
  const bool check_;
  std::vector<std::int64_t> capacities_;
  std::vector<Handle> handles_;
  std::map<std::size_t, Handle> in_progress_;
  CaseRun run_;
};

}  // namespace

CaseRun RunCase(const NetworkCase& network_case, FlowNetworkOptions options, std::vector<std::size_t> order,
                bool check) {
  if (order.empty()) {
    order.resize(network_case.activities.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
  }
  return Replayer(network_case, options, check).Run(std::move(order));
}

// --- The reference: water rises in long double; every event solves everything.
namespace {

struct ReferenceState {
  const NetworkCase& c;
  std::vector<long double> capacities;
  std::vector<long double> left;
  std::vector<bool> running;
  std::vector<long double> rates;

  long double Cap(std::size_t i) const {
    const CaseActivity& a = c.activities[i];
    long double cap = a.cap ? static_cast<long double>(*a.cap) : 1e30L;
    if (a.min_duration > Time())
      cap = std::min(cap, static_cast<long double>(a.units) * 1e12L / static_cast<long double>(a.min_duration.count()));
    return cap;
  }

  void Solve() {
    std::vector<bool> open = running;
    std::vector<long double> free = capacities;
    while (std::find(open.begin(), open.end(), true) != open.end()) {
      std::vector<long double> slope(free.size());
      for (std::size_t i = 0; i < open.size(); ++i)
        if (open[i])
          for (const LinkLoad& load : c.activities[i].loads)
            slope[Index(load.link)] +=
                static_cast<long double>(load.bytes_per_unit * c.activities[i].weight * c.activities[i].count);
      const auto share = [&](std::size_t l) { return std::max(0.0L, free[l]) / slope[l]; };
      long double level = 1e30L;
      for (std::size_t l = 0; l < free.size(); ++l)
        if (slope[l] > 0) level = std::min(level, share(l));
      for (std::size_t i = 0; i < open.size(); ++i)
        if (open[i]) level = std::min(level, Cap(i) / static_cast<long double>(c.activities[i].weight));
      std::vector<std::size_t> frozen;
      for (std::size_t i = 0; i < open.size(); ++i) {
        if (!open[i]) continue;
        const auto weight = static_cast<long double>(c.activities[i].weight);
        bool stops = Cap(i) / weight <= level * (1 + 1e-12L);
        for (const LinkLoad& load : c.activities[i].loads) stops |= share(Index(load.link)) <= level * (1 + 1e-12L);
        if (stops) frozen.push_back(i);
      }
      for (const std::size_t i : frozen) {
        open[i] = false;
        rates[i] = level * static_cast<long double>(c.activities[i].weight);
        for (const LinkLoad& load : c.activities[i].loads)
          free[Index(load.link)] -= rates[i] * static_cast<long double>(load.bytes_per_unit * c.activities[i].count);
      }
    }
  }
};

}  // namespace

std::vector<long double> ReferenceEnds(const NetworkCase& c) {
  const std::size_t n = c.activities.size();
  ReferenceState state{c, {}, {}, std::vector<bool>(n), std::vector<long double>(n)};
  for (const std::int64_t capacity : c.capacities) state.capacities.push_back(static_cast<long double>(capacity));
  for (const CaseActivity& a : c.activities) state.left.push_back(static_cast<long double>(a.units));
  std::vector<long double> ends(n, -1);
  const auto seconds = [](Time time) { return static_cast<long double>(time.count()) / 1e12L; };
  std::vector<bool> started(n);
  std::size_t next_change = 0;
  long double now = 0;
  while (true) {
    // What ended, within a relative 1e-15 of its work; then what starts and changes at this instant.
    for (std::size_t i = 0; i < n; ++i) {
      if (!state.running[i] || state.left[i] > static_cast<long double>(c.activities[i].units) * 1e-15L) continue;
      ends[i] = now;
      state.running[i] = false;
    }
    for (std::size_t i = 0; i < n; ++i)
      if (!started[i] && seconds(c.activities[i].start) <= now) started[i] = state.running[i] = true;
    for (; next_change < c.changes.size() && seconds(c.changes[next_change].time) <= now; ++next_change)
      state.capacities[Index(c.changes[next_change].link)] = static_cast<long double>(c.changes[next_change].capacity);
    state.Solve();
    long double next = 1e30L;
    for (std::size_t i = 0; i < n; ++i) {
      if (state.running[i]) next = std::min(next, now + state.left[i] / state.rates[i]);
      if (!started[i]) next = std::min(next, seconds(c.activities[i].start));
    }
    if (next_change < c.changes.size()) next = std::min(next, seconds(c.changes[next_change].time));
    if (next >= 1e30L) return ends;
    for (std::size_t i = 0; i < n; ++i)
      if (state.running[i]) state.left[i] -= state.rates[i] * (next - now);
    now = next;
  }
}

}  // namespace orrery::network
