// What follows from a resolved spec before anything is priced: degrees, micro-batches, layout, schedule, the shape of
// every stage, and which causes of lost time are switched off.
#ifndef ORRERY_SIM_TRAINING_PLAN_H_
#define ORRERY_SIM_TRAINING_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "orrery/v1/run.pb.h"
#include "proto/loader.h"
#include "schedules/lowering.h"
#include "schedules/schedule.h"
#include "sim/layout/layout.h"
#include "sim/training/links.h"
#include "workloads/transformer.h"

namespace orrery::training {

struct Plan {
  v1::Run run;
  std::int64_t tp = 1;
  std::int64_t dp = 1;
  std::int64_t pp = 1;
  std::int64_t world = 1;
  // Neighbours along dp that share one copy of what ZeRO shards; dp where nothing is sharded.
  std::int64_t shard_ranks = 1;
  // Most stages that a pipeline rank holds, and micro-batches per pipeline and iteration.
  std::int32_t chunks = 1;
  std::int32_t micro_batches = 1;
  layout::Layout layout;
  schedules::Schedule schedule;
  schedules::Lowering lowering;
  Links links;
  // By stage, in the order of the model.
  std::vector<workloads::ChunkShape> stages;
  // Transfers are priced as if nobody else sent: sharing is worked out elsewhere, or left out.
  bool prices_alone = false;

  bool Without(v1::Cause cause) const;
  // Shard groups that hold the same: they reduce gradients among themselves.
  std::int64_t replicas() const { return dp / shard_ranks; }
  // One rank's part of what is sharded.
  std::int64_t ShardOf(std::int64_t whole) const { return (whole + shard_ranks - 1) / shard_ranks; }
  // Parameters are sharded (ZeRO-3): gathered unit by unit for every pass.
  bool gathers_units() const { return run.parallelism().zero_stage() == 3 && shard_ranks > 1; }
  const workloads::ChunkShape& Stage(std::int32_t pipeline_rank, std::int32_t chunk) const {
    return stages[static_cast<std::size_t>(schedule.StageOf(pipeline_rank, chunk))];
  }
  std::int32_t ChunksOf(std::int32_t pipeline_rank) const { return schedule.placement.ChunksOf(pipeline_rank); }
  // Transfers share the links of the cluster's graph.
  bool shares_links() const { return run.simulation().network() == v1::FLOW; }
  // Communication and compute slow each other down for as long as they run side by side.
  bool overlaps_dynamically() const { return run.simulation().overlap() == v1::DYNAMIC; }
  // How messages of this schedule meet.
  v1::MessageMode message_mode() const;
  // All ranks agree on the gradient norm before any of them updates.
  bool norm_barrier() const;
  // Micro-batches that run through a chunk: all, or those of its copy of the model.
  std::int32_t MicroBatchesOf(std::int32_t pipeline_rank, std::int32_t chunk) const;
  // Copies of the model in one pipeline, and the pipeline ranks that hold a stage, ascending.
  std::int32_t copies() const { return schedule.placement.pipelines(); }
  std::vector<std::int32_t> HoldersOf(std::int32_t stage) const;
  // Pipeline ranks that reduce the gradient of a tied embedding among them, ascending: those with the first or the last
  // stage, unless each of them has both.
  std::vector<std::int32_t> EmbeddingRanks() const;
  bool IsFirstStage(std::int32_t stage) const { return stage == 0; }
  bool IsLastStage(std::int32_t stage) const { return stage + 1 == static_cast<std::int32_t>(stages.size()); }
};

// What is wrong with a run beyond the schema: a schedule that does not exist, or not for these parameters; an unknown
// FLOP convention. For spec::LoadOptions::check, so that it is reported with everything else and where it was written.
std::vector<spec::FieldProblem> ProblemsOf(const v1::Run& run);

// INVALID_ARGUMENT that joins problems, of which there is one at least.
absl::Status Refusal(const std::vector<spec::FieldProblem>& problems);

// `prices_alone`: also where no links are shared. INVALID_ARGUMENT joins the problems.
absl::StatusOr<Plan> MakePlan(const v1::Run& run, bool prices_alone = false);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_PLAN_H_
