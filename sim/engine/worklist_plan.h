// A program compiled for the worklist: one cache line per operation, everything that does not depend on the unit
// resolved.
#ifndef ORRERY_SIM_ENGINE_WORKLIST_PLAN_H_
#define ORRERY_SIM_ENGINE_WORKLIST_PLAN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/engine/program.h"
#include "sim/engine/program_index.h"

namespace orrery::engine {

// One kLocal operation costs O(1) however many segments it has. With start s, host start h, and segments of issue a_i
// and duration d_i,
//
//   end_i = max(end_{i-1}, h + a_i) + d_i,  end_{-1} = s.
//
// max distributes over +, so that unrolling gives the maximum over where the last idle stretch ended:
//
//   end_{n-1} = max(s + sum_j d_j, max_i (h + a_i + sum_{j >= i} d_j)) = max(s + D, h + K)
//
// with D = sum_j d_j and K = max_i (a_i + sum_{j >= i} d_j), which belong to the program alone. The idle part inside is
// end - s - D.
struct alignas(64) PlannedOp {
  Time duration;    // kLocal: D. kCollective: lead + duration. kExchange: 0. A fault is added to it
  Time issue;       // after the host op's start: when it may be ready
  Time issued_end;  // kLocal: K. kCollective: lead
  std::int32_t op = 0;
  std::int32_t host_op = 0;
  std::int32_t records = kNoEvent;
  std::array<std::int32_t, kMaxWaits> waits = {kNoEvent, kNoEvent, kNoEvent};
  std::int32_t first_part = 0;   // in Plan::parts; kCollective: group slot
  std::int32_t num_awaited = 0;  // eager receives, or all parts of an exchange; kCollective: use
  std::int32_t num_sends = 0;    // eager sends, after the receives
  OpKind kind = OpKind::kLocal;
  bool waits_for_events = false;
  bool is_update = false;
  bool is_marked = false;  // see Accountant::MarkedPositions
};

struct PlannedPart {
  Time duration;
  std::int32_t slot = 0;  // of this unit: where the arrival, or the peer's ready, will stand
  std::int32_t link = 0;  // where to write to at the peer
  std::int32_t sequence = 0;
};

struct Plan {
  Plan(const Program& program, const ProgramIndex& index);

  std::vector<PlannedOp> ops;          // by stream, then position
  std::vector<std::int32_t> first_op;  // [stream], and one past the last
  std::vector<PlannedPart> parts;
  std::vector<std::int32_t> first_slot;  // [link]
  std::int32_t num_slots = 0;
  std::vector<std::uint32_t> waiters;       // [event]: streams, and the host, that wait for it at some point
  std::vector<std::uint32_t> event_stream;  // [event]: bit of the stream that records it
};

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_WORKLIST_PLAN_H_
