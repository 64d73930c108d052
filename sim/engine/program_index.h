// Where things stand in a program: the look-up tables that checks, engines and folding share.
#ifndef ORRERY_SIM_ENGINE_PROGRAM_INDEX_H_
#define ORRERY_SIM_ENGINE_PROGRAM_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/engine/program.h"
#include "sim/engine/world.h"

namespace orrery::engine {

// One end of one message: Program::parts[part], which belongs to Program::ops[op].
struct MessageEnd {
  std::int32_t op = 0;
  std::int32_t part = 0;
};

// A link is one direction of a channel as its unit sees it.
inline constexpr std::int32_t LinkOf(std::int32_t channel, bool is_send) { return 2 * channel + (is_send ? 1 : 0); }
inline std::int32_t LinkOf(const Part& part) { return LinkOf(part.channel, part.is_send); }

// Program::segments[first, first + count), which some operations run.
struct SegmentRun {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

struct ProgramIndex {
  std::vector<std::vector<MessageEnd>> messages;      // [link][sequence]
  std::vector<bool> meets;                            // [link]: whether some of its messages are rendezvous
  std::vector<std::vector<std::int32_t>> uses;        // [group][use]: op
  std::vector<std::vector<std::int32_t>> stream_ops;  // [stream]: ops in order
  std::uint32_t outward = 0;                          // streams with messages, exchanges or collectives, one bit each
  std::vector<std::int32_t> position;                 // [op]: place in its stream
  std::vector<std::int32_t> recorder;                 // [event]: op, or -1
  // What depends on an operation's segments alone is worked out once per run. The first run is the empty one.
  std::vector<SegmentRun> runs;
  std::vector<std::int32_t> run_of;  // [op]
  bool host_waits = false;           // some host op does, for an event
  bool segments_wait = false;        // some segment is issued after its host op began
};

// Checks and indexes a program, or all of a world: the errors of CheckProgram and CheckWorld.
absl::StatusOr<ProgramIndex> IndexProgram(const Program& program);
absl::StatusOr<std::vector<ProgramIndex>> IndexWorld(const World& world);

// When an operation is issued, after the start of its host op.
inline Time IssueOffset(const Program& program, const Op& op) {
  return op.num_segments > 0 ? program.segments[static_cast<std::size_t>(op.first_segment)].issue : op.issue;
}

// The operation that ReplayOptions::fault prolongs: the middle one of the compute stream.
std::int32_t FaultyOp(const ProgramIndex& index);

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_PROGRAM_INDEX_H_
