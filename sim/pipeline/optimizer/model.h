// Internal to sim/pipeline/optimizer: the ordering problem in the form that the search works on.
//
// Every stage has m passes of each kind, and passes of one kind run first-in-first-out: relabelling the k-th executed
// pass of a kind as micro-batch k keeps all start times, all dependencies and all memory. So a partial order is the
// number of F, I and W done by every stage, and a full one is, per rank, a sequence of (stage, kind).
//
// Both objectives are max over ranks of (end of the rank - origin of the rank): makespan with origin 0, longest span
// with origin = the first start. Rank r starts with F of its lowest stage and micro-batch 0, whose start no order can
// change where the ranks before it hold lower stages: loop and wave placements.
#ifndef ORRERY_SIM_PIPELINE_OPTIMIZER_MODEL_H_
#define ORRERY_SIM_PIPELINE_OPTIMIZER_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "schedules/family.h"
#include "schedules/schedule.h"

namespace orrery::pipeline::optimizer {

enum Kind : std::uint8_t { kF = 0, kI = 1, kW = 2 };
inline constexpr std::size_t kKinds = 3;

// One pass of a rank's sequence: the next of its kind on the stage.
struct Step {
  std::uint16_t stage = 0;
  Kind kind = kF;

  friend bool operator==(const Step&, const Step&) = default;
};
// By rank.
using Sequences = std::vector<std::vector<Step>>;

struct StageModel {
  std::size_t rank = 0;
  std::array<std::int64_t, kKinds> cost = {};
  // From the end of F (I) of the stage before (after) to the start of this one's: the latency, or 0 on the same rank.
  std::int64_t forward_latency = 0;
  std::int64_t gradient_latency = 0;
  // From the end of the stage's last I to the end of the last rank that must still follow, minus that rank's origin.
  std::int64_t tail = 0;
};

struct Model {
  std::size_t ranks = 0;
  std::size_t stages = 0;
  std::size_t micro_batches = 0;
  std::vector<StageModel> stage;
  std::vector<std::vector<std::size_t>> stages_of;  // [rank], ascending
  std::vector<std::int64_t> origin;                 // [rank]
  schedules::PassMemory memory;
  std::int64_t memory_limit = 0;  // never 0: without a limit, more than a rank can hold

  std::size_t passes() const { return kKinds * stages * micro_batches; }
  std::int64_t WorkOf(std::size_t rank) const;
};

// Told now and then of the work that a search has done so far; true ends it.
using Pulse = std::function<bool(std::int64_t work)>;

enum class Objective : std::uint8_t { kMakespan, kLongestSpan };

// `placement` has one pipeline and is a loop or a wave; `costs` has an entry for every stage or one for all.
Model BuildModel(const schedules::Placement& placement, std::int32_t micro_batches,
                 const std::vector<schedules::PassCosts>& costs, std::int64_t latency,
                 const schedules::PassMemory& memory, std::int64_t memory_limit, Objective objective);

// Drops blocks and splits every B into I and W, which never ends later and never holds more.
Sequences SequencesOf(const schedules::Schedule& schedule);
schedules::Schedule ScheduleOf(const Sequences& sequences, const schedules::Placement& placement,
                               std::int32_t micro_batches);

}  // namespace orrery::pipeline::optimizer

#endif  // ORRERY_SIM_PIPELINE_OPTIMIZER_MODEL_H_
