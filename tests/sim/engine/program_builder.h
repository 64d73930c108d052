// Writes small programs and worlds by hand.
#ifndef ORRERY_TESTS_SIM_ENGINE_PROGRAM_BUILDER_H_
#define ORRERY_TESTS_SIM_ENGINE_PROGRAM_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/engine/program.h"
#include "sim/engine/world.h"

namespace orrery::engine::testing {

inline Segment Seg(TimeClass time_class, std::int64_t duration, std::int64_t issue = 0) {
  return {time_class, Time(duration), Time(issue), -1};
}

// Operations are appended to the latest host op; every method that adds one returns it for further settings.
class ProgramBuilder {
 public:
  ProgramBuilder() { program_.host_ops.emplace_back(); }

  Op& Local(std::vector<Segment> segments, std::uint8_t stream = kComputeStream) {
    Op& op = Add(OpKind::kLocal, stream);
    op.first_segment = static_cast<std::int32_t>(program_.segments.size());
    op.num_segments = static_cast<std::int32_t>(segments.size());
    program_.segments.insert(program_.segments.end(), segments.begin(), segments.end());
    return op;
  }
  Op& Compute(std::int64_t duration) { return Local({Seg(TimeClass::kCompute, duration)}); }
  // The last one is the program's update.
  Op& Update(std::int64_t duration) {
    program_.update_op = static_cast<std::int32_t>(program_.ops.size());
    return Local({Seg(TimeClass::kOptimizer, duration)});
  }
  Op& Collective(std::int32_t group, TimeClass transfer, TimeClass missing, std::int64_t lead, std::int64_t duration,
                 std::uint8_t stream = kComputeStream) {
    Op& op = Add(OpKind::kCollective, stream);
    op.group = group;
    if (program_.num_groups <= group) {
      program_.num_groups = group + 1;
      uses_.resize(static_cast<std::size_t>(program_.num_groups), 0);
    }
    op.use = uses_[static_cast<std::size_t>(group)]++;
    op.transfer_class = transfer;
    op.missing_class = missing;
    op.lead = Time(lead);
    op.duration = Time(duration);
    return op;
  }
  Op& Exchange(std::uint8_t stream = kComputeStream) { return Add(OpKind::kExchange, stream); }

  // Messages of the operation added last. Eager for a kLocal, rendezvous for an exchange.
  void Send(std::int32_t channel, std::int64_t duration) { AddPart(channel, true, duration); }
  void Receive(std::int32_t channel, std::int64_t duration) { AddPart(channel, false, duration); }

  // Makes the operation added last complete a new event.
  std::int32_t Record() { return program_.ops.back().records = program_.num_events++; }

  // Later operations belong to a new host op; the one before takes `duration`.
  void NextHostOp(std::int64_t duration, std::int32_t waits = kNoEvent) {
    program_.host_ops.back().duration = Time(duration);
    program_.host_ops.push_back({waits, Time()});
  }

  const Program& program() const { return program_; }
  Program& program() { return program_; }

 private:
  Op& Add(OpKind kind, std::uint8_t stream) {
    program_.num_streams = stream >= program_.num_streams ? stream + 1 : program_.num_streams;
    Op op;
    op.kind = kind;
    op.stream = stream;
    op.host_op = static_cast<std::int32_t>(program_.host_ops.size()) - 1;
    op.first_part = static_cast<std::int32_t>(program_.parts.size());
    program_.ops.push_back(op);
    return program_.ops.back();
  }
  void AddPart(std::int32_t channel, bool is_send, std::int64_t duration) {
    if (program_.num_channels <= channel) {
      program_.num_channels = channel + 1;
      sequences_.resize(2 * static_cast<std::size_t>(program_.num_channels), 0);
    }
    std::int32_t& sequence = sequences_[2 * static_cast<std::size_t>(channel) + (is_send ? 1 : 0)];
    program_.parts.push_back({channel, is_send, sequence++, Time(duration)});
    ++program_.ops.back().num_parts;
  }

  Program program_;
  std::vector<std::int32_t> uses_;       // [group]
  std::vector<std::int32_t> sequences_;  // [link]
};

// One unit per program; `Link` and `Join` wire them.
class WorldBuilder {
 public:
  std::int32_t Add(const Program& program, std::int64_t multiplicity = 1) {
    Unit unit;
    unit.program = static_cast<std::int32_t>(world_.programs.size());
    unit.multiplicity = multiplicity;
    unit.first_rank = static_cast<std::int64_t>(world_.units.size());
    unit.peers.resize(static_cast<std::size_t>(program.num_channels));
    unit.groups.resize(static_cast<std::size_t>(program.num_groups), -1);
    world_.programs.push_back(program);
    world_.units.push_back(unit);
    return static_cast<std::int32_t>(world_.units.size()) - 1;
  }
  void Link(Peer a, Peer b) {
    At(a.unit).peers[static_cast<std::size_t>(a.channel)] = b;
    At(b.unit).peers[static_cast<std::size_t>(b.channel)] = a;
  }
  // A group of units in ascending order, each holding it in `slot`.
  void Join(const std::vector<std::int32_t>& units, std::int32_t slot = 0) {
    for (std::int32_t unit : units) {
      At(unit).groups[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(world_.groups.size());
    }
    world_.groups.push_back(units);
  }

  const World& world() const { return world_; }
  World& world() { return world_; }

 private:
  Unit& At(std::int32_t unit) { return world_.units[static_cast<std::size_t>(unit)]; }

  World world_;
};

}  // namespace orrery::engine::testing

#endif  // ORRERY_TESTS_SIM_ENGINE_PROGRAM_BUILDER_H_
