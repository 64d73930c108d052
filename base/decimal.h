// Decimal numbers as integers of 1e-9, exact both ways.
#ifndef ORRERY_BASE_DECIMAL_H_
#define ORRERY_BASE_DECIMAL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace orrery {

inline constexpr std::int64_t kDecimalOne = 1'000'000'000;

// Digits with at most one point between them, and no sign: "12", "0.1", "12.50".
// At most 9 digits after the point, at most 9,000,000,000 in value. INVALID_ARGUMENT quotes the text and says so.
absl::StatusOr<std::int64_t> ParseDecimal(std::string_view text);

// Without zeros at the end: 12, 0.1, -0.25.
std::string FormatDecimal(std::int64_t value);

}  // namespace orrery

#endif  // ORRERY_BASE_DECIMAL_H_
