#include "sim/training/shared_links.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "sim/collectives/link_loads.h"
#include "sim/collectives/ring_orders.h"

namespace orrery::training {
namespace {

// Capacities of the topology's links, with what perturbations leave of them.
class Capacities {
 public:
  Capacities(const topology::Topology& topology, const v1::Perturbation& perturbation, const SlowedLinks& slowed)
      : topology_(topology), any_perturbed_(perturbation.link_size() > 0) {
    for (std::size_t i = 0; i < slowed.size(); ++i) {
      const double share = perturbation.link(static_cast<int>(i)).capacity();
      for (const topology::LinkId link : slowed[i]) {
        const double left = static_cast<double>(topology.link(link).capacity) * share;
        slowed_[link] = std::max<std::int64_t>(1, static_cast<std::int64_t>(left));
      }
    }
  }

  std::int64_t Of(topology::LinkId link) const {
    const auto found = slowed_.find(link);
    return found == slowed_.end() ? topology_.link(link).capacity : found->second;
  }
  // Whether links that were alike may differ.
  bool any_perturbed() const { return any_perturbed_; }

 private:
  const topology::Topology& topology_;
  const bool any_perturbed_;
  std::map<topology::LinkId, std::int64_t> slowed_;
};

class LinkSharer {
 public:
  LinkSharer(const Plan& plan, const topology::Routes& routes, const Capacities& capacities, TrainingWorld& built)
      : plan_(plan),
        routes_(routes),
        capacities_(capacities),
        built_(built),
        world_(built.world),
        link_of_(static_cast<std::size_t>(routes.topology().links()), -1) {}

  void Share() {
    for (engine::Unit& unit : world_.units) AddMessageRoutes(unit);
    for (std::size_t p = 0; p < world_.programs.size(); ++p) NamePatterns(built_.labels[p], world_.programs[p]);
    AddGroupRoutes();
    collectives::EqualiseUnits(sound_, &world_.routes);
  }

 private:
  // The world's link of a topology's.
  std::int32_t LinkOf(topology::LinkId link) {
    std::int32_t& known = link_of_[static_cast<std::size_t>(link)];
    if (known < 0) {
      known = static_cast<std::int32_t>(built_.links.size());
      built_.links.push_back(link);
      world_.link_capacities.push_back(capacities_.Of(link));
      sound_.push_back(routes_.topology().link(link).capacity);
    }
    return known;
  }

  // `numerator / denominator` of the bytes take the route between two GPUs.
  void AddRoute(std::int64_t from, std::int64_t to, std::int64_t flow, std::int64_t numerator,
                std::int64_t denominator) {
    routes_.Between(from, to, flow, &between_);
    const topology::LinkShare* spread = nullptr;
    for (const topology::LinkShare& share : between_.shares) {
      if (spread != nullptr && IsSpreadLike(*spread, share)) continue;
      spread = &share;
      loads_.Add(LinkOf(share.link), {numerator, denominator}, {share.weight, between_.denominator});
    }
  }

  // Of links over which transfers are spread in proportion to capacity, all of them alike, one stands for the others:
  // it is as full as they are.
  bool IsSpreadLike(const topology::LinkShare& first, const topology::LinkShare& other) const {
    const topology::Topology& topology = routes_.topology();
    if (capacities_.any_perturbed() || topology.is_free_form()) return false;
    const topology::Link a = topology.link(first.link);
    const topology::Link b = topology.link(other.link);
    const bool upwards = topology.device(a.from).kind < topology.device(a.to).kind;
    const bool also_upwards = topology.device(b.from).kind < topology.device(b.to).kind;
    return a.kind == b.kind && (a.kind == topology::LinkKind::kLeafSpine || a.kind == topology::LinkKind::kSpineCore) &&
           upwards == also_upwards &&
           static_cast<Int128>(first.weight) * b.capacity == static_cast<Int128>(other.weight) * a.capacity;
  }

  // The route of a transfer over what was added.
  std::int32_t Keep(double moved, Time alone) {
    world_.routes.push_back(collectives::RouteOf(loads_.Take(), moved, alone, sound_));
    return static_cast<std::int32_t>(world_.routes.size()) - 1;
  }

  void AddMessageRoutes(engine::Unit& unit) {
    const engine::Program& program = world_.programs[static_cast<std::size_t>(unit.program)];
    if (program.part_progress.empty()) return;
    const std::int64_t pp = plan_.layout.CoordinatesOf(unit.first_rank).pp;
    const std::vector<Channel>& channels = plan_.links.channels[static_cast<std::size_t>(pp)];
    unit.routes.assign(unit.peers.size(), -1);
    for (std::size_t channel = 0; channel < unit.peers.size(); ++channel) {
      if (!channels[channel].is_send) continue;
      const std::int64_t to = RankOf(unit.peers[channel].unit);
      if (to == unit.first_rank) continue;
      AddRoute(unit.first_rank, to, 0, 1, 1);
      const Communication& message = built_.labels[static_cast<std::size_t>(unit.program)].messages[channel];
      unit.routes[channel] = Keep(collectives::MovedBy(message.footprint, {{unit.first_rank}, {to}}), message.progress);
    }
  }

  std::int64_t RankOf(std::int32_t unit) const { return world_.units[static_cast<std::size_t>(unit)].first_rank; }

  // What collectives put on links, and how fast: alike for all of a pattern.
  struct Pattern {
    collectives::Footprint footprint;
    Time progress;

    friend bool operator==(const Pattern&, const Pattern&) = default;
  };

  // Numbers the patterns of a program's collectives.
  void NamePatterns(const ProgramLabels& labels, engine::Program& program) {
    std::set<std::pair<std::int32_t, std::uint16_t>>& used = used_patterns_.emplace_back();
    for (std::size_t i = 0; i < program.op_progress.size(); ++i) {
      if (program.op_progress[i] == Time()) continue;
      const Pattern pattern = {labels.footprints[i], program.op_progress[i]};
      auto known = std::find(patterns_.begin(), patterns_.end(), pattern);
      if (known == patterns_.end()) known = patterns_.insert(known, pattern);
      engine::Op& op = program.ops[i];
      ORRERY_CHECK(patterns_.size() <= std::numeric_limits<decltype(op.pattern)>::max());
      op.pattern = static_cast<std::uint16_t>(known - patterns_.begin());
      used.insert({op.group, op.pattern});
    }
  }

  void AddGroupRoutes() {
    std::vector<std::set<std::uint16_t>> used(world_.groups.size());
    for (const engine::Unit& unit : world_.units) {
      for (const auto& [slot, pattern] : used_patterns_[static_cast<std::size_t>(unit.program)]) {
        used[static_cast<std::size_t>(unit.groups[static_cast<std::size_t>(slot)])].insert(pattern);
      }
    }
    for (std::size_t g = 0; g < world_.groups.size(); ++g) {
      std::vector<std::int32_t>& of_group = world_.group_routes.emplace_back();
      if (used[g].empty()) continue;
      const std::vector<std::vector<std::int64_t>> nodes = NodesOf(world_.groups[g]);
      of_group.assign(*used[g].rbegin() + std::size_t{1}, -1);
      for (const std::uint16_t pattern : used[g]) of_group[pattern] = RouteOf(patterns_[pattern], nodes);
    }
  }

  // Ranks of a group, node by node.
  std::vector<std::vector<std::int64_t>> NodesOf(const std::vector<std::int32_t>& members) const {
    std::vector<std::int64_t> ranks;
    ranks.reserve(members.size());
    for (const std::int32_t member : members) ranks.push_back(RankOf(member));
    std::sort(ranks.begin(), ranks.end());
    std::vector<std::vector<std::int64_t>> nodes;
    for (const std::int64_t rank : ranks) {
      if (nodes.empty() || plan_.layout.NodeOf(nodes.back().front()) != plan_.layout.NodeOf(rank)) nodes.emplace_back();
      nodes.back().push_back(rank);
    }
    return nodes;
  }

  std::int32_t RouteOf(const Pattern& pattern, const std::vector<std::vector<std::int64_t>>& nodes) {
    for (const collectives::Flow& flow : collectives::FlowsOn(routes_.topology(), pattern.footprint, nodes)) {
      AddRoute(flow.from, flow.to, flow.rail, flow.numerator, flow.denominator);
    }
    return Keep(collectives::MovedBy(pattern.footprint, nodes), pattern.progress);
  }

  const Plan& plan_;
  const topology::Routes& routes_;
  const Capacities& capacities_;
  TrainingWorld& built_;
  engine::World& world_;
  std::vector<std::int32_t> link_of_;  // [the topology's link]: the world's, or -1
  std::vector<std::int64_t> sound_;    // [the world's link]: capacity without perturbations
  topology::Route between_;
  collectives::LinkLoadSum loads_;
  std::vector<Pattern> patterns_;
  std::vector<std::set<std::pair<std::int32_t, std::uint16_t>>> used_patterns_;  // [program]: slots of groups, patterns
};

}  // namespace

bool TensorLinksShared(const Plan& plan, const PerturbedCluster& cluster) {
  return plan.tp > 1 && (plan.tp != plan.run.cluster().node().gpus() || cluster.within_nodes);
}

std::vector<std::string> ShareLinks(const Plan& plan, const topology::Routes& routes, const SlowedLinks& slowed,
                                    TrainingWorld* built) {
  const v1::Perturbation& perturbation = plan.run.perturbation();
  const Capacities capacities(routes.topology(), perturbation, slowed);
  LinkSharer(plan, routes, capacities, *built).Share();
  std::vector<std::string> unused;
  for (std::size_t i = 0; i < slowed.size(); ++i) {
    const bool used = std::any_of(slowed[i].begin(), slowed[i].end(), [&](topology::LinkId link) {
      return std::find(built->links.begin(), built->links.end(), link) != built->links.end();
    });
    if (slowed[i].empty() || used) continue;
    const v1::SlowLink& slow = perturbation.link(static_cast<int>(i));
    unused.push_back(absl::StrCat("perturbation.link[", i, "]: no transfer that shares links uses ", slow.device(),
                                  slow.to().empty() ? "" : " - ", slow.to(), ", so that it changes nothing"));
  }
  return unused;
}

}  // namespace orrery::training
