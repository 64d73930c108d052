// Runs whose transfers share the links of the cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/training/model_states.h"
#include "tests/sim/training/example_runs.h"

namespace orrery::training::testing {
namespace {

using ::testing::HasSubstr;

v1::Run Flow(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), {"simulation.network=FLOW", "simulation.engine=EVENT_QUEUE"});
  return SmallRun(overrides);
}

Result Report(const v1::Run& run) {
  absl::StatusOr<Result> result = Simulate(run, {.traced_ranks = {}, .report_links = 1000});
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

void ExpectSameTimes(const Result& a, const Result& b) {
  EXPECT_EQ(a.iteration_time, b.iteration_time);
  EXPECT_EQ(a.first_iteration_time, b.first_iteration_time);
  EXPECT_EQ(a.class_sums, b.class_sums);
}

// One pipeline with blocking messages has one message on a link at a time.
TEST(SharedLinksTest, WhereNothingSharesTheAnswerIsAnalytic) {
  const std::vector<std::string> alone = {"parallelism.pp=4", "parallelism.dp=1", "software.message_mode=BLOCKING",
                                          "parallelism.tp=8"};
  const Result flow = Report(Flow(alone));
  ExpectSameTimes(flow, Simulated(SmallRun(alone)));
  ASSERT_TRUE(flow.links.has_value());
  EXPECT_GT(flow.links->transfers, 0);
}

void ExpectSameLinks(const LinkSummary& a, const LinkSummary& b) {
  ASSERT_EQ(a.links.size(), b.links.size());
  for (std::size_t l = 0; l < a.links.size(); ++l) {
    const LinkReport& one = a.links[l];
    const LinkReport& other = b.links[l];
    SCOPED_TRACE(absl::StrCat(one.from, " -> ", one.to));
    EXPECT_EQ(one.from, other.from);
    EXPECT_EQ(one.to, other.to);
    EXPECT_EQ(one.alike, other.alike);
    EXPECT_EQ(one.capacity, other.capacity);
    EXPECT_EQ(one.bytes, other.bytes);
    EXPECT_EQ(one.utilisation, other.utilisation);
    EXPECT_EQ(one.busy_share, other.busy_share);
    EXPECT_EQ(one.delay, other.delay);
    ASSERT_EQ(one.users.size(), other.users.size());
    for (std::size_t u = 0; u < one.users.size(); ++u) {
      EXPECT_EQ(one.users[u].kind, other.users[u].kind);
      EXPECT_EQ(one.users[u].bytes, other.users[u].bytes);
    }
    EXPECT_EQ(one.most_delayed.transfer, other.most_delayed.transfer);
    EXPECT_EQ(one.most_delayed.delay, other.most_delayed.delay);
    EXPECT_EQ(one.most_taken.transfer, other.most_taken.transfer);
    EXPECT_EQ(one.most_taken.delay, other.most_taken.delay);
  }
}

// Transfers that are alike slow each other on the few ways up: what one activity stands for must say so too.
TEST(SharedLinksTest, FoldedReportsTheLinksOfUnfolded) {
  for (const std::string routing : {"ADAPTIVE", "HASHED"}) {
    for (const std::string oversubscription : {"1", "4", "8"}) {
      SCOPED_TRACE(absl::StrCat(routing, ", oversubscribed ", oversubscription));
      std::vector<std::string> overrides = {"parallelism.tp=2",
                                            "parallelism.pp=2",
                                            "parallelism.dp=8",
                                            "training.global_batch=32",
                                            "cluster.nodes=4",
                                            "cluster.fabric.rail_optimised=false",
                                            "cluster.fabric.nodes_per_leaf=1",
                                            "cluster.fabric.nodes_per_pod=0",
                                            "cluster.fabric.routing=" + routing,
                                            "cluster.fabric.oversubscription=" + oversubscription};
      const Result folded = Report(Flow(overrides));
      overrides.emplace_back("simulation.fold=OFF");
      const Result whole = Report(Flow(overrides));
      EXPECT_EQ(folded.timeline_hash, whole.timeline_hash);
      ExpectSameLinks(*folded.links, *whole.links);
      if (routing == "HASHED" || oversubscription == "1") continue;
      bool others_like_it = false;
      for (const LinkReport& link : folded.links->links) {
        others_like_it |= link.most_delayed.delay > Time() && link.most_taken.transfer == link.most_delayed.transfer;
      }
      EXPECT_TRUE(others_like_it);
      EXPECT_LT(folded.links->never_slowed, folded.links->transfers);
    }
  }
}

// What kinds of transfers put on a link is what it carried, also of those that are under way when the replay ends.
TEST(SharedLinksTest, KindsAddUp) {
  for (const std::string zero : {"0", "1", "2"}) {
    for (const std::string fold : {"ON", "OFF"}) {
      SCOPED_TRACE(absl::StrCat("ZeRO-", zero, ", folding ", fold));
      const Result result =
          Report(Flow({"parallelism.tp=2", "parallelism.pp=2", "parallelism.dp=4", "parallelism.zero_stage=" + zero,
                       "training.global_batch=16", "cluster.nodes=2", "simulation.fold=" + fold}));
      ASSERT_FALSE(result.links->links.empty());
      for (const LinkReport& link : result.links->links) {
        double sum = 0;
        for (const LinkUser& user : link.users) sum += user.bytes;
        EXPECT_NEAR(sum, link.bytes, 1e-12 * link.bytes) << link.from << " to " << link.to;
      }
    }
  }
}

// Leaves that are oversubscribed 1:2 carry little and hold up most: behind a list of one link stands the first of them.
TEST(SharedLinksTest, TheLinkThatDelaysMostIsListed) {
  const v1::Run run = Example("megatron_175b_3072", {"simulation.network=FLOW", "cluster.fabric.oversubscription=2"});
  const Result all = Report(run);
  Time most;
  for (const LinkReport& link : all.links->links) most = std::max(most, link.delay);
  ASSERT_LT(all.links->links.front().delay, most);
  absl::StatusOr<Result> one = Simulate(run, {.traced_ranks = {}, .report_links = 1});
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_EQ(one->links->links.size(), 2u);
  EXPECT_EQ(one->links->links.front().from, all.links->links.front().from);
  EXPECT_EQ(one->links->links.back().from, "leaf0");
  EXPECT_EQ(one->links->links.back().delay, most);
}

TEST(SharedLinksTest, FoldedIsUnfolded) {
  int folded_runs = 0;
  for (const std::string tp : {"1", "2", "8"}) {
    for (const std::string routing : {"ADAPTIVE", "HASHED", "BY_DESTINATION"}) {
      for (const std::string leaf : {"2", "4", "100"}) {
        SCOPED_TRACE(absl::StrCat("tp ", tp, ", ", routing, ", nodes per leaf ", leaf));
        const std::vector<std::string> overrides = {"parallelism.tp=" + tp,
                                                    "parallelism.pp=2",
                                                    "parallelism.dp=" + std::to_string(32 / std::stoi(tp)),
                                                    "training.global_batch=64",
                                                    "cluster.fabric.routing=" + routing,
                                                    "cluster.fabric.nodes_per_leaf=" + leaf,
                                                    "cluster.nodes=8",
                                                    "cluster.fabric.nodes_per_pod=0"};
        std::vector<std::string> unfolded = overrides;
        unfolded.emplace_back("simulation.fold=OFF");
        const Result folded = Report(Flow(overrides));
        const Result whole = Report(Flow(unfolded));
        ExpectSameTimes(folded, whole);
        EXPECT_EQ(folded.timeline_hash, whole.timeline_hash);
        EXPECT_EQ(whole.ranks_simulated, 64);
        ExpectSameLinks(*folded.links, *whole.links);
        if (folded.ranks_simulated < 64) ++folded_runs;
      }
    }
  }
  EXPECT_GE(folded_runs, 9);
}

// Gradients and parameters of a rank: what its NIC carries for them. tp 8 leaves one rank per node in every ring of dp
// 4 nodes: reduce-scatter and all-gather move 3/4 of the bytes each.
TEST(SharedLinksTest, NicsCarryWhatCollectivesRequire) {
  const v1::Run run = Flow({"parallelism.tp=8", "parallelism.pp=1", "parallelism.dp=4", "parallelism.zero_stage=1"});
  const Result result = Report(run);
  const double parameters = static_cast<double>(
      workloads::Parameters(run, {.layers = run.model().layers(), .embedding = true, .head = true}).total());
  const double moved =
      0.75 * parameters *
      static_cast<double>(BytesOf(run.training().precision()) + BytesOf(run.training().gradient_type()));
  int nics = 0;
  for (const LinkReport& link : result.links->links) {
    if (link.from.find("nic") == std::string::npos) continue;
    ++nics;
    EXPECT_NEAR(link.bytes, moved * result.iterations_replayed, 1e-3 * moved * result.iterations_replayed);
  }
  EXPECT_GT(nics, 0);
}

// A perturbation that leaves all of a link keeps every one of the equal ways apart; else one stands for them.
TEST(SharedLinksTest, OneOfEqualWaysStandsForAll) {
  for (const std::string oversubscription : {"1", "8"}) {
    const std::vector<std::string> overrides = {"software.preset=megascale-2024",
                                                "parallelism.tp=2",
                                                "parallelism.pp=2",
                                                "parallelism.dp=16",
                                                "cluster.nodes=8",
                                                "training.global_batch=64",
                                                "cluster.fabric.nodes_per_leaf=2",
                                                "cluster.fabric.oversubscription=" + oversubscription};
    std::vector<std::string> apart = overrides;
    apart.emplace_back("perturbation.link={device: \"node0/nic0\" capacity: 1}");
    const Result together = Report(Flow(overrides));
    const Result each = Report(Flow(apart));
    ExpectSameTimes(together, each);
    EXPECT_EQ(together.timeline_hash, each.timeline_hash);
    // The leaves' ways up are what is shared.
    if (oversubscription == "8") {
      EXPECT_GT(together.links->transfers, together.links->never_slowed);
    }
  }
}

TEST(SharedLinksTest, ASlowLinkCostsTime) {
  const std::vector<std::string> base = {"parallelism.tp=8", "parallelism.pp=1", "parallelism.dp=4"};
  const auto with = [&](const std::string& link) {
    std::vector<std::string> overrides = base;
    overrides.push_back("perturbation.link=" + link);
    return Report(Flow(overrides)).iteration_time;
  };
  const Time whole = Report(Flow(base)).iteration_time;
  EXPECT_EQ(with("{device: \"node0/nic0\" capacity: 1}"), whole);
  const Time half = with("{device: \"node0/nic0\" capacity: 0.5}");
  EXPECT_GT(half, whole);
  EXPECT_GT(with("{device: \"node0/nic0\" capacity: 0.25}"), half);
  EXPECT_EQ(with("{device: \"node0/nic0\" to: \"leaf0\" capacity: 0.5}"), half);
}

// A tensor-parallel group of two nodes: what its rings send from node to node is on the NICs, and takes what it takes
// alone.
TEST(SharedLinksTest, TensorParallelismOverNodesUsesTheirNics) {
  const std::vector<std::string> base = {"model.heads=16", "parallelism.tp=16", "parallelism.pp=1", "parallelism.dp=1",
                                         "training.global_batch=2"};
  const Result alone = Report(Flow(base));
  ExpectSameTimes(alone, Simulated(SmallRun(base)));
  std::set<std::int64_t> sent;
  for (const LinkReport& link : alone.links->links) {
    if (link.from.find("nic") != std::string::npos) sent.insert(std::llround(link.bytes));
  }
  ASSERT_EQ(sent.size(), 1);
  EXPECT_GT(*sent.begin(), 0);
  std::vector<std::string> slow = base;
  slow.emplace_back("perturbation.link={device: \"rail3\" capacity: 0.1}");
  const Result slowed = Report(Flow(slow));
  EXPECT_GT(slowed.iteration_time, alone.iteration_time);
  EXPECT_THAT(slowed.warnings, ::testing::Not(::testing::Contains(HasSubstr("perturbation.link"))));
}

// A group that is one whole node has its links for itself, but they may be slow.
TEST(SharedLinksTest, ASlowSwitchOfANodeSlowsItsTensorParallelism) {
  std::vector<std::string> overrides = {"parallelism.tp=8", "parallelism.pp=1", "parallelism.dp=4"};
  const Result sound = Report(Flow(overrides));
  overrides.emplace_back("perturbation.link={device: \"node0/nvswitch0\" capacity: 1}");
  ExpectSameTimes(Report(Flow(overrides)), sound);
  overrides.back() = "perturbation.link={device: \"node0/nvswitch0\" capacity: 0.1}";
  const Result slow = Report(Flow(overrides));
  EXPECT_GT(slow.iteration_time, sound.iteration_time);
  EXPECT_THAT(slow.warnings, ::testing::Not(::testing::Contains(HasSubstr("perturbation.link"))));
}

// Four nodes of eight GPUs and NICs, one ring on each rail: every NIC sends the same. Without its NIC a GPU has its
// bytes go over another one of the node, which then carries twice as much.
TEST(SharedLinksTest, WhatUsedADeadLinkGoesAroundIt) {
  const auto with = [&](const std::string& link, const std::string& fold) {
    std::vector<std::string> overrides = {"parallelism.tp=8", "parallelism.pp=1", "parallelism.dp=4",
                                          "simulation.fold=" + fold};
    if (!link.empty()) overrides.push_back("perturbation.link=" + link);
    return Report(Flow(overrides));
  };
  // Of lines, each of which stands for links that carry the same.
  const auto sent_by_nics = [](const Result& result) {
    std::set<std::int64_t> bytes;
    for (const LinkReport& link : result.links->links) {
      if (link.from.find("/nic") != std::string::npos && link.to.find("leaf") == 0)
        bytes.insert(std::llround(link.bytes));
    }
    return bytes;
  };
  const Result whole = with("", "ON");
  ASSERT_EQ(sent_by_nics(whole).size(), 1);
  const auto once = static_cast<double>(*sent_by_nics(whole).begin());
  std::vector<double> seconds;
  for (const std::string device : {"node1/nic3", "rail3"}) {
    SCOPED_TRACE(device);
    const Result dead = with("{device: \"" + device + "\" capacity: 0}", "ON");
    for (const LinkReport& link : dead.links->links) {
      EXPECT_EQ(link.from.find(device == "rail3" ? "/nic3" : device), std::string::npos) << link.from;
    }
    const std::set<std::int64_t> sent = sent_by_nics(dead);
    EXPECT_EQ(sent.size(), 2);
    EXPECT_NEAR(static_cast<double>(*sent.begin()), once, 0.01 * once);
    EXPECT_NEAR(static_cast<double>(*sent.rbegin()), 2 * once, 0.01 * once);
    EXPECT_GT(dead.iteration_time, whole.iteration_time);
    // Dead is dead, whatever else is said of it.
    const std::string entry = "{device: \"" + device + "\" capacity: ";
    for (const std::string& both : {"[" + entry + "0.5}, " + entry + "0}]", "[" + entry + "0}, " + entry + "0.5}]",
                                    "[" + entry + "0}, " + entry + "0}]"}) {
      EXPECT_EQ(with(both, "ON").timeline_hash, dead.timeline_hash) << both;
    }
    const Result unfolded = with("{device: \"" + device + "\" capacity: 0}", "OFF");
    ExpectSameTimes(dead, unfolded);
    EXPECT_EQ(dead.timeline_hash, unfolded.timeline_hash);
    seconds.push_back(SecondsFromTime(dead.iteration_time));
  }
  // Both rings have one half of the NIC, also where only one of them comes to it over NVLink.
  EXPECT_NEAR(seconds[0], seconds[1], 1e-4 * seconds[1]);
}

TEST(SharedLinksTest, SlowLinksThatNobodyUsesAreWarnedOf) {
  const Result result = Report(Flow({"parallelism.tp=8", "parallelism.pp=1", "parallelism.dp=4",
                                     "perturbation.link={device: \"node9/nic0\" capacity: 0.5}"}));
  EXPECT_THAT(result.warnings, ::testing::Contains(HasSubstr("no transfer that shares links uses node9/nic0")));
}

TEST(SharedLinksTest, Refusals) {
  const auto error = [](const std::vector<std::string>& overrides) {
    return std::string(Simulate(Flow(overrides)).status().message());
  };
  EXPECT_THAT(error({"perturbation.link=[{device: \"leaf0\" capacity: 0.5}, {device: \"leaf7777\" capacity: 0.5}]"}),
              HasSubstr("perturbation.link[1].device: no device \"leaf7777\"; allowed: "));
  EXPECT_THAT(error({"perturbation.link={device: \"node0/gpu1\" capacity: 0}"}),
              HasSubstr("perturbation.link[0].capacity: without the dead links GPU "));
  EXPECT_THAT(error({"perturbation.link={device: \"rail8\" capacity: 0}"}),
              HasSubstr("perturbation.link[0].device: found rail8; allowed: "));
  EXPECT_THAT(error({"perturbation.link={device: \"node0/nic0\" to: \"node1/nic0\" capacity: 0.5}"}),
              HasSubstr("perturbation.link[0].to: found no link between node0/nic0 and node1/nic0"));
  // A millionth of 1 MB/s: a transfer of some megabytes takes years.
  EXPECT_THAT(
      error({"cluster.node.nic.bandwidth=1e6", "perturbation.link={device: \"node0/nic0\" capacity: 1e-6}"}),
      HasSubstr("perturbation.link: leaves so little of links that a transfer over them takes more than the 106 "
                "days that the clock can say; allowed: "));
}

}  // namespace
}  // namespace orrery::training::testing
