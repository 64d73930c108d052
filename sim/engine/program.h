// Programs on streams: what the engine replays.
//
// A *program* is the work of one iteration of one role: operations on a few in-order streams, listed in the order in
// which the host issues them. Ranks with the same program share it. Stream 0 is the compute stream; the others carry
// communication or input; work on different streams overlaps, and an operation may wait for *events* (the end of an
// earlier-listed or later-listed operation of the same rank).
//
// Times of one operation, all in integer picoseconds. Let E be the end of the previous operation on its stream, carried
// over from the previous iteration for the first.
//
//   ready = max(E, issue, end of every waited event)          "issue": when the host has issued it, see Host below
//
//   kLocal:      with eager receives, ready' = max(ready, arrival of every received message), else ready' = ready.
//                Its segments run in order: segment i starts at max(end of segment i-1, host start + issue_i).
//                Eager sends leave at its end and arrive `duration` later; nobody is blocked.
//   kCollective: start = max of ready over all members of its group for this use; it ends at start + lead + duration.
//                `lead` is time in which a participant is still missing on average (expected jitter).
//   kExchange:   a batch of rendezvous messages. Each part starts at max(ready of both sides' exchanges) and lasts its
//                duration; the exchange ends when its last part has ended. An exchange of one part is a blocking
//                message.
//
// Zero-duration operations are legal. An iteration ends for a rank at the end of its `update_op`.
//
// Host. The host is a stream too. It issues operations in list order. `host_ops` cut the list into batches: host op h
// waits for its event (if any), and then issues the operations that name it; segment i of such an operation is issued
// at start(h) + issue_i, and host op h+1 starts no earlier than start(h) + duration(h). With zero issue cost all
// offsets are 0 and there is one host op. The host's first op of an iteration starts no earlier than its last op of the
// previous one ended.
//
// Loads. Where the program states any, communication that transfers beside the compute stream slows it down, and may be
// slowed in turn: a collective on another stream from its start to its end, a message from its begin to its arrival, at
// both of its ranks. Segments of the compute stream advance at a rate, by their kind of kernel:
//
//   rate = max(kLeastRate, kWholeRate - max of at_least - sum of takes)      over the loads that transfer
//
// and a transfer at kWholeRate - max of slows, over its ranks and the kinds that run there. What is left of a segment
// or transfer is kept exactly, as picoseconds at the whole rate in 1e-12; rates change when anything begins or ends; an
// end is rounded up to a picosecond, where the next segment begins. The event queue alone evaluates loads.
//
// Confluence: starts are maxima of ends, so that the order in which operations are evaluated cannot matter.
#ifndef ORRERY_SIM_ENGINE_PROGRAM_H_
#define ORRERY_SIM_ENGINE_PROGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/units.h"

namespace orrery::engine {

// What an instant of a rank is accounted as: see "Words that must be exact" in docs/architecture.md. Every instant of
// the compute stream has exactly one class.
enum class TimeClass : std::uint8_t {
  kCompute,
  kOptimizer,
  kExposedTp,
  kExposedCp,
  kExposedEp,
  kExposedPp,
  kExposedDp,
  kWaitTp,
  kWaitCp,
  kWaitEp,
  kWaitDp,
  kBubble,
  kHost,
  kData,
};
inline constexpr int kTimeClasses = 14;

using TimeByClass = std::array<Time, kTimeClasses>;

inline constexpr std::int32_t kNoEvent = -1;
inline constexpr int kComputeStream = 0;
inline constexpr int kMaxWaits = 3;
inline constexpr int kMaxStreams = 16;

// A stretch of a kLocal operation: one kernel, or one communication whose participants are indistinguishable.
struct Segment {
  TimeClass time_class = TimeClass::kCompute;
  Time duration;
  // When the host has issued it, after the start of the operation's host op.
  Time issue;
  // What the training layer made it from (index into its own tables); not interpreted here.
  std::int32_t tag = -1;

  friend bool operator==(const Segment&, const Segment&) = default;
};

// One end of a message: the `sequence`-th (from 0) message sent in this iteration over `channel`. The channel is
// resolved to a peer by the unit's wiring. Sends, and both ends of rendezvous, come in the order of their sequences;
// eager receives may come in any.
struct Part {
  std::int32_t channel = 0;
  bool is_send = false;
  std::int32_t sequence = 0;
  // Transfer time. Both sides state the same.
  Time duration;

  friend bool operator==(const Part&, const Part&) = default;
};

enum class OpKind : std::uint8_t { kLocal, kCollective, kExchange };

struct Op {
  OpKind kind = OpKind::kLocal;
  std::uint8_t stream = kComputeStream;
  // kCollective, kExchange: class while it transfers, and while a participant or the peer is missing. Eager receives of
  // a kLocal use them likewise.
  TimeClass transfer_class = TimeClass::kExposedPp;
  TimeClass missing_class = TimeClass::kBubble;
  // Belongs to the pipeline phase (forward and backward passes): for span bubbles.
  bool pipeline = false;
  // kCollective: which of its group's routes it takes where links are shared (World::group_routes).
  std::uint16_t pattern = 0;
  // Events it waits for, in the order in which its stream would meet them; kNoEvent ends the list.
  std::array<std::int32_t, kMaxWaits> waits = {kNoEvent, kNoEvent, kNoEvent};
  // Event that its end completes, or kNoEvent. One operation per event.
  std::int32_t records = kNoEvent;
  // Which host op issues it, never an earlier one than the previous operation's, and when, after that host op's start.
  // A kLocal with segments is issued when its first segment is.
  std::int32_t host_op = 0;
  Time issue;
  // kLocal: its segments, a range of Program::segments.
  std::int32_t first_segment = 0;
  std::int32_t num_segments = 0;
  // kExchange: rendezvous parts. kLocal: eager receives and sends. A range of Program::parts.
  std::int32_t first_part = 0;
  std::int32_t num_parts = 0;
  // kCollective: which of the unit's groups, which use of that group in this iteration (from 0), and its times.
  std::int32_t group = 0;
  std::int32_t use = 0;
  Time lead;
  Time duration;
  // What the training layer made it from; not interpreted here.
  std::int32_t tag = -1;

  friend bool operator==(const Op&, const Op&) = default;
};

// Kernels by what slows them down. Kind 0 loses nothing.
inline constexpr int kKernelKinds = 6;

// Rates, and shares of them.
inline constexpr std::int64_t kWholeRate = 1'000'000'000'000;
// A kernel, or a transfer, keeps this much whatever runs beside it: the slowest that an overlap rule can state.
inline constexpr std::int64_t kLeastRate = kWholeRate / 100;

// What a communication does to compute of its rank while it transfers, and compute to it; by kind of kernel, as shares
// of kWholeRate. All zero for kind 0.
struct Load {
  using Shares = std::array<std::int64_t, kKernelKinds>;
  // Of the kernel's rate: what loads take adds up,
  Shares takes{};
  // but of these the largest counts, however many transfer.
  Shares at_least{};
  // Of the transfer's own rate while such a kernel runs.
  Shares slows{};

  friend auto operator<=>(const Load&, const Load&) = default;
};

struct HostOp {
  // Event it waits for before it starts issuing, or kNoEvent.
  std::int32_t waits = kNoEvent;
  Time duration;

  friend bool operator==(const HostOp&, const HostOp&) = default;
};

struct Program {
  int num_streams = 1;
  std::vector<Op> ops;
  std::vector<Segment> segments;  // shared between operations that do the same
  std::vector<Part> parts;
  std::vector<HostOp> host_ops;
  // Last part of the duration of a collective, and of a message, in which it moves bytes over links that others may use
  // (World::routes). All members and both sides state the same. Empty where nothing shares links.
  std::vector<Time> op_progress = {};    // [op]
  std::vector<Time> part_progress = {};  // [part]
  // Loads, an index or -1 of every collective and part, and the kind of every segment. Empty where nothing slows
  // anything.
  std::vector<Load> loads = {};
  std::vector<std::int16_t> op_loads = {};       // [op]
  std::vector<std::int16_t> part_loads = {};     // [part]
  std::vector<std::uint8_t> segment_kinds = {};  // [segment]
  std::int32_t num_events = 0;
  std::int32_t num_channels = 0;
  std::int32_t num_groups = 0;
  // Index in `ops` of the last optimizer update, on the compute stream.
  std::int32_t update_op = -1;

  friend bool operator==(const Program&, const Program&) = default;
};

// What the vectors say; 0, or no load, where they are empty.
inline Time ProgressOfOp(const Program& program, std::int32_t op) {
  return program.op_progress.empty() ? Time() : program.op_progress[static_cast<std::size_t>(op)];
}
inline Time ProgressOfPart(const Program& program, std::int32_t part) {
  return program.part_progress.empty() ? Time() : program.part_progress[static_cast<std::size_t>(part)];
}

inline std::int32_t LoadOfOp(const Program& program, std::int32_t op) {
  return program.op_loads.empty() ? -1 : program.op_loads[static_cast<std::size_t>(op)];
}
inline std::int32_t LoadOfPart(const Program& program, std::int32_t part) {
  return program.part_loads.empty() ? -1 : program.part_loads[static_cast<std::size_t>(part)];
}

// Checks everything above that does not need the wiring: indices in range, streams, sequences 0, 1, 2, ... once each
// per channel and direction (in order, but for eager receives), uses in order per group, events recorded once if waited
// for, no negative time, no progress longer than its duration, loads and kinds that exist. INTERNAL otherwise: a bug of
// the caller.
absl::Status CheckProgram(const Program& program);

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_PROGRAM_H_
