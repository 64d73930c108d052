// Settings of a run that play no part in it, each with the reason: what a user wrote and would otherwise think is
// priced.
#ifndef ORRERY_SIM_TRAINING_UNUSED_SETTINGS_H_
#define ORRERY_SIM_TRAINING_UNUSED_SETTINGS_H_

#include <string>
#include <vector>

#include "orrery/v1/run.pb.h"

namespace orrery::training {

// `run` must be resolved.
std::vector<std::string> UnusedSettings(const v1::Run& run);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_UNUSED_SETTINGS_H_
