// Layer norm and RMS norm: one kernel that reads its input once, or what a framework launches without such a kernel.
//
// Bytes per element of e bytes. Fused: 2 e forward, 5 e backward (the input's gradient reads the output's and the input
// and writes one; the weights' gradients read both again, in two stages). Not fused, under autocast to 16 bit, every
// primitive operator reads and writes memory:
//   layer norm (PyTorch's own kernel, which autocast runs in fp32)
//     forward   input to fp32 e + 4, norm 8, output to 16 bit 4 + e
//     backward  gradient to fp32 e + 4, input's gradient 12, weights' gradients 8 in two stages, to 16 bit 4 + e
//   RMS norm (as written in Python for Llama)
//     forward   to fp32 e + 4, square 8, mean 4, scaling 8, to 16 bit 4 + e, weights 2 e; two operators per token
//     backward  weights 6 e in three, to fp32 e + 4, scaling 8 + 12 + 4, square 8 + 8 + 8, sum of both 12, to 16 bit
//               4 + e; three operators per token
// Kept besides input and output: the fp32 copy takes the input's place (4 - e more); RMS norm keeps what it multiplies
// with its weights (e).
#ifndef ORRERY_WORKLOADS_NORM_H_
#define ORRERY_WORKLOADS_NORM_H_

#include <string_view>

#include "workloads/recorder.h"
#include "workloads/shape.h"

namespace orrery::workloads {

// Allocates the output, region_bytes, and, if `keep`, what backward needs besides input and output. The input is the
// caller's.
Operator& NormForward(const Shape& shape, std::string_view name, bool keep, Recorder& out);

// Frees what `keep` kept; the caller says the rest.
Operator& NormBackward(const Shape& shape, std::string_view name, Recorder& out);

}  // namespace orrery::workloads

#endif  // ORRERY_WORKLOADS_NORM_H_
