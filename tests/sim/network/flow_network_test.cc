// Hand-derived sharing. Links are of a few units of 1e9 bytes/s, so that seconds come out small.
#include "sim/network/flow_network.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace orrery::network {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kGiga = 1'000'000'000;

Time S(double seconds) { return TimeFromSeconds(seconds); }

// Keeps what it starts alive and collects completions.
class Net {
 public:
  explicit Net(const std::vector<std::int64_t>& giga_bytes_per_second, FlowNetworkOptions options = {})
      : network(options) {
    for (const std::int64_t c : giga_bytes_per_second)
      EXPECT_TRUE(network.AddLink(BytesPerSecondInteger(c * kGiga)).ok());
  }

  // Keys count from 0.
  Handle Start(double at, std::vector<LinkLoad> loads, double giga_units, Activity activity = {}) {
    activity.loads = loads;
    activity.work = WorkOfUnits(static_cast<std::int64_t>(giga_units * 1e9));
    activity.key = next_key_++;
    const absl::StatusOr<Handle> handle = network.Start(S(at), activity);
    EXPECT_TRUE(handle.ok()) << handle.status();
    return handle.value_or(Handle());
  }

  // All that is still to come, in order.
  std::vector<Completion> Rest() {
    std::vector<Completion> ends;
    for (Time next = network.NextEvent(); next != kNever; next = network.NextEvent()) {
      const auto now = network.AdvanceTo(next);
      EXPECT_TRUE(now.ok());
      if (!now.ok()) break;
      ends.insert(ends.end(), now->begin(), now->end());
    }
    return ends;
  }

  // Ends by key in seconds.
  std::vector<double> Ends() {
    std::vector<double> ends(next_key_, -1);
    for (const Completion& end : Rest()) ends[end.key] = SecondsFromTime(end.end);
    return ends;
  }

  double GigaRate(Handle handle) { return static_cast<double>(network.RateOf(handle).count()) / 1e12; }

  FlowNetwork network;

 private:
  std::uint64_t next_key_ = 0;
};

Activity Weighing(std::int64_t weight) {
  Activity activity;
  activity.weight = weight;
  return activity;
}
Activity Capped(std::int64_t giga_units_per_second) {
  Activity activity;
  activity.rate_cap = Rate(giga_units_per_second * kGiga * kRatePerUnit);
  return activity;
}

TEST(FlowNetwork, OneFlowTakesItsBytesOverTheSlowestHop) {
  Net net({4, 2, 8});
  net.Start(1, {{0}, {1}, {2}}, 3);
  EXPECT_THAT(net.Ends(), ElementsAre(1 + 3.0 / 2));
  EXPECT_EQ(net.network.bypassed(), 1);
  EXPECT_EQ(net.network.solves(), 0);
}

// 3 GB at 7 GB/s: 0.428571428571 4... s, up to the next picosecond.
TEST(FlowNetwork, CompletionIsRoundedUpToAPicosecond) {
  Net net({7});
  net.Start(0, {{0}}, 3);
  EXPECT_EQ(net.network.NextEvent(), Time(428'571'428'572));
}

// Both have 1 GB/s for 1 s; then the second has all 2: 1 + 1/2.
TEST(FlowNetwork, TwoFlowsShareALink) {
  Net net({2});
  net.Start(0, {{0}}, 1);
  net.Start(0, {{0}}, 2);
  EXPECT_THAT(net.Ends(), ElementsAre(1, 1.5));
}

// The parking lot: the long flow crosses three links of 1 GB/s, each with one short flow. All have 1/2.
TEST(FlowNetwork, ParkingLot) {
  Net net({1, 1, 1});
  const Handle long_flow = net.Start(0, {{0}, {1}, {2}}, 1);
  for (const LinkId l : {0, 1, 2}) net.Start(0, {{l}}, 1);
  EXPECT_EQ(net.GigaRate(long_flow), 0.5);
  EXPECT_THAT(net.Ends(), ElementsAre(2, 2, 2, 2));
}

// Bertsekas and Gallager, section 6.5.2, its example of five sessions on links of capacity 1: three sessions on one
// link have 1/3, and what one of them leaves of the next link goes to the session there: 2/3. The last has a link for
// itself.
TEST(FlowNetwork, WhatOneLeavesGoesToOthers) {
  Net net({3, 3, 3});
  const Handle a = net.Start(0, {{0}}, 1);
  const Handle b = net.Start(0, {{0}}, 1);
  const Handle c = net.Start(0, {{0}, {1}}, 1);
  const Handle d = net.Start(0, {{1}}, 1);
  const Handle e = net.Start(0, {{2}}, 1);
  EXPECT_EQ(net.GigaRate(a), 1);
  EXPECT_EQ(net.GigaRate(b), 1);
  EXPECT_EQ(net.GigaRate(c), 1);
  EXPECT_EQ(net.GigaRate(d), 2);
  EXPECT_EQ(net.GigaRate(e), 3);
}

// Weights 1 and 3 on 4 GB/s: 1 and 3. The second ends after 2 s; the first has 2 of 4 GB left at 4 GB/s.
TEST(FlowNetwork, WeightsShareInProportion) {
  Net net({4});
  net.Start(0, {{0}}, 4);
  net.Start(0, {{0}}, 6, Weighing(3));
  EXPECT_THAT(net.Ends(), ElementsAre(2.5, 2));
}

// 6 GB/s, progress r each: a puts r and b puts 2 r on the link: r = 2. a ends after 1 s (2 G units); b then has 3 - 2 =
// 1 G units at 6 / 2 = 3: 1/3 s more.
TEST(FlowNetwork, CoefficientsAreBytesPerUnitOfProgress) {
  Net net({6});
  const Handle a = net.Start(0, {{0, 1}}, 2);
  const Handle b = net.Start(0, {{0, 2}}, 3);
  EXPECT_EQ(net.GigaRate(a), 2);
  EXPECT_EQ(net.GigaRate(b), 2);
  EXPECT_THAT(net.Ends(), ElementsAre(1, testing::DoubleNear(4.0 / 3, 1e-12)));
}

// A collective with 2 bytes per unit on link 0 (8 GB/s) and 1 on link 1 (3 GB/s) would go at min(4, 3) = 3 alone. A
// flow on link 1 halves it there: 1.5. Link 0 then carries 3 of 8 GB/s, and a flow there has 5.
TEST(FlowNetwork, ACoupledActivityAdvancesAtItsSlowestHop) {
  Net net({8, 3});
  const Handle collective = net.Start(0, {{0, 2}, {1, 1}}, 3);
  EXPECT_EQ(net.GigaRate(collective), 3);
  const Handle flow = net.Start(0, {{1}}, 3);
  const Handle other = net.Start(0, {{0}}, 5);
  EXPECT_EQ(net.GigaRate(collective), 1.5);
  EXPECT_EQ(net.GigaRate(flow), 1.5);
  EXPECT_EQ(net.GigaRate(other), 5);
}

// Loads of one link add up: two paths of the activity cross it.
TEST(FlowNetwork, ALinkNamedTwiceIsLoadedTwice) {
  Net net({6});
  net.Start(0, {{0, 1}, {0, 2}}, 2);
  EXPECT_THAT(net.Ends(), ElementsAre(1));
}

// A cap of 1 on 4 GB/s leaves 3 to the other, who ends after 1 s; the capped one never notices.
TEST(FlowNetwork, ACapLeavesTheRestToOthers) {
  Net net({4});
  net.Start(0, {{0}}, 2, Capped(1));
  net.Start(0, {{0}}, 3);
  std::vector<Completion> ends = net.Rest();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].end, S(1));
  EXPECT_EQ(ends[1].end, S(2));
  EXPECT_EQ(ends[1].delay, Time());
  EXPECT_EQ(ends[1].bottleneck, kNoLink);
  // 3 s of 4 GB/s would have been 0.75 s; it lost 1/4 of its rate for 1 s.
  EXPECT_EQ(ends[0].delay, S(0.25));
  EXPECT_EQ(ends[0].bottleneck, 0);
}

// 1 GB in no less than 0.3 s is a cap of 3.33... GB/s; alone it takes the 0.3 s to the picosecond.
TEST(FlowNetwork, AMinimalDurationIsKeptExactly) {
  Net net({10});
  Activity activity;
  activity.min_duration = Time(300'000'000'001);
  net.Start(0, {{0}}, 1, activity);
  EXPECT_EQ(net.network.NextEvent(), activity.min_duration);
  // Sharing with one that leaves it enough changes nothing; with another, 10 GB/s are shared equally by three.
  const Handle leaves_enough = net.Start(0, {{0}}, 1, Capped(5));
  EXPECT_EQ(net.GigaRate(leaves_enough), 5);
  EXPECT_EQ(net.network.NextEvent(), Time(200'000'000'000));
  EXPECT_EQ(net.Rest().back().end, activity.min_duration);
}

// The first has 2 GB/s alone for 1 s, then 1 GB/s: 4 GB take 1 + 2. The second has 1 for 2 s, then 2: 3 GB, 1 + 2 +
// 0.5.
TEST(FlowNetwork, StaggeredStarts) {
  Net net({2});
  net.Start(0, {{0}}, 4);
  net.Start(1, {{0}}, 3);
  const std::vector<Completion> ends = net.Rest();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].end, S(3));
  EXPECT_EQ(ends[0].delay, S(1));
  EXPECT_EQ(ends[1].end, S(3.5));
  EXPECT_EQ(ends[1].delay, S(1));
  EXPECT_FALSE(ends[0].bypassed);
}

// Halved after 1 s: 4 GB of 2 GB/s take 1 + 2 s. Nobody shared, so nobody was delayed by sharing.
TEST(FlowNetwork, ADegradedLink) {
  Net net({2});
  net.Start(0, {{0}}, 4);
  ASSERT_TRUE(net.network.SetCapacity(0, S(1), BytesPerSecondInteger(kGiga)).ok());
  const std::vector<Completion> ends = net.Rest();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].end, S(3));
  EXPECT_EQ(ends[0].delay, Time());
  EXPECT_TRUE(ends[0].bypassed);
  const LinkUse use = *net.network.UseOf(0);
  EXPECT_TRUE(use.bytes == WorkOfUnits(4 * kGiga));
  EXPECT_EQ(use.utilisation, 1);  // it could have carried 2 x 1 + 1 x 2 GB
}

// Two share 2 GB/s; after 1 s it is 4 GB/s, after 2 s 1 GB/s. 1 + 2 + 0.5 t = 4: t = 2.
TEST(FlowNetwork, ACapacityChangesUnderSharing) {
  Net net({2});
  net.Start(0, {{0}}, 4);
  net.Start(0, {{0}}, 4);
  ASSERT_TRUE(net.network.SetCapacity(0, S(1), BytesPerSecondInteger(4 * kGiga)).ok());
  ASSERT_TRUE(net.network.SetCapacity(0, S(2), BytesPerSecondInteger(kGiga)).ok());
  const std::vector<Completion> ends = net.Rest();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].end, S(4));
  EXPECT_EQ(ends[1].end, S(4));
  EXPECT_EQ(ends[0].delay, S(2));  // half the rate it could have had, for 4 s
}

// Completions and starts of one instant are one change: the newcomer meets nobody and bypasses.
TEST(FlowNetwork, ChangesOfAnInstantApplyTogether) {
  Net net({1});
  net.Start(0, {{0}}, 1);
  net.Start(1, {{0}}, 1);
  const std::vector<Completion> ends = net.Rest();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].end, S(1));
  EXPECT_EQ(ends[1].end, S(2));
  EXPECT_EQ(net.network.solves(), 0);
  EXPECT_EQ(net.network.bypassed(), 2);
}

// Ten flows on one link, one on another: the end of the latter solves nothing again.
TEST(FlowNetwork, WhatAChangeCannotReachIsLeftAlone) {
  Net net({1, 1, 1});
  for (int i = 0; i < 10; ++i) net.Start(0, {{0}}, 1);
  net.Start(0, {{1}, {2}}, 1);
  net.Start(0, {{1}}, 2);
  EXPECT_EQ(net.network.NextEvent(), S(2));
  EXPECT_EQ(net.network.solves(), 2);
  ASSERT_TRUE(net.network.AdvanceTo(S(2)).ok());
  EXPECT_EQ(net.network.NextEvent(), S(3));  // the second on link 1 has 1 GB left
  EXPECT_EQ(net.network.solves(), 2);        // and bypasses now
}

// Two flows capped at half of the link cannot fill it up beyond: neither needs the solver.
TEST(FlowNetwork, LinksThatCannotBindAreBypassed) {
  Net net({4});
  net.Start(0, {{0}}, 2, Capped(2));
  net.Start(0, {{0}}, 2, Capped(2));
  EXPECT_THAT(net.Ends(), ElementsAre(1, 1));
  EXPECT_EQ(net.network.solves(), 0);
  EXPECT_EQ(net.network.bypassed(), 2);
}

TEST(FlowNetwork, ABundleIsManyActivitiesAndOneVariable) {
  Net net({6});
  Activity bundle;
  bundle.count = 5;
  net.Start(0, {{0}}, 1, bundle);
  net.Start(0, {{0}}, 1);
  EXPECT_EQ(net.network.active(), 6);
  EXPECT_THAT(net.Ends(), ElementsAre(1, 1));
  EXPECT_EQ(net.network.completed(), 6);
  EXPECT_TRUE(net.network.UseOf(0)->bytes == WorkOfUnits(6 * kGiga));
}

TEST(FlowNetwork, WorkOfZeroEndsAtOnce) {
  Net net({1});
  net.Start(2, {{0}}, 0);
  EXPECT_EQ(net.network.NextEvent(), S(2));
  EXPECT_EQ(net.network.AdvanceTo(S(2))->size(), 1u);
}

// By (end, key), whatever the order of starting.
TEST(FlowNetwork, CompletionsOfAnInstantComeByKey) {
  FlowNetwork network;
  const LinkId link = *network.AddLink(BytesPerSecondInteger(kGiga));
  const std::vector<LinkLoad> loads = {{link}};
  Activity activity;
  activity.loads = loads;
  activity.work = WorkOfUnits(kGiga);
  for (const std::uint64_t key : {3u, 1u, 2u}) {
    activity.key = key;
    ASSERT_TRUE(network.Start(Time(), activity).ok());
  }
  const auto ends = network.AdvanceTo(S(10));
  ASSERT_TRUE(ends.ok());
  std::vector<std::uint64_t> keys;
  for (const Completion& end : *ends) keys.push_back(end.key);
  EXPECT_THAT(keys, ElementsAre(1, 2, 3));
}

// Link 0 (1 GB/s): two flows of 1 GB until 2 s, the first of which also crosses link 1 (4 GB/s).
TEST(FlowNetwork, Reports) {
  Net net({1, 4, 1});
  net.Start(0, {{0}, {1}}, 1);
  net.Start(0, {{0}}, 1);
  ASSERT_TRUE(net.network.AdvanceTo(S(1)).ok());
  // Half way: 1 GB over link 0, 0.5 over link 1.
  EXPECT_TRUE(net.network.UseOf(0)->bytes == WorkOfUnits(kGiga));
  EXPECT_EQ(net.network.UseOf(1)->utilisation, 0.125);
  EXPECT_EQ(net.network.UseOf(1)->busy, S(1));
  ASSERT_TRUE(net.network.AdvanceTo(S(4)).ok());
  const std::vector<LinkUse> busiest = net.network.Busiest(2);
  ASSERT_EQ(busiest.size(), 2u);
  EXPECT_EQ(busiest[0].link, 0);
  EXPECT_TRUE(busiest[0].bytes == WorkOfUnits(2 * kGiga));
  EXPECT_EQ(busiest[0].busy, S(2));
  EXPECT_EQ(busiest[0].utilisation, 0.5);
  EXPECT_EQ(busiest[0].activities, 2);
  EXPECT_EQ(busiest[0].delay, S(2));  // each took 2 s for 1
  EXPECT_EQ(busiest[0].most.delay, S(1));
  EXPECT_EQ(busiest[0].most.key, 0u);
  EXPECT_EQ(busiest[1].link, 1);
  EXPECT_EQ(busiest[1].busy, S(2));
  EXPECT_EQ(busiest[1].delay, Time());
}

// --- Who took what.

// What the most delayed activity of a link lost, and to whom, in seconds.
void ExpectTaken(const Net& net, LinkId link, std::uint64_t victim, double delay, std::uint64_t taker, double taken) {
  const LinkUse use = *net.network.UseOf(link);
  EXPECT_EQ(use.most.key, victim);
  EXPECT_NEAR(SecondsFromTime(use.most.delay), delay, 1e-11);
  EXPECT_EQ(use.most.taken_by, taker);
  EXPECT_NEAR(SecondsFromTime(use.most.taken), taken, 1e-11);
}

// 6 GB/s; 1 has a cap of 1 GB/s and 3 GB, 2 a cap of 2 GB/s and 2 GB; 0 has what they leave: 3 GB/s until 1 s, 5 until
// 3 s, when its 13 GB are through instead of after 13/6 s. It lost 5/6 s; 1 put 3 GB on the link and 2, though faster,
// 2 GB: 1 took 3/5 of 5/6 s.
TEST(FlowNetwork, WhoCarriedMostWhileOneWasSlowedTookMost) {
  Net net({6}, {.attribute_delays = true});
  net.Start(0, {{0}}, 13);
  net.Start(0, {{0}}, 3, Capped(1));
  net.Start(0, {{0}}, 2, Capped(2));
  EXPECT_THAT(net.Ends(), ElementsAre(3, 3, 1));
  ExpectTaken(net, 0, 0, 5.0 / 6, 1, 0.5);
  EXPECT_EQ(net.network.never_slowed(), 2);
  EXPECT_EQ(net.network.bypassed(), 0);
}

// 5 GB/s; 0 puts 1 GB/s on it for 10 s, 1 begins after 5 s, 2 (2 GB/s) is there from 5 to 8 s. 1 has 2 GB/s for 3 s and
// 4 GB/s for 2 s: 14 GB, 2.8 s alone, 2.2 s of delay. Meanwhile 2 carried 6 GB and 0, of its 10, 5: 2 took 6/11.
TEST(FlowNetwork, WhatWasCarriedBeforeTookNothing) {
  Net net({5}, {.attribute_delays = true});
  net.Start(0, {{0}}, 10, Capped(1));
  net.Start(5, {{0}}, 14);
  net.Start(5, {{0}}, 6, Capped(2));
  EXPECT_THAT(net.Ends(), ElementsAre(10, 10, 8));
  ExpectTaken(net, 0, 1, 2.2, 2, 1.2);
}

// 0 crosses both links and is slowed on the first, 2 GB/s, by 1: each has 1 GB/s. 2 carries more on the second, which
// is wide enough. 1 would have been as slow: the smaller key is named.
TEST(FlowNetwork, OnlyOnItsBottleneckIsAnythingTaken) {
  Net net({2, 8}, {.attribute_delays = true});
  net.Start(0, {{0}, {1}}, 1);
  net.Start(0, {{0}}, 1);
  net.Start(0, {{1}}, 5, Capped(5));
  EXPECT_THAT(net.Ends(), ElementsAre(1, 1, 1));
  ExpectTaken(net, 0, 0, 0.5, 1, 0.5);
  ExpectTaken(net, 1, 0, 0, 0, 0);
}

// Four of 1 GB on 4 GB/s, all at 1 GB/s for 1 s instead of 1/4: 3/4 s, 1/4 to each of the others; the smallest key.
TEST(FlowNetwork, OfEqualTakersTheSmallestKeyIsNamed) {
  Net net({4}, {.attribute_delays = true});
  for (int i = 0; i < 4; ++i) net.Start(0, {{0}}, 1);
  EXPECT_THAT(net.Ends(), ElementsAre(1, 1, 1, 1));
  ExpectTaken(net, 0, 0, 0.75, 1, 0.25);
}

// Three of 1 GB on 3 GB/s, as a bundle and as one that stands for three, each of which has the link alone to itself:
// 1 s instead of 1/3, taken by the others of the key. The links' delays sum up all three.
TEST(FlowNetwork, OthersLikeItTakeToo) {
  Activity bundle;
  bundle.count = 3;
  Activity several;
  const std::vector<std::int64_t> of_one = {1};
  several.alike = 3;
  several.of_one = of_one;
  Net bundled({3}, {.attribute_delays = true});
  bundled.Start(0, {{0}}, 1, bundle);
  Net together({3}, {.attribute_delays = true});
  together.Start(0, {{0, 3}}, 1, several);
  for (Net* net : {&bundled, &together}) {
    EXPECT_THAT(net->Ends(), ElementsAre(1));
    ExpectTaken(*net, 0, 0, 2.0 / 3, 0, 2.0 / 3);
    EXPECT_NEAR(SecondsFromTime(net->network.UseOf(0)->delay), 2, 1e-11);
    EXPECT_TRUE(net->network.UseOf(0)->bytes == WorkOfUnits(3 * kGiga));
    EXPECT_EQ(net->network.bypassed(), 0);
  }
  // Alone each would have had 3 GB/s, and at twice the capacity 6.
  const std::vector<LinkLoad> loads = {{0, 3}};
  several.loads = loads;
  several.work = WorkOfUnits(3 * kGiga);
  EXPECT_EQ(*together.network.DurationAlone(several), S(1));
  EXPECT_EQ(together.network.never_slowed(), 0);
}

// 2 GB/s and then 4: alone 0 would have 2 and then 4 GB/s; it has half, 1 GB/s for 1 s and 2 for 1 s, and loses half of
// each second.
TEST(FlowNetwork, TakenWhileTheCapacityChanges) {
  Net net({2}, {.attribute_delays = true});
  net.Start(0, {{0}}, 3);
  net.Start(0, {{0}}, 3);
  ASSERT_TRUE(net.network.SetCapacity(0, S(1), BytesPerSecondInteger(4 * kGiga)).ok());
  EXPECT_THAT(net.Ends(), ElementsAre(2, 2));
  ExpectTaken(net, 0, 0, 1, 1, 1);
}

TEST(FlowNetwork, RefusesByName) {
  Net net({1});
  FlowNetwork& network = net.network;
  const auto expect = [](const absl::Status& status, absl::StatusCode code, const char* what) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  expect(network.AddLink(BytesPerSecondInteger(0)).status(), kInvalid, "capacity 0");
  expect(network.AddLink(kMaxCapacity + BytesPerSecondInteger(1)).status(), kInvalid, "capacity 1000000000000001");
  expect(network.SetCapacity(0, Time(), BytesPerSecondInteger(-1)), kInvalid, "capacity -1");
  expect(network.SetCapacity(7, Time(), BytesPerSecondInteger(1)), kInvalid, "unknown link 7");
  expect(network.UseOf(-1).status(), kInvalid, "unknown link -1");

  const auto refuse = [&](std::vector<LinkLoad> loads, Activity activity, const char* what) {
    activity.loads = loads;
    activity.key = 99;
    expect(network.Start(network.now(), activity).status(), kInvalid, what);
  };
  Activity activity;
  activity.work = WorkOfUnits(1);
  refuse({{3}}, activity, "unknown link 3");
  refuse({{-1}}, activity, "unknown link -1");
  refuse({{0, 0}}, activity, "bytes per unit 0");
  refuse({}, activity, "key 99");
  refuse({{0, 2'000'000'000'000}}, activity, "above a link's capacity");
  refuse({{0, 9'000'000'000'000'000'000}, {0, 9'000'000'000'000'000'000}}, activity, "above a link's capacity");
  Activity bad = activity;
  bad.work = Work(-1);
  refuse({{0}}, bad, "negative work");
  bad = Weighing(0);
  refuse({{0}}, bad, "weight 0");
  bad = Weighing(1'000'000'000'000'000'000);
  refuse({{0}}, bad, "too much for link 0");
  bad = activity;
  bad.count = 0;
  refuse({{0}}, bad, "count 0");
  bad.count = 1'000'000'000'001;
  refuse({{0}}, bad, "too much for link 0");
  bad = activity;
  bad.alike = 0;
  refuse({{0}}, bad, "number alike 0");
  bad = activity;
  const std::vector<std::int64_t> of_one = {0};
  bad.of_one = of_one;
  refuse({{0}}, bad, "bytes per unit of one 0");
  refuse({{0}, {0}}, bad, "1 loads of one for 2 loads");
  bad = activity;
  bad.rate_cap = Rate(0);
  refuse({{0}}, bad, "rate cap 0");
  bad = activity;
  bad.min_duration = Time(-1);
  refuse({{0}}, bad, "minimal duration -1");
  bad.min_duration = kNever;
  refuse({{0}}, bad, "106 days");
  bad = activity;
  bad.work = WorkOfUnits(kGiga * kGiga);
  refuse({{0}}, bad, "106 days");

  net.Start(1, {{0}}, 1);
  expect(network.AdvanceTo(Time()).status(), kInvalid, "before now");
  expect(network.Start(Time(), activity).status(), kInvalid, "before now");
  const std::vector<LinkLoad> loads = {{0}};
  activity.loads = loads;
  expect(network.Start(S(3), activity).status(), absl::StatusCode::kFailedPrecondition, "have not been taken");
  EXPECT_EQ(network.active(), 1);
  // Its 1 GB goes on as if nothing had been said.
  EXPECT_THAT(net.Ends(), ElementsAre(2));
}

TEST(FlowNetwork, DurationAloneIsThatOfAnEmptyNetwork) {
  Net net({1, 4});
  net.Start(0, {{0}}, 8);
  const std::vector<LinkLoad> loads = {{0, 1}, {1, 8}};
  Activity activity;
  activity.loads = loads;
  activity.work = WorkOfUnits(3 * kGiga);
  EXPECT_EQ(*net.network.DurationAlone(activity), S(6));
  activity.min_duration = S(7);
  EXPECT_EQ(*net.network.DurationAlone(activity), S(7));
}

}  // namespace
}  // namespace orrery::network
