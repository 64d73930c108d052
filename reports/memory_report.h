// The memory of a run: its ledger by pipeline rank, the moment of the peak, and who holds what then.
#ifndef ORRERY_REPORTS_MEMORY_REPORT_H_
#define ORRERY_REPORTS_MEMORY_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "reports/fit_advice.h"
#include "sim/memory/holders.h"
#include "sim/training/simulate.h"

namespace orrery::reports {

// Key `memory` of `orrery simulate --json`.
nlohmann::ordered_json MemoryJson(const training::Result& result);

// The ledger by pipeline rank, and the verdict.
std::string MemoryTable(const training::Result& result);

// "backward of chunk 0, micro-batch 3, in loss gradient", or "optimizer update".
std::string PeakText(const training::PipelineRankResult& rank);

// What is live of a rank's passes at its peak: nothing where that is in the update.
std::vector<memory::Holder> HoldersOf(const training::Plan& plan, const training::PipelineRankResult& rank);

// What the allocator may hold from the device at the peak: fragmentation of the profile, least and most.
struct Reserved {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
Reserved ReservedOf(const training::Result& result, const training::PipelineRankResult& rank);

// `orrery memory`, for people and as JSON: MemoryJson with `peak`, `live` and `reserved` of each rank, and `advice`.
std::string MemoryReportText(const training::Result& result, const FitAdvice& advice);
std::string MemoryReportJson(const training::Result& result, const FitAdvice& advice);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_MEMORY_REPORT_H_
