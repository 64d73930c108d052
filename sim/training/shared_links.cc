#include "sim/training/shared_links.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace orrery::training {
namespace {

// What a transfer puts on links per byte that it moves, in parts of a common denominator.
class Loads {
 public:
  void Add(std::int32_t link, std::int64_t numerator, std::int64_t denominator) {
    const std::int64_t divisor = std::gcd(numerator, denominator);
    fractions_.push_back({link, numerator / divisor, denominator / divisor});
  }

  // As a route of the engine, alone as fast as `bandwidth` bytes per second, or as its links allow. Starts afresh.
  engine::Route ToRoute(double bandwidth, const std::vector<std::int64_t>& capacities) {
    std::int64_t common = 1;
    for (const Fraction& fraction : fractions_) common = std::min(std::lcm(common, fraction.denominator), kMostParts);
    engine::Route route;
    std::sort(fractions_.begin(), fractions_.end(),
              [](const Fraction& a, const Fraction& b) { return a.link < b.link; });
    for (const Fraction& fraction : fractions_) {
      const std::int64_t parts = (fraction.numerator * common + fraction.denominator - 1) / fraction.denominator;
      if (route.loads.empty() || route.loads.back().link != fraction.link) route.loads.push_back({fraction.link, 0});
      route.loads.back().bytes += parts;
    }
    std::int64_t unit = common;
    for (const engine::LinkLoad& load : route.loads) unit = std::gcd(unit, load.bytes);
    // One unit of progress is common / unit bytes moved.
    double rate = bandwidth * static_cast<double>(unit) / static_cast<double>(common);
    for (engine::LinkLoad& load : route.loads) {
      load.bytes /= unit;
      rate = std::min(
          rate, static_cast<double>(capacities[static_cast<std::size_t>(load.link)]) / static_cast<double>(load.bytes));
    }
    route.rate = std::max<std::int64_t>(1, static_cast<std::int64_t>(rate));
    fractions_.clear();
    return route;
  }

 private:
  struct Fraction {
    std::int32_t link = 0;
    std::int64_t numerator = 0;
    std::int64_t denominator = 1;
  };
  // A denominator beyond this is rounded, loads up.
  static constexpr std::int64_t kMostParts = 1'000'000;

  std::vector<Fraction> fractions_;
};

// The links that a perturbation names, in both directions.
absl::StatusOr<std::vector<topology::LinkId>> LinksOf(const topology::Topology& topology, const v1::SlowLink& slow) {
  const auto refuse = [](const absl::Status& status) {
    return absl::InvalidArgumentError(absl::StrCat("perturbation.link: ", status.message()));
  };
  const absl::StatusOr<topology::DeviceId> device = topology.Find(slow.device());
  if (!device.ok()) return refuse(device.status());
  topology::DeviceId to = topology::kNoDevice;
  if (!slow.to().empty()) {
    const absl::StatusOr<topology::DeviceId> other = topology.Find(slow.to());
    if (!other.ok()) return refuse(other.status());
    to = *other;
  }
  std::vector<topology::LinkId> links;
  for (const topology::LinkId link : topology.LinksFrom(*device)) {
    if (to != topology::kNoDevice && topology.link(link).to != to) continue;
    links.push_back(link);
    links.push_back(topology::Opposite(link));
  }
  if (!links.empty()) return links;
  return absl::InvalidArgumentError(absl::StrCat("perturbation.link: found no link between ", slow.device(), " and ",
                                                 slow.to(),
                                                 "; allowed: neighbours, as `orrery topology route` shows them"));
}

// Capacities of the topology's links, with what perturbations leave of them.
class Capacities {
 public:
  static absl::StatusOr<Capacities> Make(const topology::Topology& topology, const v1::Perturbation& perturbation) {
    Capacities capacities(topology);
    for (const v1::SlowLink& slow : perturbation.link()) ABSL_RETURN_IF_ERROR(capacities.Slow(slow));
    return capacities;
  }

  std::int64_t Of(topology::LinkId link) const {
    const auto found = slowed_.find(link);
    return found == slowed_.end() ? topology_->link(link).capacity : found->second;
  }
  bool any_slowed() const { return !slowed_.empty(); }

 private:
  explicit Capacities(const topology::Topology& topology) : topology_(&topology) {}

  absl::Status Slow(const v1::SlowLink& slow) {
    ABSL_ASSIGN_OR_RETURN(const std::vector<topology::LinkId> links, LinksOf(*topology_, slow));
    for (const topology::LinkId link : links) {
      const double left = static_cast<double>(topology_->link(link).capacity) * slow.capacity();
      slowed_[link] = std::max<std::int64_t>(1, static_cast<std::int64_t>(left));
    }
    return absl::OkStatus();
  }

  const topology::Topology* topology_;
  std::map<topology::LinkId, std::int64_t> slowed_;
};

class LinkSharer {
 public:
  LinkSharer(const Plan& plan, const topology::Routes& routes, const Capacities& capacities,
             const collectives::CollectivePrices& prices, TrainingWorld& built)
      : plan_(plan),
        routes_(routes),
        capacities_(capacities),
        prices_(prices),
        built_(built),
        world_(built.world),
        link_of_(static_cast<std::size_t>(routes.topology().links()), -1) {}

  void Share() {
    for (engine::Unit& unit : world_.units) AddMessageRoutes(unit);
    const std::vector<bool> moves = GroupsThatMoveBytes();
    for (std::size_t g = 0; g < world_.groups.size(); ++g) {
      world_.group_routes.push_back({moves[g] ? RingRoute(world_.groups[g]) : -1});
    }
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
      loads_.Add(LinkOf(share.link), numerator * share.weight, denominator * between_.denominator);
    }
  }

  // Of links over which transfers are spread in proportion to capacity, all of them alike, one stands for the others:
  // it is as full as they are.
  bool IsSpreadLike(const topology::LinkShare& first, const topology::LinkShare& other) const {
    const topology::Topology& topology = routes_.topology();
    if (capacities_.any_slowed() || topology.is_free_form()) return false;
    const topology::Link a = topology.link(first.link);
    const topology::Link b = topology.link(other.link);
    const bool upwards = topology.device(a.from).kind < topology.device(a.to).kind;
    const bool also_upwards = topology.device(b.from).kind < topology.device(b.to).kind;
    return a.kind == b.kind && (a.kind == topology::LinkKind::kLeafSpine || a.kind == topology::LinkKind::kSpineCore) &&
           upwards == also_upwards &&
           static_cast<Int128>(first.weight) * b.capacity == static_cast<Int128>(other.weight) * a.capacity;
  }

  std::int32_t Keep(engine::Route route) {
    world_.routes.push_back(std::move(route));
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
      unit.routes[channel] = Keep(loads_.ToRoute(prices_.MessageBandwidth(unit.first_rank, to), sound_));
    }
  }

  std::int64_t RankOf(std::int32_t unit) const { return world_.units[static_cast<std::size_t>(unit)].first_rank; }

  std::vector<bool> GroupsThatMoveBytes() const {
    std::vector<bool> moves(world_.groups.size());
    std::vector<std::vector<bool>> slots;  // [program][slot]
    for (const engine::Program& program : world_.programs) {
      std::vector<bool>& of_program = slots.emplace_back(static_cast<std::size_t>(program.num_groups));
      for (std::size_t op = 0; op < program.op_progress.size(); ++op) {
        if (program.op_progress[op] > Time()) of_program[static_cast<std::size_t>(program.ops[op].group)] = true;
      }
    }
    for (const engine::Unit& unit : world_.units) {
      const std::vector<bool>& of_program = slots[static_cast<std::size_t>(unit.program)];
      for (std::size_t slot = 0; slot < unit.groups.size(); ++slot) {
        if (unit.groups[slot] >= 0 && of_program[slot]) moves[static_cast<std::size_t>(unit.groups[slot])] = true;
      }
    }
    return moves;
  }

  std::int32_t RingRoute(const std::vector<std::int32_t>& members) {
    std::vector<std::vector<std::int64_t>> nodes;  // ranks, node by node
    layout::Placement placement{.ranks = static_cast<std::int64_t>(members.size())};
    std::vector<std::int64_t> ranks;
    for (const std::int32_t member : members) ranks.push_back(RankOf(member));
    std::sort(ranks.begin(), ranks.end());
    for (const std::int64_t rank : ranks) {
      if (nodes.empty() || plan_.layout.NodeOf(nodes.back().front()) != plan_.layout.NodeOf(rank)) nodes.emplace_back();
      nodes.back().push_back(rank);
    }
    if (ranks.size() < 2) return -1;
    Describe(nodes, placement);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      AddInside(nodes[n], nodes.size() > 1);
      if (nodes.size() > 1) AddBetween(nodes[n], nodes[(n + 1) % nodes.size()]);
    }
    return Keep(loads_.ToRoute(prices_.RingBandwidth(placement), sound_));
  }

  void Describe(const std::vector<std::vector<std::int64_t>>& nodes, layout::Placement& placement) const {
    const std::int64_t nodes_per_leaf = plan_.run.cluster().fabric().nodes_per_leaf();
    placement.nodes = static_cast<std::int64_t>(nodes.size());
    placement.min_ranks_per_node = placement.ranks;
    std::int64_t last_leaf = -1;
    placement.leaves = 0;
    for (const std::vector<std::int64_t>& ranks : nodes) {
      const auto count = static_cast<std::int64_t>(ranks.size());
      placement.max_ranks_per_node = std::max(placement.max_ranks_per_node, count);
      placement.min_ranks_per_node = std::min(placement.min_ranks_per_node, count);
      const std::int64_t leaf = plan_.layout.NodeOf(ranks.front()) / nodes_per_leaf;
      if (leaf != last_leaf) ++placement.leaves;
      last_leaf = leaf;
    }
  }

  // A ring inside a node closes there; one that leaves it does not.
  void AddInside(const std::vector<std::int64_t>& ranks, bool leaves_node) {
    const auto g = static_cast<std::int64_t>(ranks.size());
    if (g < 2) return;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      AddRoute(ranks[i], ranks[(i + 1) % ranks.size()], 0, leaves_node ? g - 1 : 1, leaves_node ? g : 1);
    }
  }

  void AddBetween(const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to) {
    const std::size_t channels = std::max(from.size(), to.size());
    for (std::size_t c = 0; c < channels; ++c) {
      AddRoute(from[c % from.size()], to[c % to.size()], static_cast<std::int64_t>(c), 1,
               static_cast<std::int64_t>(channels));
    }
  }

  const Plan& plan_;
  const topology::Routes& routes_;
  const Capacities& capacities_;
  const collectives::CollectivePrices& prices_;
  TrainingWorld& built_;
  engine::World& world_;
  std::vector<std::int32_t> link_of_;  // [the topology's link]: the world's, or -1
  std::vector<std::int64_t> sound_;    // [the world's link]: capacity without perturbations
  topology::Route between_;
  Loads loads_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ShareLinks(const Plan& plan, const topology::Routes& routes,
                                                    const collectives::CollectivePrices& prices, TrainingWorld* built) {
  ABSL_ASSIGN_OR_RETURN(const Capacities capacities, Capacities::Make(routes.topology(), plan.run.perturbation()));
  LinkSharer(plan, routes, capacities, prices, *built).Share();
  std::vector<std::string> unused;
  for (const v1::SlowLink& slow : plan.run.perturbation().link()) {
    ABSL_ASSIGN_OR_RETURN(const std::vector<topology::LinkId> links, LinksOf(routes.topology(), slow));
    const bool used = std::any_of(links.begin(), links.end(), [&](topology::LinkId link) {
      return std::find(built->links.begin(), built->links.end(), link) != built->links.end();
    });
    if (used) continue;
    unused.push_back(absl::StrCat("perturbation.link: no transfer that shares links uses ", slow.device(),
                                  slow.to().empty() ? "" : " - ", slow.to(), ", so that it changes nothing"));
  }
  return unused;
}

}  // namespace orrery::training
