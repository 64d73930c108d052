// The same cases by SimGrid: flows of equal path latency under CM02, coupled activities under ptask_L07.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "gtest/gtest.h"
#include "tests/sim/network/network_case.h"
#ifdef ORRERY_HAS_SIMGRID
#include "tests/sim/network/simgrid.h"
#endif

namespace orrery::network {
namespace {

#ifndef ORRERY_HAS_SIMGRID

TEST(SimGrid, Agrees) { GTEST_SKIP() << "built without SimGrid (Debian: libsimgrid-dev): not compared with it"; }

#else

// Under the sanitizers SimGrid's own stacks raise false alarms.
#define SKIP_IF_SANITIZED() \
  if (std::getenv("ORRERY_SANITIZER") != nullptr) GTEST_SKIP() << "not compared with SimGrid under a sanitizer"

double Seconds(Time time) { return SecondsFromTime(time); }

// Largest relative difference of the times that activities take.
double WorstDifference(const NetworkCase& c, const CaseRun& run, const std::vector<double>& ends) {
  if (ends.size() != c.activities.size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const double start = Seconds(c.activities[i].start);
    const double ours = Seconds(run.ends[i].end) - start;
    worst = std::max(worst, std::fabs((ends[i] - start) / ours - 1));
  }
  return worst;
}

TEST(SimGrid, AgreesOnFlows) {
  SKIP_IF_SANITIZED();
  for (std::uint64_t seed = 0; seed < 250 && !testing::Test::HasFailure(); ++seed) {
    const NetworkCase c = GenerateCase(CaseKind::kFlows, seed);
    std::vector<SimGridTask> tasks;
    for (const CaseActivity& a : c.activities) {
      SimGridPath path;
      for (const LinkLoad& load : a.loads) path.links.push_back(load.link);
      path.bytes = static_cast<double>(a.units);
      tasks.push_back(
          {Seconds(a.start), {path}, static_cast<double>(a.weight), static_cast<double>(a.cap.value_or(0))});
    }
    EXPECT_LE(WorstDifference(c, RunCase(c), FlowEndsInSimGrid(c.capacities, tasks)), 1e-6) << "case " << seed << "\n"
                                                                                            << Print(c);
  }
}

// L07 shares a link's bytes equally, and we progress by weight: on the link that bounds activity i it has the largest
// a_il r_i there, here the largest r_i / w_i. The two must agree where a_il w_i is the same for all users of a link,
// which is so for a_il = b_l m_i and w_i proportional to 1 / m_i. Loads then differ along an activity and between
// activities.
NetworkCase CoupledCase(std::uint64_t seed) {
  NetworkCase c = GenerateCase(CaseKind::kCoupled, seed);
  Draws draws(seed);
  std::vector<std::int64_t> link_factors;
  for (std::size_t l = 0; l < c.capacities.size(); ++l) link_factors.push_back(draws.Within(1, 9));
  for (CaseActivity& a : c.activities) {
    static constexpr std::int64_t kFactors[] = {1, 2, 3, 4, 6, 12};
    const std::int64_t factor = kFactors[draws.Within(0, 5)];
    std::set<LinkId> links;
    for (const LinkLoad& load : a.loads) links.insert(load.link);
    a.loads.clear();
    for (const LinkId link : links) a.loads.push_back({link, factor * link_factors[static_cast<std::size_t>(link)]});
    a.weight = 12 / factor;
  }
  return c;
}

std::vector<SimGridTask> CoupledTasks(const NetworkCase& c) {
  std::vector<SimGridTask> tasks;
  for (const CaseActivity& a : c.activities) {
    std::map<LinkId, double> bytes;
    for (const LinkLoad& load : a.loads) bytes[load.link] += static_cast<double>(load.bytes_per_unit * a.units);
    SimGridTask task;
    task.start = Seconds(a.start);
    for (const auto& [link, b] : bytes) task.paths.push_back({{link}, b});
    tasks.push_back(task);
  }
  return tasks;
}

TEST(SimGrid, AgreesOnCoupledActivities) {
  SKIP_IF_SANITIZED();
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const NetworkCase c = CoupledCase(seed);
    EXPECT_LE(WorstDifference(c, RunCase(c), CoupledEndsInSimGrid(c.capacities, CoupledTasks(c))), 1e-6)
        << "case " << seed << "\n"
        << Print(c);
  }
}

// Where it does not: one link of 12 GB/s, two activities of 120 M units, one of 1 byte per unit and one of 3, equal
// weights. L07 gives 6 GB/s to each: the first ends after 20 ms and 120 MB; the second has 360 - 120 MB left, which
// take 20 ms more. Here both progress at 12 / (1 + 3) = 3 G units/s and end after 40 ms.
TEST(SimGrid, SharesBytesWhereWeShareProgress) {
  SKIP_IF_SANITIZED();
  NetworkCase c;
  c.capacities = {12'000'000'000};
  c.activities.resize(2);
  c.activities[0].loads = {{0, 1}};
  c.activities[1].loads = {{0, 3}};
  for (CaseActivity& a : c.activities) a.units = 120'000'000;
  const std::vector<double> theirs = CoupledEndsInSimGrid(c.capacities, CoupledTasks(c));
  ASSERT_EQ(theirs.size(), 2u);
  EXPECT_NEAR(theirs[0], 0.020, 1e-9);
  EXPECT_NEAR(theirs[1], 0.040, 1e-9);
  const CaseRun ours = RunCase(c);
  EXPECT_EQ(ours.ends[0].end, TimeFromSeconds(0.040));
  EXPECT_EQ(ours.ends[1].end, TimeFromSeconds(0.040));
}

#endif

}  // namespace
}  // namespace orrery::network
