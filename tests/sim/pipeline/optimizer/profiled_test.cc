// The optimiser at costs profiled on a real cluster: p = 8, m = 24 of the Zero Bubble paper (arXiv:2401.10241, Table
// 9), in microseconds; M_B and M_W as its Table 1 has them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "schedules/family.h"
#include "sim/pipeline/optimizer/optimize.h"

namespace orrery::pipeline {
namespace {

using schedules::Placement;

constexpr std::int32_t kRanks = 8;
constexpr std::int64_t kTwiceP = 16;
constexpr std::int32_t kMicroBatches = 24;
const bool kSanitized = std::getenv("ORRERY_SANITIZER") != nullptr;
// Little: what holds here holds with more.
const std::int64_t kEffort = kSanitized ? 500'000 : 10'000'000;

struct Profile {
  const char* model;
  schedules::PassCosts costs;
  std::int64_t latency;
  schedules::PassMemory memory;
  // Bubble rates of Table 5, in 1e-4.
  std::int64_t rate_1p;
  std::int64_t rate_2p;

  std::int64_t Work() const { return kMicroBatches * (costs.forward + costs.backward()); }
};
const Profile kProfiles[] = {
    {"1.5B", {18522, 18086, 9337}, 601, {.forward = 201216, .weight = 73728}, 1585, 433},
    {"6.2B", {29718, 29444, 19927}, 527, {.forward = 303104, .weight = 131072}, 1323, 29},
};

Cut Loop(const Profile& profile) {
  Cut cut{Placement::Loop(kRanks, 1), {}};
  cut.costs.stages = {profile.costs};
  cut.costs.latency = profile.latency;
  cut.costs.memory = profile.memory;
  return cut;
}

// Half of a rank's layers in a stage: costs that are odd are halved both ways.
Cut Wave(const Profile& profile) {
  Cut cut{Placement::Wave(kRanks, 2), {}};
  const schedules::PassCosts& whole = profile.costs;
  const schedules::PassCosts low{whole.forward / 2, whole.input_gradient / 2, whole.weight_gradient / 2};
  cut.costs.stages.assign(kRanks, low);
  cut.costs.stages.resize(std::size_t{2} * kRanks,
                          {whole.forward - low.forward, whole.input_gradient - low.input_gradient,
                           whole.weight_gradient - low.weight_gradient});
  cut.costs.latency = profile.latency;
  cut.costs.memory = {.forward = profile.memory.forward / 2, .weight = profile.memory.weight / 2};
  return cut;
}

// `limit` in M_B.
Optimized Best(const Profile& profile, const std::vector<Cut>& cuts, std::int64_t limit, Objective objective) {
  OptimizeRequest request;
  request.cuts = cuts;
  request.micro_batches = kMicroBatches;
  request.memory_limit = limit * profile.memory.forward;
  request.objective = objective;
  request.effort = kEffort;
  const absl::StatusOr<Optimized> found = Optimize(request);
  EXPECT_TRUE(found.ok()) << found.status();
  if (!found.ok()) return {};
  for (const RankEvaluation& rank : found->evaluation.ranks) EXPECT_LE(rank.peak_memory, request.memory_limit);
  std::cout << profile.model
            << (cuts.size() > 1                        ? " loop or V"
                : cuts[0].placement.stages() == kRanks ? " loop"
                                                       : " V")
            << ", " << limit << " M_B, " << (objective == Objective::kMakespan ? "makespan " : "span ") << found->value
            << ", bound " << found->lower_bound << "\n";
  return *found;
}

void ExpectNoWorse(const Optimized& found, std::string_view family) {
  const auto same = [&](const Published& published) { return published.family == family; };
  const auto published = std::find_if(found.published.begin(), found.published.end(), same);
  ASSERT_NE(published, found.published.end()) << family << " is not among the published";
  EXPECT_LE(found.value, published->value) << family;
}

class ProfiledTest : public ::testing::TestWithParam<Profile> {};

TEST_P(ProfiledTest, NoWorseThanThePublishedSchedulesAtTheirMemory) {
  constexpr std::int64_t kHalf = (kRanks + 2) / 2;
  for (const Objective objective : {Objective::kMakespan, Objective::kLongestSpan}) {
    ExpectNoWorse(Best(GetParam(), {Loop(GetParam())}, kRanks, objective), "zb-1p");
    ExpectNoWorse(Best(GetParam(), {Loop(GetParam())}, kTwiceP, objective), "zb-2p");
    ExpectNoWorse(Best(GetParam(), {Wave(GetParam())}, kRanks, objective), "zb-v");
    ExpectNoWorse(Best(GetParam(), {Wave(GetParam())}, kHalf, objective), "v-half");
  }
}

// Table 5: cost = work / (1 - rate), the rate rounded to four decimals.
TEST_P(ProfiledTest, NoWorseThanTheRatesOfThePaper) {
  const auto most = [&](std::int64_t rate) { return GetParam().Work() * 20'000 / (20'000 - 2 * rate - 1); };
  EXPECT_LE(Best(GetParam(), {Loop(GetParam())}, kRanks, Objective::kLongestSpan).value, most(GetParam().rate_1p));
  EXPECT_LE(Best(GetParam(), {Loop(GetParam())}, kTwiceP, Objective::kLongestSpan).value, most(GetParam().rate_2p));
}

TEST_P(ProfiledTest, GapIsBelowTwoPercentFromTwicePOn) {
  for (const Objective objective : {Objective::kMakespan, Objective::kLongestSpan}) {
    for (const std::int64_t limit : {kTwiceP, kTwiceP + kRanks}) {
      if (kSanitized && limit > kTwiceP) continue;
      for (const std::vector<Cut>& cuts :
           {std::vector<Cut>{Loop(GetParam())}, {Wave(GetParam())}, {Loop(GetParam()), Wave(GetParam())}}) {
        const Optimized found = Best(GetParam(), cuts, limit, objective);
        EXPECT_GE(found.lower_bound, GetParam().Work());
        EXPECT_LE(50 * (found.value - found.lower_bound), found.value);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ZeroBubblePaper, ProfiledTest, ::testing::ValuesIn(kProfiles),
                         [](const auto& test) { return test.index == 0 ? "B1_5" : "B6_2"; });

}  // namespace
}  // namespace orrery::pipeline
