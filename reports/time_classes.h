// Names of time classes, as in the JSON's time_account.
#ifndef ORRERY_REPORTS_TIME_CLASSES_H_
#define ORRERY_REPORTS_TIME_CLASSES_H_

#include <span>
#include <string_view>

#include "sim/engine/program.h"

namespace orrery::reports {

struct NamedTimeClass {
  engine::TimeClass time_class;
  std::string_view key;          // "exposed_tp"
  std::string_view description;  // "tensor-parallel transfers that compute waits for"
};

// The classes that some feature can produce, in the order in which they are reported.
std::span<const NamedTimeClass> TimeClasses();

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_TIME_CLASSES_H_
