// The schedule families, each defined in its own file. registry.cc lists them.
#ifndef ORRERY_SCHEDULES_FAMILIES_H_
#define ORRERY_SCHEDULES_FAMILIES_H_

#include "absl/status/status.h"
#include "schedules/schedule.h"

namespace orrery::schedules {

extern const Family kGpipe;
extern const Family kOneForwardOneBackward;
extern const Family kInterleaved;

// Actions that a rank runs before its first backward pass comes due (w_r of docs/schedules.md).
std::int32_t OneForwardOneBackwardWarmup(const Parameters& parameters, std::int32_t rank);
std::int32_t InterleavedWarmup(const Parameters& parameters, std::int32_t rank);

// What all families demand: positive degrees, and a schedule that fits in memory.
absl::Status CheckCommon(std::string_view family, const Parameters& parameters);
// The same, and one stage per rank.
absl::Status CheckOneStagePerRank(std::string_view family, const Parameters& parameters);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_FAMILIES_H_
