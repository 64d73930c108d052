#include "base/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace orrery {

std::string FormatDouble(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  ORRERY_CHECK(error == std::errc());
  return std::string(buffer.data(), end);
}

std::string FormatFixed(double value, int digits) {
  ORRERY_CHECK(digits >= 0 && digits <= 17);
  std::array<char, 340> buffer{};  // the largest double has 309 digits before the point
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, digits);
  ORRERY_CHECK(error == std::errc());
  std::string text(buffer.data(), end);
  if (text.starts_with('-') && text.find_first_not_of("-0.") == std::string::npos) text.erase(0, 1);
  return text;
}

std::string FormatSeconds(double seconds) {
  if (seconds == 0) return "0 s";
  // A unit is left where its one digit after the point would round to 1000.0.
  const double magnitude = std::abs(seconds);
  if (magnitude < 999.95e-9) return absl::StrCat(FormatFixed(seconds * 1e9, 1), " ns");
  if (magnitude < 999.95e-6) return absl::StrCat(FormatFixed(seconds * 1e6, 1), " us");
  if (magnitude < 999.95e-3) return absl::StrCat(FormatFixed(seconds * 1e3, 1), " ms");
  return absl::StrCat(FormatFixed(seconds, 2), " s");
}

std::string FormatBytes(Bytes bytes) {
  return absl::StrCat(FormatFixed(static_cast<double>(bytes.count()) * 0x1p-30, 2), " GiB");
}

std::string FormatCount(std::int64_t count) {
  std::string text = absl::StrCat(count);
  const std::size_t first_digit = count < 0 ? 1 : 0;
  for (std::size_t position = text.size(); position > first_digit + 3;) {
    position -= 3;
    text.insert(position, 1, ',');
  }
  return text;
}

std::string FormatPercent(double fraction, int digits) {
  return absl::StrCat(FormatFixed(fraction * 100, digits), " %");
}

}  // namespace orrery
