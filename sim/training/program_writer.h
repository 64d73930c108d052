// Writes operations into a program: the building blocks of program_builder.cc.
//
// Keeps what is counted while a program is written: events, uses of groups, sequences of channels, labels, and how far
// the host has come with issuing.
#ifndef ORRERY_SIM_TRAINING_PROGRAM_WRITER_H_
#define ORRERY_SIM_TRAINING_PROGRAM_WRITER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/engine/program.h"
#include "sim/training/overlap_loads.h"
#include "sim/training/pass_prices.h"
#include "sim/training/program_builder.h"

namespace orrery::training {

// A price under a factor of static overlap, to the nearest picosecond.
Time Scaled(Time time, double factor);
Communication Scaled(const Communication& communication, double factor);

// What happens at the ends of a pass: events and messages before it starts; messages and an event when it ends.
struct PassEnds {
  std::vector<std::int32_t> waits;
  std::vector<engine::Part> receives;
  std::vector<engine::Part> sends;
  std::int32_t records = engine::kNoEvent;

  void AddWait(std::int32_t event) {
    if (event != engine::kNoEvent) waits.push_back(event);
  }
};

// Operators [begin, end) of a pass.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class ProgramWriter {
 public:
  // `issue`: host time of one kernel. `operators_apart`: one operation per operator. `members_meet`: tensor-parallel
  // collectives are operations of their own.
  ProgramWriter(Time issue, bool operators_apart, bool members_meet)
      : issue_(issue), operators_apart_(operators_apart), members_meet_(members_meet) {}

  // What is written from now on slows compute, and is slowed by it.
  void SlowDown(OverlapLoads loads) { loads_.emplace(std::move(loads)); }

  engine::Program& program() { return result_.program; }
  bool issuing_takes_time() const { return issue_ > Time(); }

  std::int32_t NewEvent() { return program().num_events++; }

  // Starts a host op if issuing takes time or it has to wait; operations that follow are issued by it.
  void OpenHostOp(std::int32_t waits = engine::kNoEvent);
  // The host waits for an event and then issues nothing for `duration`.
  void PauseHost(std::int32_t waits, Time duration);

  std::int32_t Label(OpLabel label);

  // Operations to be completed by the caller and then added. A mark takes no time: events, messages and phases meet
  // there.
  engine::Op Mark(std::int32_t tag) { return NewOp(engine::OpKind::kLocal, kCompute, tag); }
  engine::Op Local(Stream stream, std::int32_t tag, engine::TimeClass time_class, Time duration, int kernels);
  engine::Op Collective(Stream stream, std::int32_t tag, std::int32_t group, const Communication& price,
                        engine::TimeClass transfer, engine::TimeClass missing);
  engine::Op Exchange(std::int32_t tag, const std::vector<engine::Part>& batch);

  // Returns the operation's index.
  std::int32_t Add(const engine::Op& op);

  // A stretch of a pass: one operation where nothing inside meets another rank; else local operations and collectives
  // alternate, and what waits, receives, sends and records is a mark at either end. A stretch without operators (a
  // stage without layers) is a mark.
  void AddPass(const PricedPass& pass, Stretch stretch, std::int32_t tag, double factor, const PassEnds& ends);

  // The program. `messages`: prices by channel.
  LabelledProgram Take(const std::vector<Communication>& messages);

 private:
  engine::Op NewOp(engine::OpKind kind, Stream stream, std::int32_t tag);
  Time Issue(int kernels);
  void AddParts(const std::vector<engine::Part>& parts, engine::Op& op);
  void AddFirst(const PassEnds& ends, engine::Op first);
  void AddLast(const PassEnds& ends, std::int32_t tag);
  void AddGroup(const PricedPass& pass, Stretch group, double factor, engine::Op op);
  std::int32_t PassSegments(const PricedPass& pass, Stretch group, double factor, int kernels_before);
  std::int32_t AddSegment(const engine::Segment& segment, KernelKind kind = kNotSlowed);
  void TakeLoads(const std::vector<Communication>& messages);
  std::int32_t OperatorTag(std::string_view name);

  const Time issue_;
  const bool operators_apart_;
  const bool members_meet_;
  LabelledProgram result_;
  struct Use {
    Time progress;
    collectives::Footprint footprint = {};
    std::int16_t load = -1;
  };
  std::vector<std::vector<Use>> uses_;  // by group slot and use
  std::optional<OverlapLoads> loads_;
  // First of the segments that operations of one stretch share.
  std::map<std::tuple<const PricedPass*, std::size_t, std::size_t, double, int>, std::int32_t> segments_;
};

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_PROGRAM_WRITER_H_
