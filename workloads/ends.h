// The two ends of the model: token and position embedding on the first stage, output head and loss on the last.
//
// Both tables are split along the vocabulary (Shoeybi et al. 2019, section 3): the lookup gives partial sums that are
// reduced; the loss needs three small reductions per token: largest logit, predicted logit, sum of exponentials.
// Megatron-LM's loss keeps logits in 16 bit, and in fp32, where they become the softmax: 2 + 4 bytes per element. A
// fused one reads the 16-bit logits twice (largest, then sum), keeps them and one number per token, and writes their
// gradient in their place.
#ifndef ORRERY_WORKLOADS_ENDS_H_
#define ORRERY_WORKLOADS_ENDS_H_

#include "workloads/recorder.h"
#include "workloads/shape.h"

namespace orrery::workloads {

// Keeps token ids (8 s b), the dropout mask and the input of a norm of the embedding. The sum itself belongs to the
// first layer.
void EmbeddingForward(const Shape& shape, Recorder& out);
void EmbeddingBackward(const Shape& shape, Recorder& out);

// Keeps the final norm's input and output and the logits.
void HeadForward(const Shape& shape, Recorder& out);
// Leaves the gradient of the last layer's output to that layer.
void HeadBackward(const Shape& shape, Recorder& out);

}  // namespace orrery::workloads

#endif  // ORRERY_WORKLOADS_ENDS_H_
