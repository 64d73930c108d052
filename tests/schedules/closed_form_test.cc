#include "schedules/closed_form.h"

#include "gtest/gtest.h"
#include "tests/schedules/evaluator.h"

namespace orrery::schedules {
namespace {

struct Costs {
  std::int64_t forward, backward;
};
constexpr Costs kCosts[] = {{60, 120}, {60, 60}, {100, 37}, {10, 99}};

std::int64_t Makespan(std::string_view family, const Parameters& parameters, Costs costs, std::int64_t latency) {
  const Schedule schedule = *Generate(family, parameters);
  return *Evaluate(schedule, Uniform(schedule, costs.forward, costs.backward, latency));
}

std::optional<Time> Form(std::string_view family, const Parameters& parameters, Costs costs, std::int64_t latency) {
  return ClosedFormMakespan(family, parameters, {Time(costs.forward), Time(costs.backward), Time(latency)});
}

// What the form would be one step further, had its range not ended: linear in the latency.
std::int64_t Extrapolated(std::string_view family, const Parameters& parameters, Costs costs, std::int64_t latency) {
  const std::int64_t at0 = Form(family, parameters, costs, 0)->count();
  return at0 + (Form(family, parameters, costs, 1)->count() - at0) * latency;
}

TEST(ClosedFormTest, GpipeAndOneForwardOneBackwardAreExactForEveryLatency) {
  for (const std::string_view family : {"gpipe", "1f1b"}) {
    for (std::int32_t p = 1; p <= 16; ++p) {
      for (std::int32_t m = 1; m <= 64; m += (m < 20 ? 1 : 11)) {
        for (const Costs costs : kCosts) {
          for (const std::int64_t latency : {0, 1, 50, 1000}) {
            const Parameters parameters{p, 1, m, 1};
            ASSERT_EQ(Form(family, parameters, costs, latency), Time(Makespan(family, parameters, costs, latency)))
                << family << " p " << p << " m " << m << " c " << latency;
          }
        }
      }
    }
  }
}

// p | m: the published form c [2 (p - 1)(m / p + 1) - 2]. p = 4, m = 8, F = 1, B = 2, c = 1: 11 x 3 + 2 x 3 x 3 - 2 =
// 49.
TEST(ClosedFormTest, OneForwardOneBackwardLatencyGrowsWithMicroBatches) {
  EXPECT_EQ(Form("1f1b", {4, 1, 8, 1}, {1, 2}, 1), Time(49));
  for (std::int32_t p = 2; p <= 8; ++p) {
    for (std::int32_t q = 1; q <= 6; ++q) {
      const std::int64_t expected = (q * p + p - 1) * 3 + 2 * (p - 1) * (q + 1) - 2;
      EXPECT_EQ(Form("1f1b", {p, 1, q * p, 1}, {1, 2}, 1), Time(expected));
    }
  }
}

// Both forms need equal stages. p = 4, m = 16, F = 1, B = 2 and a first stage 1.5 times as slow: 1F1B needs 76.5
// (doubled here to stay in integers), less than (m - 1) max + sum = 15 x 4.5 + 13.5 = 81, which GPipe needs: after a
// slow first stage its backward passes catch up nothing.
TEST(ClosedFormTest, UnequalStagesAreOutsideTheForms) {
  for (const auto& [family, expected] : {std::pair{"1f1b", 153}, std::pair{"gpipe", 162}}) {
    const Schedule schedule = *Generate(family, {4, 1, 16, 1});
    StageCosts costs = Uniform(schedule, 2, 4, 0);
    costs.forward[0] = 3;
    costs.backward[0] = 6;
    EXPECT_EQ(Evaluate(schedule, costs), expected) << family;
    EXPECT_NE(Form(family, {4, 1, 16, 1}, {2, 4}, 0), Time(expected)) << family;
  }
}

TEST(ClosedFormTest, InterleavedIsExactInItsRange) {
  int checked = 0;
  for (std::int32_t p = 2; p <= 16; p += (p < 6 ? 1 : 5)) {
    for (std::int32_t m = 1; m <= 64; m += (m < 18 ? 1 : 7)) {
      for (const std::int32_t n : LegalGroupSizes(p, m)) {
        if (n > p + 8 && n < m) continue;
        for (std::int32_t v = 1; v <= 4; ++v) {
          for (const Costs costs : kCosts) {
            const std::int64_t shortest = std::min(costs.forward, costs.backward);
            for (const std::int64_t latency :
                 {std::int64_t{0}, std::int64_t{1}, std::max<std::int64_t>(n - p, 0) * shortest / p, shortest}) {
              const Parameters parameters{p, v, m, n};
              const auto form = Form("interleaved-1f1b", parameters, costs, latency);
              if (!form.has_value()) continue;
              ASSERT_EQ(*form, Time(Makespan("interleaved-1f1b", parameters, costs, latency)))
                  << "p " << p << " v " << v << " m " << m << " N " << n << " c " << latency << " F " << costs.forward;
              ++checked;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 10000);
}

// Each range ends where it says: one unit further the form is silent, and extrapolating it would be wrong.
TEST(ClosedFormTest, InterleavedRangesEndWhereTheySay) {
  const struct {
    Parameters parameters;
    Costs costs;
    std::int64_t last;  // latency up to which the form holds
  } cases[] = {
      {{5, 2, 4, 4}, {60, 60}, 60},    // m < p: c <= min(F, B)
      {{4, 2, 16, 4}, {60, 120}, 60},  // N = p
      {{4, 1, 16, 4}, {60, 60}, 60},   // v = 1
      {{4, 2, 16, 5}, {60, 120}, -1},  // R = 1: no schedule at all
      {{4, 2, 18, 6}, {60, 120}, 30},  // N > p, R = 0: p c <= (N - p) F = 120
      {{4, 2, 17, 6}, {60, 60}, 15},   // R = 5: p c <= (R - p) 60 = 60
      {{4, 2, 10, 6}, {60, 60}, 30},   // R = p: the forward returns are still hidden while p c <= (N - p) 60
  };
  for (const auto& [parameters, costs, last] : cases) {
    if (last < 0) {
      EXPECT_FALSE(Form("interleaved-1f1b", parameters, costs, 0).has_value());
      continue;
    }
    const auto at_end = Form("interleaved-1f1b", parameters, costs, last);
    ASSERT_TRUE(at_end.has_value()) << last;
    EXPECT_EQ(*at_end, Time(Makespan("interleaved-1f1b", parameters, costs, last)));
    EXPECT_FALSE(Form("interleaved-1f1b", parameters, costs, last + 1).has_value()) << last;
    EXPECT_NE(Extrapolated("interleaved-1f1b", parameters, costs, last + 1),
              Makespan("interleaved-1f1b", parameters, costs, last + 1))
        << last;
  }
}

// N = p: 2 (p v - 1) c, independent of m; N > p: 2 (p - 1) c; p = 4, v = 2, F = 10, B = 19.
// m = 16: (16 x 2 + 3) x 29 = 1015, + 14 = 1029 for N = 4; m = 10, N = 5: (20 + 3) x 29 = 667, + 6 = 673.
TEST(ClosedFormTest, InterleavedByHand) {
  EXPECT_EQ(Form("interleaved-1f1b", {4, 2, 16, 4}, {10, 19}, 1), Time(1029));
  EXPECT_EQ(Form("interleaved-1f1b", {4, 2, 10, 5}, {10, 19}, 1), Time(673));
}

TEST(ClosedFormTest, PeaksAreCounted) {
  for (std::int32_t p = 1; p <= 9; ++p) {
    for (std::int32_t m = 1; m <= 30; ++m) {
      std::vector<std::pair<std::string_view, Parameters>> cases = {{"gpipe", {p, 1, m, 1}}, {"1f1b", {p, 1, m, 1}}};
      if (p > 1) {
        for (const std::int32_t n : LegalGroupSizes(p, m)) {
          for (std::int32_t v = 1; v <= 3; ++v) cases.push_back({"interleaved-1f1b", {p, v, m, n}});
        }
      }
      for (const auto& [family, parameters] : cases) {
        const Schedule schedule = *Generate(family, parameters);
        for (std::int32_t rank = 0; rank < p; ++rank) {
          ASSERT_EQ(ClosedFormPeak(family, parameters, rank), CountPeak(schedule.order[static_cast<std::size_t>(rank)]))
              << family << " p " << p << " v " << parameters.chunks << " m " << m << " rank " << rank;
        }
      }
    }
  }
}

// p = 4, v = 2, N = 4, m = 16: warm-up 2 x 3 + 4 = 10 and one more on rank 0; 4 + 1 on rank 3.
TEST(ClosedFormTest, PeaksByHand) {
  EXPECT_EQ(ClosedFormPeak("interleaved-1f1b", {4, 2, 16, 4}, 0), 11);
  EXPECT_EQ(ClosedFormPeak("interleaved-1f1b", {4, 2, 16, 4}, 3), 5);
}

TEST(ClosedFormTest, IsSilentWhereThereIsNoSchedule) {
  EXPECT_FALSE(Form("1f1b", {4, 2, 8, 1}, {1, 2}, 0).has_value());
  EXPECT_FALSE(Form("interleaved-1f1b", {4, 2, 8, 3}, {1, 2}, 0).has_value());
  EXPECT_FALSE(Form("unknown", {4, 1, 8, 1}, {1, 2}, 0).has_value());
  EXPECT_FALSE(ClosedFormPeak("unknown", {4, 1, 8, 1}, 0).has_value());
  EXPECT_FALSE(ClosedFormPeak("1f1b", {4, 1, 8, 1}, 4).has_value());
}

}  // namespace
}  // namespace orrery::schedules
