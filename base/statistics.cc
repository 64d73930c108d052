#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace orrery {

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (position - static_cast<double>(below));
}

ErrorSummary SummariseErrors(const std::vector<double>& errors) {
  std::vector<double> sizes;
  sizes.reserve(errors.size());
  for (const double error : errors) sizes.push_back(std::fabs(error));
  return {.rows = static_cast<int>(errors.size()),
          .median = Quantile(sizes, 0.5),
          .p90 = Quantile(sizes, 0.9),
          .bias = Quantile(errors, 0.5)};
}

}  // namespace orrery
