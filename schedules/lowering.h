// Where a runtime that exchanges messages by rendezvous posts them.
#ifndef ORRERY_SCHEDULES_LOWERING_H_
#define ORRERY_SCHEDULES_LOWERING_H_

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace orrery::schedules {

// A message of the pipeline: the output of `stage` in one direction for one micro-batch, to the neighbouring stage.
// Stages on the same rank exchange none.
struct Message {
  bool forward = true;  // activation to stage + 1; else gradient to stage - 1
  std::int32_t from_stage = 0;
  std::int32_t micro_batch = 0;
  std::int32_t from_rank = 0;
  std::int32_t to_rank = 0;
  // Position in `order` of the producer on from_rank and of the consumer on to_rank.
  std::int32_t producer = 0;
  std::int32_t consumer = 0;
};

// The sends and receives of one rank between two of its actions: boundary i lies before action i, the last one after
// all. Indices into Lowering::messages, in a fixed order.
struct Boundary {
  std::vector<std::int32_t> sends;
  std::vector<std::int32_t> receives;
};

// Where a rendezvous runtime posts what: one batch of sends and receives per boundary, and the rank waits for all of
// it. A *step* is an action with those joined to it; boundaries inside a step stay empty.
//
// A send is posted right after its producer's step. Its receive is posted at the boundary at which the receiver meets
// it when the whole schedule is executed this way with unit costs (F = I = W = 1, B = 2, no latency): at the receiver's
// boundary that is open at that instant, or else at its next one; right before the consumer at the latest. One tie has
// a choice: where the receiver could go on at the very instant of the send and the sender could not, the receiver goes
// on, for it would hold nobody up.
//
// This cannot deadlock. A rank that waits at a boundary accepts whatever is sent to it, so that a rank can only wait
// for an input that has not been produced, and Validate excludes a cycle of those: the unit-cost execution completes.
// Whether rendezvous with fixed partners complete does not depend on when they happen, so the same batches complete
// under all other costs. On a link (direction, from_rank, to_rank) receives are posted in the order of the sends: no
// sender has two batches open.
//
// Why not simply right before the consumer: of the interleaved schedules, about half then deadlock. Why steps: with
// sends between the two passes of a steady pair, an interleaved schedule on 5 or 8 ranks takes 1.5 to 1.7 times as long
// as with free messages, since the passes of the last rank and of rank 0, to which it sends, then never line up; with
// pairs all ranks exchange at once, and the messages cost their latency once per pair and next to nothing else.
struct Lowering {
  std::vector<Message> messages;                  // by (from_rank, producer)
  std::vector<std::vector<Boundary>> boundaries;  // [rank][0 .. actions]
};
// `schedule` must pass Validate.
Lowering Lower(const Schedule& schedule);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_LOWERING_H_
