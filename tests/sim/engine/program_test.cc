// CheckProgram and CheckWorld: every rule is broken once, and the message says which.
#include "sim/engine/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "sim/engine/world.h"
#include "tests/sim/engine/program_builder.h"

namespace orrery::engine::testing {
namespace {

using ::testing::HasSubstr;

// Two units that compute, exchange a message of 5 over channel 0, meet in group 0, and update.
ProgramBuilder GoodProgram(bool sends) {
  ProgramBuilder builder;
  builder.Compute(10);
  const std::int32_t event = builder.Record();
  builder.Exchange(1).waits[0] = event;
  sends ? builder.Send(0, 5) : builder.Receive(0, 5);
  builder.Collective(0, TimeClass::kExposedDp, TimeClass::kWaitDp, 1, 2);
  builder.Update(3);
  return builder;
}

World GoodWorld() {
  WorldBuilder world;
  world.Add(GoodProgram(true).program());
  world.Add(GoodProgram(false).program());
  world.Link({0, 0}, {1, 0});
  world.Join({0, 1});
  return world.world();
}

TEST(CheckTest, GoodOnesPass) {
  EXPECT_TRUE(CheckProgram(GoodProgram(true).program()).ok());
  EXPECT_TRUE(CheckWorld(GoodWorld()).ok()) << CheckWorld(GoodWorld());
}

TEST(CheckTest, EveryProgramRule) {
  const struct {
    const char* message;
    std::function<void(Program&)> spoil;
  } cases[] = {
      {"0 streams", [](Program& p) { p.num_streams = 0; }},
      {"17 streams", [](Program& p) { p.num_streams = 17; }},
      {"a count is negative", [](Program& p) { p.num_groups = -1; }},
      {"no host op", [](Program& p) { p.host_ops.clear(); }},
      {"update_op -1", [](Program& p) { p.update_op = -1; }},
      {"update_op 1", [](Program& p) { p.update_op = 1; }},  // on stream 1
      {"a segment has a negative time", [](Program& p) { p.segments[0].duration = Time(-1); }},
      {"unknown class", [](Program& p) { p.segments[0].time_class = static_cast<TimeClass>(kTimeClasses); }},
      {"operation 1 has an unknown class",
       [](Program& p) { p.ops[1].missing_class = static_cast<TimeClass>(kTimeClasses); }},
      {"operation 1 is on a stream that does not exist", [](Program& p) { p.ops[1].stream = 2; }},
      {"operation 0 has no host op", [](Program& p) { p.ops[0].host_op = 1; }},
      {"operation 0 is issued by an earlier host op", [](Program& p) { p.ops[0].host_op = -1; }},
      {"operation 2 has a negative time", [](Program& p) { p.ops[2].lead = Time(-1); }},
      {"operation 0 has segments out of range", [](Program& p) { p.ops[0].num_segments = 3; }},
      {"operation 1 has parts out of range", [](Program& p) { p.ops[1].num_parts = 2; }},
      {"operation 2 has segments but is not local", [](Program& p) { p.ops[2].num_segments = 1; }},
      {"operation 0 records an event that does not exist", [](Program& p) { p.ops[0].records = 1; }},
      {"operation 1 records an event that another one records", [](Program& p) { p.ops[1].records = 0; }},
      {"a wait for an event that does not exist", [](Program& p) { p.ops[1].waits[0] = 1; }},
      {"a wait for an event that nothing records", [](Program& p) { p.ops[0].records = kNoEvent; }},
      {"a wait for an event that does not exist", [](Program& p) { p.host_ops[0].waits = 7; }},
      {"a host op of negative duration", [](Program& p) { p.host_ops[0].duration = Time(-1); }},
      {"operation 2 is collective and has parts",
       [](Program& p) {
         p.ops[2].first_part = 0;
         p.ops[2].num_parts = 1;
       }},
      {"operation 2 is over a group that does not exist", [](Program& p) { p.ops[2].group = 1; }},
      {"operation 2 uses its group out of order", [](Program& p) { p.ops[2].use = 1; }},
      {"operation 1 has a part over a channel that does not exist", [](Program& p) { p.parts[0].channel = 1; }},
      {"operation 1 has a part of negative duration", [](Program& p) { p.parts[0].duration = Time(-1); }},
      {"operation 1 has a part out of sequence", [](Program& p) { p.parts[0].sequence = 1; }},
  };
  for (const auto& test : cases) {
    Program program = GoodProgram(true).program();
    test.spoil(program);
    const absl::Status status = CheckProgram(program);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << test.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.message));
  }
}

// Three messages received eagerly, in the order 2, 0, 1.
ProgramBuilder CrossedReceiver() {
  ProgramBuilder builder;
  for (int i = 0; i < 3; ++i) {
    builder.Compute(1);
    builder.Receive(0, 5);
  }
  builder.Update(1);
  for (std::size_t i = 0; i < 3; ++i)
    builder.program().parts[i].sequence = i == 0 ? 2 : static_cast<std::int32_t>(i) - 1;
  return builder;
}

TEST(CheckTest, EagerReceivesComeInAnyOrderOnceEach) {
  EXPECT_TRUE(CheckProgram(CrossedReceiver().program()).ok());
  const struct {
    const char* message;
    std::function<void(Program&)> spoil;
  } cases[] = {
      {"operation 2 has a part of a message that another one has", [](Program& p) { p.parts[2].sequence = 0; }},
      {"operation 0 has a part out of sequence", [](Program& p) { p.parts[0].sequence = 3; }},
      {"operation 1 has a part out of sequence", [](Program& p) { p.parts[1].sequence = -1; }},
      {"a part belongs to no operation", [](Program& p) { p.ops[0].num_parts = 0; }},
      // What is sent, and what meets a peer, keeps its order.
      {"operation 0 has a part out of sequence",
       [](Program& p) {
         for (Part& part : p.parts) part.is_send = true;
       }},
      {"operation 0 has a part out of sequence",
       [](Program& p) {
         for (std::size_t i = 0; i < 3; ++i) {
           p.ops[i].kind = OpKind::kExchange;
           p.ops[i].num_segments = 0;
         }
       }},
  };
  for (const auto& test : cases) {
    Program program = CrossedReceiver().program();
    test.spoil(program);
    const absl::Status status = CheckProgram(program);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << test.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.message));
  }
}

TEST(CheckTest, EveryWorldRule) {
  const struct {
    const char* message;
    std::function<void(World&)> spoil;
  } cases[] = {
      {"no units", [](World& w) { w.units.clear(); }},
      {"program: no host op", [](World& w) { w.programs[1].host_ops.clear(); }},
      {"unit 0 has no program", [](World& w) { w.units[0].program = 2; }},
      {"unit 1 stands for no rank", [](World& w) { w.units[1].multiplicity = 0; }},
      {"unit 0 lacks peers", [](World& w) { w.units[0].peers.clear(); }},
      {"unit 0 lacks groups", [](World& w) { w.units[0].groups.clear(); }},
      {"unit 0 has no peer on channel 0", [](World& w) { w.units[0].peers[0] = {}; }},
      {"unit 0 is not the peer of its peer on channel 0",
       [](World& w) {
         w.units[1].peers[0] = {1, 0};
       }},
      {"disagree on the messages of channel 0", [](World& w) { w.programs[1].parts[0].duration = Time(6); }},
      {"disagree on the messages of channel 0", [](World& w) { w.programs[1].parts[0].is_send = true; }},
      // One side eager, the other a rendezvous.
      {"disagree on the messages of channel 0", [](World& w) { w.programs[1].ops[1].kind = OpKind::kLocal; }},
      {"unit 1 uses group 0 but is in none", [](World& w) { w.units[1].groups[0] = -1; }},
      {"unit 1 is not a member of its group 0", [](World& w) { w.groups[0] = {0}; }},
      {"the members of group 0 do not ascend",
       [](World& w) {
         w.groups[0] = {1, 0};
       }},
      {"not every member of group 0 uses it",
       [](World& w) {
         w.groups[0] = {0, 1, 2};
       }},
      {"disagree on the uses of group 0", [](World& w) { w.programs[1].ops[2].lead = Time(2); }},
      {"disagree on the uses of group 0", [](World& w) { w.programs[1].ops[2].duration = Time(3); }},
  };
  for (const auto& test : cases) {
    World world = GoodWorld();
    test.spoil(world);
    const absl::Status status = CheckWorld(world);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << test.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.message));
  }
}

}  // namespace
}  // namespace orrery::engine::testing
