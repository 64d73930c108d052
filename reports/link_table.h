// The busiest links of a run whose transfers share them.
#ifndef ORRERY_REPORTS_LINK_TABLE_H_
#define ORRERY_REPORTS_LINK_TABLE_H_

#include <string>

#include "sim/training/link_report.h"

namespace orrery::reports {

// A line on how many transfers were alone on their links, and a table of the links; empty without links.
std::string LinkTable(const training::LinkSummary& summary);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_LINK_TABLE_H_
