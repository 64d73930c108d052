// The story of a run: spec -> plan -> prices -> programs -> replay -> result.
#ifndef ORRERY_SIM_TRAINING_SIMULATE_H_
#define ORRERY_SIM_TRAINING_SIMULATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "orrery/v1/run.pb.h"
#include "sim/engine/replay.h"
#include "sim/memory/ledger.h"
#include "sim/training/by_action.h"
#include "sim/training/link_report.h"
#include "sim/training/program_builder.h"
#include "sim/training/world_builder.h"
#include "topology/topology.h"

namespace orrery::training {

// When a rank's memory peaks: in a pass of its order, or in the optimizer's update.
struct PeakMoment {
  // Then all that follows is meaningless.
  bool update = false;
  schedules::ActionKind action = schedules::ActionKind::kForward;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  // Index into the rank's order of passes.
  std::size_t pass = 0;
  // The operator that runs, and its layer within the chunk (-1: embedding, head).
  std::string_view operator_name = {};
  std::int32_t layer = -1;
};

// One pipeline rank: the mean over its ranks of time by class in the window, and the memory of each.
struct PipelineRankResult {
  std::int32_t pipeline_rank = 0;
  std::int64_t layers = 0;
  // Rank-picoseconds by class, summed over `ranks` ranks; see SecondsOf.
  std::vector<Int128> class_sums = std::vector<Int128>(engine::kTimeClasses);
  std::int64_t ranks = 0;
  memory::Ledger memory;
  PeakMoment peak;

  // Mean seconds of a rank in a class.
  double SecondsOf(engine::TimeClass time_class) const;
};

// What passes of one stage do to memory.
using StageFootprints = ByAction<memory::PassFootprint>;

struct PricedWorld {
  TrainingWorld built;
  // Where transfers share links: whose ids the world's links have.
  std::shared_ptr<const topology::Topology> topology = nullptr;
  std::vector<std::string> warnings = {};
  std::vector<StageFootprints> footprints;  // by stage
};

struct TracedRank {
  std::int64_t rank = 0;
  std::int32_t pipeline_rank = 0;
  std::vector<engine::TracedSpan> spans;
  const engine::Program* program = nullptr;
  const ProgramLabels* labels = nullptr;
};

struct Result {
  Time iteration_time;
  Time first_iteration_time;
  Time window_begin;
  // Model FLOPs of one iteration over all GPUs, without and with recomputation; peak of one GPU.
  Flops model_flops;
  Flops hardware_flops;
  FlopsPerSecond peak;
  std::int64_t gpus = 0;
  double tokens = 0;  // per iteration
  // Rank-picoseconds of the window by class, over all ranks; sums to gpus x iteration_time.
  std::vector<Int128> class_sums = std::vector<Int128>(engine::kTimeClasses);
  // Largest span bubble of a rank, as a share of its span; 0 without a pipeline.
  double span_bubble_fraction = 0;
  std::vector<PipelineRankResult> pipeline_ranks;
  std::int64_t memory_capacity = 0;
  std::vector<std::string> warnings;
  std::vector<TracedRank> traces;
  // Where transfers share links.
  std::optional<LinkSummary> links;
  std::uint64_t timeline_hash = 0;
  // About the simulator itself.
  std::int64_t ranks_simulated = 0;
  std::int64_t tasks = 0;
  std::int64_t events = 0;
  int iterations_replayed = 0;
  bool periodic = false;
  // What `traces` point into.
  std::shared_ptr<const PricedWorld> world;
  std::shared_ptr<const Plan> plan;

  double Mfu() const;
  double Hfu() const;
  double Fraction(engine::TimeClass time_class) const;
  // Sum over communication kinds.
  double ExposedCommunicationFraction() const;
  bool Fits() const;
};

struct SimulateOptions {
  // Ranks whose timeline is returned.
  std::vector<std::int64_t> traced_ranks = {};
  // Busiest links that are reported where transfers share links.
  std::size_t report_links = 0;
  // Without shared links too, transfers are priced as if nobody else sent.
  bool prices_alone = false;
};

// `run` must be resolved. INVALID_ARGUMENT where the schedule does not exist for its parameters; FAILED_PRECONDITION
// where the programs deadlock.
absl::StatusOr<Result> Simulate(const v1::Run& run, const SimulateOptions& options = {});

// Builds and prices the world of a run.
absl::StatusOr<std::shared_ptr<const PricedWorld>> PriceWorld(const Plan& plan);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_SIMULATE_H_
