#include "sim/training/link_report.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "absl/strings/str_cat.h"
#include "sim/training/op_names.h"
#include "sim/training/program_builder.h"

namespace orrery::training {
namespace {

std::string KindOfGroup(std::size_t slot) {
  switch (slot) {
    case kTensorGroup:
      return "tp";
    case kEmbeddingGroup:
      return "embedding";
    case kWorldGroup:
      return "norm";
    case kReplicaGroup:
      return "dp replicas";
    case kDataGroup:
      return "dp";
    default:
      return "copies";
  }
}

// By route of the world: what its transfers are.
std::vector<std::string> KindsOfRoutes(const engine::World& world) {
  std::vector<std::string> kinds(world.routes.size());
  for (const engine::Unit& unit : world.units) {
    for (const std::int32_t route : unit.routes) {
      if (route >= 0) kinds[static_cast<std::size_t>(route)] = "pp";
    }
    for (std::size_t slot = 0; slot < unit.groups.size(); ++slot) {
      if (unit.groups[slot] < 0 || world.group_routes.empty()) continue;
      for (const std::int32_t route : world.group_routes[static_cast<std::size_t>(unit.groups[slot])]) {
        if (route >= 0) kinds[static_cast<std::size_t>(route)] = KindOfGroup(slot);
      }
    }
  }
  return kinds;
}

// Of a key of SharedTransfers. Programs of a folding are those of the built world, by the rank of the unit.
std::string NameOfTransfer(std::uint64_t key, const TrainingWorld& built, const engine::Folding& replayed) {
  const auto unit = static_cast<std::size_t>(key >> 32);
  const auto op = static_cast<std::size_t>(key & 0xffffffffu);
  const std::int64_t rank = replayed.world.units[unit].first_rank;
  const auto original = std::find_if(built.world.units.begin(), built.world.units.end(),
                                     [&](const engine::Unit& other) { return other.first_rank == rank; });
  const auto program = static_cast<std::size_t>(original->program);
  const std::int32_t tag = built.world.programs[program].ops[op].tag;
  const OpLabel& label = built.labels[program].ops[static_cast<std::size_t>(tag)];
  return absl::StrCat(NameOf(label), " of rank ", rank);
}

}  // namespace

LinkSummary BusiestLinks(const TrainingWorld& built, const engine::Folding& replayed,
                         const topology::Topology& topology, const network::SharedTransfers& transfers,
                         std::size_t count) {
  const network::FlowNetwork& network = transfers.network();
  LinkSummary summary{.links = {}, .transfers = network.completed(), .never_shared = network.bypassed()};
  const std::vector<std::string> kinds = KindsOfRoutes(replayed.world);
  std::vector<std::map<std::string, double>> bytes(replayed.world.link_capacities.size());
  for (std::size_t r = 0; r < kinds.size(); ++r) {
    const double units = transfers.UnitsOf(static_cast<std::int32_t>(r));
    for (const engine::LinkLoad& load : replayed.world.routes[r].loads) {
      bytes[static_cast<std::size_t>(load.link)][kinds[r]] += units * static_cast<double>(load.bytes);
    }
  }
  for (const network::LinkUse& use : network.Busiest(count)) {
    if (use.bytes == network::Work()) break;
    const auto link = static_cast<std::size_t>(use.link);
    const topology::Link original = topology.link(built.links[static_cast<std::size_t>(replayed.first_link[link])]);
    LinkReport report{.from = topology.NameOf(original.from),
                      .to = topology.NameOf(original.to),
                      .alike = replayed.links_alike[link],
                      .capacity = replayed.world.link_capacities[link],
                      .bytes = static_cast<double>(use.bytes.count()) / static_cast<double>(network::kWorkPerUnit),
                      .utilisation = use.utilisation,
                      .busy_share = SecondsFromTime(use.busy) / SecondsFromTime(network.now()),
                      .delay = use.delay,
                      .users = {},
                      .most_delayed = {},
                      .most_delay = use.most_delay};
    for (const auto& [kind, moved] : bytes[link]) report.users.push_back({kind, moved});
    std::sort(report.users.begin(), report.users.end(), [](const LinkUser& a, const LinkUser& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.kind < b.kind;
    });
    if (use.most_delay > Time()) report.most_delayed = NameOfTransfer(use.most_delayed, built, replayed);
    summary.links.push_back(std::move(report));
  }
  return summary;
}

}  // namespace orrery::training
