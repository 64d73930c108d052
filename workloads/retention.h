// What a forward pass leaves allocated for the backward pass: all of it, or less under a recomputation policy.
#ifndef ORRERY_WORKLOADS_RETENTION_H_
#define ORRERY_WORKLOADS_RETENTION_H_

#include "workloads/shape.h"

namespace orrery::workloads {

struct Retention {
  bool input = true;       // this pass allocates the layer's input (a recomputation finds it there)
  bool core = true;        // scores and masks of attention
  bool norms = true;       // outputs of norms
  bool activation = true;  // output of the MLP's activation function
  bool mlp = true;         // all that is inside the MLP, that output included
  bool rest = true;        // everything else
};

// Of a forward pass under the policy of `shape`.
inline Retention ForwardRetention(const Shape& shape) {
  const bool kept = shape.recompute != v1::FULL;
  return {.input = true,
          .core = kept && !shape.recompute_core,
          .norms = kept && !shape.recompute_norms,
          .activation = kept && !shape.recompute_activation && !shape.recompute_mlp,
          .mlp = kept && !shape.recompute_mlp,
          .rest = kept};
}

}  // namespace orrery::workloads

#endif  // ORRERY_WORKLOADS_RETENTION_H_
