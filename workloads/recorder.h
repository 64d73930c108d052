// Appends operators to a pass, so that the builders read as the list of kernels that they describe.
#ifndef ORRERY_WORKLOADS_RECORDER_H_
#define ORRERY_WORKLOADS_RECORDER_H_

#include <string_view>
#include <vector>

#include "workloads/operator.h"

namespace orrery::workloads {

class Recorder {
 public:
  explicit Recorder(std::vector<Operator>* operators) : operators_(operators) {}

  // The pass of the operators that follow.
  void set_pass(Pass pass) { pass_ = pass; }
  Pass pass() const { return pass_; }

  // Memory that the operator added next allocates, whichever it is.
  void AllocateWithNext(Bytes bytes) { pending_ += bytes; }

  // The operator added last; there must be one.
  Operator& Last() { return operators_->back(); }

  // References are valid until the next call. Lifetimes are added to (+=), since AllocateWithNext may have come before.
  Operator& AddGemm(std::string_view name, const Gemm& gemm) {
    Operator& op = Add(OperatorKind::kGemm, name);
    op.gemm = gemm;
    op.flops = Flops(2.0 * static_cast<double>(gemm.batch) * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) *
                     static_cast<double>(gemm.k));
    return op;
  }

  Operator& AddMemoryBound(std::string_view name, MemoryBoundClass memory_class, Bytes traffic, int kernels = 1) {
    Operator& op = Add(OperatorKind::kMemoryBound, name);
    op.memory_bound = {memory_class, traffic};
    op.kernels = kernels;
    return op;
  }

  Operator& AddElementwise(std::string_view name, Bytes traffic, int kernels = 1) {
    return AddMemoryBound(name, MemoryBoundClass::kElementwise, traffic, kernels);
  }

  Operator& AddCollective(std::string_view name, CollectiveType type, Bytes bytes, int overlaps) {
    Operator& op = Add(OperatorKind::kCollective, name);
    op.collective = {type, bytes, overlaps};
    return op;
  }

  Operator& AddAttention(std::string_view name, const Attention& attention, double flops) {
    Operator& op = Add(OperatorKind::kAttention, name);
    op.attention = attention;
    op.flops = Flops(flops);
    return op;
  }

 private:
  Operator& Add(OperatorKind kind, std::string_view name) {
    Operator& op = operators_->emplace_back();
    op.kind = kind;
    op.pass = pass_;
    op.name = name;
    op.allocates = pending_;
    pending_ = Bytes(0);
    return op;
  }

  std::vector<Operator>* operators_;
  Pass pass_ = Pass::kForward;
  Bytes pending_;
};

}  // namespace orrery::workloads

#endif  // ORRERY_WORKLOADS_RECORDER_H_
