// The schedule families, each defined in its own file. registry.cc lists them.
#ifndef ORRERY_SCHEDULES_FAMILIES_H_
#define ORRERY_SCHEDULES_FAMILIES_H_

#include "absl/status/status.h"
#include "schedules/family.h"

namespace orrery::schedules {

extern const Family kGpipe;
extern const Family kOneForwardOneBackward;
extern const Family kInterleaved;
extern const Family kLoopedBfs;
extern const Family kInterleavedTorch;
extern const Family kInterleavedZb;
extern const Family kZbH1;
extern const Family kZbH2;
extern const Family kCombined;
extern const Family kOneForwardOneBackwardOverlap;
extern const Family kGrouped;
extern const Family kSeq1f1b;
extern const Family kOneForwardOneBackwardV;
extern const Family kHanayo;
extern const Family kZbV;
extern const Family kVHalf;
extern const Family kVMin;
extern const Family kDualPipe;
extern const Family kDualPipeV;
extern const Family kChimera;
extern const Family kZb1p;
extern const Family kZb2p;
extern const Family kZbAuto;
extern const Family kZbVGreedy;
extern const Family kVAuto;

// Actions that a rank runs before its first backward pass comes due (w_r of docs/schedules.md).
std::int32_t OneForwardOneBackwardWarmup(const Parameters& parameters, std::int32_t rank);
// N, the default filled in: p, or m where it is smaller.
std::int32_t InterleavedGroupSize(const Parameters& parameters);
std::int32_t InterleavedWarmup(const Parameters& parameters, std::int32_t rank);

// Megatron-LM's rule for N. CheckCommon is part of it.
absl::Status CheckInterleavedGroups(std::string_view family, const Parameters& parameters);

// Passes over all pipeline ranks. Keeps a mistyped batch size from taking all memory: order, messages, boundaries and
// programs come to 1 to 2 KB a pass, 2 GB in all.
inline constexpr std::int64_t kMostPasses = std::int64_t{1} << 20;
// What all families demand: positive degrees, and a schedule that fits in memory.
absl::Status CheckCommon(std::string_view family, const Parameters& parameters);
// The same, and one stage per rank.
absl::Status CheckOneStagePerRank(std::string_view family, const Parameters& parameters);
// The same, and two.
absl::Status CheckTwoStagesPerRank(std::string_view family, const Parameters& parameters);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_FAMILIES_H_
