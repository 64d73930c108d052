#include "sim/training/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace orrery::training {
namespace {

std::vector<workloads::ChunkShape> StageShapes(const v1::Run& run) {
  const std::int64_t stages = run.parallelism().pp() * run.parallelism().virtual_stages();
  std::vector<workloads::ChunkShape> shapes(static_cast<std::size_t>(stages));
  for (workloads::ChunkShape& shape : shapes) shape.layers = run.model().layers() / stages;
  shapes.front().embedding = true;
  shapes.back().head = true;
  return shapes;
}

}  // namespace

bool Plan::Without(v1::Cause cause) const {
  const auto& without = run.simulation().without();
  return std::find(without.begin(), without.end(), cause) != without.end();
}

absl::StatusOr<Plan> MakePlan(const v1::Run& run) {
  const absl::StatusOr<Flops> flops = workloads::ModelFlops(run, run.simulation().flops_convention(), false);
  if (!flops.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("simulation.flops_convention: ", flops.status().message()));
  }
  const v1::Parallelism& parallelism = run.parallelism();
  const std::int64_t micro_batches = run.training().global_batch() / (parallelism.dp() * run.training().micro_batch());
  const schedules::Parameters parameters = {.ranks = static_cast<std::int32_t>(parallelism.pp()),
                                            .chunks = static_cast<std::int32_t>(parallelism.virtual_stages()),
                                            .micro_batches = static_cast<std::int32_t>(micro_batches),
                                            .group_size = static_cast<std::int32_t>(run.schedule().group_size())};
  absl::StatusOr<schedules::Schedule> schedule = schedules::Generate(run.schedule().name(), parameters);
  if (!schedule.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("schedule: ", schedule.status().message()));
  }
  schedules::Lowering lowering = schedules::Lower(*schedule);
  return Plan{.run = run,
              .tp = parallelism.tp(),
              .dp = parallelism.dp(),
              .pp = parallelism.pp(),
              .world = parallelism.gpus(),
              .chunks = parameters.chunks,
              .micro_batches = parameters.micro_batches,
              .layout = layout::Layout(parallelism.tp(), parallelism.cp(), parallelism.dp(), parallelism.pp(),
                                       run.cluster().node().gpus(), run.cluster().fabric().nodes_per_leaf()),
              .schedule = *std::move(schedule),
              .lowering = std::move(lowering),
              .stages = StageShapes(run)};
}

}  // namespace orrery::training
