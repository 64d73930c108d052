#include "sim/pipeline/optimizer/optimize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sim/pipeline/optimizer/beam.h"
#include "sim/pipeline/optimizer/bound.h"
#include "sim/pipeline/optimizer/local_search.h"
#include "sim/pipeline/optimizer/portfolio.h"
#include "sim/pipeline/optimizer/state.h"

namespace orrery::pipeline {
namespace optimizer {
namespace {

constexpr std::int64_t kInfinity = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMillion = 1'000'000;
// Passes in all, as schedules::CheckCommon allows. Keeps 16 bits enough for a micro-batch and a stage.
constexpr std::int64_t kMostPasses = std::int64_t{1} << 20;
constexpr std::int64_t kMost16Bits = std::numeric_limits<std::uint16_t>::max() / 4;
// Of all costs together, summed over the ranks once more; and of all memory.
constexpr std::int64_t kMostTotal = std::int64_t{1} << 60;

absl::Status CheckCosts(const Cut& cut, std::int32_t micro_batches) {
  const auto stages = static_cast<std::size_t>(cut.placement.stages());
  if (cut.costs.stages.size() != 1 && cut.costs.stages.size() != stages) {
    return absl::InvalidArgumentError(
        absl::StrCat("costs for ", cut.costs.stages.size(), " stages, allowed: 1 or ", stages));
  }
  if (cut.costs.block.has_value()) {
    return absl::InvalidArgumentError("a cost of blocks, allowed: none (orders are made of F, I and W)");
  }
  const std::int64_t most = MostCost(cut.placement, micro_batches);
  const auto allowed = [&](std::int64_t cost) { return cost >= 0 && cost <= most; };
  const auto error = [&](const char* name, std::int64_t cost) {
    return absl::OutOfRangeError(absl::StrCat(name, " = ", cost, ", allowed: 0 to ", most));
  };
  for (const schedules::PassCosts& cost : cut.costs.stages) {
    if (!allowed(cost.forward)) return error("F", cost.forward);
    if (!allowed(cost.input_gradient)) return error("I", cost.input_gradient);
    if (!allowed(cost.weight_gradient)) return error("W", cost.weight_gradient);
  }
  if (!allowed(cut.costs.latency)) return error("latency", cut.costs.latency);
  if (!allowed(cut.costs.memory.forward)) return error("memory of F", cut.costs.memory.forward);
  if (cut.costs.memory.weight < 0 || cut.costs.memory.weight > cut.costs.memory.forward) {
    return absl::InvalidArgumentError(absl::StrCat("memory until W = ", cut.costs.memory.weight,
                                                   ", allowed: 0 to that of F, ", cut.costs.memory.forward));
  }
  return absl::OkStatus();
}

absl::Status CheckCut(const Cut& cut, std::int32_t micro_batches) {
  const schedules::Placement& placement = cut.placement;
  const std::int32_t chunks = placement.stages() / placement.ranks();
  if (placement.pipelines() != 1 || chunks < 1 ||
      !(placement == schedules::Placement::Loop(placement.ranks(), chunks) ||
        placement == schedules::Placement::Wave(placement.ranks(), chunks))) {
    return absl::InvalidArgumentError("a placement that is neither a loop nor a wave");
  }
  if (micro_batches < 1 || micro_batches > kMost16Bits || placement.stages() > kMost16Bits ||
      std::int64_t{3} * micro_batches * placement.stages() > kMostPasses) {
    return absl::InvalidArgumentError(absl::StrCat(micro_batches, " micro-batches on ", placement.stages(),
                                                   " stages, allowed: 1 to ", kMost16Bits, " of each and ", kMostPasses,
                                                   " passes (3 x micro-batches x stages)"));
  }
  return CheckCosts(cut, micro_batches);
}

// The search in one cut. `best` of all cuts is shared.
class CutSearch {
 public:
  CutSearch(const OptimizeRequest& request, std::size_t cut)
      : request_(request),
        cut_(request.cuts[cut]),
        index_(cut),
        model_(BuildModel(cut_.placement, request.micro_batches, cut_.costs.stages, cut_.costs.latency,
                          cut_.costs.memory, request.memory_limit, request.objective)),
        lower_bound_(Bound(model_).Of(State(model_)).bound) {}

  // Lists the published orders and takes the best as the start.
  void Begin(Optimized& found, std::int64_t& best, Sequences& order) {
    start_ = OneAtATime(model_);
    for (Start& start : PublishedOrders(model_, cut_.placement, cut_.costs)) {
      found.published.push_back({start.family, index_, start.value, start.peak_memory});
      if (start.value < start_.value) start_ = std::move(start);
    }
    Offer(start_.value, start_.sequences, start_.family, found, best, order);
  }

  void Improve(std::int64_t effort, Optimized& found, std::int64_t& best, Sequences& order) {
    std::int64_t left = effort;
    reported_ = found.effort / kMillion;
    Widen(left / 2, left, found, best, order);
    if (found.stopped || lower_bound_ >= best) return;
    const LocalSearchResult local = LocalSearch(model_, start_.sequences, lower_bound_, left / 2, PulseOf(found));
    left -= local.work;
    found.effort += local.work;
    found.stopped |= local.stopped;
    if (local.value < start_.value) start_ = {"search", local.sequences, local.value, 0};
    Offer(local.value, local.sequences, "search", found, best, order);
    if (!found.stopped && lower_bound_ < best) Widen(left, left, found, best, order);
  }

  std::int64_t lower_bound() const { return lower_bound_; }

 private:
  void Offer(std::int64_t value, const Sequences& sequences, const std::string& origin, Optimized& found,
             std::int64_t& best, Sequences& order) const {
    if (value >= best) return;
    best = value;
    order = sequences;
    found.origin = origin;
    found.cut = index_;
  }

  // Beam searches of growing width while they fit in `budget`.
  void Widen(std::int64_t budget, std::int64_t& left, Optimized& found, std::int64_t& best, Sequences& order) {
    constexpr std::size_t kWidest = 1 << 17;
    constexpr std::size_t kGrowth = 4;
    // States of a layer times their children, two or so, times passes left of each.
    const auto work = [&] { return static_cast<double>(width_) * std::pow(static_cast<double>(model_.passes()), 2); };
    while (width_ > 1 && work() > static_cast<double>(budget)) width_ /= kGrowth;
    if (work() > static_cast<double>(budget)) return;
    while (budget > 0 && width_ <= kWidest && lower_bound_ < best) {
      const BeamResult result = BeamSearch(model_, best, {.width = width_, .work = budget, .pulse = PulseOf(found)});
      budget -= result.work;
      left -= result.work;
      found.effort += result.work;
      lower_bound_ = std::max(lower_bound_, std::min(best, result.lower_bound));
      if (result.sequences.has_value()) {
        start_ = {"search", *result.sequences, result.value, 0};
        Offer(result.value, *result.sequences, "search", found, best, order);
      }
      if (request_.stop && request_.stop()) {
        found.stopped = true;
        return;
      }
      // A wider one would not end either.
      if (result.unfinished || static_cast<std::int64_t>(kGrowth) * result.work > budget) return;
      width_ *= kGrowth;
    }
  }

  // Of a search that begins now.
  Pulse PulseOf(const Optimized& found) {
    return [this, before = found.effort](std::int64_t work) { return Report(before + work); };
  }

  bool Report(std::int64_t effort) {
    const std::int64_t millions = effort / kMillion;
    if (request_.progress != nullptr) request_.progress->Advance(millions - std::exchange(reported_, millions));
    return request_.stop && request_.stop();
  }

  const OptimizeRequest& request_;
  const Cut& cut_;
  std::size_t index_;
  Model model_;
  std::int64_t lower_bound_;
  Start start_;  // best of this cut
  std::size_t width_ = 16;
  std::int64_t reported_ = 0;  // effort, in millions
};

}  // namespace
}  // namespace optimizer

std::int64_t MostCost(const schedules::Placement& placement, std::int32_t micro_batches) {
  return optimizer::kMostTotal / (4 * std::int64_t{placement.ranks()} * placement.stages() * micro_batches);
}

absl::StatusOr<Optimized> Optimize(const OptimizeRequest& request) {
  if (request.cuts.empty()) return absl::InvalidArgumentError("no cut to search in");
  std::vector<std::size_t> fitting;
  std::int64_t least = optimizer::kInfinity;
  for (std::size_t i = 0; i < request.cuts.size(); ++i) {
    const Cut& cut = request.cuts[i];
    ABSL_RETURN_IF_ERROR(optimizer::CheckCut(cut, request.micro_batches));
    // A micro-batch has its activations on every stage of a rank before its first I there.
    const std::int64_t needed = cut.costs.memory.forward * cut.placement.chunks();
    least = std::min(least, needed);
    if (request.memory_limit == 0 || needed <= request.memory_limit) fitting.push_back(i);
  }
  if (request.memory_limit < 0 || request.effort < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory limit = ", request.memory_limit, ", effort = ", request.effort, ", allowed: at least 0"));
  }
  if (fitting.empty()) {
    return absl::ResourceExhaustedError(absl::StrCat("memory limit = ", request.memory_limit,
                                                     ", but one micro-batch alone holds ", least, " on a rank"));
  }
  Optimized found;
  std::int64_t best = optimizer::kInfinity;
  optimizer::Sequences order;
  std::vector<optimizer::CutSearch> searches;
  searches.reserve(fitting.size());
  for (const std::size_t cut : fitting) searches.emplace_back(request, cut).Begin(found, best, order);
  if (request.progress != nullptr)
    request.progress->Start("search, million passes", request.effort / optimizer::kMillion);
  for (optimizer::CutSearch& search : searches) {
    search.Improve(request.effort / static_cast<std::int64_t>(searches.size()), found, best, order);
  }
  std::sort(found.published.begin(), found.published.end(), [](const Published& a, const Published& b) {
    return std::tie(a.value, a.cut, a.family) < std::tie(b.value, b.cut, b.family);
  });
  found.lower_bound = best;
  for (const optimizer::CutSearch& search : searches) {
    found.lower_bound = std::min(found.lower_bound, search.lower_bound());
  }
  found.schedule = optimizer::ScheduleOf(order, request.cuts[found.cut].placement, request.micro_batches);
  ABSL_ASSIGN_OR_RETURN(found.evaluation, Evaluate(found.schedule, request.cuts[found.cut].costs));
  found.value = request.objective == Objective::kMakespan ? found.evaluation.makespan : found.evaluation.longest_span;
  return found;
}

}  // namespace orrery::pipeline
