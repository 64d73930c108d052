// The MLP between its (gathered) input and its partial sums: y = act(x U) D, or gated y = (act(x U) * (x V)) D, where U
// and V are one product of 2 f columns.
//
// Passes over f elements per token of the activation function, its product included:
//   one kernel: forward 2 (gated 3), backward 3 (gated 5)
//   eager: forward 2 (squared ReLU 4), and 3 for the product; backward 3 (squared ReLU 6), and for the product 6 and 4
//   that lay both gradients side by side
// Kept: input and output; the eager product's operand act(x U) too. ReLU needs only the sign of its output.
#ifndef ORRERY_WORKLOADS_MLP_H_
#define ORRERY_WORKLOADS_MLP_H_

#include "workloads/recorder.h"
#include "workloads/retention.h"
#include "workloads/shape.h"

namespace orrery::workloads {

// Allocates the activation function's input, up_bytes.
Operator& MlpUp(const Shape& shape, Recorder& out);

// From there to partial sums, the product returned: the caller says who allocates them.
Operator& MlpDown(const Shape& shape, Retention keep, Recorder& out);

// What a policy dropped, before MlpBackward: from the MLP's input, or from the activation function's.
void MlpRecompute(const Shape& shape, Recorder& out);

// From the gradient of the partial sums, freed as `output_gradient` with the weight gradient, to that of the activation
// function's input, up_bytes, left allocated.
void MlpBackward(const Shape& shape, Bytes output_gradient, Recorder& out);

}  // namespace orrery::workloads

#endif  // ORRERY_WORKLOADS_MLP_H_
