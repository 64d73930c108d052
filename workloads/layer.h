// One transformer layer, serial or parallel block, in one pass over a micro-batch.
//
// Saved by the forward pass per token and hidden unit (16-bit, f = 4h, one head of keys per head; Korthikanti et al.
// 2022, section 4; "whole" without sequence parallelism, / t with it):
//   serial block:   whole 10 = norm inputs 2 + 2, QKV and MLP inputs 2 + 2, dropout masks 1 + 1;   / t 24 + 5 a s / h
//   parallel block: whole 5 = norm input 2, its output 2 (read by both halves), one dropout mask 1; / t the same 24 + 5
//   a s / h
// The parallel block sums both halves before the one reduction, so that there is one dropout; it has one norm, as in
// GPT-J and PaLM (GPT-NeoX has one for either half: its second norm's weights and kernel are left out). A layer's input
// is counted where it is kept: by the layer that reads it.
#ifndef ORRERY_WORKLOADS_LAYER_H_
#define ORRERY_WORKLOADS_LAYER_H_

#include "workloads/recorder.h"
#include "workloads/retention.h"
#include "workloads/shape.h"

namespace orrery::workloads {

void LayerForward(const Shape& shape, Retention keep, Recorder& out);
// Recomputation as the policy asks, then gradients. Frees all that the forward pass kept.
void LayerBackward(const Shape& shape, Recorder& out);

}  // namespace orrery::workloads

#endif  // ORRERY_WORKLOADS_LAYER_H_
