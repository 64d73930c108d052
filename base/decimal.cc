#include "base/decimal.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace orrery {
namespace {

constexpr int kDigits = 9;
constexpr std::size_t kMostDigits = 10;  // before the point: their value times kDecimalOne must fit in 64 bits

bool AreDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

absl::StatusOr<std::int64_t> ParseDecimal(std::string_view text) {
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view fraction = point == std::string_view::npos ? "0" : text.substr(point + 1);
  bool good = AreDigits(whole) && AreDigits(fraction) && fraction.size() <= kDigits && whole.size() <= kMostDigits;
  std::int64_t value = 0;
  if (good) {
    for (const char c : whole) value = 10 * value + (c - '0');
    good = value <= 9 * kDecimalOne;
  }
  if (!good) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", std::string(text.substr(0, 40)),
        "\"; allowed: a number such as 12 or 0.25, 0 to 9000000000, with at most 9 digits after the point"));
  }
  for (std::size_t i = 0; i < kDigits; ++i) value = 10 * value + (i < fraction.size() ? fraction[i] - '0' : 0);
  return value;
}

std::string FormatDecimal(std::int64_t value) {
  // In unsigned arithmetic: the lowest value has no positive counterpart.
  const std::uint64_t size = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  constexpr auto kOne = static_cast<std::uint64_t>(kDecimalOne);
  std::string text = absl::StrCat(value < 0 ? "-" : "", size / kOne);
  if (size % kOne == 0) return text;
  std::string fraction = absl::StrCat(kOne + size % kOne);  // with a 1 in front of its zeros
  fraction.front() = '.';
  fraction.resize(fraction.find_last_not_of('0') + 1);
  return text + fraction;
}

}  // namespace orrery
