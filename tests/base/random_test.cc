#include "base/random.h"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(RandomTest, AChainOverZeroIsSplitMix64) {
  // The first three outputs of SplitMix64 seeded with 0, as its published test vectors have them.
  EXPECT_EQ(HashCombine(0, 1), 0xe220a8397b1dcdafu);
  EXPECT_EQ(HashCombine(0, 2), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(HashCombine(0, 3), 0x06c45d188009454fu);
}

TEST(RandomTest, OrderAndSeedMatter) {
  EXPECT_NE(HashCombine(1, 2), HashCombine(2, 1));
  EXPECT_NE(StandardNormal(1, 0), StandardNormal(2, 0));
}

TEST(RandomTest, UniformIsTheMiddleOfItsCellAndNeverZeroOrOne) {
  EXPECT_EQ(UniformFromBits(0), 0x1p-53);
  EXPECT_EQ(UniformFromBits(~std::uint64_t{0}), 1 - 0x1p-53);
  EXPECT_EQ(UniformFromBits(std::uint64_t{1} << 63), 0.5 + 0x1p-53);
}

TEST(RandomTest, NormalDrawsHaveTheMomentsOfTheNormal) {
  // Over N draws the mean has standard error 1 / sqrt N, the variance sqrt(2 / N), the share beyond 1.96
  // sqrt(0.05 x 0.95 / N). The draws are fixed; five standard errors would fail a wrong generator and never this one.
  constexpr int kDraws = 1'000'000;
  double sum = 0, squares = 0, neighbours = 0, last = 0;
  int beyond = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double z = StandardNormal(42, i);
    sum += z;
    squares += z * z;
    neighbours += z * last;
    beyond += std::abs(z) > 1.959963984540054 ? 1 : 0;
    last = z;
  }
  EXPECT_NEAR(sum / kDraws, 0, 5e-3);
  EXPECT_NEAR(squares / kDraws, 1, 7.1e-3);
  EXPECT_NEAR(neighbours / kDraws, 0, 5e-3);
  EXPECT_NEAR(beyond / double{kDraws}, 0.05, 1.1e-3);
}

}  // namespace
}  // namespace orrery
