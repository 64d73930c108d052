#include "sim/training/link_report.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

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
std::string NameOfTransfer(std::uint64_t key, const TrainingWorld& built, const engine::Folding& alike) {
  const auto unit = static_cast<std::size_t>(key >> 32);
  const auto op = static_cast<std::size_t>(key & 0xffffffffu);
  const std::int64_t rank = alike.world.units[unit].first_rank;
  const auto original = std::find_if(built.world.units.begin(), built.world.units.end(),
                                     [&](const engine::Unit& other) { return other.first_rank == rank; });
  const auto program = static_cast<std::size_t>(original->program);
  const std::int32_t tag = built.world.programs[program].ops[op].tag;
  const OpLabel& label = built.labels[program].ops[static_cast<std::size_t>(tag)];
  return absl::StrCat(NameOf(label), " of rank ", rank);
}

// Of a class of links.
struct ClassUse {
  std::int32_t link = -1;  // its first in the world that was replayed
  network::LinkUse use;    // of that link; the delay is that of all of them, the greatest one's is the greatest of all
};

std::vector<ClassUse> UsesOfClasses(const engine::World& world, const engine::Folding& alike,
                                    const network::SharedTransfers& transfers) {
  const bool is_folded = &world == &alike.world;
  std::vector<ClassUse> classes(alike.first_link.size());
  for (std::int32_t link = 0; link < static_cast<std::int32_t>(world.link_capacities.size()); ++link) {
    const network::LinkUse use = transfers.UseOf(link);
    ClassUse& known =
        classes[static_cast<std::size_t>(is_folded ? link : alike.link_class[static_cast<std::size_t>(link)])];
    if (known.link < 0) {
      known = {link, use};
      continue;
    }
    known.use.delay += use.delay;
    known.use.most = std::min(known.use.most, use.most);
  }
  return classes;
}

// [link][kind]: bytes.
std::vector<std::map<std::string, network::Work>> BytesByKind(const engine::World& world,
                                                              network::SharedTransfers& transfers) {
  const std::vector<std::string> kinds = KindsOfRoutes(world);
  const std::vector<network::Work> units = transfers.UnitsByRoute();
  std::vector<std::map<std::string, network::Work>> bytes(world.link_capacities.size());
  for (std::size_t r = 0; r < kinds.size(); ++r) {
    for (const engine::LinkLoad& load : world.routes[r].loads) {
      bytes[static_cast<std::size_t>(load.link)][kinds[r]] += units[r] * load.bytes;
    }
  }
  return bytes;
}

double BytesOf(network::Work work) {
  return static_cast<double>(work.count()) / static_cast<double>(network::kWorkPerUnit);
}

std::vector<LinkUser> UsersOf(const std::map<std::string, network::Work>& bytes) {
  std::vector<LinkUser> users;
  for (const auto& [kind, moved] : bytes) users.push_back({kind, BytesOf(moved)});
  std::sort(users.begin(), users.end(), [](const LinkUser& a, const LinkUser& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.kind < b.kind;
  });
  return users;
}

}  // namespace

LinkSummary CountTransfers(const network::SharedTransfers& transfers) {
  const network::FlowNetwork& network = transfers.network();
  return {.links = {},
          .transfers = network.completed(),
          .bypassed_solver = network.bypassed(),
          .never_slowed = network.never_slowed()};
}

LinkSummary BusiestLinks(const TrainingWorld& built, const engine::World& world, const engine::Folding& alike,
                         const topology::Topology& topology, network::SharedTransfers& transfers, std::size_t count) {
  LinkSummary summary = CountTransfers(transfers);
  const std::vector<ClassUse> classes = UsesOfClasses(world, alike, transfers);
  std::vector<std::size_t> order(classes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&classes](std::size_t a, std::size_t b) {
    return std::pair(-classes[a].use.utilisation, a) < std::pair(-classes[b].use.utilisation, b);
  });
  if (order.size() > count) {
    // Links that hold others up need not be those that carry most.
    const auto delay = [&](std::size_t c) { return (classes[c].use.delay / alike.links_alike[c]).count(); };
    const auto slowest = std::min_element(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
      return std::pair(-delay(x), x) < std::pair(-delay(y), y);
    });
    const bool is_listed = slowest < order.begin() + static_cast<std::ptrdiff_t>(count);
    const std::size_t most_delay = *slowest;
    order.resize(count);
    if (!is_listed && count > 0 && classes[most_delay].use.delay > Time()) order.push_back(most_delay);
  }
  const auto bytes = BytesByKind(world, transfers);
  const Time end = transfers.network().now();
  for (const std::size_t c : order) {
    const auto& [link, use] = classes[c];
    if (use.bytes == network::Work()) break;
    const topology::Link original = topology.link(built.links[static_cast<std::size_t>(alike.first_link[c])]);
    LinkReport report{.from = topology.NameOf(original.from),
                      .to = topology.NameOf(original.to),
                      .alike = alike.links_alike[c],
                      .capacity = alike.world.link_capacities[c],
                      .bytes = BytesOf(use.bytes),
                      .utilisation = use.utilisation,
                      .busy_share = SecondsFromTime(use.busy) / SecondsFromTime(end),
                      .delay = use.delay / alike.links_alike[c],
                      .users = UsersOf(bytes[static_cast<std::size_t>(link)]),
                      .most_delayed = {},
                      .most_taken = {}};
    if (use.most.delay > Time()) {
      report.most_delayed = {NameOfTransfer(use.most.key, built, alike), use.most.delay};
    }
    if (use.most.taken > Time()) {
      report.most_taken = {NameOfTransfer(use.most.taken_by, built, alike), use.most.taken};
    }
    summary.links.push_back(std::move(report));
  }
  return summary;
}

}  // namespace orrery::training
