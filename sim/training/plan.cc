#include "sim/training/plan.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "sim/training/planning_costs.h"
#include "sim/training/run_schedule.h"
#include "topology/node_design.h"
#include "topology/problems.h"

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

Plan Assemble(const v1::Run& run, bool prices_alone, schedules::Schedule schedule) {
  const v1::Parallelism& parallelism = run.parallelism();
  const std::int64_t shard_ranks = parallelism.zero_stage() > 0 ? parallelism.shard_ranks() : parallelism.dp();
  const std::int32_t chunks = schedule.chunks();
  const std::int32_t micro_batches = schedule.micro_batches;
  Plan plan{.run = run,
            .tp = parallelism.tp(),
            .dp = parallelism.dp(),
            .pp = parallelism.pp(),
            .world = parallelism.gpus(),
            .shard_ranks = shard_ranks,
            .chunks = chunks,
            .micro_batches = micro_batches,
            .layout = layout::Layout(parallelism.tp(), parallelism.cp(), parallelism.dp(), parallelism.pp(),
                                     run.cluster().node().gpus(), run.cluster().fabric().nodes_per_leaf(), shard_ranks),
            .schedule = std::move(schedule),
            .lowering = {},
            .links = {},
            .stages = StageShapes(run),
            .prices_alone = prices_alone || run.simulation().network() == v1::FLOW};
  plan.lowering = schedules::Lower(plan.schedule);
  plan.links = LinksOf(plan.lowering);
  return plan;
}

}  // namespace

bool Plan::Without(v1::Cause cause) const {
  const auto& without = run.simulation().without();
  return std::find(without.begin(), without.end(), cause) != without.end();
}

v1::MessageMode Plan::message_mode() const { return MessageModeOf(run, schedule); }

bool Plan::norm_barrier() const {
  if (!run.software().norm_barrier() || world == 1) return false;
  return !(run.software().post_validation() && schedules::SplitsBackward(schedule));
}

std::int32_t Plan::MicroBatchesOf(std::int32_t pipeline_rank, std::int32_t chunk) const {
  if (schedule.pipeline_of.empty()) return schedule.micro_batches;
  const std::int32_t pipeline = schedule.placement.PipelineOf(pipeline_rank, chunk);
  return static_cast<std::int32_t>(std::count(schedule.pipeline_of.begin(), schedule.pipeline_of.end(), pipeline));
}

std::vector<std::int32_t> Plan::HoldersOf(std::int32_t stage) const {
  std::vector<std::int32_t> holders;
  for (std::int32_t copy = 0; copy < copies(); ++copy) holders.push_back(schedule.placement.PlaceOf(stage, copy).rank);
  std::sort(holders.begin(), holders.end());
  holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
  return holders;
}

std::vector<std::int32_t> Plan::EmbeddingRanks() const {
  if (pp == 1 || !run.model().tied_embeddings()) return {};
  const std::vector<std::int32_t> first = HoldersOf(0);
  const std::vector<std::int32_t> last = HoldersOf(schedule.stages() - 1);
  if (first == last) return {};
  std::vector<std::int32_t> either;
  std::set_union(first.begin(), first.end(), last.begin(), last.end(), std::back_inserter(either));
  return either;
}

std::vector<spec::FieldProblem> ProblemsOf(const v1::Run& run) {
  std::vector<spec::FieldProblem> problems = ScheduleProblems(run);
  // A run whose costs are given need not say what its nodes have.
  const v1::Node& node = run.cluster().node();
  const absl::Status sharing = node.has_nics() ? topology::CheckSharing("cluster.node", node) : absl::OkStatus();
  for (spec::FieldProblem& problem : topology::ProblemsOf(sharing, "cluster")) problems.push_back(std::move(problem));
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

absl::Status Refusal(const std::vector<spec::FieldProblem>& problems) {
  return absl::InvalidArgumentError(
      absl::StrJoin(problems, "\n", [](std::string* out, const spec::FieldProblem& problem) {
        absl::StrAppend(out, problem.fields.front(), ": ", problem.message);
      }));
}

absl::StatusOr<Plan> MakePlan(const v1::Run& run, bool prices_alone) {
  const std::vector<spec::FieldProblem> problems = ProblemsOf(run);
  if (!problems.empty()) return Refusal(problems);
  ABSL_ASSIGN_OR_RETURN(schedules::Schedule schedule, ScheduleOf(run));
  if (!IsPlanned(run)) return Assemble(run, prices_alone, std::move(schedule));
  // With unit costs so far: only its placement counts.
  ABSL_ASSIGN_OR_RETURN(const schedules::PlanningCosts planning,
                        PlanningCostsOf(Assemble(run, prices_alone, std::move(schedule))));
  ABSL_ASSIGN_OR_RETURN(schedule, ScheduleOf(run, planning));
  return Assemble(run, prices_alone, std::move(schedule));
}

}  // namespace orrery::training
