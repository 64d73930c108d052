#include "base/math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double RelativeError(double value, long double truth) {
  return static_cast<double>(std::abs((static_cast<long double>(value) - truth) / truth));
}

// The C library's 80-bit functions are the truth here: their error is a thousandth of a double's last bit. Points step
// by an irrational number so that no two share their low bits.
TEST(MathTest, ExpIsWithinItsStatedError) {
  for (double x = -708; x < 709.7; x += 0.0123456789 * std::numbers::sqrt2) {
    ASSERT_LT(RelativeError(Exp(x), std::exp(static_cast<long double>(x))), 4e-16) << x;
  }
}

TEST(MathTest, ExpAtItsEdges) {
  EXPECT_EQ(Exp(0), 1);
  EXPECT_EQ(Exp(710), kInfinity);  // the largest double is e^709.78
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(-746), 0);  // half the smallest double is e^-745.13
  EXPECT_EQ(Exp(-kInfinity), 0);
  EXPECT_GT(Exp(-745), 0);
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<double>::quiet_NaN())));
}

TEST(MathTest, LogIsWithinItsStatedErrorOverAllMagnitudesAndNearOne) {
  for (double x = 1e-321; x < 1e308; x *= 1.0123456789 * std::numbers::sqrt2 / 1.4) {
    ASSERT_LT(RelativeError(Log(x), std::log(static_cast<long double>(x))), 4e-16) << x;
  }
  for (double step = 0.3; step > 1e-15; step *= 0.9) {
    for (const double x : {1 + step, 1 - step}) {
      ASSERT_LT(RelativeError(Log(x), std::log(static_cast<long double>(x))), 4e-16) << x;
    }
  }
}

TEST(MathTest, LogAtItsEdges) {
  EXPECT_EQ(Log(1), 0);
  EXPECT_EQ(Log(0), -kInfinity);
  EXPECT_EQ(Log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Log(-1)));
}

TEST(MathTest, PowIsWithinItsStatedErrorAlsoForLargeExponents) {
  for (double base = 1e-9; base < 1e9; base *= 1.7320508) {
    for (double exponent = -33; exponent < 33; exponent += 0.77777) {
      const long double truth = std::pow(static_cast<long double>(base), static_cast<long double>(exponent));
      ASSERT_LT(RelativeError(Pow(base, exponent), truth), 4e-15) << base << "^" << exponent;
      if (truth > 1e-100L && truth < 1e100L) {
        ASSERT_LT(RelativeError(Pow(base, exponent), truth), 1e-15) << base << "^" << exponent;
      }
    }
  }
  // (1 + 2^-40)^(2^40) is e (1 - 2^-41 + ...): the exponent magnifies an error of the logarithm by 1e12.
  EXPECT_NEAR(Pow(1 + 0x1p-40, 0x1p40), std::numbers::e * (1 - 0x1p-41), 2e-15);
}

TEST(MathTest, PowAtItsEdges) {
  EXPECT_EQ(Pow(2, 10), 1024);
  EXPECT_EQ(Pow(0, 0), 1);
  EXPECT_EQ(Pow(0, 3), 0);
  EXPECT_EQ(Pow(0, -3), kInfinity);
  EXPECT_EQ(Pow(10, 400), kInfinity);
  EXPECT_EQ(Pow(10, -400), 0);
  EXPECT_EQ(Pow(1, kInfinity), 1);
  EXPECT_EQ(Pow(kInfinity, -1), 0);
  EXPECT_EQ(Pow(1e300, 1e300), kInfinity);
  EXPECT_TRUE(std::isnan(Pow(-2, 2)));
}

// Bits, not nearness: these are what every compiler, level and C library must give. The values are the correctly
// rounded ones (e = 2.71828182845904523536..., ln 10 = 2.30258509299404568402...).
TEST(MathTest, BitsAreFixed) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(Exp(1)), std::bit_cast<std::uint64_t>(0x1.5bf0a8b145769p+1));
  EXPECT_EQ(std::bit_cast<std::uint64_t>(Log(10)), std::bit_cast<std::uint64_t>(0x1.26bb1bbb55516p+1));
}

TEST(NormalQuantileTest, InvertsTheDistributionFunctionInBothTails) {
  // Phi(x) = erfc(-x / sqrt 2) / 2. A relative error d of the quantile x changes the tail by x^2 d of itself or more.
  for (double p = 1e-300; p < 0.5; p *= 1.9) {
    const long double x = NormalQuantile(p);
    ASSERT_LT(RelativeError(p, std::erfc(-x / std::sqrt(2.0L)) / 2), 1e-15 * (1 + static_cast<double>(x * x))) << p;
  }
  for (double p = 0.01; p < 0.995; p += 0.01) {
    EXPECT_NEAR(std::erfc(-NormalQuantile(p) / std::numbers::sqrt2) / 2, p, 4e-16) << p;
    EXPECT_NEAR(NormalQuantile(1 - p), -NormalQuantile(p), 1e-14);
  }
}

TEST(NormalQuantileTest, TableValuesAndEdges) {
  EXPECT_EQ(NormalQuantile(0.5), 0);
  EXPECT_NEAR(NormalQuantile(0.975), 1.959963984540054, 1e-15);  // the 95 % interval of every table
  EXPECT_EQ(NormalQuantile(0), -kInfinity);
  EXPECT_EQ(NormalQuantile(1), kInfinity);
  EXPECT_TRUE(std::isnan(NormalQuantile(-0.1)));
  EXPECT_TRUE(std::isnan(NormalQuantile(1.1)));
}

TEST(ExpectedMaximumOfNormalsTest, ClosedForms) {
  // n = 2: max(X, Y) = (X + Y + |X - Y|) / 2 and X - Y is normal with variance 2, so E max = sqrt 2 sqrt(2 / pi) / 2.
  // n = 3: the range is half the sum of the three pairwise distances, 3 (2 / sqrt pi) / 2, and also twice E max.
  // n = 4 and 5: H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition, section 3.2.
  const double root = std::sqrt(std::numbers::pi);
  const double a = std::asin(1.0 / 3) / std::numbers::pi;
  EXPECT_EQ(ExpectedMaximumOfNormals(1), 0);
  EXPECT_NEAR(ExpectedMaximumOfNormals(2), 1 / root, 1e-9);
  EXPECT_NEAR(ExpectedMaximumOfNormals(3), 1.5 / root, 1e-9);
  EXPECT_NEAR(ExpectedMaximumOfNormals(4), 3 / root * (0.5 + a), 1e-9);
  EXPECT_NEAR(ExpectedMaximumOfNormals(5), 5 / root * (0.25 + 1.5 * a), 1e-9);
}

// E max = integral of (1 - Phi(z)^n) over z > 0 minus integral of Phi(z)^n over z < 0, by the trapezoid rule with the C
// library's erfc: another formula, other arithmetic.
double ExpectedMaximumByTails(double n) {
  constexpr double kStep = 1.0 / 512;
  double sum = 0;
  for (int i = -20 * 512; i < 20 * 512; ++i) {
    const double z = (i + 0.5) * kStep;
    const double power = std::exp(n * std::log1p(-std::erfc(z / std::numbers::sqrt2) / 2));
    sum += z > 0 ? 1 - power : -power;
  }
  return sum * kStep;
}

TEST(ExpectedMaximumOfNormalsTest, AgreesWithTheTailFormula) {
  for (const std::int64_t n : {2, 7, 8, 64, 100, 3072, 12288, 1048576, 100000000}) {
    EXPECT_NEAR(ExpectedMaximumOfNormals(n), ExpectedMaximumByTails(static_cast<double>(n)), 1e-6) << n;
  }
}

TEST(ExpectedMaximumOfNormalsTest, GrowsStrictlyWithN) {
  double last = ExpectedMaximumOfNormals(1);
  for (std::int64_t n = 2; n <= 20000; ++n) {
    const double now = ExpectedMaximumOfNormals(n);
    ASSERT_GT(now, last) << n;
    last = now;
  }
  for (std::int64_t n = 20000; n < 100'000'000; n += n / 7) {
    EXPECT_GT(ExpectedMaximumOfNormals(n + 1), ExpectedMaximumOfNormals(n)) << n;
  }
}

}  // namespace
}  // namespace orrery
