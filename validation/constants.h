// How many constants stand behind a prediction: every number of a profile or a link that was measured, fitted or
// assumed, and that the run's price can depend on.
#ifndef ORRERY_VALIDATION_CONSTANTS_H_
#define ORRERY_VALIDATION_CONSTANTS_H_

#include <set>
#include <string>

#include "orrery/v1/run.pb.h"

namespace orrery::validation {

// The constants in use, such as "profile.gemm[0].overhead = 5.5e-06": of the profile, the entries of other data types
// and other attention kernels left out; of the cluster, efficiencies and latencies; of the software level, the factors
// of overlap. `run` must be resolved.
std::set<std::string> ConstantsInUse(const v1::Run& run);

// All constants of a part of a profile.
std::set<std::string> ConstantsOf(const google::protobuf::Message& message, const std::string& name);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_CONSTANTS_H_
