#include "sim/pipeline/optimizer/portfolio.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "schedules/family.h"
#include "sim/pipeline/optimizer/local_search.h"

namespace orrery::pipeline::optimizer {
namespace {

// Peak of the rank that holds most, or nullopt where it exceeds the limit.
std::optional<std::int64_t> PeakWithin(const Model& model, const Sequences& sequences) {
  std::int64_t peak = 0;
  for (const std::vector<Step>& sequence : sequences) {
    const std::optional<std::int64_t> of_rank = PeakMemory(model, sequence);
    if (!of_rank.has_value() || *of_rank > model.memory_limit) return std::nullopt;
    peak = std::max(peak, *of_rank);
  }
  return peak;
}

void Consider(const Model& model, Timer& timer, const schedules::Family& family,
              const schedules::Parameters& parameters, const schedules::Placement& placement,
              std::optional<Start>& best) {
  if (!family.check(parameters).ok()) return;
  const absl::StatusOr<schedules::Schedule> schedule = family.generate(parameters);
  if (!schedule.ok() || !(schedule->placement == placement) || schedule->slices != 1) return;
  Start start{std::string(family.name), SequencesOf(*schedule), 0, 0};
  const std::optional<std::int64_t> peak = PeakWithin(model, start.sequences);
  if (!peak.has_value()) return;
  const std::optional<std::int64_t> value = timer.Run(start.sequences);
  if (!value.has_value()) return;
  start.value = *value;
  start.peak_memory = *peak;
  if (!best.has_value() || start.value < best->value) best = std::move(start);
}

}  // namespace

std::vector<Start> PublishedOrders(const Model& model, const schedules::Placement& placement, const Costs& costs) {
  Timer timer(model);
  std::vector<Start> starts;
  schedules::Parameters parameters;
  parameters.ranks = static_cast<std::int32_t>(model.ranks);
  parameters.chunks = static_cast<std::int32_t>(model.stages / model.ranks);
  parameters.micro_batches = static_cast<std::int32_t>(model.micro_batches);
  parameters.planning.stages = costs.stages;
  parameters.planning.latency = costs.latency;
  parameters.planning.memory = costs.memory;
  std::vector<const schedules::Family*> families;
  for (const schedules::Family& family : schedules::Families()) {
    if (family.fixed_chunks == 0 || family.fixed_chunks == parameters.chunks) families.push_back(&family);
  }
  // Those that take any number of chunks come last: with one they are others under another name.
  std::sort(families.begin(), families.end(), [](const schedules::Family* a, const schedules::Family* b) {
    return std::pair(a->fixed_chunks == 0, a->name) < std::pair(b->fixed_chunks == 0, b->name);
  });
  const auto is_listed = [&](const Start& start) {
    return std::any_of(starts.begin(), starts.end(), [&](const Start& s) { return s.sequences == start.sequences; });
  };
  for (const schedules::Family* const candidate : families) {
    const schedules::Family& family = *candidate;
    std::optional<Start> best;
    // 0: the limit that the family has of its own (ZB-1p, ZB-2p).
    for (const std::int64_t limit : {std::int64_t{0}, model.memory_limit}) {
      parameters.planning.memory_limit = limit;
      Consider(model, timer, family, parameters, placement, best);
      if (!family.automatic) break;
    }
    const bool any_chunks = family.fixed_chunks == 0;
    if (best.has_value() && !(any_chunks && is_listed(*best))) starts.push_back(*std::move(best));
  }
  std::sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) { return a.family < b.family; });
  return starts;
}

Start OneAtATime(const Model& model) {
  Start start{"one at a time", Sequences(model.ranks), 0, 0};
  for (std::size_t rank = 0; rank < model.ranks; ++rank) {
    const std::vector<std::size_t>& stages = model.stages_of[rank];
    for (std::size_t k = 0; k < model.micro_batches; ++k) {
      for (const std::size_t s : stages) start.sequences[rank].push_back({static_cast<std::uint16_t>(s), kF});
      for (std::size_t i = stages.size(); i-- > 0;) {
        start.sequences[rank].push_back({static_cast<std::uint16_t>(stages[i]), kI});
        start.sequences[rank].push_back({static_cast<std::uint16_t>(stages[i]), kW});
      }
    }
    start.peak_memory = model.memory.forward * static_cast<std::int64_t>(stages.size());
  }
  start.value = *Timer(model).Run(start.sequences);
  return start;
}

}  // namespace orrery::pipeline::optimizer
