#include "sim/kernels/unfused_attention.h"

namespace orrery::kernels {
namespace {

using workloads::MemoryBoundClass;
using workloads::Operator;
using workloads::OperatorKind;

constexpr std::int64_t kElementBytes = 2;

Operator Gemm(const workloads::Attention& attention, std::int64_t m, std::int64_t n, std::int64_t k) {
  Operator op;
  op.kind = OperatorKind::kGemm;
  op.gemm = {.batch = attention.batch * attention.heads, .m = m, .n = n, .k = k};
  return op;
}

Operator Move(MemoryBoundClass memory_class, std::int64_t elements, int kernels = 1) {
  Operator op;
  op.kind = OperatorKind::kMemoryBound;
  op.memory_bound = {memory_class, Bytes(elements * kElementBytes)};
  op.kernels = kernels;
  return op;
}

}  // namespace

std::vector<Operator> UnfusedAttentionKernels(const workloads::Attention& attention) {
  const std::int64_t q = attention.q;
  const std::int64_t kv = attention.kv;
  const std::int64_t d = attention.head_dim;
  const std::int64_t problems = attention.batch * attention.heads;
  const std::int64_t scores = problems * q * kv;
  const std::int64_t queries = problems * q * d;  // elements of Q, O and their gradients
  const std::int64_t keys = problems * kv * d;    // of K, V and theirs
  if (attention.backward) {
    return {Move(MemoryBoundClass::kStrided, 2 * queries),
            Gemm(attention, kv, d, q),
            Gemm(attention, q, kv, d),
            Move(MemoryBoundClass::kSoftmax, 3 * scores),
            Gemm(attention, q, d, kv),
            Gemm(attention, kv, d, q),
            Move(MemoryBoundClass::kStrided, 2 * (2 * queries + 4 * keys), 6)};
  }
  std::vector<Operator> kernels = {Move(MemoryBoundClass::kStrided, 2 * (queries + 2 * keys), 3),
                                   Gemm(attention, q, kv, d)};
  if (attention.causal) kernels.push_back(Move(MemoryBoundClass::kStrided, 2 * scores));
  kernels.push_back(Move(MemoryBoundClass::kSoftmax, 2 * scores));
  kernels.push_back(Gemm(attention, q, d, kv));
  kernels.push_back(Move(MemoryBoundClass::kStrided, 2 * queries));
  return kernels;
}

double UnfusedAttentionSeconds(const KernelPrices& prices, const workloads::Attention& attention) {
  double seconds = 0;
  for (const Operator& op : UnfusedAttentionKernels(attention)) seconds += prices.Seconds(op);
  return seconds;
}

}  // namespace orrery::kernels
