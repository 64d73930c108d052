// Quantiles, and the summary of relative errors that every comparison with measurements prints.
#ifndef ORRERY_BASE_STATISTICS_H_
#define ORRERY_BASE_STATISTICS_H_

#include <vector>

namespace orrery {

// Value below which a share `q` of the values lies, linear between the sorted values around it; 0 of none.
double Quantile(std::vector<double> values, double q);

// Of predicted / measured - 1 over a set of rows.
struct ErrorSummary {
  int rows = 0;
  double median = 0;  // of its size
  double p90 = 0;     // likewise
  double bias = 0;    // median with its sign
};
ErrorSummary SummariseErrors(const std::vector<double>& errors);

}  // namespace orrery

#endif  // ORRERY_BASE_STATISTICS_H_
