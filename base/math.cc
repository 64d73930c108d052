#include "base/math.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/check.h"

namespace orrery {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// ln 2 in two parts: the first has its last 21 bits zero, so that its product with an exponent of a double is exact.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kInverseLn2 = 0x1.71547652b82fep+0;
constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;

// An unevaluated sum high + low with |low| at most half a unit in the last place of high.
struct TwoPart {
  double high;
  double low;
};

// a + b without error (D. E. Knuth, The Art of Computer Programming 2, 4.2.2, theorem B).
TwoPart ExactSum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// The upper 26 bits of a (G. W. Veltkamp's split); |a| below 2^995.
double UpperHalf(double a) {
  const double scaled = a * 134217729.0;  // 2^27 + 1
  return scaled - (scaled - a);
}

// a * b without error where nothing over- or underflows (T. J. Dekker, Numerische Mathematik 18, 1971).
TwoPart ExactProduct(double a, double b) {
  const double product = a * b;
  const double a_high = UpperHalf(a), a_low = a - a_high;
  const double b_high = UpperHalf(b), b_low = b - b_high;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

// Horner's rule, coefficients from the constant term upward.
template <std::size_t n>
double Polynomial(const std::array<double, n>& coefficients, double x) {
  double sum = coefficients[n - 1];
  for (std::size_t i = n - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

// ln x of a positive, finite x with about 1e-18 relative error. x = 2^k m with m in [sqrt(1/2), sqrt 2), and with
// s = (m - 1) / (m + 1): ln m = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172. Only s itself needs two parts: the rest is
// below 1 % of it.
TwoPart LogInTwoParts(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < kSqrtHalf) {
    mantissa *= 2;
    --exponent;
  }
  const double numerator = mantissa - 1;  // exact: mantissa is within a factor of two of 1
  const TwoPart denominator = ExactSum(mantissa, 1);
  const double s = numerator / denominator.high;
  const TwoPart back = ExactProduct(s, denominator.high);
  const double s_low = ((numerator - back.high) - back.low - s * denominator.low) / denominator.high;

  static constexpr std::array<double, 11> kOddReciprocals = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                                                             2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  const double square = s * s;
  const double rest = s * square * Polynomial(kOddReciprocals, square) + 2 * s_low;

  const double k = exponent;
  const TwoPart leading = ExactSum(k * kLn2High, 2 * s);
  return ExactSum(leading.high, leading.low + (rest + k * kLn2Low));
}

}  // namespace

double Exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 710) return kInfinity;
  if (x < -746) return 0;
  // x = k ln 2 + r with |r| <= ln 2 / 2; the Taylor polynomial of degree 13 leaves less than 1e-17.
  const double k = std::floor(x * kInverseLn2 + 0.5);
  const double r_high = x - k * kLn2High;
  const double r_low = k * kLn2Low;
  const double r = r_high - r_low;
  const double r_error = (r_high - r) - r_low;
  static constexpr std::array<double, 12> kInverseFactorials = {
      1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
      1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  const TwoPart leading = ExactSum(1, r);
  const double rest = leading.low + (r * r * Polynomial(kInverseFactorials, r) + r_error);
  return std::ldexp(leading.high + rest, static_cast<int>(k));
}

double Log(double x) {
  if (std::isnan(x) || x < 0) return kNaN;
  if (x == 0) return -kInfinity;
  if (std::isinf(x)) return x;
  return LogInTwoParts(x).high;
}

double Pow(double base, double exponent) {
  if (exponent == 0 || base == 1) return 1;
  if (std::isnan(exponent) || std::isnan(base) || base < 0) return kNaN;
  if (base == 0) return exponent > 0 ? 0 : kInfinity;
  if (std::isinf(base)) return exponent > 0 ? kInfinity : 0;
  const TwoPart log = LogInTwoParts(base);
  const double estimate = exponent * log.high;
  if (!(estimate > -746 && estimate < 710)) return Exp(estimate);  // also keeps the split below from overflowing
  const TwoPart product = ExactProduct(exponent, log.high);
  const double low = product.low + exponent * log.low;
  const double value = Exp(product.high);
  return std::isinf(value) ? value : value + value * low;
}

double NormalQuantile(double p) {
  static constexpr std::array<double, 8> kCentreNumerator = {
      3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
      4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr std::array<double, 8> kCentreDenominator = {1.0,
                                                               4.2313330701600911252e+1,
                                                               6.8718700749205790830e+2,
                                                               5.3941960214247511077e+3,
                                                               2.1213794301586595867e+4,
                                                               3.9307895800092710610e+4,
                                                               2.8729085735721942674e+4,
                                                               5.2264952788528545610e+3};
  static constexpr std::array<double, 8> kMiddleNumerator = {
      1.42343711074968357734e0, 4.63033784615654529590e0,  5.76949722146069140550e0,  3.64784832476320460504e0,
      1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr std::array<double, 8> kMiddleDenominator = {1.0,
                                                               2.05319162663775882187e0,
                                                               1.67638483018380384940e0,
                                                               6.89767334985100004550e-1,
                                                               1.48103976427480074590e-1,
                                                               1.51986665636164571966e-2,
                                                               5.47593808499534494600e-4,
                                                               1.05075007164441684324e-9};
  static constexpr std::array<double, 8> kFarNumerator = {
      6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,  2.96560571828504891230e-1,
      2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr std::array<double, 8> kFarDenominator = {1.0,
                                                            5.99832206555887937690e-1,
                                                            1.36929880922735805310e-1,
                                                            1.48753612908506148525e-2,
                                                            7.86869131145613259100e-4,
                                                            1.84631831751005468180e-5,
                                                            1.42151175831644588870e-7,
                                                            2.04426310338993978564e-15};

  if (std::isnan(p) || p < 0 || p > 1) return kNaN;
  if (p == 0) return -kInfinity;
  if (p == 1) return kInfinity;
  const double centred = p - 0.5;
  if (std::abs(centred) <= 0.425) {
    const double r = 0.180625 - centred * centred;
    return centred * Polynomial(kCentreNumerator, r) / Polynomial(kCentreDenominator, r);
  }
  const double r = std::sqrt(-Log(centred < 0 ? p : 1 - p));
  const double magnitude = r <= 5 ? Polynomial(kMiddleNumerator, r - 1.6) / Polynomial(kMiddleDenominator, r - 1.6)
                                  : Polynomial(kFarNumerator, r - 5) / Polynomial(kFarDenominator, r - 5);
  return centred < 0 ? -magnitude : magnitude;
}

namespace {

// NormalQuantile(exp(-x)) for x > 0, also where exp(-x) is within rounding of 1.
double NormalQuantileOfExp(double x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  if (x > kLn2) return NormalQuantile(Exp(-x));
  // (1 - exp(-x)) / x = 1 - x/2! + x^2/3! - ...; 13 terms leave less than 1e-13 of it, and none of it for a small x.
  static constexpr std::array<double, 13> kInverseFactorials = {
      1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,       1.0 / 5040,
      1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  return -NormalQuantile(x * Polynomial(kInverseFactorials, -x));
}

struct QuadratureNode {
  double t;
  double weight;
};

// x from -3.6 (t = 3e-18) to 3.8 (exp(-t) = 1e-19) in steps of 0.1; halving the step changes no result by 1e-9.
constexpr int kNodes = 75;
std::array<QuadratureNode, kNodes> QuadratureNodes() {
  std::array<QuadratureNode, kNodes> nodes{};
  for (int i = 0; i < kNodes; ++i) {
    const double x = (i - 36) / 10.0;
    const double t = Exp(x - Exp(-x));
    nodes[static_cast<std::size_t>(i)] = {t, 0.1 * Exp(-t) * t * (1 + Exp(-x))};
  }
  return nodes;
}

}  // namespace

double ExpectedMaximumOfNormals(std::int64_t n) {
  ORRERY_CHECK(n >= 1);
  if (n == 1) return 0;
  static const std::array<QuadratureNode, kNodes> nodes = QuadratureNodes();
  double sum = 0;
  for (const QuadratureNode& node : nodes) sum += node.weight * NormalQuantileOfExp(node.t / static_cast<double>(n));
  return sum;
}

}  // namespace orrery
