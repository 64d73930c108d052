// How fitted constants are rounded.
#ifndef ORRERY_CALIBRATION_ROUNDING_H_
#define ORRERY_CALIBRATION_ROUNDING_H_

#include <charconv>
#include <system_error>

#include "base/check.h"

namespace orrery::calibration {

// Three significant digits, through text: the same double on every machine.
inline double Rounded(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific, 2);
  ORRERY_CHECK(error == std::errc());
  double rounded = 0;
  std::from_chars(text, end, rounded);
  return rounded;
}

}  // namespace orrery::calibration

#endif  // ORRERY_CALIBRATION_ROUNDING_H_
