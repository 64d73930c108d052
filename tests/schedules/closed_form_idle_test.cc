// Bubbles and peaks in closed form against the evaluation of every order, and where each range ends.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "schedules/closed_form.h"
#include "schedules/family.h"
#include "sim/pipeline/evaluate.h"

namespace orrery::schedules {
namespace {

struct Measured {
  std::int64_t makespan = 0;
  std::int64_t least_idle = 0;
  std::int64_t idle = 0;
  std::int64_t span_bubble = 0;
  std::vector<std::int64_t> peaks;
  std::vector<std::int64_t> peak_memory;
};

pipeline::Costs CostsOf(const ChunkCosts& chunk) {
  pipeline::Costs costs;
  costs.stages = {chunk.passes};
  costs.latency = chunk.latency;
  costs.block = chunk.block;
  costs.memory = {.forward = 7, .weight = 3};
  return costs;
}

Measured Measure(const Schedule& schedule, const pipeline::Costs& costs) {
  const auto evaluation = pipeline::Evaluate(schedule, costs);
  EXPECT_TRUE(evaluation.ok()) << evaluation.status();
  Measured measured;
  measured.makespan = measured.least_idle = evaluation->makespan;
  for (const pipeline::RankEvaluation& rank : evaluation->ranks) {
    measured.least_idle = std::min(measured.least_idle, evaluation->makespan - rank.busy);
    measured.idle = std::max(measured.idle, evaluation->makespan - rank.busy);
    measured.span_bubble = std::max(measured.span_bubble, rank.span() - rank.busy);
    measured.peaks.push_back(rank.peak_activations);
    measured.peak_memory.push_back(rank.peak_memory);
  }
  return measured;
}

Measured Measure(std::string_view family, const Parameters& parameters, const ChunkCosts& costs) {
  const auto schedule = Generate(family, parameters);
  EXPECT_TRUE(schedule.ok()) << family << ": " << schedule.status();
  return Measure(*schedule, CostsOf(costs));
}

// All legal parameters of a family, p up to `ranks`, m up to `micro_batches`.
std::vector<Parameters> LegalParameters(const Family& family, std::int32_t ranks, std::int32_t micro_batches) {
  std::vector<Parameters> legal;
  const auto add = [&](const Parameters& parameters) {
    if (family.check(parameters).ok()) legal.push_back(parameters);
  };
  for (std::int32_t p = 1; p <= ranks; ++p) {
    for (std::int32_t m = 1; m <= micro_batches; ++m) {
      for (std::int32_t v = 1; v <= 3; ++v) {
        if (family.fixed_chunks > 0 && v != family.fixed_chunks) continue;
        add({p, v, m});
        const bool grouped = family.name == "combined-1f1b" || family.name == "grouped-1f1b";
        for (std::int32_t n = 1; grouped && n <= m; ++n) add({p, v, m, n});
        if (family.name == "seq1f1b") add({p, v, m, 0, 3});
        if (family.name == "chimera") add({p, v, m, 0, 1, 4});
      }
    }
  }
  return legal;
}

std::string What(const Family& family, const Parameters& q, const ChunkCosts& c) {
  std::string text(family.name);
  for (const std::int64_t value :
       {std::int64_t{q.ranks}, std::int64_t{q.chunks}, std::int64_t{q.micro_batches}, std::int64_t{q.group_size},
        std::int64_t{q.slices}, c.passes.forward, c.passes.input_gradient, c.passes.weight_gradient, c.latency}) {
    text.append(1, ' ').append(std::to_string(value));
  }
  return text.append(" (p v m N s F I W c)");
}

bool IsSanitized() { return std::getenv("ORRERY_SANITIZER") != nullptr; }

std::vector<ChunkCosts> AllCosts() {
  std::vector<ChunkCosts> all;
  for (const PassCosts passes : {PassCosts{12, 12, 12},
                                 {3, 3, 2},
                                 {2, 2, 3},
                                 {5, 6, 4},
                                 {6, 5, 4},
                                 {2, 7, 2},
                                 {7, 2, 1},
                                 {4, 4, 0},
                                 {3, 5, 4},
                                 {9, 2, 2},
                                 {6, 2, 4}}) {
    for (const std::int64_t latency : {0, 1, 6, 12}) {
      if (latency <= 1 || passes == PassCosts{12, 12, 12}) all.push_back({passes, latency});
    }
  }
  return all;
}

// Wherever a form speaks, it is what the evaluation says, and on every rank.
TEST(ClosedFormIdleTest, IdleTimesAreExactInTheirRanges) {
  std::map<std::string, int> checked;
  for (const Family& family : Families()) {
    if (family.automatic) continue;
    for (const Parameters& parameters : LegalParameters(family, IsSanitized() ? 4 : 7, IsSanitized() ? 9 : 16)) {
      const Schedule schedule = *family.generate(parameters);
      for (const ChunkCosts& costs : AllCosts()) {
        const auto idle = ClosedFormIdle(family.name, parameters, costs);
        const auto span = ClosedFormSpanBubble(family.name, parameters, costs);
        if (!idle && !span) continue;
        const Measured measured = Measure(schedule, CostsOf(costs));
        ASSERT_EQ(idle.value_or(measured.idle), measured.idle) << What(family, parameters, costs);
        ASSERT_EQ(idle.value_or(measured.idle), measured.least_idle) << What(family, parameters, costs);
        ASSERT_EQ(span.value_or(measured.span_bubble), measured.span_bubble) << What(family, parameters, costs);
        ++checked[std::string(family.name)];
      }
    }
  }
  // All but those whose idle times nobody has put into a form.
  for (const Family& family : Families()) {
    if (family.automatic || family.name == "1f1b-v" || family.name == "hanayo") continue;
    EXPECT_GT(checked[std::string(family.name)], IsSanitized() ? 5 : 20) << family.name;
  }
}

TEST(ClosedFormIdleTest, PeaksAreExactInTheirRanges) {
  for (const Family& family : Families()) {
    if (family.automatic) continue;
    int checked = 0;
    for (const Parameters& parameters : LegalParameters(family, IsSanitized() ? 4 : 8, 24)) {
      const Measured measured = Measure(family.name, parameters, {});
      for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        const auto peak = ClosedFormPeak(family.name, parameters, rank);
        ASSERT_EQ(peak.value_or(measured.peaks[r]), measured.peaks[r]) << What(family, parameters, {}) << " r " << rank;
        const auto memory = ClosedFormPeakMemory(family.name, parameters, rank, {.forward = 7, .weight = 3});
        ASSERT_EQ(memory.value_or(measured.peak_memory[r]), measured.peak_memory[r]) << What(family, parameters, {});
      }
      const auto worst = ClosedFormWorstPeak(family.name, parameters);
      if (!worst) continue;
      ASSERT_EQ(*worst, *std::max_element(measured.peaks.begin(), measured.peaks.end()))
          << What(family, parameters, {});
      ++checked;
    }
    EXPECT_EQ(checked > 10, family.name != "hanayo") << family.name;
  }
}

// One step outside its range a form is silent, and its value there would be wrong.
TEST(ClosedFormIdleTest, RangesEndWhereTheySay) {
  const auto sliced = [](std::int32_t p, std::int32_t v, std::int32_t m, std::int32_t n) {
    return Parameters{p, v, m, n};
  };
  const struct {
    std::string_view family;
    Parameters inside, outside;
    ChunkCosts costs_inside, costs_outside;
    std::int64_t would_be;  // what the form would say outside
  } cases[] = {
      // W > min(F, I): 3 (2 + 2 - 3).
      {"zb-h1", {4, 1, 8}, {4, 1, 8}, {{2, 2, 2}}, {{2, 2, 3}}, 3},
      // 2c > F: 3 (12 + 12 - 12 + 4 x 7).
      {"zb-h1", {4, 1, 8}, {4, 1, 8}, {{12, 12, 12}, 6}, {{12, 12, 12}, 7}, 120},
      // m = p and messages: 3 (12 + 4).
      {"zb-h1", {4, 1, 5}, {4, 1, 4}, {{12, 12, 12}, 1}, {{12, 12, 12}, 1}, 48},
      // 2c > W: 3 (6 + 5 - 4 + 4 x 3).
      {"zb-h1", {4, 1, 8}, {4, 1, 8}, {{6, 5, 4}, 2}, {{6, 5, 4}, 3}, 57},
      // m < 2p - 1: 3 (3 + 3 - 2). W > F: 3 max(1, 4 - 4). c > F: 3 (12 + 13).
      {"zb-h2", {4, 1, 7}, {4, 1, 6}, {{3, 3, 1}}, {{3, 3, 1}}, 12},
      {"zb-h2", {4, 1, 8}, {4, 1, 8}, {{2, 3, 2}}, {{1, 3, 2}}, 3},
      {"zb-h2", {4, 1, 8}, {4, 1, 8}, {{12, 12, 12}, 12}, {{12, 12, 12}, 13}, 75},
      // W > min(F, I); m < p with two chunks: 1 x 2 - 0 + 1 x 2.
      {"interleaved-zb", {4, 2, 8}, {4, 2, 8}, {{2, 2, 2}}, {{2, 2, 3}}, 3},
      {"interleaved-zb", {2, 2, 2}, {2, 2, 1}, {{1, 1, 1}}, {{1, 1, 1}}, 4},
      // N does not divide m; unequal costs with N < p: 3 (5 + 6) + 2 x 5 = 43, and it is 47.
      {"grouped-1f1b", sliced(4, 2, 8, 4), sliced(4, 2, 9, 4), {{5, 6, 4}}, {{5, 6, 4}}, 33},
      {"grouped-1f1b", sliced(4, 2, 8, 2), sliced(4, 2, 8, 2), {{5, 5, 5}}, {{5, 6, 4}}, 43},
      // Blocks that overlap: 3 x 2 would be with F + B = 2.
      {"1f1b-overlap", {4, 1, 8}, {4, 1, 8}, {{1, 1, 1}, 0, 3}, {{1, 1, 1}, 0, 2}, 6},
      {"combined-1f1b", {4, 2, 8}, {4, 2, 8}, {{1, 1, 1}, 0, 3}, {{1, 1, 1}, 0, 2}, 6},
      // Messages: the form has none.
      {"seq1f1b", {4, 1, 8}, {4, 1, 8}, {{1, 1, 1}}, {{1, 1, 1}, 1}, 9},
      // m < 2p - 1; W > F; F > I.
      {"zb-v", {4, 2, 7}, {4, 2, 6}, {{3, 3, 2}}, {{3, 3, 2}}, 9},
      {"zb-v", {4, 2, 8}, {4, 2, 8}, {{2, 2, 2}}, {{2, 2, 3}}, 6},
      {"zb-v", {4, 2, 8}, {4, 2, 8}, {{1, 1, 1}}, {{2, 1, 1}}, 3},
      // m < 2p; unequal costs: the form in F would be 3 x 12 - 7 = 29 of F = 1, and 5 x 5.
      {"v-half", {12, 2, 24}, {12, 2, 11}, {{1, 1, 1}}, {{1, 1, 1}}, 29},
      {"v-half", {4, 2, 8}, {4, 2, 8}, {{5, 5, 5}}, {{5, 6, 4}}, 25},
      {"v-half", {3, 2, 6}, {2, 2, 4}, {{1, 1, 1}}, {{1, 1, 1}}, -1},
      {"v-min", {12, 2, 24}, {12, 2, 9}, {{1, 1, 1}}, {{1, 1, 1}}, 41},
      {"v-min", {4, 2, 8}, {4, 2, 8}, {{5, 5, 5}}, {{5, 6, 4}}, 55},
      // I > F: 3 (10 + 3 - 4); W > I: 3 (10 + 4 - 8).
      {"dualpipe", {8, 1, 16}, {8, 1, 16}, {{5, 5, 2}}, {{3, 5, 2}}, 27},
      {"dualpipe", {8, 1, 16}, {8, 1, 16}, {{4, 4, 4}}, {{4, 2, 4}}, 18},
      {"dualpipe-v", {4, 2, 8}, {4, 2, 8}, {{5, 5, 2}}, {{3, 5, 2}}, 27},
      {"dualpipe-v", {4, 2, 8}, {4, 2, 8}, {{4, 4, 4}}, {{4, 2, 4}}, 18},
      // B = 2F: m = p: 2 x 2; then it grows with m.
      {"chimera", {4, 1, 4}, {4, 1, 8}, {{1, 1, 1}}, {{1, 1, 1}}, 4},
  };
  for (const auto& [family, inside, outside, costs_inside, costs_outside, would_be] : cases) {
    SCOPED_TRACE(What(**FindFamily(family), outside, costs_outside));
    const auto form = ClosedFormIdle(family, inside, costs_inside);
    ASSERT_TRUE(form.has_value());
    EXPECT_EQ(*form, Measure(family, inside, costs_inside).idle);
    EXPECT_EQ(ClosedFormIdle(family, outside, costs_outside), std::nullopt);
    EXPECT_NE(would_be, Measure(family, outside, costs_outside).idle);
  }
}

TEST(ClosedFormIdleTest, SpanRangesEndWhereTheySay) {
  const struct {
    std::string_view family;
    Parameters parameters;
    PassCosts passes;
    std::int64_t would_be;
  } outside[] = {
      {"zb-h1", {4, 1, 3}, {3, 3, 2}, 12}, {"zb-h1", {4, 1, 8}, {2, 2, 3}, 3}, {"zb-h2", {4, 1, 6}, {3, 3, 2}, 6},
      {"zb-h2", {4, 1, 8}, {2, 2, 3}, -6}, {"zb-v", {4, 2, 6}, {1, 1, 1}, 0},  {"zb-v", {4, 2, 8}, {2, 2, 3}, -6},
      {"zb-v", {4, 2, 8}, {3, 2, 2}, 0},
  };
  for (const auto& [family, parameters, passes, would_be] : outside) {
    EXPECT_EQ(ClosedFormSpanBubble(family, parameters, {passes}), std::nullopt) << family;
    EXPECT_NE(Measure(family, parameters, {passes}).span_bubble, would_be)
        << family << " m " << parameters.micro_batches;
  }
}

// Looped BFS: p = 4, v = 2, m = 6, F = 10, B = 20. Forward passes return to rank 0 after 4 (10 + c), while it is busy
// for 60, and gradients after 4 (20 + c), while the last rank is busy for 120: hidden up to c = 5, 2 x 3 c in all.
TEST(ClosedFormIdleTest, LoopedBfsHidesReturnsWhileItIsBusy) {
  const Parameters parameters{4, 2, 6};
  const auto at = [&](std::int64_t c) { return *ClosedFormIdle("looped-bfs", parameters, {{10, 10, 10}, c}); };
  EXPECT_EQ(at(0), 3 * 30);
  EXPECT_EQ(at(5), 3 * 30 + 6 * 5);
  EXPECT_EQ(at(6), 3 * 30 + 6 * 6 + 4);
  for (std::int32_t p = 1; p <= 6; ++p) {
    for (std::int32_t v = 1; v <= 3; ++v) {
      for (std::int32_t m = 1; m <= 12; ++m) {
        for (const std::int64_t c : {0, 3, 20, 100}) {
          EXPECT_EQ(*ClosedFormIdle("looped-bfs", {p, v, m}, {{10, 7, 6}, c}),
                    Measure("looped-bfs", {p, v, m}, {{10, 7, 6}, c}).idle);
        }
      }
    }
  }
}

std::int64_t UnevenMakespan(std::string_view family, const Parameters& parameters, std::vector<PassCosts> stages) {
  pipeline::Costs costs;
  costs.stages = std::move(stages);
  return pipeline::Evaluate(*Generate(family, parameters), costs)->makespan;
}

// Every assignment of two costs to the stages, and of F and B apart.
TEST(ClosedFormIdleTest, UnevenStages) {
  int last_slowest = 0;
  for (std::int32_t p = 1; p <= 4; ++p) {
    for (std::int32_t m = 1; m <= 9; m += 2) {
      for (std::uint32_t mask = 0; mask < (1U << (2 * p)); ++mask) {
        std::vector<PassCosts> stages;
        for (std::int32_t s = 0; s < p; ++s) {
          stages.push_back({(mask >> (2 * s) & 1U) != 0 ? 5 : 3, (mask >> (2 * s + 1) & 1U) != 0 ? 7 : 2, 1});
        }
        const Parameters parameters{p, 1, m};
        EXPECT_EQ(ClosedFormUnevenMakespan("gpipe", parameters, stages), UnevenMakespan("gpipe", parameters, stages));
        const auto form = ClosedFormUnevenMakespan("1f1b", parameters, stages);
        if (!form) continue;
        EXPECT_EQ(*form, UnevenMakespan("1f1b", parameters, stages)) << "p " << p << " m " << m << " mask " << mask;
        ++last_slowest;
      }
    }
  }
  EXPECT_GT(last_slowest, 100);
  // A slow first stage: 15 x 9 + 27 = 162 would be the form's value, 1F1B takes 153.
  const std::vector<PassCosts> slow_first = {{3, 5, 1}, {2, 3, 1}, {2, 3, 1}, {2, 3, 1}};
  EXPECT_EQ(ClosedFormUnevenMakespan("1f1b", {4, 1, 16}, slow_first), std::nullopt);
  EXPECT_EQ(UnevenMakespan("1f1b", {4, 1, 16}, slow_first), 153);
}

// Visible work of a mixed batch, facts of a picture: p = 64, m = 512, F = 1, I = W = 1, a block costs 3. Ideal: 1536
// per chunk. 1F1B: + 63 x 3 = 1725; two chunks of these costs: 3072 + 63 x 3 = 3261; ZB-1p as ZB-H1: + 63 = 1599;
// DualPipe:
// + 31 x (3 + 1 - 2) = 1598.
TEST(ClosedFormIdleTest, SixtyFourRanks) {
  const ChunkCosts unit = {{1, 1, 1}, 0, 3};
  EXPECT_EQ(Measure("1f1b", {64, 1, 512}, unit).makespan, 1725);
  EXPECT_EQ(Measure("interleaved-1f1b", {64, 2, 512}, unit).makespan, 3261);
  EXPECT_EQ(Measure("zb-1p", {64, 1, 512}, unit).makespan, 1599);
  EXPECT_EQ(Measure("dualpipe", {64, 1, 512}, unit).makespan, 1598);
  EXPECT_EQ(ClosedFormIdle("1f1b", {64, 1, 512}, unit), 1725 - 1536);
  EXPECT_EQ(ClosedFormIdle("interleaved-1f1b", {64, 2, 512}, unit), 3261 - 3072);
  EXPECT_EQ(ClosedFormIdle("zb-h1", {64, 1, 512}, unit), 1599 - 1536);
  EXPECT_EQ(ClosedFormIdle("dualpipe", {64, 1, 512}, unit), 1598 - 1536);
}

}  // namespace
}  // namespace orrery::schedules
