#include "sim/training/shared_links.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "sim/collectives/footprint.h"

namespace orrery::training {
namespace {

// What a transfer puts on links per byte that it moves, in parts of a common denominator.
class Loads {
 public:
  void Add(std::int32_t link, std::int64_t numerator, std::int64_t denominator) {
    const std::int64_t divisor = std::gcd(numerator, denominator);
    fractions_.push_back({link, numerator / divisor, denominator / divisor});
  }

  // As a route of the engine, alone as fast as `bandwidth` bytes per second. Starts afresh.
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
    const double asked = rate;
    for (engine::LinkLoad& load : route.loads) {
      load.bytes /= unit;
      const double carried =
          static_cast<double>(capacities[static_cast<std::size_t>(load.link)]) / static_cast<double>(load.bytes);
      // What rounding alone makes too fast is not slowed; a way around dead links may well be too narrow.
      if (carried > asked * kNoSlower) rate = std::min(rate, carried);
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
  static constexpr double kNoSlower = 0.999;
  // A denominator beyond this is rounded, loads up.
  static constexpr std::int64_t kMostParts = 1'000'000;

  std::vector<Fraction> fractions_;
};

// Links to the network of the NICs that have this number in their nodes. Empty: there are none.
std::vector<topology::LinkId> LinksOfRail(const topology::Topology& topology, std::int64_t rail) {
  std::vector<topology::LinkId> links;
  for (topology::DeviceId id = 0; id < topology.devices(); ++id) {
    const topology::Device& device = topology.device(id);
    if (device.kind != topology::DeviceKind::kNic || device.index != rail) continue;
    for (const topology::LinkId link : topology.LinksFrom(id)) {
      if (!topology::IsNetwork(topology.link(link).kind)) continue;
      links.push_back(link);
      links.push_back(topology::Opposite(link));
    }
  }
  return links;
}

// The links that a perturbation names, in both directions.
absl::StatusOr<std::vector<topology::LinkId>> LinksOf(const topology::Topology& topology, const v1::SlowLink& slow) {
  const auto refuse = [](const absl::Status& status) {
    return absl::InvalidArgumentError(absl::StrCat("perturbation.link: ", status.message()));
  };
  std::int64_t rail = 0;
  if (absl::string_view number = slow.device();
      absl::ConsumePrefix(&number, "rail") && absl::SimpleAtoi(number, &rail)) {
    std::vector<topology::LinkId> links = LinksOfRail(topology, rail);
    if (!links.empty() && slow.to().empty()) return links;
    return absl::InvalidArgumentError(absl::StrCat("perturbation.link: found ", slow.device(),
                                                   slow.to().empty() ? "" : " with a device at the other end",
                                                   "; allowed: the number of a NIC in its node, without `to`"));
  }
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

bool IsDead(const v1::SlowLink& slow) { return slow.capacity() == 0; }

// Capacities of the topology's links, with what perturbations leave of them.
class Capacities {
 public:
  static absl::StatusOr<Capacities> Make(const topology::Topology& topology, const v1::Perturbation& perturbation) {
    Capacities capacities(topology);
    for (const v1::SlowLink& slow : perturbation.link()) {
      if (IsDead(slow)) {
        capacities.any_ = true;
      } else {
        ABSL_RETURN_IF_ERROR(capacities.Slow(slow));
      }
    }
    return capacities;
  }

  std::int64_t Of(topology::LinkId link) const {
    const auto found = slowed_.find(link);
    return found == slowed_.end() ? topology_->link(link).capacity : found->second;
  }
  // Whether links that were alike may differ.
  bool any_perturbed() const { return any_; }

 private:
  explicit Capacities(const topology::Topology& topology) : topology_(&topology) {}

  absl::Status Slow(const v1::SlowLink& slow) {
    ABSL_ASSIGN_OR_RETURN(const std::vector<topology::LinkId> links, LinksOf(*topology_, slow));
    any_ = true;
    for (const topology::LinkId link : links) {
      const double left = static_cast<double>(topology_->link(link).capacity) * slow.capacity();
      slowed_[link] = std::max<std::int64_t>(1, static_cast<std::int64_t>(left));
    }
    return absl::OkStatus();
  }

  const topology::Topology* topology_;
  bool any_ = false;
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
    if (capacities_.any_perturbed() || topology.is_free_form()) return false;
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
      const Communication& message = built_.labels[static_cast<std::size_t>(unit.program)].messages[channel];
      const auto bytes = static_cast<double>(message.footprint.bytes);
      unit.routes[channel] = Keep(loads_.ToRoute(bytes / SecondsFromTime(message.progress), sound_));
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
    for (const collectives::Flow& flow : collectives::FlowsOf(pattern.footprint, nodes)) {
      AddRoute(flow.from, flow.to, flow.rail, flow.numerator, flow.denominator);
    }
    const double moved = collectives::MovedBy(pattern.footprint, nodes);
    return Keep(loads_.ToRoute(moved / SecondsFromTime(pattern.progress), sound_));
  }

  const Plan& plan_;
  const topology::Routes& routes_;
  const Capacities& capacities_;
  TrainingWorld& built_;
  engine::World& world_;
  std::vector<std::int32_t> link_of_;  // [the topology's link]: the world's, or -1
  std::vector<std::int64_t> sound_;    // [the world's link]: capacity without perturbations
  topology::Route between_;
  Loads loads_;
  std::vector<Pattern> patterns_;
  std::vector<std::set<std::pair<std::int32_t, std::uint16_t>>> used_patterns_;  // [program]: slots of groups, patterns
};

}  // namespace

absl::StatusOr<topology::Topology> WithoutDeadLinks(topology::Topology topology, const v1::Perturbation& perturbation) {
  std::vector<topology::LinkId> dead;
  for (const v1::SlowLink& link : perturbation.link()) {
    if (!IsDead(link)) continue;
    ABSL_ASSIGN_OR_RETURN(const std::vector<topology::LinkId> named, LinksOf(topology, link));
    dead.insert(dead.end(), named.begin(), named.end());
  }
  if (dead.empty()) return topology;
  absl::StatusOr<topology::Topology> left = topology.Without(dead);
  if (left.ok()) return left;
  return absl::InvalidArgumentError(
      absl::StrCat("perturbation.link: without the dead links ", left.status().message()));
}

absl::StatusOr<std::vector<std::string>> ShareLinks(const Plan& plan, const topology::Routes& routes,
                                                    TrainingWorld* built) {
  ABSL_ASSIGN_OR_RETURN(const Capacities capacities, Capacities::Make(routes.topology(), plan.run.perturbation()));
  LinkSharer(plan, routes, capacities, *built).Share();
  std::vector<std::string> unused;
  for (const v1::SlowLink& slow : plan.run.perturbation().link()) {
    if (IsDead(slow)) continue;
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
