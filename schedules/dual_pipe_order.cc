#include "schedules/dual_pipe_order.h"

#include <cstddef>
#include <utility>

namespace orrery::schedules {
namespace {

// The eight steps. "0" and "1" are the directions, [a & b] is a block.
class Builder {
 public:
  explicit Builder(const DualPipeRank& rank) : rank_(rank) {}

  std::vector<Action> Build() {
    const std::int32_t h = rank_.from_end;
    const std::int32_t to_turn = rank_.half - h - 1;
    for (std::int32_t i = 0; i < 2 * to_turn; ++i) Forward(0);
    for (std::int32_t i = 0; i < h + 1; ++i) {
      Forward(0);
      Forward(1);
    }
    for (std::int32_t i = 0; i < to_turn; ++i) {
      InputGradient(1);
      WeightGradient();
      Forward(1);
    }
    for (std::int32_t i = 0; i < rank_.micro_batches - 2 * rank_.half + h + 1; ++i) {
      // At the turn the gradient of the first block comes from a pass that waits for its forward pass.
      ForwardAndBackward(0, /*fused=*/i > 0 || to_turn > 0);
      ForwardAndBackward(1, /*fused=*/true);
    }
    for (std::int32_t i = 0; i < to_turn; ++i) {
      Backward(1);
      ForwardAndBackward(1, /*fused=*/true);
    }
    // The second half of these 2(h + 1) passes leaves its W for the steps that follow.
    for (std::int32_t i = 0; i < 2 * (h + 1); ++i) {
      const std::int32_t direction = i % 2 == 0 ? 1 : 0;
      i < h + 1 ? Backward(direction) : InputGradient(direction);
    }
    for (std::int32_t i = 0; i < to_turn; ++i) {
      WeightGradient();
      InputGradient(0);
    }
    for (std::int32_t i = 0; i < h + 1; ++i) WeightGradient();
    return std::move(order_);
  }

 private:
  static std::size_t At(std::int32_t i) { return static_cast<std::size_t>(i); }

  void Add(ActionKind kind, std::int32_t direction, std::array<std::int32_t, 2>& next) {
    order_.push_back({kind, rank_.chunk[At(direction)], rank_.first[At(direction)] + next[At(direction)]++});
  }
  void Forward(std::int32_t direction) { Add(ActionKind::kForward, direction, forwards_); }
  void Backward(std::int32_t direction) { Add(ActionKind::kBackward, direction, backwards_); }
  void InputGradient(std::int32_t direction) {
    Add(ActionKind::kInputGradient, direction, backwards_);
    waiting_.push_back(order_.back());
    waiting_.back().kind = ActionKind::kWeightGradient;
  }
  // Of the earliest I that has none.
  void WeightGradient() { order_.push_back(waiting_[done_++]); }
  // F of one direction and B of the other.
  void ForwardAndBackward(std::int32_t direction, bool fused) {
    Forward(direction);
    order_.back().fused = fused;
    Backward(1 - direction);
  }

  const DualPipeRank& rank_;
  std::array<std::int32_t, 2> forwards_ = {};
  std::array<std::int32_t, 2> backwards_ = {};
  std::vector<Action> waiting_;
  std::size_t done_ = 0;
  std::vector<Action> order_;
};

}  // namespace

std::vector<Action> DualPipeOrder(const DualPipeRank& rank) { return Builder(rank).Build(); }

}  // namespace orrery::schedules
