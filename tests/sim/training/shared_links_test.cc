// Runs whose transfers share the links of the cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
      EXPECT_GT(together.links->transfers, together.links->never_shared);
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
    const Result unfolded = with("{device: \"" + device + "\" capacity: 0}", "OFF");
    ExpectSameTimes(dead, unfolded);
    EXPECT_EQ(dead.timeline_hash, unfolded.timeline_hash);
  }
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
  EXPECT_THAT(error({"perturbation.link={device: \"leaf7777\" capacity: 0.5}"}), HasSubstr("perturbation.link: "));
  EXPECT_THAT(error({"perturbation.link={device: \"node0/gpu1\" capacity: 0}"}),
              HasSubstr("perturbation.link: without the dead links "));
  EXPECT_THAT(error({"perturbation.link={device: \"rail8\" capacity: 0}"}), HasSubstr("found rail8; allowed: "));
  EXPECT_THAT(error({"perturbation.link={device: \"node0/nic0\" to: \"node1/nic0\" capacity: 0.5}"}),
              HasSubstr("found no link between node0/nic0 and node1/nic0"));
}

}  // namespace
}  // namespace orrery::training::testing
