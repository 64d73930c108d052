// Orders with V and bidirectional placements: small ones derived by hand, legality, and the closed forms that the
// families state, with where they end.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/family.h"
#include "sim/pipeline/evaluate.h"

namespace orrery::schedules {
namespace {

using ::testing::HasSubstr;

// "0F0 (1F1 0B0)": a rank's order, blocks in parentheses.
std::string Text(const Schedule& schedule, std::int32_t rank) {
  std::string text;
  bool open = false;
  for (const Action& action : schedule.order[static_cast<std::size_t>(rank)]) {
    if (!text.empty()) text += ' ';
    if (action.fused) text += '(';
    text += Describe(schedule, rank, action);
    if (open) text += ')';
    open = action.fused;
  }
  return text;
}

void ExpectOrder(std::string_view family, const Parameters& parameters, const std::vector<std::string>& ranks) {
  const auto schedule = Generate(family, parameters);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  ASSERT_EQ(schedule->order.size(), ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    EXPECT_EQ(Text(*schedule, static_cast<std::int32_t>(rank)), ranks[rank]) << family << ", rank " << rank;
  }
}

// Rank 0 of 2: 3 F0; 2 (F1, I1, W1); then F1 is due once more, and no F0; then 2 (I0, W0). Rank 1, at the turn: F0,
// (F1, F0), (F1, I1, W1), one full round of six, (I0, I1), (I0, W0), and the two W that are left.
TEST(ZbVTest, OrderByHand) {
  ExpectOrder("zb-v", {2, 2, 3},
              {"0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2",
               "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2"});
}

// The order above without micro-batches 1 and 2.
TEST(ZbVTest, FewMicroBatchesTruncateTheOrder) {
  ExpectOrder("zb-v", {2, 2, 1}, {"0F0 3F0 3I0 3W0 0I0 0W0", "1F0 2F0 2I0 2W0 1I0 1W0"});
}

// One rank: the block F0, F1, I1, I0 takes slots 0 to 3 and repeats from slot 6; the two W have slots 4 and 5.
TEST(VMinTest, OneRankByHand) { ExpectOrder("v-min", {1, 2, 2}, {"0F0 1F0 1I0 0I0 1W0 0W0 0F1 1F1 1I1 0I1 1W1 0W1"}); }

// Slots of F0, F1, I1, I0: 0, 3, 4, 7 and 1, 2, 5, 6. W's take the free slots: 5 and 8, 7 and 8. Nothing can move.
TEST(VMinTest, TwoRanksByHand) {
  ExpectOrder("v-min", {2, 2, 1}, {"0F0 3F0 3I0 3W0 0I0 0W0", "1F0 2F0 2I0 1I0 2W0 1W0"});
}

// Slots of micro-batch 0 are 0, 4, 8, 13 and 2, 3, 10, 12, those of micro-batch 1 are 6 later, W's at 9, 15, 16, 20 and
// 11, 13, 17, 19: peaks of 3 and 4 live activations, so 4 is the limit. The warm-up lasts to slot 13. In it, by slot
// and rank, the passes of micro-batch 0 move to 0, 3, 4 and 1, 2, 5, 7 with W's at 5 and 6; F0 and F1 of micro-batch 1
// to 1 and 6, and 3 and 4, where rank 1 then holds 4. Micro-batch 0's last pass on rank 0 and all that follows stay in
// order and are squeezed: I0, I1 at 8 and 9 and I0 at 13 on rank 0, W, I1, I0 at 8, 10, 12 on rank 1. W's of chunk 1
// come first.
TEST(VHalfTest, TwoRanksByHand) {
  ExpectOrder("v-half", {2, 2, 2},
              {"0F0 0F1 3F0 3I0 3W0 3F1 0I0 3I1 3W1 0W0 0I1 0W1", "1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 2I1 2W1 1I1 1W1"});
}

// Two ranks, both at the turn (H = 1, h = 0), n = 2: (F0, F1); the pair F0, B1 unfused; the block (F1 B0); B1 full and
// B0 split; its W. Direction 0 of rank 0 is copy 0, of rank 1 copy 1, whose micro-batches are 2 and 3.
TEST(DualPipeTest, TwoRanksByHand) {
  ExpectOrder("dualpipe", {2, 1, 4},
              {"0F0 1F2 0F1 1B2 (1F3 0B0) 1B3 0I1 0W1", "0F2 1F0 0F3 1B0 (1F1 0B2) 1B1 0I3 0W3"});
}

// The same for one rank of a V, where both directions have the same micro-batches.
TEST(DualPipeVTest, OneRankByHand) { ExpectOrder("dualpipe-v", {1, 2, 2}, {"0F0 1F0 0F1 1B0 (1F1 0B0) 1B1 0I1 0W1"}); }

// Rank 0 (H = 2, h = 0): 2 F0; (F0, F1); (I1, W, F1); 1 pair of blocks; (B1, block); B1, and I0 without W; (W, I0); W.
// Rank 1 (h = 1): 2 (F0, F1); 2 pairs of blocks, the first one unfused; 2 (B1, B0), the second split; 2 W.
TEST(DualPipeVTest, TwoRanksByHand) {
  ExpectOrder("dualpipe-v", {2, 2, 4},
              {"0F0 0F1 0F2 3F0 3I0 3W0 3F1 (0F3 3B1) (3F2 0B0) 3B2 (3F3 0B1) 3B3 0I2 0W2 0I3 0W3",
               "1F0 2F0 1F1 2F1 1F2 2B0 (2F2 1B0) (1F3 2B1) (2F3 1B1) 2B2 1B2 2I3 1I3 2W3 1W3"});
}

// Figure 3 of the paper: copy 0 (micro-batches 0, 1) enters at rank 0 in slots 0 and 2, copy 1 (2, 3) at rank 3. The
// gradients follow in a wave of the same shape from slot 4 on, which the second half of the first wave leaves room for.
TEST(ChimeraTest, FourRanksByHand) {
  const Parameters parameters{4, 1, 4};
  ExpectOrder("chimera", parameters,
              {"0F0 0F1 3F2 3B2 3F3 3B3 0B0 0B1", "1F0 2F2 1F1 2F3 2B2 1B0 2B3 1B1", "1F2 2F0 1F3 2F1 2B0 1B2 2B1 1B3",
               "0F2 0F3 3F0 3B0 3F1 3B1 0B2 0B3"});
  const auto schedule = Generate("chimera", parameters);
  EXPECT_EQ(schedule->slots[0], (std::vector<std::int32_t>{0, 2, 3, 4, 5, 6, 7, 9}));
  EXPECT_EQ(schedule->slots[1], (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

struct Expected {
  std::string family;
  Parameters parameters;
  std::vector<std::string> words;
};

TEST(VFamiliesTest, IllegalParametersAreNamedWithWhatIsAllowed) {
  const std::vector<Expected> cases = {
      {"zb-v", {4, 1, 8}, {"zb-v: chunks = 1", "allowed: 2"}},
      {"zb-v", {4, 2, 0}, {"zb-v: micro_batches = 0", "at least 1"}},
      {"v-half", {4, 3, 8}, {"v-half: chunks = 3", "allowed: 2"}},
      {"v-half", {513, 2, 1}, {"v-half: ranks = 513", "at most 512"}},
      {"v-min", {0, 2, 8}, {"v-min: ranks = 0", "at least 1"}},
      {"v-min", {513, 2, 1}, {"v-min: ranks = 513", "at most 512"}},
      {"dualpipe", {3, 1, 8}, {"dualpipe: ranks = 3", "even"}},
      {"dualpipe", {4, 1, 9}, {"dualpipe: micro_batches = 9", "even", "8"}},
      {"dualpipe", {4, 1, 6}, {"dualpipe: micro_batches = 6", "2 x ranks = 8"}},
      {"dualpipe", {4, 2, 8}, {"dualpipe: chunks = 2", "allowed: 1"}},
      {"dualpipe-v", {4, 1, 8}, {"dualpipe-v: chunks = 1", "allowed: 2"}},
      {"dualpipe-v", {4, 2, 7}, {"dualpipe-v: micro_batches = 7", "2 x ranks = 8"}},
      {"chimera", {4, 2, 8}, {"chimera: chunks = 2", "allowed: 1"}},
      {"chimera", {5, 1, 10}, {"chimera: ranks = 5", "multiples of pipelines (2)"}},
      {"chimera", {6, 1, 12, 0, 1, 4}, {"chimera: ranks = 6", "multiples of pipelines (4)"}},
      {"chimera", {6, 1, 12, 0, 1, 3}, {"chimera: pipelines = 3", "powers of 2"}},
      {"chimera", {6, 1, 12, 0, 1, 1}, {"chimera: pipelines = 1", "powers of 2 from 2"}},
      {"chimera", {6, 1, 12, 0, 1, -2}, {"chimera: pipelines = -2", "powers of 2 from 2"}},
      {"chimera", {4, 1, 6}, {"chimera: micro_batches = 6", "multiples of ranks (4)"}},
  };
  for (const Expected& expected : cases) {
    const auto schedule = Generate(expected.family, expected.parameters);
    EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument) << expected.words[0];
    const std::string text(schedule.status().message());
    for (const std::string& word : expected.words) EXPECT_THAT(text, HasSubstr(word));
  }
}

// All parameters that a family accepts, p up to 8 and m up to 24, give a schedule that is complete and can be executed.
TEST(VFamiliesTest, EveryLegalOrderIsCompleteAndExecutable) {
  const std::vector<std::pair<std::string, int>> families = {
      {"zb-v", 8 * 24},
      {"v-half", 8 * 24},
      {"v-min", 8 * 24},
      // Even p, even m from 2p: 11 + 9 + 7 + 5.
      {"dualpipe", 32},
      // m from 2p: 23 + 21 + 19 + 17 + 15 + 13 + 11 + 9.
      {"dualpipe-v", 128},
      // Two copies: multiples of 2, 4, 6, 8: 12 + 6 + 4 + 3; four: of 4 and 8; eight: of 8.
      {"chimera", 25 + 9 + 3},
  };
  for (const auto& [name, accepted] : families) {
    const Family& family = **FindFamily(name);
    int legal = 0;
    for (std::int32_t p = 1; p <= 8; ++p) {
      for (std::int32_t m = 1; m <= 24; ++m) {
        for (const std::int32_t pipelines : {0, 4, 8}) {
          if (pipelines > 0 && name != "chimera") continue;
          const auto schedule = Generate(name, {p, family.fixed_chunks, m, 0, 1, pipelines});
          if (!schedule.ok()) continue;
          EXPECT_TRUE(Validate(*schedule).ok()) << name << " p " << p << " m " << m << ": " << Validate(*schedule);
          ++legal;
        }
      }
    }
    EXPECT_EQ(legal, accepted) << name;
  }
}

// Every pass of a table has its own slot, later than those of its inputs.
TEST(ChimeraTest, SlotsAreATableInOrder) {
  for (const auto& [p, d] : {std::pair{2, 2}, {6, 2}, {4, 4}, {8, 4}, {12, 4}, {8, 8}, {16, 8}}) {
    const auto schedule = Generate("chimera", {p, 1, 3 * p, 0, 1, d});
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const auto stages = static_cast<std::size_t>(schedule->stages());
    const auto m = static_cast<std::size_t>(schedule->micro_batches);
    std::vector<std::int32_t> slot(2 * stages * m);
    const auto at = [&](bool forward, std::size_t stage, std::size_t k) -> std::int32_t& {
      return slot[((forward ? 0 : stages) + stage) * m + k];
    };
    for (std::size_t rank = 0; rank < schedule->order.size(); ++rank) {
      const std::vector<std::int32_t>& slots = schedule->slots[rank];
      ASSERT_EQ(slots.size(), schedule->order[rank].size());
      EXPECT_TRUE(std::is_sorted(slots.begin(), slots.end(), std::less_equal<>()));
      for (std::size_t i = 0; i < slots.size(); ++i) {
        const Action& action = schedule->order[rank][i];
        const std::int32_t stage = schedule->StageOf(static_cast<std::int32_t>(rank), action.chunk);
        at(action.kind == ActionKind::kForward, static_cast<std::size_t>(stage),
           static_cast<std::size_t>(action.micro_batch)) = slots[i];
      }
    }
    for (std::size_t k = 0; k < m; ++k) {
      for (std::size_t stage = 0; stage < stages; ++stage) {
        EXPECT_LT(at(true, stage, k), at(false, stage, k));
        if (stage == 0) continue;
        EXPECT_LT(at(true, stage - 1, k), at(true, stage, k));
        EXPECT_LT(at(false, stage, k), at(false, stage - 1, k));
      }
    }
  }
}

// Of the best and the worst rank.
struct Figures {
  std::int64_t least_idle = std::numeric_limits<std::int64_t>::max();
  std::int64_t idle = 0;
  std::int64_t span_bubble = 0;
  std::int64_t least_peak = std::numeric_limits<std::int64_t>::max();
  std::int64_t peak = 0;
};

Figures Measure(std::string_view family, const Parameters& parameters, const PassCosts& passes,
                std::optional<std::int64_t> block = std::nullopt) {
  const auto schedule = Generate(family, parameters);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  pipeline::Costs costs;
  costs.stages = {passes};
  costs.block = block;
  const auto evaluation = pipeline::Evaluate(*schedule, costs);
  EXPECT_TRUE(evaluation.ok()) << evaluation.status();
  Figures figures;
  for (const pipeline::RankEvaluation& rank : evaluation->ranks) {
    figures.least_idle = std::min(figures.least_idle, evaluation->makespan - rank.busy);
    figures.idle = std::max(figures.idle, evaluation->makespan - rank.busy);
    figures.span_bubble = std::max(figures.span_bubble, rank.span() - rank.busy);
    figures.least_peak = std::min(figures.least_peak, rank.peak_activations);
    figures.peak = std::max(figures.peak, rank.peak_activations);
  }
  return figures;
}

TEST(ZbVTest, ClosedFormHoldsWhereItSays) {
  for (std::int32_t p = 1; p <= 6; ++p) {
    for (const std::int32_t m : {2 * p, 2 * p + 1, 3 * p + 2}) {
      for (const PassCosts costs : {PassCosts{1, 1, 1}, {3, 3, 2}, {5, 6, 4}, {2, 7, 2}, {4, 5, 0}, {6, 6, 1}}) {
        const Figures figures = Measure("zb-v", {p, 2, m}, costs);
        const std::int64_t i = costs.input_gradient;
        const std::int64_t after_w = 2 * (i - costs.weight_gradient);
        EXPECT_EQ(figures.idle, (p - 1) * std::max(i, after_w));
        EXPECT_EQ(figures.least_idle, figures.idle);
        EXPECT_EQ(figures.span_bubble, (p - 1) * after_w);
        EXPECT_EQ(figures.peak, 2 * p);
        EXPECT_EQ(figures.least_peak, 2 * p);
      }
    }
  }
  // Fewer micro-batches than 2p: the truncated order idles more than (p-1) I = 3. W > F, or F > I: not the form's 6
  // or 3.
  EXPECT_EQ(Measure("zb-v", {4, 2, 4}, {1, 1, 1}).idle, 6);
  EXPECT_NE(Measure("zb-v", {4, 2, 8}, {2, 2, 3}).idle, 6);
  EXPECT_NE(Measure("zb-v", {4, 2, 8}, {2, 1, 1}).idle, 3);
}

// The idle times of the published generator for p = 2 to 8, and on.
TEST(VHalfTest, UnitCosts) {
  EXPECT_EQ(Measure("v-half", {2, 2, 4}, {}).idle, 1);
  for (std::int32_t p = 3; p <= 20; ++p) {
    for (const std::int32_t m : {2 * p, 3 * p}) {
      const Figures figures = Measure("v-half", {p, 2, m}, {});
      EXPECT_EQ(figures.idle, p % 2 == 0 ? 3 * p - 7 : 3 * p - 4) << p;
      EXPECT_EQ(figures.least_idle, figures.idle) << p;
      EXPECT_EQ(figures.peak, 2 * ((p + 2) / 2)) << p;
    }
  }
  EXPECT_NE(Measure("v-half", {12, 2, 11}, {}).idle, 29);
}

TEST(VMinTest, UnitCosts) {
  for (std::int32_t p = 2; p <= 20; ++p) {
    for (const std::int32_t m : {2 * p, 3 * p}) {
      const Figures figures = Measure("v-min", {p, 2, m}, {});
      EXPECT_EQ(figures.idle, p % 3 == 0 ? 4 * p - 7 : 4 * p - 5) << p;
      EXPECT_EQ(figures.least_idle, figures.idle) << p;
      EXPECT_EQ(figures.peak, 2 * ((p + 4) / 3)) << p;
    }
  }
  EXPECT_NE(Measure("v-min", {12, 2, 9}, {}).idle, 41);
}

// Both families, H ranks from end to turn: idle (H - 1)(F&B + F - 2W).
TEST(DualPipeTest, ClosedFormHoldsWhereItSays) {
  for (const std::string family : {"dualpipe", "dualpipe-v"}) {
    const bool two_copies = family == "dualpipe";
    for (std::int32_t half = 1; half <= 4; ++half) {
      const std::int32_t p = two_copies ? 2 * half : half;
      for (const std::int32_t m : {2 * p, 2 * p + 4}) {
        const Parameters parameters{p, two_copies ? 1 : 2, m};
        for (const PassCosts costs : {PassCosts{1, 1, 1}, {5, 5, 2}, {4, 4, 0}, {6, 4, 4}, {9, 2, 1}}) {
          const std::int64_t f = costs.forward;
          const std::int64_t sum = f + costs.backward();
          const Figures figures = Measure(family, parameters, costs);
          EXPECT_EQ(figures.idle, (half - 1) * (sum + f - 2 * costs.weight_gradient));
          EXPECT_EQ(figures.least_idle, figures.idle);
          EXPECT_EQ(figures.peak, 2 * half + 1);
          EXPECT_EQ(figures.least_peak, 2 * half + 1);
          // A block that overlaps: ranks run different numbers of them.
          const std::int64_t block = std::max(f, costs.backward());
          EXPECT_EQ(Measure(family, parameters, costs, block).idle,
                    (half - 1) * (block + f - 2 * costs.weight_gradient));
        }
      }
    }
    // I > F, or W > I: the form would be 3 (10 + max(F, I) - 2W).
    const std::int32_t p = two_copies ? 8 : 4;
    const Parameters parameters{p, two_copies ? 1 : 2, 2 * p};
    EXPECT_NE(Measure(family, parameters, {3, 5, 2}).idle, 3 * (10 + 5 - 4));
    EXPECT_NE(Measure(family, parameters, {3, 5, 2}).idle, 3 * (10 + 3 - 4));
    EXPECT_NE(Measure(family, parameters, {4, 2, 4}).idle, 3 * (10 + 4 - 8));
  }
}

Figures MeasureChimera(std::int32_t p, std::int32_t copies, std::int32_t m, const PassCosts& costs) {
  Parameters parameters;
  parameters.ranks = p;
  parameters.micro_batches = m;
  parameters.pipelines = copies;
  return Measure("chimera", parameters, costs);
}

TEST(ChimeraTest, ClosedFormHoldsWhereItSays) {
  for (const std::int32_t d : {2, 4, 8}) {
    for (std::int32_t p = d; p <= 16; p += d) {
      const std::int64_t waits = std::int64_t{2} * (p / d - 1);
      for (const auto& [f, b] : {std::pair{1, 1}, {1, 2}, {3, 1}, {4, 7}}) {
        const Figures figures = MeasureChimera(p, d, p, {f, b, 0});
        EXPECT_EQ(figures.idle, waits * std::max(f, b));
        EXPECT_EQ(figures.least_idle, figures.idle);
      }
      EXPECT_EQ(MeasureChimera(p, d, 3 * p, {2, 2, 0}).idle, waits * 2);
      EXPECT_EQ(MeasureChimera(p, d, 3 * p, {2, 2, 0}).peak, p);
      EXPECT_EQ(MeasureChimera(p, d, 3 * p, {2, 2, 0}).least_peak, p - p / d + 1);
    }
  }
  // With B = 2F and more than p micro-batches the loss grows with m: 4, 6, 10 for 4 ranks.
  EXPECT_EQ(Measure("chimera", {4, 1, 4}, {1, 2, 0}).idle, 4);
  EXPECT_EQ(Measure("chimera", {4, 1, 8}, {1, 2, 0}).idle, 6);
  EXPECT_EQ(Measure("chimera", {4, 1, 16}, {1, 2, 0}).idle, 10);
}

TEST(VFamiliesTest, PlacementsAndCopies) {
  EXPECT_TRUE(Generate("zb-v", {4, 2, 8})->placement == Placement::Wave(4, 2));
  EXPECT_TRUE(Generate("dualpipe-v", {4, 2, 8})->placement == Placement::Wave(4, 2));
  const auto dual_pipe = Generate("dualpipe", {2, 1, 4});
  EXPECT_TRUE(dual_pipe->placement == Placement::Bidirectional(2));
  EXPECT_EQ(dual_pipe->pipeline_of, (std::vector<std::int32_t>{0, 0, 1, 1}));
  EXPECT_TRUE(Generate("chimera", {4, 1, 4})->placement == Placement::Bidirectional(4));
  // Four copies of 8 stages start at ranks 0 and 4 downwards, 7 and 3 upwards.
  const auto chimera = Generate("chimera", {8, 1, 8, 0, 1, 4});
  EXPECT_EQ(chimera->pipeline_of, (std::vector<std::int32_t>{0, 0, 1, 1, 2, 2, 3, 3}));
  for (const auto& [copy, rank] : {std::pair{0, 0}, {1, 4}, {2, 7}, {3, 3}}) {
    EXPECT_EQ(chimera->placement.PlaceOf(0, copy), (Place{rank, copy}));
    EXPECT_EQ(chimera->placement.PlaceOf(1, copy).rank, copy < 2 ? rank + 1 : rank - 1);
  }
}

}  // namespace
}  // namespace orrery::schedules
