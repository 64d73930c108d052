// Schedules as text: PyTorch's tables, and JSON.
//
// A table has a row per rank and a cell per action, `<stage><kind>[micro-batch]`: 0F3 forward, 0B3 full backward, 0I3
// input gradient, 0W3 weight gradient; `(1F2;0B3)OVERLAP_F_B` a fused block; a blank cell an idle slot. The lowered
// form of a table also has the actions of communication: 0SEND_F3 and 1RECV_F3, 1SEND_B3 and 0RECV_B3 (the stage is the
// one that sends or receives), and 0UNSHARD, 0RESHARD, 0REDUCE_GRAD without a micro-batch. (PyTorch
// torch/distributed/pipelining/schedules.py, v2.14.1.)
#ifndef ORRERY_SCHEDULES_TEXT_TABLE_H_
#define ORRERY_SCHEDULES_TEXT_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schedules/schedule.h"

namespace orrery::schedules {

// The schedule of a table, of either form; `name` (a file) begins every error, followed by line and cell. The rank of a
// stage is where its actions stand. Where micro-batches run a stage on different ranks, those that run all stages on
// the same ranks share a pipeline, and two pipelines share no place. Lines end in LF or CRLF, rows may be of any
// length, blank lines are skipped. Where a row has an idle slot before an action, `slots` holds the columns (not of
// lowered tables). Communication is checked, where there is any: once each, after the producer or before the consumer.
//
// The order of the passes is not checked: see Validate. INVALID_ARGUMENT says what is allowed. FAILED_PRECONDITION
// where a pass waits for one that no rank runs: a deadlock whatever the order.
absl::StatusOr<Schedule> ReadTable(std::string_view text, std::string_view name);

// The compute-only form, in the schedule's slots if it has any.
std::string WriteTable(const Schedule& schedule);

// The lowered form, as PyTorch lowers a table: a rank keeps the parameters of the next 3 stages that it will run; sends
// follow their producer, and receives stand where the receiver is at that instant, all ranks taking one action in turn.
// `schedule` must pass Validate.
std::string WriteLoweredTable(const Schedule& schedule);

// One object: ranks, stages, micro_batches, slices, placement (by rank and chunk: stage, pipeline), pipeline_of (where
// there are several), order (by rank, cells as in the table) and slots (where there are any).
std::string ScheduleJson(const Schedule& schedule);

// What WriteTable writes: by rank and cell, a block in one.
std::vector<std::vector<std::string>> Cells(const Schedule& schedule);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_TEXT_TABLE_H_
