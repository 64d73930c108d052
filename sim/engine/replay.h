// Replays iterations of a world and accounts for every picosecond.
//
// Iterations 0 .. n are replayed for `iterations` = n. The end of iteration k is when the last unit's update_op of
// iteration k ends (0 for k = -1). The window is [end of n-1, end of n]; the period is its length. Accounts and traces
// cover the window, cut at its borders: what units do in it, whichever iteration the operation belongs to. Iteration
// n+1 is replayed for it; and, for units that nothing holds back and that are further ahead, iterations up to 2n+1.
//
// Replay stops early once it is periodic: every clock (where a stream or the host stands at the end of an iteration)
// equals that of the previous iteration plus one constant. Clocks that fall behind that constant are ignored where
// nobody waited for them (a host without cost, a stream that runs ahead): falling behind, they are never waited for
// again. Where links are shared or loads change rates, clocks do not say what comes next, and everything that decides
// it has to be where it was (Engine::Fingerprint); the iteration that ends so stands for all later ones. Where clocks
// do say it, one more iteration is replayed for that. The account, the trace (but for streams that run ahead) and the
// period are those without stopping; hashes and tasks cover the iterations that were replayed.
//
// Classes. The compute stream meets, in this order, what blocks its next operation: its issue (class of what the host
// is doing then: issuing is kHost, waiting for an event is followed), each waited event in order (followed to the
// event's stream: what that stream did or was blocked on at that instant), missing messages or participants
// (missing_class), transfers (transfer_class, which counts first: an instant at which one message of a batch is under
// way and another is missing is transfer). The lead of a collective is missing_class. Inside a kLocal operation each
// segment counts by its class, and a segment that is not issued yet as kHost. A unit that has finished all of these
// before the window ends idles as kBubble. Classes of a unit sum to the window exactly.
#ifndef ORRERY_SIM_ENGINE_REPLAY_H_
#define ORRERY_SIM_ENGINE_REPLAY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/engine/program.h"
#include "sim/engine/transfers.h"
#include "sim/engine/world.h"

namespace orrery::engine {

enum class EngineKind { kWorklist, kEventQueue };

struct ReplayOptions {
  EngineKind engine = EngineKind::kWorklist;
  int iterations = 3;
  // Nothing follows the window: units that are done idle. For the first iteration alone, with `iterations` = 0.
  bool nothing_follows = false;
  // Evaluate ties (queue) or runnable units (worklist) in the opposite order: the answer must not change.
  bool reverse_ties = false;
  // Stop when periodic. Off only in tests.
  bool stop_when_periodic = true;
  // Units whose operations in the window are returned.
  std::vector<std::int32_t> traced_units;
  // What shares links, where the world has routes; null: durations are constant. The event queue alone can use it, as
  // it alone evaluates loads. It must be fresh, and outlive the replay; no load may slow transfers.
  Transfers* transfers = nullptr;
  // Replays every iteration to its end, and with `transfers` all of them. Off, what lies behind the window may be left
  // out: for who asks `transfers` what links carried.
  bool whole_iterations = false;
  // Fault injection for tests of the tests: adds this to the end of the middle operation of the first unit's compute
  // stream, in every iteration.
  Time fault;
};

struct TracedSpan {
  std::int32_t unit = 0;
  std::int32_t stream = 0;
  std::int32_t op = 0;
  std::int32_t iteration = 0;
  // When its stream was free and its dependencies were met (messages and participants excepted); when it began to run
  // (kLocal: eager receives have arrived) or transfer (kCollective: after the lead; kExchange: its first part); and its
  // end. Not cut at the window's borders.
  Time ready;
  Time start;
  Time end;
};

struct UnitResult {
  TimeByClass classes{};
  // Of the pipeline operations on the compute stream in the last iteration (n, or the one that stands for it): start of
  // the first, end of the last, and time of the compute stream not spent in kBubble, kExposedPp, kWait* or kHost
  // between them. Zero without any.
  Time pipeline_first_start;
  Time pipeline_last_end;
  Time pipeline_busy;
  // Sum mod 2^64 of TimelineHash (timeline_hash.h) over all operations replayed up to iteration n.
  std::uint64_t timeline_hash = 0;
};

struct Replay {
  // End of every iteration replayed, up to the window's.
  std::vector<Time> iteration_ends;
  // Iterations evaluated, the one after the window included.
  int iterations_evaluated = 0;
  Time window_begin;
  Time window_end;
  // Whether replay became periodic, and stopped.
  bool periodic = false;
  std::vector<UnitResult> units;
  std::vector<TracedSpan> trace;  // by (unit, stream, start, op)
  // Sum over units of multiplicity x hash, mod 2^64: equal for a world and its folding.
  std::uint64_t timeline_hash = 0;
  std::int64_t tasks = 0;   // operations evaluated (ReplayOptions::whole_iterations), host ops not counted
  std::int64_t events = 0;  // pops of the queue; 0 in the worklist
};

// FAILED_PRECONDITION where the programs deadlock; the message names a cycle: which rank waits for what. INTERNAL where
// CheckWorld fails or `options` make no sense (negative iterations, traced units out of range).
absl::StatusOr<Replay> Run(const World& world, const ReplayOptions& options);

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_REPLAY_H_
