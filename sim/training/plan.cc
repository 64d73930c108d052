#include "sim/training/plan.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"

namespace orrery::training {
namespace {

std::vector<workloads::ChunkShape> StageShapes(const v1::Run& run) {
  const std::int64_t stages = run.parallelism().pp() * run.parallelism().virtual_stages();
  std::vector<workloads::ChunkShape> shapes(static_cast<std::size_t>(stages));
  for (std::size_t stage = 0; stage < shapes.size(); ++stage) {
    shapes[stage].layers = run.parallelism().stage_layers(static_cast<int>(stage));
  }
  shapes.front().embedding = true;
  shapes.back().head = true;
  return shapes;
}

// What the schedule depends on; nullopt where the run is too broken to say.
std::optional<schedules::Parameters> ParametersOf(const v1::Run& run) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto in_range = [](std::int64_t value) { return value >= 1 && value <= kMost; };
  if (!in_range(run.parallelism().dp()) || !in_range(run.training().micro_batch()) ||
      !in_range(run.parallelism().pp()) || !in_range(run.parallelism().virtual_stages()) ||
      !in_range(run.schedule().group_size())) {
    return std::nullopt;
  }
  const std::int64_t sequences = run.parallelism().dp() * run.training().micro_batch();
  if (!in_range(run.training().global_batch() / sequences)) return std::nullopt;
  return schedules::Parameters{.ranks = static_cast<std::int32_t>(run.parallelism().pp()),
                               .chunks = static_cast<std::int32_t>(run.parallelism().virtual_stages()),
                               .micro_batches = static_cast<std::int32_t>(run.training().global_batch() / sequences),
                               .group_size = static_cast<std::int32_t>(run.schedule().group_size())};
}

}  // namespace

bool Plan::Without(v1::Cause cause) const {
  const auto& without = run.simulation().without();
  return std::find(without.begin(), without.end(), cause) != without.end();
}

std::vector<spec::FieldProblem> ProblemsOf(const v1::Run& run) {
  std::vector<spec::FieldProblem> problems;
  const absl::StatusOr<const schedules::Family*> family = schedules::FindFamily(run.schedule().name());
  if (!family.ok()) {
    problems.push_back({{"schedule.name"}, std::string(family.status().message())});
  } else if (const std::optional<schedules::Parameters> parameters = ParametersOf(run); parameters.has_value()) {
    const absl::Status legal = (*family)->check(*parameters);
    if (!legal.ok()) {
      problems.push_back({{"schedule.group_size", "parallelism.virtual_stages", "training.global_batch",
                           "training.micro_batch", "parallelism.dp", "parallelism.pp", "schedule.name"},
                          std::string(legal.message())});
    }
  }
  const std::vector<std::string_view> conventions = workloads::FlopsConventions();
  const std::string& convention = run.simulation().flops_convention();
  if (std::find(conventions.begin(), conventions.end(), convention) == conventions.end()) {
    const std::vector<std::string> names(conventions.begin(), conventions.end());
    problems.push_back({{"simulation.flops_convention"},
                        absl::StrCat("no FLOP convention is called \"", convention, "\"", DidYouMean(convention, names),
                                     "; allowed: one of ", absl::StrJoin(names, ", "))});
  }
  return problems;
}

absl::StatusOr<Plan> MakePlan(const v1::Run& run) {
  const std::vector<spec::FieldProblem> problems = ProblemsOf(run);
  if (!problems.empty()) {
    return absl::InvalidArgumentError(
        absl::StrJoin(problems, "\n", [](std::string* out, const spec::FieldProblem& problem) {
          absl::StrAppend(out, problem.fields.front(), ": ", problem.message);
        }));
  }
  const v1::Parallelism& parallelism = run.parallelism();
  const schedules::Parameters parameters = *ParametersOf(run);
  ABSL_ASSIGN_OR_RETURN(schedules::Schedule schedule, schedules::Generate(run.schedule().name(), parameters));
  schedules::Lowering lowering = schedules::Lower(schedule);
  const std::int64_t shard_ranks = parallelism.zero_stage() > 0 ? parallelism.shard_ranks() : parallelism.dp();
  return Plan{
      .run = run,
      .tp = parallelism.tp(),
      .dp = parallelism.dp(),
      .pp = parallelism.pp(),
      .world = parallelism.gpus(),
      .shard_ranks = shard_ranks,
      .chunks = parameters.chunks,
      .micro_batches = parameters.micro_batches,
      .layout = layout::Layout(parallelism.tp(), parallelism.cp(), parallelism.dp(), parallelism.pp(),
                               run.cluster().node().gpus(), run.cluster().fabric().nodes_per_leaf(), shard_ranks),
      .schedule = std::move(schedule),
      .lowering = std::move(lowering),
      .stages = StageShapes(run)};
}

}  // namespace orrery::training
