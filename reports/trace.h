// Timelines of chosen ranks in Chrome's trace-event format, which Perfetto and chrome://tracing open.
//
// One process per rank, one thread per stream. Passes hold their operators; collectives and exchanges show from when
// their rank is ready, the transfer nested inside. Counter "memory (GiB)" is live allocator memory. Microseconds from
// the start of the window, with all digits of a picosecond; cut at the window's borders.
#ifndef ORRERY_REPORTS_TRACE_H_
#define ORRERY_REPORTS_TRACE_H_

#include <string>

#include "sim/training/simulate.h"

namespace orrery::reports {

// `result` must come from a simulation with traced ranks.
std::string TraceJson(const training::Result& result);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_TRACE_H_
