// Strong types for the quantities that cross interfaces. A bare number never says what it is; these do.
//
// Time is an integer number of picoseconds. A price is computed in floating point and rounded to a Time exactly once,
// in TimeFromSeconds, so that every engine adds and compares integers. An int64 of picoseconds spans 106 days.
#ifndef ORRERY_BASE_UNITS_H_
#define ORRERY_BASE_UNITS_H_

#include <cmath>
#include <compare>
#include <cstdint>

namespace orrery {

// For sums of times over many ranks.
__extension__ typedef __int128 Int128;

// A number with a unit. Quantities of one unit add, subtract and compare; a plain number scales them; the ratio of two
// is a plain number.
template <typename Tag, typename Rep>
class Quantity {
 public:
  using rep = Rep;
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep count) : count_(count) {}

  constexpr Rep count() const { return count_; }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.count_ + b.count_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.count_ - b.count_); }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.count_ * k); }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity(a.count_ * k); }
  friend constexpr Quantity operator/(Quantity a, Rep k) { return Quantity(a.count_ / k); }
  constexpr Quantity& operator+=(Quantity b) {
    count_ += b.count_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity b) {
    count_ -= b.count_;
    return *this;
  }
  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;

 private:
  Rep count_{};
};

using Time = Quantity<struct TimeTag, std::int64_t>;    // picoseconds
using Bytes = Quantity<struct BytesTag, std::int64_t>;  // bytes
using Flops = Quantity<struct FlopsTag, double>;        // floating-point operations
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

inline constexpr double kPicosecondsPerSecond = 1e12;

// The one place where a price becomes a Time: nearest picosecond, halves away from zero. `seconds` must be finite and
// within +-9.2e6 (the loader bounds every input so that it is).
inline Time TimeFromSeconds(double seconds) { return Time(std::llround(seconds * kPicosecondsPerSecond)); }

inline constexpr double SecondsFromTime(Time time) { return static_cast<double>(time.count()) / kPicosecondsPerSecond; }

// Seconds that `amount` takes at `rate`; the rate must be positive.
inline constexpr double SecondsAt(Bytes amount, BytesPerSecond rate) {
  return static_cast<double>(amount.count()) / rate.count();
}
inline constexpr double SecondsAt(Flops amount, FlopsPerSecond rate) { return amount.count() / rate.count(); }

}  // namespace orrery

#endif  // ORRERY_BASE_UNITS_H_
