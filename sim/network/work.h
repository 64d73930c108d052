// Rates of progress, work, and how long the one takes at the other, in integers.
#ifndef ORRERY_SIM_NETWORK_WORK_H_
#define ORRERY_SIM_NETWORK_WORK_H_

#include <cstdint>
#include <limits>

#include "base/units.h"

namespace orrery::network {

inline constexpr Time kNever(std::numeric_limits<std::int64_t>::max());

using Rate = Quantity<struct RateTag, std::int64_t>;  // 1e-3 units of progress (or bytes, on a link) per second
using Work = Quantity<struct WorkTag, Int128>;        // 1e-15 units of progress, or bytes on a link: rate x picoseconds
inline constexpr std::int64_t kRatePerUnit = 1'000;
inline constexpr std::int64_t kWorkPerUnit = 1'000'000'000'000'000;

inline constexpr Work WorkOfUnits(std::int64_t units) { return Work(Int128{units} * kWorkPerUnit); }

inline constexpr Work WorkAt(Rate rate, Time time) { return Work(Int128{rate.count()} * time.count()); }

// Rounded up. The divisor is positive, the dividend not negative.
inline constexpr Int128 CeilOfRatio(Int128 dividend, Int128 divisor) { return (dividend + divisor - 1) / divisor; }

// `start` plus what `work` takes at `rate`, rounded up; kNever where that is beyond the range of Time.
inline constexpr Time EndOf(Time start, Work work, Rate rate) {
  const Int128 end = start.count() + CeilOfRatio(work.count(), rate.count());
  return end < kNever.count() ? Time(static_cast<std::int64_t>(end)) : kNever;
}

}  // namespace orrery::network

#endif  // ORRERY_SIM_NETWORK_WORK_H_
