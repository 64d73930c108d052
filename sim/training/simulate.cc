#include "sim/training/simulate.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sim/network/shared_transfers.h"
#include "sim/training/model_states.h"
#include "sim/training/shared_links.h"
#include "sim/training/slow_links.h"
#include "sim/training/unused_settings.h"
#include "topology/routes.h"

namespace orrery::training {
namespace {

using engine::TimeClass;

std::size_t Index(TimeClass time_class) { return static_cast<std::size_t>(time_class); }

// The engine's world, folded where something may be alike; else each stands for itself.
engine::Folding Refine(const TrainingWorld& built) {
  if (built.refinable) return engine::Fold(built.world);
  engine::Folding same{.world = built.world, .class_of = std::vector<std::int32_t>(built.world.units.size())};
  std::iota(same.class_of.begin(), same.class_of.end(), 0);
  return same;
}

// Names for the transfers of a world, that do not depend on whether it is folded.
network::AlikeClasses NamesOf(const engine::World& world, const engine::Folding& alike) {
  if (&world != &alike.world) return {.of_unit = alike.class_of, .of_link = alike.link_class};
  network::AlikeClasses each{.of_unit = std::vector<std::int32_t>(world.units.size()),
                             .of_link = std::vector<std::int32_t>(world.link_capacities.size())};
  std::iota(each.of_unit.begin(), each.of_unit.end(), 0);
  std::iota(each.of_link.begin(), each.of_link.end(), 0);
  return each;
}

std::size_t ReplayedUnit(const engine::Folding& replayed, std::size_t built_unit) {
  return static_cast<std::size_t>(replayed.class_of[built_unit]);
}

// --- Steps of the story, in order ------------------------------------------------------------------------------------

absl::Status CountFlops(const Plan& plan, Result& result) {
  const std::string& convention = plan.run.simulation().flops_convention();
  ABSL_ASSIGN_OR_RETURN(result.model_flops, workloads::ModelFlops(plan.run, convention, false));
  ABSL_ASSIGN_OR_RETURN(result.hardware_flops, workloads::ModelFlops(plan.run, convention, true));
  for (const v1::PeakRate& peak : plan.run.cluster().accelerator().peak()) {
    if (peak.data_type() == plan.run.training().precision()) result.peak = FlopsPerSecond(peak.flops_per_second());
  }
  result.gpus = plan.world;
  result.tokens =
      static_cast<double>(plan.run.training().global_batch()) * static_cast<double>(plan.run.training().seq_len());
  return absl::OkStatus();
}

void AccountTime(const Plan& plan, const TrainingWorld& built, const engine::Folding& replayed,
                 const engine::Replay& replay, Result& result) {
  result.iteration_time = replay.window_end - replay.window_begin;
  result.first_iteration_time = replay.iteration_ends.front();
  result.window_begin = replay.window_begin;
  result.pipeline_ranks.resize(static_cast<std::size_t>(plan.pp));
  // By the units that were built: a class of alike units may span pipeline ranks.
  for (std::size_t i = 0; i < built.world.units.size(); ++i) {
    const engine::Unit& unit = built.world.units[i];
    const engine::UnitResult& account = replay.units[ReplayedUnit(replayed, i)];
    const std::int64_t pp = plan.layout.CoordinatesOf(unit.first_rank).pp;
    PipelineRankResult& rank = result.pipeline_ranks[static_cast<std::size_t>(pp)];
    rank.ranks += unit.multiplicity;
    for (std::size_t c = 0; c < engine::kTimeClasses; ++c) {
      const Int128 sum = static_cast<Int128>(account.classes[c].count()) * unit.multiplicity;
      rank.class_sums[c] += sum;
      result.class_sums[c] += sum;
    }
    const Time span = account.pipeline_last_end - account.pipeline_first_start;
    if (plan.pp > 1 && span > Time()) {
      const double bubble = static_cast<double>((span - account.pipeline_busy).count());
      result.span_bubble_fraction = std::max(result.span_bubble_fraction, bubble / static_cast<double>(span.count()));
    }
  }
}

void AccountMemory(const Plan& plan, const PricedWorld& priced, Result& result) {
  result.memory_capacity = plan.run.cluster().accelerator().memory_capacity_bytes();
  for (std::int32_t pp = 0; pp < plan.pp; ++pp) {
    PipelineRankResult& rank = result.pipeline_ranks[static_cast<std::size_t>(pp)];
    rank.pipeline_rank = pp;
    const std::vector<schedules::Action>& order = plan.schedule.order[static_cast<std::size_t>(pp)];
    std::vector<const memory::PassFootprint*> passes;
    passes.reserve(order.size());
    for (const schedules::Action& action : order) {
      const auto stage = static_cast<std::size_t>(plan.schedule.StageOf(pp, action.chunk));
      passes.push_back(&priced.footprints[stage].Of(action.kind));
    }
    rank.memory = StaticMemory(plan, pp);
    const memory::Peak peak = memory::PeakOf(passes);
    const Bytes update = UpdateTemporaries(plan, pp);
    if (update > peak.live.total()) {
      rank.memory.update = update;
      rank.peak.update = true;
    } else {
      rank.memory.activations = peak.live.activations;
      rank.memory.logits = peak.live.logits;
      const schedules::Action& moment = order[peak.pass];
      rank.peak = {.update = false,
                   .action = moment.kind,
                   .chunk = moment.chunk,
                   .micro_batch = moment.micro_batch,
                   .pass = peak.pass,
                   .operator_name = passes[peak.pass]->peak_operator,
                   .layer = passes[peak.pass]->peak_layer};
    }
    for (std::int32_t chunk = 0; chunk < plan.ChunksOf(pp); ++chunk) rank.layers += plan.Stage(pp, chunk).layers;
  }
  if (!result.Fits()) result.warnings.push_back("does not fit in device memory: timed as if it did");
}

void CollectTraces(const Plan& plan, const TrainingWorld& built, const engine::Folding& replayed,
                   const SimulateOptions& options, const engine::Replay& replay, Result& result) {
  for (const std::int64_t rank : options.traced_ranks) {
    const std::size_t unit = built.UnitOf(plan, rank);
    const auto replayed_unit = static_cast<std::int32_t>(ReplayedUnit(replayed, unit));
    const auto program = static_cast<std::size_t>(built.world.units[unit].program);
    TracedRank traced{.rank = rank,
                      .pipeline_rank = static_cast<std::int32_t>(plan.layout.CoordinatesOf(rank).pp),
                      .spans = {},
                      .program = &built.world.programs[program],
                      .labels = &built.labels[program]};
    for (const engine::TracedSpan& span : replay.trace) {
      if (span.unit == replayed_unit) traced.spans.push_back(span);
    }
    result.traces.push_back(std::move(traced));
  }
}

engine::ReplayOptions OptionsOf(const Plan& plan, const TrainingWorld& built, const engine::Folding& replayed,
                                const SimulateOptions& options) {
  engine::ReplayOptions replay;
  replay.engine = plan.run.simulation().engine() == v1::EVENT_QUEUE ? engine::EngineKind::kEventQueue
                                                                    : engine::EngineKind::kWorklist;
  replay.iterations = static_cast<int>(plan.run.simulation().iterations());
  std::set<std::int32_t> traced;
  for (const std::int64_t rank : options.traced_ranks) {
    traced.insert(static_cast<std::int32_t>(ReplayedUnit(replayed, built.UnitOf(plan, rank))));
  }
  replay.traced_units.assign(traced.begin(), traced.end());
  return replay;
}

StageFootprints FootprintsOf(const PricedChunk& chunk) {
  return {.forward = chunk.forward.footprint,
          .backward = chunk.backward.footprint,
          .input_gradient = chunk.input_gradient.footprint,
          .weight_gradient = chunk.weight_gradient.footprint};
}

}  // namespace

double PipelineRankResult::SecondsOf(TimeClass time_class) const {
  return static_cast<double>(class_sums[Index(time_class)]) / static_cast<double>(ranks) / kPicosecondsPerSecond;
}

double Result::Mfu() const {
  return model_flops.count() / (SecondsFromTime(iteration_time) * static_cast<double>(gpus) * peak.count());
}

double Result::Hfu() const {
  return hardware_flops.count() / (SecondsFromTime(iteration_time) * static_cast<double>(gpus) * peak.count());
}

double Result::Fraction(TimeClass time_class) const {
  return static_cast<double>(class_sums[Index(time_class)]) /
         (static_cast<double>(iteration_time.count()) * static_cast<double>(gpus));
}

double Result::ExposedCommunicationFraction() const {
  double sum = 0;
  for (const TimeClass exposed : {TimeClass::kExposedTp, TimeClass::kExposedCp, TimeClass::kExposedEp,
                                  TimeClass::kExposedPp, TimeClass::kExposedDp}) {
    sum += Fraction(exposed);
  }
  return sum;
}

bool Result::Fits() const {
  return std::all_of(pipeline_ranks.begin(), pipeline_ranks.end(), [&](const PipelineRankResult& rank) {
    return rank.memory.DevicePeak().count() <= memory_capacity;
  });
}

absl::StatusOr<std::shared_ptr<const PricedWorld>> PriceWorld(const Plan& plan) {
  const v1::Accelerator& accelerator = plan.run.cluster().accelerator();
  const kernels::KernelPrices kernels(accelerator, plan.run.training().precision());
  const collectives::CollectivePrices collectives = CollectivePricesOf(plan);
  SpecPricer pricer(plan, kernels, collectives);
  auto priced = std::make_shared<PricedWorld>();
  std::optional<PerturbedCluster> cluster;
  if (plan.shares_links()) {
    std::vector<spec::FieldProblem> problems;
    cluster = Perturb(plan.run, &problems);
    if (!cluster.has_value()) return Refusal(problems);
  }
  const bool tensor_links_shared = cluster.has_value() && TensorLinksShared(plan, *cluster);
  ABSL_ASSIGN_OR_RETURN(priced->built, BuildWorld(plan, pricer, tensor_links_shared));
  ABSL_RETURN_IF_ERROR(collectives.status());
  if (cluster.has_value()) {
    const auto kept = std::make_shared<const topology::Topology>(std::move(cluster->topology));
    ABSL_ASSIGN_OR_RETURN(const topology::Routes routes, topology::Routes::Build(*kept));
    priced->warnings = ShareLinks(plan, routes, cluster->slowed, &priced->built);
    priced->topology = kept;
  }
  for (const PricedChunk* stage : pricer.nominal_stages()) priced->footprints.push_back(FootprintsOf(*stage));
  return priced;
}

namespace {

// A transfer that outlasts the clock does so because of what the run says of its links.
absl::Status OfSlowLinks(const v1::Run& run, const absl::Status& status) {
  if (!absl::IsResourceExhausted(status) || run.perturbation().link_size() == 0) return status;
  return absl::InvalidArgumentError(
      "perturbation.link: leaves so little of links that a transfer over them takes more than the 106 days that the "
      "clock can say; allowed: a larger capacity, or 0 for a dead link");
}

}  // namespace

absl::StatusOr<Result> Simulate(const v1::Run& run, const SimulateOptions& options) {
  ABSL_ASSIGN_OR_RETURN(Plan made, MakePlan(run, options.prices_alone));
  const auto plan = std::make_shared<const Plan>(std::move(made));
  Result result;
  result.plan = plan;
  ABSL_RETURN_IF_ERROR(CountFlops(*plan, result));
  ABSL_ASSIGN_OR_RETURN(const std::shared_ptr<const PricedWorld> world, PriceWorld(*plan));
  const TrainingWorld& built = world->built;
  const engine::Folding replayed = Refine(built);
  engine::ReplayOptions replay_options = OptionsOf(*plan, built, replayed, options);
  std::optional<network::SharedTransfers> transfers;
  const bool reports_links = plan->shares_links() && options.report_links > 0;
  // What is alike is reported as one, whether it was replayed as one or not.
  std::optional<engine::Folding> classes;
  if (reports_links && !built.refinable) classes = engine::Fold(built.world);
  const engine::Folding& alike = classes.has_value() ? *classes : replayed;
  if (plan->shares_links()) {
    std::optional<network::AlikeClasses> names;
    if (reports_links) names = NamesOf(replayed.world, alike);
    ABSL_ASSIGN_OR_RETURN(transfers, network::SharedTransfers::Make(replayed.world, std::move(names)));
    replay_options.transfers = &*transfers;
    replay_options.whole_iterations = reports_links;
  }
  const absl::StatusOr<engine::Replay> outcome = engine::Run(replayed.world, replay_options);
  if (!outcome.ok()) return OfSlowLinks(run, outcome.status());
  const engine::Replay& replay = *outcome;
  result.world = world;
  if (transfers.has_value()) {
    result.links = reports_links
                       ? BusiestLinks(built, replayed.world, alike, *world->topology, *transfers, options.report_links)
                       : CountTransfers(*transfers);
  }
  AccountTime(*plan, built, replayed, replay, result);
  AccountMemory(*plan, *world, result);
  result.warnings.insert(result.warnings.end(), world->warnings.begin(), world->warnings.end());
  for (std::string& unused : UnusedSettings(run)) result.warnings.push_back(std::move(unused));
  CollectTraces(*plan, built, replayed, options, replay, result);
  result.timeline_hash = replay.timeline_hash;
  result.ranks_simulated = static_cast<std::int64_t>(replayed.world.units.size());
  result.tasks = replay.tasks;
  result.events = replay.events;
  result.iterations_replayed = replay.iterations_evaluated;
  result.periodic = replay.periodic;
  return result;
}

}  // namespace orrery::training
