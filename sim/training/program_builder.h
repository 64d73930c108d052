// From a role's prices to its program: the passes of the schedule, the messages between them, data-parallel
// communication, and the optimizer, on streams.
//
// Streams: 0 compute; 1 data-parallel communication that runs beside compute; 2 input; 3 its part among replicas.
// Groups: 0 tensor-parallel, 1 data-parallel ranks that share what ZeRO shards (all, where nothing is sharded), 2
// pipeline ranks with the first or last stage (tied embeddings), 3 all ranks, 4 replicas of one's shard, 5 + c pipeline
// ranks with a copy of the stage that is the rank's chunk c.
// Channels: links.h.
#ifndef ORRERY_SIM_TRAINING_PROGRAM_BUILDER_H_
#define ORRERY_SIM_TRAINING_PROGRAM_BUILDER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/engine/program.h"
#include "sim/training/communication.h"
#include "sim/training/pass_prices.h"
#include "sim/training/plan.h"

namespace orrery::training {

enum Stream : std::uint8_t {
  kCompute = engine::kComputeStream,
  kDataParallel = 1,
  kInput = 2,
  kReplicas = 3,  // only where there are replicas
  kStreams = 4
};
enum GroupSlot : std::int32_t {
  kTensorGroup = 0,
  kDataGroup = 1,
  kEmbeddingGroup = 2,
  kWorldGroup = 3,
  kReplicaGroup = 4,  // only where there are replicas
  kCopiesGroup = 5,   // of chunk 0; only where schedules keep several copies of the model
};
// Slots of a plan's programs.
std::int32_t GroupSlots(const Plan& plan);

// What an operation is, for traces and memory.
enum class OpRole : std::uint8_t {
  kIterationBegin,
  kInput,
  kParameterGather,
  kPass,
  kExchange,
  kGradientReduction,
  kGradientWait,
  kCopiesReduction,
  kEmbeddingReduction,
  kNormBarrier,
  kSlowestWait,
  kOptimizer,
};

struct OpLabel {
  OpRole role = OpRole::kPass;
  schedules::ActionKind action = schedules::ActionKind::kForward;  // kPass
  std::int32_t chunk = -1;
  std::int32_t micro_batch = -1;
  std::int32_t layer = -1;  // ZeRO-3: of the unit; -1: the root unit
};

// What Op::tag and Segment::tag of a program index.
struct ProgramLabels {
  std::vector<OpLabel> ops;
  std::vector<std::string_view> operators;
  // By operation, where Program::op_progress is: what collectives put on links.
  std::vector<collectives::Footprint> footprints;
  // Messages by channel.
  std::vector<Communication> messages;
};

struct LabelledProgram {
  engine::Program program;
  ProgramLabels labels;
};

// A reduction of gradients over the ranks that share one copy of what is sharded, and of a rank's shard over replicas.
struct ReductionPrices {
  Communication shards;
  Communication replicas;

  friend bool operator==(const ReductionPrices&, const ReductionPrices&) = default;
};

// ZeRO-3: parameters of one unit. `conversion` of the rank's own shard precedes the gather where they are kept in fp32.
struct UnitPrices {
  Time conversion;
  Communication gather;
  ReductionPrices reduction;

  friend bool operator==(const UnitPrices&, const UnitPrices&) = default;
};

// All that prices of one role can depend on.
struct RolePrices {
  std::int32_t pipeline_rank = 0;
  // Tensor-parallel collectives meet the other members one by one, instead of being part of a pass.
  bool members_differ = false;
  std::vector<const PricedChunk*> chunks;
  std::vector<Communication> message;  // by channel
  // Data-parallel communication by chunk: gather of updated parameters, of one of `buckets` equal parts where it
  // overlaps, else of all; reduction of the gradients of one such part. Not where units are gathered.
  std::vector<Communication> parameter_gather;
  std::vector<ReductionPrices> gradient_bucket;
  std::vector<std::int32_t> buckets;
  // ZeRO-3: a layer; embedding, final norm and head.
  UnitPrices layer;
  UnitPrices root;
  // Reduction of tied embedding gradients between the pipeline ranks of plan.EmbeddingRanks, where this rank is one.
  bool embedding_reduction = false;
  Communication embedding_reduction_time;
  Communication norm_barrier;
  // Reduction of a chunk's gradients over the copies of its stage; empty where there is one copy.
  std::vector<Communication> copies_reduction;
  // Expected wait for the slowest rank of all, and for the last to begin.
  Time slowest_wait;
  // Between an update and the first kernel that the host issues after it.
  Time step_overhead;
  Time optimizer;
  std::int32_t optimizer_kernels = 1;

  friend bool operator==(const RolePrices&, const RolePrices&) = default;
};

LabelledProgram BuildProgram(const Plan& plan, const RolePrices& prices);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_PROGRAM_BUILDER_H_
