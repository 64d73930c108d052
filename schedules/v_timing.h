// Internal to schedules/: places the passes of a V schedule in a Plan, in a given order or guided by one.
#ifndef ORRERY_SCHEDULES_V_TIMING_H_
#define ORRERY_SCHEDULES_V_TIMING_H_

#include "schedules/planner.h"

namespace orrery::schedules {

struct OrderRules {
  // W's as the order has them; otherwise where memory demands them and where they end before the next input arrives,
  bool weights_as_given = true;
  // and wherever the rank would wait.
  bool fill_every_gap = false;
  // A later F or I goes first where it ends before the input of the next one arrives.
  bool hoist = false;
};

// In the order given, except for what the rules allow. False where the memory limit does not allow that, or the plan
// becomes Hopeless.
bool PlaceInOrder(const Schedule& order, const OrderRules& rules, Plan& plan);

struct GuidedRules {
  // A pass may begin although one that comes before it in the guide arrives before its end.
  bool overtake = false;
  // A W may begin although an input arrives before its end.
  bool fill_every_gap = false;
};

// Event by event: a rank that is free takes, of the next F's and I's whose inputs are there, the first one in the
// guide's order; W's where memory demands them and where the rank would wait. False where the plan becomes Hopeless.
//
// No deadlock at limits of 2 M_B and more: F's of chunk 0 leave room for one activation of chunk 1, and so the oldest
// micro-batch can always go on. Its next F of chunk 0 finds at most finished micro-batches on its rank, its F of chunk
// 1 at most activations of chunk 0, I and W free memory.
bool PlaceGuided(const Schedule& guide, const GuidedRules& rules, Plan& plan);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_V_TIMING_H_
