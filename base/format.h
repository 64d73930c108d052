// Numbers as text, without locale and the same on every machine (std::to_chars).
#ifndef ORRERY_BASE_FORMAT_H_
#define ORRERY_BASE_FORMAT_H_

#include <cstdint>
#include <string>

#include "base/units.h"

namespace orrery {

// Shortest text that reads back as the same double: 0.1 -> "0.1", 1e22 -> "1e+22". Valid JSON for every finite value.
std::string FormatDouble(double value);

// `digits` digits after the point, 0 to 17; a value that rounds to zero has no sign.
std::string FormatFixed(double value, int digits);

// In the unit that reads best: "8.57 s", "12.3 ms", "4.0 us", "250.0 ns"; zero is "0 s".
std::string FormatSeconds(double seconds);

// In GiB (2^30 bytes) always, so that a column compares at a glance: "79.15 GiB".
std::string FormatBytes(Bytes bytes);

// With thousands separated: "12,288".
std::string FormatCount(std::int64_t count);

// A fraction in percent: 0.412 -> "41.2 %".
std::string FormatPercent(double fraction, int digits = 1);

}  // namespace orrery

#endif  // ORRERY_BASE_FORMAT_H_
