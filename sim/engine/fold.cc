// Folding: the world of one unit per class of its refinement.
//
// A class of routes moves as one: its routes run at the same instants at the same rate, so that one of them that puts
// on a link what all of them put on it stands for them. What each would do alone follows from the most that it puts on
// one of the links of a class: all of them put the same amounts on each class.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/engine/refinement.h"
#include "sim/engine/world.h"

namespace orrery::engine {
namespace {

// The world of one unit per class.
class Quotient {
 public:
  Quotient(const World& world, const ProgramClasses& programs, const Refinement& classes)
      : world_(world), programs_(programs), classes_(classes) {}

  Folding Build() {
    ChooseRepresentatives();
    new_program_.assign(world_.programs.size(), -1);
    new_group_.assign(classes_.num_classes(), -1);
    NumberRoutes();
    for (std::int32_t representative : representatives_) AddUnit(representative);
    for (std::int32_t u = 0; u < static_cast<std::int32_t>(world_.units.size()); ++u) {
      Unit& unit = folding_.world.units[static_cast<std::size_t>(folding_.class_of[static_cast<std::size_t>(u)])];
      unit.multiplicity += world_.units[static_cast<std::size_t>(u)].multiplicity;
    }
    for (auto& members : folding_.world.groups) {
      members.erase(std::unique(members.begin(), members.end()), members.end());
    }
    return std::move(folding_);
  }

 private:
  const Unit& UnitOf(std::int32_t u) const { return world_.units[static_cast<std::size_t>(u)]; }

  // The unit of lowest rank of each class, and classes numbered in that order.
  void ChooseRepresentatives() {
    const auto num_units = world_.units.size();
    std::vector<std::int32_t> by_rank(num_units);
    std::iota(by_rank.begin(), by_rank.end(), 0);
    std::sort(by_rank.begin(), by_rank.end(), [this](std::int32_t a, std::int32_t b) {
      return std::pair(UnitOf(a).first_rank, a) < std::pair(UnitOf(b).first_rank, b);
    });
    std::vector<std::int32_t> number(classes_.num_classes(), -1);
    folding_.class_of.resize(num_units);
    for (std::int32_t u : by_rank) {
      std::int32_t& of_class = number[static_cast<std::size_t>(classes_.ClassOfUnit(u))];
      if (of_class < 0) {
        of_class = static_cast<std::int32_t>(representatives_.size());
        representatives_.push_back(u);
      }
      folding_.class_of[static_cast<std::size_t>(u)] = of_class;
    }
  }

  // A route and a link per class, in the order of the first of each.
  void NumberRoutes() {
    std::vector<std::int32_t> new_link(classes_.num_classes(), -1);
    new_route_.assign(classes_.num_classes(), -1);
    std::vector<std::int32_t>& first_link = folding_.first_link;  // the one that is looked at
    for (std::int32_t link = 0; link < static_cast<std::int32_t>(world_.link_capacities.size()); ++link) {
      std::int32_t& of_class = new_link[static_cast<std::size_t>(classes_.ClassOfLink(link))];
      folding_.link_class.push_back(of_class >= 0 ? of_class : static_cast<std::int32_t>(first_link.size()));
      if (of_class >= 0) {
        ++folding_.links_alike[static_cast<std::size_t>(of_class)];
        continue;
      }
      of_class = static_cast<std::int32_t>(first_link.size());
      first_link.push_back(link);
      folding_.links_alike.push_back(1);
      folding_.world.link_capacities.push_back(world_.link_capacities[static_cast<std::size_t>(link)]);
    }
    struct Sums {
      std::int64_t bytes = 0;
      std::int64_t of_one = 0;
    };
    std::vector<std::map<std::int32_t, Sums>> loads;  // [new route]: by new link
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(world_.routes.size()); ++r) {
      if (!classes_.IsOwned(r)) continue;
      const Route& route = world_.routes[static_cast<std::size_t>(r)];
      std::int32_t& of_class = new_route_[static_cast<std::size_t>(classes_.ClassOfRoute(r))];
      if (of_class < 0) {
        of_class = static_cast<std::int32_t>(folding_.world.routes.size());
        folding_.world.routes.push_back({.rate = route.rate, .alike = 0});
        loads.emplace_back();
      }
      ++folding_.world.routes[static_cast<std::size_t>(of_class)].alike;
      for (const LinkLoad& load : route.loads) {
        const std::int32_t link = folding_.link_class[static_cast<std::size_t>(load.link)];
        Sums& sums = loads[static_cast<std::size_t>(of_class)][link];
        sums.of_one = std::max(sums.of_one, load.bytes);
        if (first_link[static_cast<std::size_t>(link)] == load.link) sums.bytes += load.bytes;
      }
    }
    for (std::size_t r = 0; r < loads.size(); ++r) {
      Route& route = folding_.world.routes[r];
      for (const auto& [link, sums] : loads[r]) {
        route.loads.push_back({link, sums.bytes});
        route.of_one.push_back(sums.of_one);
      }
    }
  }

  std::int32_t NewRoute(std::int32_t route) const {
    return route < 0 ? -1 : new_route_[static_cast<std::size_t>(classes_.ClassOfRoute(route))];
  }

  void AddUnit(std::int32_t representative) {
    const Unit& original = UnitOf(representative);
    Unit unit;
    unit.multiplicity = 0;  // added up over the class
    unit.first_rank = original.first_rank;
    std::int32_t& program = new_program_[static_cast<std::size_t>(programs_[original.program])];
    if (program < 0) {
      program = static_cast<std::int32_t>(folding_.world.programs.size());
      folding_.world.programs.push_back(world_.programs[static_cast<std::size_t>(original.program)]);
    }
    unit.program = program;
    for (std::size_t channel = 0; channel < original.peers.size(); ++channel) {
      Peer peer;
      if (classes_.UsesChannel(representative, channel)) {
        peer = {folding_.class_of[static_cast<std::size_t>(original.peers[channel].unit)],
                original.peers[channel].channel};
      }
      unit.peers.push_back(peer);
      if (!original.routes.empty()) {
        const bool used = classes_.UsesChannel(representative, channel);
        unit.routes.push_back(used ? NewRoute(original.routes[channel]) : -1);
      }
    }
    const auto id = static_cast<std::int32_t>(folding_.world.units.size());
    for (std::size_t slot = 0; slot < original.groups.size(); ++slot) {
      std::int32_t group = -1;
      if (classes_.UsesGroup(representative, slot)) {
        std::int32_t& of_class = new_group_[static_cast<std::size_t>(classes_.ClassOfGroup(original.groups[slot]))];
        if (of_class < 0) {
          of_class = static_cast<std::int32_t>(folding_.world.groups.size());
          folding_.world.groups.emplace_back();
          AddGroupRoutes(original.groups[slot]);
        }
        group = of_class;
        folding_.world.groups[static_cast<std::size_t>(group)].push_back(id);
      }
      unit.groups.push_back(group);
    }
    folding_.world.units.push_back(std::move(unit));
  }

  void AddGroupRoutes(std::int32_t group) {
    if (world_.group_routes.empty()) return;
    std::vector<std::int32_t>& routes = folding_.world.group_routes.emplace_back();
    for (const std::int32_t route : world_.group_routes[static_cast<std::size_t>(group)]) {
      routes.push_back(NewRoute(route));
    }
  }

  const World& world_;
  const ProgramClasses& programs_;
  const Refinement& classes_;
  std::vector<std::int32_t> representatives_;  // [class of the folding]: unit
  std::vector<std::int32_t> new_program_;      // [program]
  std::vector<std::int32_t> new_group_;        // [class]
  std::vector<std::int32_t> new_route_;        // [class]
  Folding folding_;
};

}  // namespace

Folding Fold(const World& world) {
  const ProgramClasses programs(world);
  const Refinement classes(world, programs);
  return Quotient(world, programs, classes).Build();
}

}  // namespace orrery::engine
