#include "sim/training/world_builder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sim/training/slowness.h"

namespace orrery::training {
namespace {

using layout::Coordinates;

// Of all programs together: a bound on memory, a few GB.
constexpr std::size_t kMostOperations = 30000000;

// Whether exchanging tensor-parallel ranks changes no placement: they share a node, or the whole layout is regular. For
// TP | g, floor((t + TP j) / g) does not depend on t.
bool TensorRanksAlike(const Plan& plan) {
  return plan.run.cluster().node().gpus() % plan.tp == 0 || plan.layout.IsRegular();
}

std::vector<Block> Singletons(std::int64_t size) {
  std::vector<Block> blocks;
  for (std::int64_t i = 0; i < size; ++i) blocks.push_back({.first = i, .count = 1});
  return blocks;
}

// The named coordinates stand alone, all others are one block.
std::vector<Block> AllBut(const std::set<std::int64_t>& named, std::int64_t size) {
  std::vector<Block> blocks;
  const auto rest = size - static_cast<std::int64_t>(named.size());
  std::int64_t representative = 0;
  while (named.contains(representative)) ++representative;
  if (rest > 0) blocks.push_back({.first = representative, .count = rest});
  for (const std::int64_t coordinate : named) blocks.push_back({.first = coordinate, .count = 1});
  std::sort(blocks.begin(), blocks.end(), [](Block a, Block b) { return a.first < b.first; });
  return blocks;
}

class WorldBuilder {
 public:
  WorldBuilder(const Plan& plan, RolePricer& pricer, bool tensor_links_shared)
      : plan_(plan), pricer_(pricer), slowness_(plan), tensor_links_shared_(tensor_links_shared) {}

  absl::StatusOr<TrainingWorld> Build() {
    ChooseBlocks();
    ABSL_RETURN_IF_ERROR(AddUnits());
    Wire();
    return std::move(built_);
  }

 private:
  void ChooseBlocks() {
    const bool fold_at_all = plan_.run.simulation().fold() == v1::ON && !slowness_.sampled();
    // Links tell ranks apart: the engine's refinement finds which are alike.
    const bool fold = fold_at_all && !plan_.shares_links();
    std::set<std::int64_t> named_tp;
    std::set<std::int64_t> named_places;
    std::set<std::int64_t> named_shards;
    for (const auto& [rank, factor] : slowness_.slow()) {
      const Coordinates at = plan_.layout.CoordinatesOf(rank);
      named_tp.insert(at.tp);
      named_places.insert(at.dp % plan_.shard_ranks);
      named_shards.insert(at.dp / plan_.shard_ranks);
    }
    const bool regular = fold && plan_.layout.IsRegular();
    const auto blocks = [](bool alike, const std::set<std::int64_t>& named, std::int64_t size) {
      return alike ? AllBut(named, size) : Singletons(size);
    };
    built_.tp_blocks = blocks(fold && TensorRanksAlike(plan_), named_tp, plan_.tp);
    built_.place_blocks = blocks(regular, named_places, plan_.shard_ranks);
    built_.shard_blocks = blocks(regular, named_shards, plan_.replicas());
    built_.refinable =
        fold_at_all && built_.tp_blocks.size() * built_.place_blocks.size() * built_.shard_blocks.size() > 1;
    members_differ_ = plan_.tp > 1 && (slowness_.sampled() || !slowness_.slow().empty() || !TensorRanksAlike(plan_) ||
                                       tensor_links_shared_);
  }

  absl::Status AddUnits() {
    for (std::int32_t pp = 0; pp < plan_.pp; ++pp) {
      for (const Block& shard : built_.shard_blocks) {
        for (const Block& place : built_.place_blocks) {
          for (const Block& tp : built_.tp_blocks) {
            AddUnit({.tp = tp.first, .dp = shard.first * plan_.shard_ranks + place.first, .pp = pp},
                    tp.count * place.count * shard.count);
            if (operations_ > kMostOperations) {
              return absl::ResourceExhaustedError(
                  absl::StrCat("simulation: ranks differ so much that their programs exceed ", kMostOperations,
                               " operations; allowed: fewer micro-batches, or jitter EXPECTED instead of SAMPLED"));
            }
          }
        }
      }
    }
    return absl::OkStatus();
  }

  void AddUnit(const Coordinates& at, std::int64_t multiplicity) {
    engine::Unit unit;
    unit.program = ProgramAt(at);
    unit.multiplicity = multiplicity;
    unit.first_rank = plan_.layout.RankOf(at);
    built_.world.units.push_back(std::move(unit));
  }

  // In a regular layout prices depend on the pipeline rank and the GPU's speed alone.
  std::int32_t ProgramAt(const Coordinates& at) {
    if (!plan_.layout.IsRegular()) return ProgramOf(PricesAt(at));
    const std::pair<std::int64_t, double> key = {at.pp, slowness_.Of(plan_.layout.RankOf(at))};
    const auto known = regular_programs_.find(key);
    if (known != regular_programs_.end()) return known->second;
    return regular_programs_[key] = ProgramOf(PricesAt(at));
  }

  RolePrices PricesAt(const Coordinates& at) {
    RolePrices prices = pricer_.PricesOf(at);
    prices.members_differ = members_differ_;
    return prices;
  }

  std::int32_t ProgramOf(const RolePrices& prices) {
    const auto known = std::find(roles_.begin(), roles_.end(), prices);
    if (known != roles_.end()) return static_cast<std::int32_t>(known - roles_.begin());
    roles_.push_back(prices);
    LabelledProgram labelled = BuildProgram(plan_, prices);
    operations_ += labelled.program.ops.size();
    built_.world.programs.push_back(std::move(labelled.program));
    built_.labels.push_back(std::move(labelled.labels));
    return static_cast<std::int32_t>(roles_.size()) - 1;
  }

  // Which groups a program uses.
  static std::set<std::int32_t> UsedGroups(const engine::Program& program) {
    std::set<std::int32_t> used;
    for (const engine::Op& op : program.ops) {
      if (op.kind == engine::OpKind::kCollective) used.insert(op.group);
    }
    return used;
  }

  void Wire() {
    std::vector<std::set<std::int32_t>> used;
    for (const engine::Program& program : built_.world.programs) used.push_back(UsedGroups(program));
    const auto tps = static_cast<std::int32_t>(built_.tp_blocks.size());
    const auto places = static_cast<std::int32_t>(built_.place_blocks.size());
    const auto dps = places * static_cast<std::int32_t>(built_.shard_blocks.size());
    const auto pps = static_cast<std::int32_t>(plan_.pp);
    const auto unit_at = [&](std::int32_t pp, std::int32_t dp, std::int32_t tp) { return (pp * dps + dp) * tps + tp; };
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> group_ids;  // by kind of group and key
    const auto join_as = [&](engine::Unit& unit, std::int32_t index, std::int32_t slot, std::int32_t kind,
                             std::int32_t key) {
      if (!used[static_cast<std::size_t>(unit.program)].contains(slot)) return;
      const auto [id, added] = group_ids.try_emplace({kind, key}, built_.world.groups.size());
      if (added) built_.world.groups.emplace_back();
      built_.world.groups[static_cast<std::size_t>(id->second)].push_back(index);
      unit.groups[static_cast<std::size_t>(slot)] = id->second;
    };
    const auto join = [&](engine::Unit& unit, std::int32_t index, GroupSlot slot, std::int32_t key) {
      join_as(unit, index, slot, slot, key);
    };
    for (std::int32_t pp = 0; pp < pps; ++pp) {
      for (std::int32_t dp = 0; dp < dps; ++dp) {
        for (std::int32_t tp = 0; tp < tps; ++tp) {
          const std::int32_t index = unit_at(pp, dp, tp);
          engine::Unit& unit = built_.world.units[static_cast<std::size_t>(index)];
          unit.groups.assign(static_cast<std::size_t>(GroupSlots(plan_)), -1);
          join(unit, index, kTensorGroup, pp * dps + dp);
          join(unit, index, kDataGroup, (pp * dps + dp / places) * tps + tp);
          join(unit, index, kReplicaGroup, (pp * dps + dp % places) * tps + tp);
          join(unit, index, kEmbeddingGroup, dp * tps + tp);
          join(unit, index, kWorldGroup, 0);
          for (std::int32_t chunk = 0; plan_.copies() > 1 && chunk < plan_.ChunksOf(pp); ++chunk) {
            const std::int32_t stage = plan_.schedule.StageOf(pp, chunk);
            join_as(unit, index, kCopiesGroup + chunk, kCopiesGroup, (stage * dps + dp) * tps + tp);
          }
          if (built_.world.programs[static_cast<std::size_t>(unit.program)].num_channels == 0) continue;
          for (const Channel& channel : plan_.links.channels[static_cast<std::size_t>(pp)]) {
            unit.peers.push_back(
                {.unit = unit_at(channel.peer, dp, tp),
                 .channel = plan_.links.IndexOf(channel.peer, {pp, channel.forward, !channel.is_send})});
          }
        }
      }
    }
  }

  const Plan& plan_;
  RolePricer& pricer_;
  Slowness slowness_;
  const bool tensor_links_shared_;
  bool members_differ_ = false;
  std::size_t operations_ = 0;  // of all programs
  std::vector<RolePrices> roles_;
  std::map<std::pair<std::int64_t, double>, std::int32_t> regular_programs_;
  TrainingWorld built_;
};

std::size_t BlockOf(const std::vector<Block>& blocks, std::int64_t coordinate) {
  std::size_t rest = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].first == coordinate) return i;
    if (blocks[i].count > 1) rest = i;
  }
  return rest;
}

}  // namespace

std::size_t TrainingWorld::UnitOf(const Plan& plan, std::int64_t rank) const {
  const Coordinates at = plan.layout.CoordinatesOf(rank);
  const std::size_t shard = BlockOf(shard_blocks, at.dp / plan.shard_ranks);
  const std::size_t place = BlockOf(place_blocks, at.dp % plan.shard_ranks);
  const std::size_t dp = (static_cast<std::size_t>(at.pp) * shard_blocks.size() + shard) * place_blocks.size() + place;
  return dp * tp_blocks.size() + BlockOf(tp_blocks, at.tp);
}

absl::StatusOr<TrainingWorld> BuildWorld(const Plan& plan, RolePricer& pricer, bool tensor_links_shared) {
  return WorldBuilder(plan, pricer, tensor_links_shared).Build();
}

}  // namespace orrery::training
