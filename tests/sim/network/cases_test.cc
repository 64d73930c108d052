// Generated cases, each judged by the max-min conditions and by an independent solver, and each answered in several
// ways that must give one answer.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "gtest/gtest.h"
#include "tests/sim/network/network_case.h"

namespace orrery::network {
namespace {

std::uint64_t NumCases() { return std::getenv("ORRERY_SANITIZER") == nullptr ? 600 : 60; }

constexpr CaseKind kKinds[] = {CaseKind::kFlows, CaseKind::kCoupled, CaseKind::kAnything};

// All that a run says of its activities and links, but for handles.
void ExpectSame(const CaseRun& a, const CaseRun& b) {
  ASSERT_EQ(a.ends.size(), b.ends.size());
  for (std::size_t i = 0; i < a.ends.size(); ++i) {
    EXPECT_EQ(a.ends[i].end, b.ends[i].end) << "activity " << i;
    EXPECT_EQ(a.ends[i].delay, b.ends[i].delay) << "activity " << i;
    EXPECT_EQ(a.ends[i].bottleneck, b.ends[i].bottleneck) << "activity " << i;
    EXPECT_EQ(a.ends[i].bypassed, b.ends[i].bypassed) << "activity " << i;
  }
  for (std::size_t l = 0; l < a.uses.size(); ++l) {
    EXPECT_TRUE(a.uses[l].bytes == b.uses[l].bytes) << "link " << l;
    EXPECT_EQ(a.uses[l].busy, b.uses[l].busy) << "link " << l;
    EXPECT_EQ(a.uses[l].utilisation, b.uses[l].utilisation) << "link " << l;
    EXPECT_EQ(a.uses[l].activities, b.uses[l].activities) << "link " << l;
    EXPECT_EQ(a.uses[l].delay, b.uses[l].delay) << "link " << l;
    EXPECT_EQ(a.uses[l].most.key, b.uses[l].most.key) << "link " << l;
    EXPECT_EQ(a.uses[l].most.delay, b.uses[l].most.delay) << "link " << l;
  }
  EXPECT_EQ(a.bypassed, b.bypassed);
}

// And of who took what.
void ExpectSameTakers(const CaseRun& a, const CaseRun& b) {
  ExpectSame(a, b);
  for (std::size_t l = 0; l < a.uses.size(); ++l) {
    EXPECT_EQ(a.uses[l].most.taken_by, b.uses[l].most.taken_by) << "link " << l;
    EXPECT_EQ(a.uses[l].most.taken, b.uses[l].most.taken) << "link " << l;
  }
}

class Cases : public testing::TestWithParam<CaseKind> {
 protected:
  // Calls `judge` with every case and its plain run, until one fails.
  template <typename Judge>
  void ForEach(std::uint64_t count, const Judge& judge) {
    for (std::uint64_t seed = 0; seed < count && !HasFailure(); ++seed) {
      const NetworkCase c = GenerateCase(GetParam(), seed);
      SCOPED_TRACE(testing::Message() << "case " << seed << "\n" << Print(c));
      judge(c, seed);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, Cases, testing::ValuesIn(kKinds), [](const auto& kind) {
  return std::string(kind.param == CaseKind::kFlows     ? "Flows"
                     : kind.param == CaseKind::kCoupled ? "Coupled"
                                                        : "Anything");
});

TEST_P(Cases, MeetTheMaxMinConditionsAtEveryInstant) {
  ForEach(NumCases(), [](const NetworkCase& c, std::uint64_t) { EXPECT_EQ(RunCase(c, {}, {}, true).violation, ""); });
}

// To 1e-8 and a few picoseconds: rates are rounded to 1e-3 units/s per unit of weight and load on a link.
TEST_P(Cases, EndWhenTheReferenceSays) {
  ForEach(NumCases(), [](const NetworkCase& c, std::uint64_t) {
    const CaseRun run = RunCase(c);
    const std::vector<long double> expected = ReferenceEnds(c);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const long double end = static_cast<long double>(run.ends[i].end.count()) / 1e12L;
      EXPECT_LE(std::fabs(end - expected[i]), 1e-8L * expected[i] + 10e-12L) << "activity " << i;
    }
  });
}

TEST_P(Cases, DoNotDependOnTheOrderInWhichActivitiesAreGiven) {
  ForEach(NumCases() / 2, [](const NetworkCase& c, std::uint64_t seed) {
    std::vector<std::size_t> order(c.activities.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const FlowNetworkOptions options = {.attribute_delays = true};
    const CaseRun run = RunCase(c, options);
    std::reverse(order.begin(), order.end());
    ExpectSameTakers(run, RunCase(c, options, order));
    Draws draws(seed);
    for (std::size_t i = order.size() - 1; i > 0; --i)
      std::swap(order[i], order[static_cast<std::size_t>(draws.Within(0, static_cast<std::int64_t>(i)))]);
    ExpectSameTakers(run, RunCase(c, options, order));
  });
}

TEST_P(Cases, SolvedAgainInFullGiveTheSame) {
  ForEach(NumCases(), [](const NetworkCase& c, std::uint64_t) {
    ExpectSameTakers(RunCase(c, {.attribute_delays = true}),
                     RunCase(c, {.incremental = false, .attribute_delays = true}));
  });
}

// Nothing else changes where delays are attributed; somebody took part of every delay, and nobody more than all.
TEST_P(Cases, SayWhoTookWhatTheyLost) {
  ForEach(NumCases(), [](const NetworkCase& c, std::uint64_t) {
    const CaseRun run = RunCase(c, {.attribute_delays = true});
    ExpectSame(RunCase(c), run);
    for (std::size_t l = 0; l < run.uses.size(); ++l) {
      const LinkUse& use = run.uses[l];
      EXPECT_LE(use.most.taken, use.most.delay) << "link " << l;
      // Of 60 activities at most one has a sixtieth; a picosecond may be rounded away.
      EXPECT_GE(use.most.taken + Time(1), use.most.delay / 60) << "link " << l;
      if (use.most.delay == Time()) continue;
      const auto uses_link = [&](std::uint64_t key) {
        const std::vector<LinkLoad>& loads = c.activities[key].loads;
        return std::any_of(loads.begin(), loads.end(),
                           [l](const LinkLoad& load) { return static_cast<std::size_t>(load.link) == l; });
      };
      EXPECT_TRUE(uses_link(use.most.key) && uses_link(use.most.taken_by)) << "link " << l;
      const bool alone = use.most.taken_by == use.most.key && c.activities[use.most.key].count == 1;
      EXPECT_FALSE(alone) << "link " << l;
    }
  });
}

TEST_P(Cases, BundledAndUnbundledGiveTheSame) {
  ForEach(NumCases(), [](const NetworkCase& c, std::uint64_t seed) {
    NetworkCase bundled = c;
    NetworkCase unbundled = c;
    unbundled.activities.clear();
    std::vector<std::size_t> first;
    Draws draws(seed);
    for (CaseActivity& activity : bundled.activities) {
      activity.count = draws.Within(1, 4);
      first.push_back(unbundled.activities.size());
      for (std::int64_t i = 0; i < activity.count; ++i) {
        unbundled.activities.push_back(activity);
        unbundled.activities.back().count = 1;
      }
    }
    const CaseRun one = RunCase(bundled);
    const CaseRun many = RunCase(unbundled);
    for (std::size_t i = 0; i < one.ends.size(); ++i) {
      for (std::int64_t k = 0; k < bundled.activities[i].count; ++k) {
        const Completion& end = many.ends[first[i] + static_cast<std::size_t>(k)];
        EXPECT_EQ(one.ends[i].end, end.end) << "activity " << i;
        EXPECT_EQ(one.ends[i].delay, end.delay) << "activity " << i;
        EXPECT_EQ(one.ends[i].bottleneck, end.bottleneck) << "activity " << i;
      }
    }
    for (std::size_t l = 0; l < one.uses.size(); ++l) {
      EXPECT_TRUE(one.uses[l].bytes == many.uses[l].bytes) << "link " << l;
      EXPECT_EQ(one.uses[l].delay, many.uses[l].delay) << "link " << l;
      EXPECT_EQ(one.uses[l].activities, many.uses[l].activities) << "link " << l;
    }
    EXPECT_EQ(one.bypassed, many.bypassed);
  });
}

TEST_P(Cases, PutOnEveryLinkTheBytesThatTheyAskFor) {
  ForEach(NumCases(), [](const NetworkCase& c, std::uint64_t) {
    std::vector<Int128> expected(c.capacities.size());
    for (const CaseActivity& a : c.activities)
      for (const LinkLoad& load : a.loads)
        expected[static_cast<std::size_t>(load.link)] += Int128{a.units} * load.bytes_per_unit * a.count;
    const CaseRun run = RunCase(c);
    for (std::size_t l = 0; l < expected.size(); ++l) {
      EXPECT_TRUE(run.uses[l].bytes.count() == expected[l] * kWorkPerUnit) << "link " << l;
      EXPECT_LE(run.uses[l].utilisation, 1 + 1e-12) << "link " << l;
    }
  });
}

// Alone for its whole life, to the picosecond: max(minimal duration, ceil(work / alone rate)); and whoever bypassed has
// it.
TEST_P(Cases, AloneTakeTheirAnalyticDuration) {
  std::int64_t bypassed = 0;
  ForEach(NumCases(), [&bypassed](const NetworkCase& c, std::uint64_t) {
    if (!c.changes.empty()) return;
    const CaseRun run = RunCase(c);
    for (std::size_t i = 0; i < c.activities.size(); ++i) {
      const CaseActivity& a = c.activities[i];
      std::vector<Int128> loads(c.capacities.size());
      for (const LinkLoad& load : a.loads) loads[static_cast<std::size_t>(load.link)] += load.bytes_per_unit;
      Int128 rate = Int128{1} << 100;  // 1e-3 units/s
      for (std::size_t l = 0; l < loads.size(); ++l)
        if (loads[l] > 0) rate = std::min(rate, Int128{c.capacities[l]} * kRatePerUnit / loads[l]);
      if (a.cap) rate = std::min(rate, Int128{*a.cap} * kRatePerUnit);
      const Int128 work = Int128{a.units} * kWorkPerUnit;
      const Time expected =
          a.start + std::max(a.min_duration, Time(static_cast<std::int64_t>((work + rate - 1) / rate)));
      if (run.ends[i].bypassed) {
        ++bypassed;
        EXPECT_EQ(run.ends[i].end, expected) << "activity " << i;
        EXPECT_EQ(run.ends[i].delay, Time()) << "activity " << i;
      }
      if (a.count > 1) continue;
      const NetworkCase single{c.capacities, {a}, {}};
      EXPECT_EQ(RunCase(single).ends[0].end, expected) << "activity " << i;
    }
  });
  // Rare among coupled activities on so few links.
  EXPECT_TRUE(bypassed > 0 || NumCases() < 600);
}

// The delay is what the analytic duration lacks, within the rounding of its parts.
TEST_P(Cases, AreDelayedByWhatTheyTakeLonger) {
  ForEach(NumCases(), [](const NetworkCase& c, std::uint64_t) {
    if (!c.changes.empty()) return;
    const CaseRun run = RunCase(c);
    for (std::size_t i = 0; i < c.activities.size(); ++i) {
      const NetworkCase single{c.capacities, {c.activities[i]}, {}};
      if (c.activities[i].count > 1) continue;
      const Time longer = run.ends[i].end - RunCase(single).ends[0].end;
      EXPECT_NEAR(static_cast<double>(run.ends[i].delay.count()), static_cast<double>(longer.count()), 50)
          << "activity " << i;
      EXPECT_EQ(run.ends[i].delay > Time(), run.ends[i].bottleneck != kNoLink) << "activity " << i;
    }
  });
}

}  // namespace
}  // namespace orrery::network
