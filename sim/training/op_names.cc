#include "sim/training/op_names.h"

#include <string_view>

#include "absl/strings/str_cat.h"

namespace orrery::training {
namespace {

std::string_view ActionLetter(schedules::ActionKind kind) {
  switch (kind) {
    case schedules::ActionKind::kForward:
      return "F";
    case schedules::ActionKind::kBackward:
      return "B";
    case schedules::ActionKind::kInputGradient:
      return "I";
    case schedules::ActionKind::kWeightGradient:
      return "W";
  }
  return "";
}

// Whose parameters: of a chunk, or under ZeRO-3 of a unit.
std::string PartOf(const OpLabel& label) {
  return label.layer >= 0 ? absl::StrCat("layer ", label.layer) : absl::StrCat("chunk ", label.chunk);
}

}  // namespace

std::string NameOf(const OpLabel& label) {
  switch (label.role) {
    case OpRole::kIterationBegin:
      return "iteration begins";
    case OpRole::kInput:
      return "input";
    case OpRole::kParameterGather:
      return absl::StrCat("all-gather parameters, ", PartOf(label));
    case OpRole::kPass:
      return absl::StrCat(std::string(ActionLetter(label.action)), label.micro_batch, " chunk ", label.chunk);
    case OpRole::kExchange:
      return "pipeline exchange";
    case OpRole::kGradientReduction:
      return absl::StrCat("reduce gradients, ", PartOf(label));
    case OpRole::kGradientWait:
      return "wait for gradients";
    case OpRole::kCopiesReduction:
      return absl::StrCat("reduce gradients over copies, ", PartOf(label));
    case OpRole::kEmbeddingReduction:
      return "reduce embedding gradients";
    case OpRole::kNormBarrier:
      return "gradient norm";
    case OpRole::kSlowestWait:
      return "wait for the slowest rank";
    case OpRole::kOptimizer:
      return "optimizer";
  }
  return "";
}

}  // namespace orrery::training
