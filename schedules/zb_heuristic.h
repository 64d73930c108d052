// Internal to schedules/: the automatic zero-bubble scheduler for one stage per rank (Qi et al., Zero Bubble Pipeline
// Parallelism, ICLR 2024, arXiv 2401.10241, section 3.1; in sail-sg/zero-bubble-pipeline-parallelism zb.py).
//
// Warm-up: from the last rank back, a rank takes F's while memory lasts and its clock is before the arrival of its
// first I, and at least one F more than the next rank. Then in rounds: every rank in order takes one F, every rank in
// reverse takes one I. W's go before such a pass where memory demands it, where they end before its input arrives, and
// where waiting for it would make this rank the one that has waited longest. The rest of the W's come last.
#ifndef ORRERY_SCHEDULES_ZB_HEURISTIC_H_
#define ORRERY_SCHEDULES_ZB_HEURISTIC_H_

#include <array>
#include <cstdint>
#include <optional>

#include "schedules/planner.h"

namespace orrery::schedules {

// The choices that the scheduler tries in all combinations.
struct ZbChoices {
  // Warm-up: no F that would end after the arrival of the first I.
  bool keep_first_gap = true;
  // A rank that is two F's ahead of the next one leaves the F out where its next I would be late.
  bool gradients_first = true;
  // A W that delays a pass, even where this rank has waited less than the others.
  bool fill_every_gap = true;
  // Of the decisions on gaps, in the order in which they are met, the one that is taken the other way; -1: none.
  std::int32_t reversed = -1;
};

// The combinations, in the order in which ties are decided.
const std::array<ZbChoices, 8>& AllZbChoices();

// The order of these choices within the limit, which is at least M_B, or an unfinished plan that is Hopeless.
struct ZbResult {
  Plan plan;
  bool complete = false;
  std::int32_t decisions = 0;  // on gaps, that were met
};
ZbResult PlanZeroBubble(const Placement& placement, const Parameters& parameters, std::int64_t memory_limit,
                        std::int64_t span_bound, const ZbChoices& choices);

// The best of all combinations, as published.
Plan PlanZeroBubble(const Placement& placement, const Parameters& parameters, std::int64_t memory_limit);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_ZB_HEURISTIC_H_
