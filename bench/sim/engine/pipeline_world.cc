#include "bench/sim/engine/pipeline_world.h"

#include <algorithm>
#include <vector>

namespace orrery::engine {
namespace {

// Channels of a stage: to the stage after it and to the one before it.
constexpr std::int32_t kDown = 0;
constexpr std::int32_t kUp = 1;

class StageProgram {
 public:
  StageProgram(const PipelineShape& shape, std::int32_t stage) : first_(stage == 0), last_(stage == shape.stages - 1) {
    program_.num_channels = 2;
    program_.host_ops.emplace_back();
    program_.segments = {{TimeClass::kCompute, shape.forward, Time(), -1},
                         {TimeClass::kCompute, shape.backward, Time(), -1}};
    const std::int32_t warm_up = std::min(shape.stages - 1 - stage, shape.micro_batches);
    std::vector<bool> order(static_cast<std::size_t>(warm_up), true);  // true: forward
    for (std::int32_t i = warm_up; i < shape.micro_batches; ++i) order.insert(order.end(), {true, false});
    order.insert(order.end(), static_cast<std::size_t>(warm_up), false);
    shape.batched ? Batched(order) : Eager(order);
    program_.update_op = static_cast<std::int32_t>(program_.ops.size()) - 1;
  }

  Program Take() { return std::move(program_); }

 private:
  void Eager(const std::vector<bool>& order) {
    for (bool forward : order) {
      Op op = Pass(forward);
      Receive(op, forward);
      Send(op, forward);
      program_.ops.push_back(op);
    }
  }

  // Before each pass one exchange with what the last pass sends and this one receives, and one after the last pass.
  void Batched(const std::vector<bool>& order) {
    for (std::size_t i = 0; i <= order.size(); ++i) {
      Op exchange;
      exchange.kind = OpKind::kExchange;
      exchange.pipeline = true;
      exchange.first_part = static_cast<std::int32_t>(program_.parts.size());
      if (i > 0) Send(exchange, order[i - 1]);
      if (i < order.size()) Receive(exchange, order[i]);
      if (exchange.num_parts > 0) program_.ops.push_back(exchange);
      if (i < order.size()) program_.ops.push_back(Pass(order[i]));
    }
    // The update must be on record as the last operation even where the last one is an exchange.
    program_.ops.emplace_back();
  }

  Op Pass(bool forward) const {
    Op op;
    op.pipeline = true;
    op.first_segment = forward ? 0 : 1;
    op.num_segments = 1;
    op.first_part = static_cast<std::int32_t>(program_.parts.size());
    return op;
  }

  void AddPart(Op& op, std::int32_t channel, bool is_send) {
    program_.parts.push_back({channel, is_send, sequences_[2 * channel + (is_send ? 1 : 0)]++, Time()});
    ++op.num_parts;
  }
  void Receive(Op& op, bool forward) {
    if (forward ? !first_ : !last_) AddPart(op, forward ? kUp : kDown, false);
  }
  void Send(Op& op, bool forward) {
    if (forward ? !last_ : !first_) AddPart(op, forward ? kDown : kUp, true);
  }

  const bool first_;
  const bool last_;
  std::int32_t sequences_[4] = {0, 0, 0, 0};
  Program program_;
};

}  // namespace

World MakePipelineWorld(const PipelineShape& shape) {
  World world;
  for (std::int32_t stage = 0; stage < shape.stages; ++stage)
    world.programs.push_back(StageProgram(shape, stage).Take());
  for (std::int32_t i = 0; i < shape.pipelines * shape.stages; ++i) {
    const std::int32_t stage = i % shape.stages;
    Unit unit;
    unit.program = stage;
    unit.first_rank = i;
    unit.peers.resize(2);
    if (stage + 1 < shape.stages) unit.peers[kDown] = {i + 1, kUp};
    if (stage > 0) unit.peers[kUp] = {i - 1, kDown};
    world.units.push_back(unit);
  }
  return world;
}

}  // namespace orrery::engine
