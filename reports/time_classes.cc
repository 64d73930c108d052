#include "reports/time_classes.h"

namespace orrery::reports {

std::span<const NamedTimeClass> TimeClasses() {
  using engine::TimeClass;
  static constexpr NamedTimeClass kClasses[] = {
      {TimeClass::kCompute, "compute", "kernels of forward and backward passes"},
      {TimeClass::kExposedTp, "exposed_tp", "tensor-parallel transfers that compute waits for"},
      {TimeClass::kExposedPp, "exposed_pp", "pipeline messages that compute waits for"},
      {TimeClass::kExposedDp, "exposed_dp", "data-parallel transfers that compute waits for"},
      {TimeClass::kWaitTp, "wait_tp", "for a slower tensor-parallel rank"},
      {TimeClass::kWaitDp, "wait_dp", "for a slower replica"},
      {TimeClass::kBubble, "bubble", "for the pipeline to fill and drain"},
      {TimeClass::kHost, "host", "for the host to issue the next kernel"},
      {TimeClass::kOptimizer, "optimizer", "kernels of the optimizer"},
      {TimeClass::kData, "data", "for input"},
  };
  return kClasses;
}

}  // namespace orrery::reports
