// Operators: what one rank computes and communicates in one pass of one chunk, with shapes, FLOPs, bytes and activation
// lifetimes, before any price.
#ifndef ORRERY_WORKLOADS_OPERATOR_H_
#define ORRERY_WORKLOADS_OPERATOR_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "orrery/v1/cluster.pb.h"
#include "orrery/v1/software.pb.h"

namespace orrery::workloads {

enum class OperatorKind : std::uint8_t { kGemm, kAttention, kMemoryBound, kCollective };

// What a pass of the pipeline an operator belongs to. kRecompute runs in the backward pass before what needs it.
enum class Pass : std::uint8_t { kForward, kRecompute, kInputGradient, kWeightGradient };

// C[m, n] (+)= A[m, k] B[k, n], `batch` times.
struct Gemm {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  // Reads and writes C in fp32 besides (weight gradient accumulated by the GEMM).
  bool accumulates_fp32 = false;
};

// Fused attention of `batch` x `heads` problems of q x kv tokens. `window` 0: all tokens are seen that the mask leaves;
// more than 0 only where causal.
struct Attention {
  v1::AttentionKernel kernel = v1::FLASH_ATTENTION_1;
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t q = 0;
  std::int64_t kv = 0;
  std::int64_t head_dim = 0;
  std::int64_t window = 0;
  // Heads of keys and values, each of which serves heads / kv_heads heads of queries; 0: as many as heads.
  std::int64_t kv_heads = 0;
  bool backward = false;
  bool causal = true;
};

// kElementwise: adds, copies, dropout, reductions over rows of gradients; kActivation: GELU and its derivative;
// kStrided: eager element-wise kernels with a broadcast or transposed operand (masks, layouts).
enum class MemoryBoundClass : std::uint8_t { kElementwise, kActivation, kNorm, kSoftmax, kOptimizer, kStrided };
inline constexpr std::size_t kMemoryBoundClasses = 6;

struct MemoryBound {
  MemoryBoundClass memory_class = MemoryBoundClass::kElementwise;
  Bytes traffic;  // read and written
};

enum class CollectiveType : std::uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast };

// Over the tensor-parallel group. `bytes` is the full tensor: what all-reduce holds on every rank, all-gather's output,
// reduce-scatter's input.
struct TensorCollective {
  CollectiveType type = CollectiveType::kAllReduce;
  Bytes bytes;
  // The operators (indices relative to this one: -1 the one before, +1 the one after) beside which it may run: 0 none.
  int overlaps = 0;
};

enum class ActivationClass : std::uint8_t { kActivations, kLogits };

struct Operator {
  OperatorKind kind = OperatorKind::kMemoryBound;
  Pass pass = Pass::kForward;
  std::string_view name;    // static storage: "qkv", "attention", "mlp up", ...
  std::int32_t layer = -1;  // within the chunk; -1: embedding, head
  Gemm gemm;
  Attention attention;
  MemoryBound memory_bound;
  TensorCollective collective;
  // Kernel launches.
  int kernels = 1;
  // Floating-point operations of the matrix units executed by this rank: 2 m n k of a GEMM; 4 head_dim per visible
  // (query, key) pair of fused attention, 10 backward; 0 otherwise.
  Flops flops;
  // Activations that it allocates and that stay until an operator frees them; those that it frees; and temporary memory
  // while it runs. Allocated before it runs, freed after. Over F and B of one micro-batch these balance to zero.
  ActivationClass activation_class = ActivationClass::kActivations;
  Bytes allocates;
  Bytes frees;
  Bytes workspace;
};

// Work of one chunk (virtual stage) for one micro-batch on one tensor-parallel rank, in execution order. A full
// backward pass runs `backward` as it stands; a split one runs the kInputGradient and kRecompute operators first (I)
// and the kWeightGradient ones later (W).
struct ChunkWork {
  std::vector<Operator> forward;
  std::vector<Operator> backward;
};

}  // namespace orrery::workloads

#endif  // ORRERY_WORKLOADS_OPERATOR_H_
