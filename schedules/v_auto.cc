// Adaptive V: chunks in a V, a building block searched for the planned costs and the memory limit.
//
// The passes of a micro-batch are uniform along the ranks (v_building_block.h): from one rank to the next F0 and I1
// take d slots, F1 and I0 one. A block is thus the slots of F1, I1, I0 after F0 on the first rank, modulo the period,
// and d, of which there may be two, the larger on the ranks before a change point. Every block is repeated and
// tightened, and its F's and I's are timed with the planned costs; W's as the block has them, or only where memory
// demands them or the rank would wait. The shortest span within the limit is kept.
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "schedules/families.h"
#include "schedules/planner.h"
#include "schedules/v_building_block.h"
#include "schedules/v_tighten.h"
#include "schedules/v_timing.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "v-auto";
constexpr ActionKind kF = ActionKind::kForward;
constexpr std::int32_t kPeriod = 6;  // of a building block
constexpr std::int32_t kLongestHop = 5;
constexpr std::int32_t kMostChanges = 16;  // change points that are tried, spread evenly

// Passes that the search may place, about 100 ms: an equal share for every peak of blocks, whatever the limit, so that
// more memory only adds orders. Beyond about 30,000 passes in all, where the share is less than one block, the blocks
// with the highest peaks come first and the search may end before the others.
constexpr std::int64_t kMostPasses = 2'000'000;
// And so many from one limit down to smaller ones.
constexpr std::int64_t kMostPassesDown = kMostPasses / 16;
// What is done with a block and with a guide takes as long as placing all passes so many times.
constexpr std::int64_t kPlansPerBlock = 15;
constexpr std::int64_t kPlansPerGuide = 24;
// A pass placed by events against one placed in order.
constexpr std::int64_t kCostOfGuidedPass = 8;

constexpr std::array<OrderRules, 5> kOrderRules = {
    {{true, false, false}, {false, false, false}, {false, true, false}, {false, false, true}, {false, true, true}}};
constexpr std::array<GuidedRules, 4> kGuidedRules = {{{false, false}, {false, true}, {true, false}, {true, true}}};

absl::Status Check(const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckBuildingBlock(kName, parameters));
  return CheckPlanning(kName, parameters, 2 * parameters.ranks);
}

// First slot after `slot` that is `residue` modulo the period.
std::int32_t After(std::int32_t slot, std::int32_t residue) {
  const std::int32_t ahead = ((residue - slot - 1) % kPeriod + kPeriod) % kPeriod;
  return slot + 1 + ahead;
}

struct Pattern {
  // Slots on the first rank, modulo the period; F0 is in slot 0.
  std::int32_t f1 = 0;
  std::int32_t i1 = 0;
  std::int32_t i0 = 0;
  // Slots that F0 and I1 take to the next rank, on the ranks before `change` and on the others.
  std::int32_t hop = 1;
  std::int32_t later_hop = 1;
  std::int32_t change = 1;
};

VBuildingBlock BlockOf(const Pattern& pattern, std::int32_t ranks) {
  VBuildingBlock block(static_cast<std::size_t>(ranks));
  std::int32_t hops = 0;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    block[static_cast<std::size_t>(rank)] = {hops, 0, hops, 0};
    if (rank + 1 < ranks) hops += rank < pattern.change ? pattern.hop : pattern.later_hop;
  }
  const std::int32_t last = ranks - 1;
  const std::int32_t f1 = After(hops, pattern.f1 - last);
  const std::int32_t i1 = After(f1 + last, pattern.i1);
  const std::int32_t i0 = After(i1 + hops, pattern.i0 - last);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    std::array<std::int32_t, 4>& slots = block[static_cast<std::size_t>(rank)];
    slots = {slots[0], f1 + last - rank, i1 + slots[2], i0 + last - rank};
  }
  return block;
}

// Most chunk activations of a rank once the block repeats, or nothing where two passes meet.
std::optional<std::int32_t> PeakOf(const std::array<std::int32_t, 4>& slots) {
  std::array<bool, kPeriod> taken = {};
  for (const std::int32_t slot : slots) {
    bool& place = taken[static_cast<std::size_t>(slot % kPeriod)];
    if (place) return std::nullopt;
    place = true;
  }
  // W's take the next free slots after their I's, chunk 1 first.
  const auto weight = [&](std::int32_t input) {
    std::int32_t slot = input + 1;
    while (taken[static_cast<std::size_t>(slot % kPeriod)]) ++slot;
    taken[static_cast<std::size_t>(slot % kPeriod)] = true;
    return slot;
  };
  const std::int32_t w1 = weight(slots[2]);
  const std::int32_t w0 = weight(slots[3]);
  std::int32_t peak = 0;
  for (std::int32_t slot = w0 + w1; slot < w0 + w1 + kPeriod; ++slot) {
    const auto live = [&](std::int32_t from, std::int32_t to) {
      return (slot - from) / kPeriod - (slot - to) / kPeriod;
    };
    peak = std::max(peak, live(slots[0], w0) + live(slots[1], w1));
  }
  return peak;
}

struct Candidate {
  std::int32_t peak = 0;  // chunk activations
  std::int32_t length = 0;
  VBuildingBlock block;

  // The shortest of those with a peak first.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return std::tie(a.peak, a.length, a.block) < std::tie(b.peak, b.length, b.block);
  }
};

std::set<Candidate> AllBlocks(std::int32_t ranks) {
  std::set<Candidate> blocks;
  const auto add = [&](const Pattern& pattern) {
    Candidate candidate{0, 0, BlockOf(pattern, ranks)};
    for (const std::array<std::int32_t, 4>& slots : candidate.block) {
      const std::optional<std::int32_t> peak = PeakOf(slots);
      if (!peak) return;
      candidate.peak = std::max(candidate.peak, *peak);
    }
    candidate.length = candidate.block.front()[3];
    blocks.insert(std::move(candidate));
  };
  const std::int32_t step = (ranks + kMostChanges - 1) / kMostChanges;
  for (std::int32_t f1 = 1; f1 < kPeriod; ++f1) {
    for (std::int32_t i1 = 1; i1 < kPeriod; ++i1) {
      for (std::int32_t i0 = 1; i0 < kPeriod; ++i0) {
        if (f1 == i1 || f1 == i0 || i1 == i0) continue;
        for (std::int32_t hop = 1; hop <= kLongestHop; ++hop) {
          for (std::int32_t later = 1; later <= hop; ++later) {
            for (std::int32_t change = 1; change < std::max(ranks, 2); change += step) {
              add({f1, i1, i0, hop, later, change});
            }
          }
        }
      }
    }
  }
  return blocks;
}

class Search {
 public:
  Search(const Parameters& parameters, std::int64_t limit)
      : parameters_(parameters), placement_(Placement::Wave(parameters.ranks, 2)), limit_(limit) {}

  Plan Run() {
    Explore();
    return *std::move(best_);
  }

 private:
  void Explore() {
    const std::int64_t chunk = parameters_.planning.memory.forward;
    const std::int64_t chunks = chunk == 0 ? kNever : limit_ / chunk;
    const bool small = kPlansPerGuide * SizeOfPlan() <= kMostPasses / 8;
    const Schedule one_by_one = OneByOne();
    if (chunks >= std::int64_t{2} * parameters_.ranks) TryGreedy(small);
    if (small) {
      TryGuide(one_by_one);
      TryOrder(one_by_one);
    }
    TryBlocks(chunks);
    if (!small && !best_) {
      Descend([&](Plan& plan) { return PlaceGuided(one_by_one, {true, true}, plan); }, kCostOfGuidedPass);
    }
  }

  void TryBlocks(std::int64_t chunks) {
    const std::set<Candidate> blocks = AllBlocks(parameters_.ranks);
    std::map<std::int32_t, std::vector<const Candidate*>> by_peak;
    for (const Candidate& candidate : blocks) by_peak[PeakHere(candidate)].push_back(&candidate);
    const auto peaks = static_cast<std::int64_t>(by_peak.size());
    const auto share =
        static_cast<std::size_t>(std::max<std::int64_t>(1, kMostPasses / (kPlansPerBlock * SizeOfRepeated()) / peaks));
    for (auto it = by_peak.rbegin(); it != by_peak.rend(); ++it) {
      if (it->first > chunks) continue;
      for (std::size_t i = 0; i < std::min(share, it->second.size()); ++i) {
        if (placed_ >= kMostPasses) return;
        TryBlock(it->second[i]->block);
      }
    }
  }

  void TryBlock(const VBuildingBlock& block) {
    placed_ += 2 * SizeOfRepeated();
    const std::optional<Schedule> rebuilt = RebuildEnds(block, parameters_.micro_batches);
    if (rebuilt) TryOrder(*rebuilt);
    if (rebuilt && placed_ >= kMostPasses) return;
    placed_ += 3 * SizeOfRepeated();
    TryOrder(RepeatBuildingBlock(block, parameters_.micro_batches));
  }

  // A block is as long as the pipeline is deep, however few micro-batches there are.
  std::int64_t SizeOfRepeated() const {
    return std::int64_t{6} * parameters_.ranks * std::max(parameters_.ranks, parameters_.micro_batches);
  }
  std::int64_t SizeOfPlan() const { return std::int64_t{6} * parameters_.ranks * parameters_.micro_batches; }

  // A rank never holds more than all micro-batches.
  std::int32_t PeakHere(const Candidate& candidate) const {
    return static_cast<std::int32_t>(
        std::min<std::int64_t>(candidate.peak, std::int64_t{2} * parameters_.micro_batches));
  }

  // One micro-batch after the other: needs two chunk activations.
  Schedule OneByOne() const {
    Schedule schedule{placement_, parameters_.micro_batches, {}};
    std::vector<Action> order;
    for (std::int32_t k = 0; k < parameters_.micro_batches; ++k) {
      for (const ActionKind kind : {kF, ActionKind::kInputGradient}) {
        for (const std::int32_t chunk : {0, 1}) order.push_back({kind, kind == kF ? chunk : 1 - chunk, k});
      }
    }
    schedule.order.assign(static_cast<std::size_t>(parameters_.ranks), order);
    return schedule;
  }

  void TryGreedy(bool as_guide) {
    Parameters parameters = parameters_;
    parameters.planning.memory_limit = limit_;
    const absl::StatusOr<Schedule> schedule = kZbVGreedy.generate(parameters);
    placed_ += 8 * SizeOfPlan();
    if (!schedule.ok()) return;
    TryOrder(*schedule);
    if (as_guide) TryGuide(*schedule);
  }

  void TryOrder(const Schedule& schedule) {
    for (const OrderRules& rules : kOrderRules) {
      Descend([&](Plan& plan) { return PlaceInOrder(schedule, rules, plan); });
    }
  }

  void TryGuide(const Schedule& schedule) {
    for (const GuidedRules& rules : kGuidedRules) {
      Descend([&](Plan& plan) { return PlaceGuided(schedule, rules, plan); }, kCostOfGuidedPass);
    }
  }

  // At the limit, and since it decides what goes when, at all smaller ones: limits between a plan's tight one and its
  // own give the same plan. So more memory does not mean a longer span, but where the guide itself or the number of
  // blocks that are tried depends on the limit.
  template <typename Place>
  void Descend(const Place& place, std::int64_t cost_of_pass = 1) {
    std::int64_t spent = 0;
    for (std::int64_t limit = limit_; IsWorthwhile(limit) && (!best_ || spent < kMostPassesDown);) {
      Plan plan(placement_, parameters_, limit, best_ ? best_->LongestSpan() : kNever);
      const bool better = place(plan);
      spent += cost_of_pass * plan.Placed();
      if (!better && !plan.Hopeless()) break;
      limit = plan.TightLimit() - 1;
      if (better) best_ = std::move(plan);
    }
    placed_ += spent;
  }

  bool IsWorthwhile(std::int64_t limit) const {
    return limit >= 2 * parameters_.planning.memory.forward &&
           !(best_ && RoundTripBound(placement_, parameters_, limit) >= best_->LongestSpan());
  }

  const Parameters& parameters_;
  const Placement placement_;
  const std::int64_t limit_;
  std::optional<Plan> best_;
  std::int64_t placed_ = 0;
};

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int64_t limit = MemoryLimit(parameters, kNever);
  const std::int64_t smallest = 2 * parameters.planning.memory.forward;
  if (limit < smallest) {
    return TooLittleMemory(kName, parameters, smallest, "both chunks of one micro-batch");
  }
  return Search(parameters, limit).Run().ToSchedule();
}

}  // namespace

const Family kVAuto = {
    kName,
    "V placement with controllable memory: the building block is searched for given costs and memory limit.",
    "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024 (arXiv 2405.15362), section 3; "
    "sail-sg/zero-bubble-pipeline-parallelism, v_auto_schedule.py",
    "two chunks per rank; at most 512 ranks; any number of micro-batches; memory limit at least one "
    "micro-batch (default: none)",
    "none",
    &Check,
    &GenerateOrder,
    2,
    true,
};

}  // namespace orrery::schedules
