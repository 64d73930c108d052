// Internal to sim/pipeline/optimizer: the orders that a search starts from.
#ifndef ORRERY_SIM_PIPELINE_OPTIMIZER_PORTFOLIO_H_
#define ORRERY_SIM_PIPELINE_OPTIMIZER_PORTFOLIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/placement.h"
#include "sim/pipeline/evaluate.h"
#include "sim/pipeline/optimizer/model.h"

namespace orrery::pipeline::optimizer {

struct Start {
  std::string family;
  Sequences sequences;
  std::int64_t value = 0;
  std::int64_t peak_memory = 0;
};

// Every family that is legal, has this placement, and keeps to the limit of `model`: the best of what it offers. Those
// of any number of chunks are left out where another has the same order. By name.
std::vector<Start> PublishedOrders(const Model& model, const schedules::Placement& placement, const Costs& costs);

// Every rank finishes a micro-batch before it begins the next: fits wherever anything fits.
Start OneAtATime(const Model& model);

}  // namespace orrery::pipeline::optimizer

#endif  // ORRERY_SIM_PIPELINE_OPTIMIZER_PORTFOLIO_H_
