// The result of `orrery simulate` for people.
#ifndef ORRERY_REPORTS_SUMMARY_H_
#define ORRERY_REPORTS_SUMMARY_H_

#include <string>

#include "reports/json.h"
#include "reports/waterfall.h"
#include "sim/training/simulate.h"

namespace orrery::reports {

std::string Summary(const training::Result& result, const Waterfall& waterfall, const Provenance& provenance,
                    const SimulatorCost& cost);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_SUMMARY_H_
