// What people read for an operation.
#ifndef ORRERY_SIM_TRAINING_OP_NAMES_H_
#define ORRERY_SIM_TRAINING_OP_NAMES_H_

#include <string>

#include "sim/training/program_builder.h"

namespace orrery::training {

// "F3 chunk 0", "reduce gradients, layer 5".
std::string NameOf(const OpLabel& label);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_OP_NAMES_H_
