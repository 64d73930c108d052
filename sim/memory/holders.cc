#include "sim/memory/holders.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

namespace orrery::memory {
namespace {

using workloads::Operator;

struct Block {
  std::string_view operator_name;
  workloads::ActivationClass activation_class;
  std::int64_t bytes;
};

// What one micro-batch of one chunk has allocated, in order.
class Stack {
 public:
  void Allocate(const Operator& op) {
    if (op.allocates > Bytes(0)) blocks_.push_back({op.name, op.activation_class, op.allocates.count()});
  }
  // Frees below what `op` itself has just allocated, first of its own class.
  void Free(const Operator& op) {
    std::int64_t left = op.frees.count();
    left = FreeFrom(op, left, /*any_class=*/false);
    FreeFrom(op, left, /*any_class=*/true);
    std::erase_if(blocks_, [](const Block& block) { return block.bytes == 0; });
  }
  bool empty() const { return blocks_.empty(); }
  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  std::int64_t FreeFrom(const Operator& op, std::int64_t left, bool any_class) {
    std::size_t end = blocks_.size();
    if (op.allocates > Bytes(0)) --end;  // its own
    for (std::size_t i = end; i-- > 0 && left > 0;) {
      Block& block = blocks_[i];
      if (!any_class && block.activation_class != op.activation_class) continue;
      const std::int64_t freed = std::min(left, block.bytes);
      block.bytes -= freed;
      left -= freed;
    }
    return left;
  }

  std::vector<Block> blocks_;
};

// Index of the operator at which the pass is highest.
std::size_t PeakIndex(std::span<const Operator> operators) {
  std::size_t peak = 0;
  std::int64_t live = 0;
  std::int64_t highest = 0;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    live += operators[i].allocates.count();
    if (live + operators[i].workspace.count() > highest) {
      highest = live + operators[i].workspace.count();
      peak = i;
    }
    live -= operators[i].frees.count();
  }
  return peak;
}

using HolderKey = std::tuple<std::string_view, workloads::ActivationClass, bool>;

std::vector<Holder> Sorted(const std::map<HolderKey, std::int64_t>& sums) {
  std::vector<Holder> holders;
  for (const auto& [key, bytes] : sums) {
    const auto& [name, activation_class, workspace] = key;
    holders.push_back({name, activation_class, workspace, Bytes(bytes)});
  }
  std::sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
    return std::tie(b.bytes, a.operator_name, a.activation_class, a.workspace) <
           std::tie(a.bytes, b.operator_name, b.activation_class, b.workspace);
  });
  return holders;
}

}  // namespace

std::vector<Holder> HoldersAtPeak(std::span<const TracedPass> passes) {
  std::map<std::pair<std::int32_t, std::int32_t>, Stack> stacks;
  std::map<HolderKey, std::int64_t> sums;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const TracedPass& pass = passes[i];
    Stack& stack = stacks[{pass.chunk, pass.micro_batch}];
    const bool last = i + 1 == passes.size();
    const std::size_t peak = PeakIndex(pass.operators);
    for (std::size_t j = 0; j < pass.operators.size(); ++j) {
      const Operator& op = pass.operators[j];
      stack.Allocate(op);
      if (last && j == peak) {
        if (op.workspace > Bytes(0))
          sums[{op.name, workloads::ActivationClass::kActivations, true}] += op.workspace.count();
        break;
      }
      stack.Free(op);
    }
    if (!last && stack.empty()) stacks.erase({pass.chunk, pass.micro_batch});
  }
  for (const auto& [key, stack] : stacks) {
    for (const Block& block : stack.blocks()) sums[{block.operator_name, block.activation_class, false}] += block.bytes;
  }
  return Sorted(sums);
}

}  // namespace orrery::memory
