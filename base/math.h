// Elementary functions whose result is the same bits under every compiler, optimisation level and C library.
//
// Only + - * / (correctly rounded by IEEE 754), sqrt (likewise) and exact scaling by powers of two are used, in a fixed
// order; the build turns contraction into fused operations off. The C library's exp, log and pow differ in the last bit
// between versions, and one bit of a price becomes another picosecond.
#ifndef ORRERY_BASE_MATH_H_
#define ORRERY_BASE_MATH_H_

#include <cstdint>

namespace orrery {

// e^x, within 4e-16 relative where the result is a normal number. Overflow gives infinity, underflow 0, NaN NaN.
double Exp(double x);

// Natural logarithm, within 4e-16 relative. Log(0) is -infinity; a negative number or NaN gives NaN.
double Log(double x);

// base^exponent for base >= 0, within 4e-15 relative for every normal result (1e-15 below 1e100). A negative base gives
// NaN. Pow(x, 0) is 1.
double Pow(double base, double exponent);

// Inverse of the standard normal distribution function: Phi(NormalQuantile(p)) = p for 0 < p < 1, within 1e-15
// relative. 0 and 1 give -infinity and infinity; outside [0, 1] NaN. Source: M. J. Wichura, "Algorithm AS 241: The
// percentage points of the normal distribution", Applied Statistics 37 (1988) 477-484, routine PPND16.
double NormalQuantile(double p);

// Expected maximum of n >= 1 independent standard normal draws, within 1e-9 absolute for n up to 1e12, strictly
// increasing in n. Closed forms: 0, 1/sqrt(pi), 1.5/sqrt(pi) for n = 1, 2, 3. Takes a few microseconds.
//
// The largest of n uniform draws is exp(-T/n) with T exponential of mean 1, hence
//   E[max] = integral over t from 0 to infinity of NormalQuantile(exp(-t/n)) exp(-t) dt,
// integrated by the trapezoid rule after t = exp(x - exp(-x)) (the double-exponential rule of H. Takahasi and M. Mori,
// "Double exponential formulas for numerical integration", 1974). Nodes and positive weights do not depend on n, which
// is why the result inherits the monotonicity of the integrand.
double ExpectedMaximumOfNormals(std::int64_t n);

}  // namespace orrery

#endif  // ORRERY_BASE_MATH_H_
