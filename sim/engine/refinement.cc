#include "sim/engine/refinement.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace orrery::engine {
namespace {

std::uint64_t Fingerprint(const Program& program) {
  std::uint64_t print = 0;
  const auto mix = [&print](std::int64_t value) {
    print = (print ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15u;
    print ^= print >> 32;
  };
  mix(program.update_op);
  mix(static_cast<std::int64_t>(program.host_ops.size()));
  for (const Op& op : program.ops) {
    mix(static_cast<std::int64_t>(op.kind) << 32 | op.stream);
    mix(static_cast<std::int64_t>(op.first_segment) << 32 | op.num_segments);
    mix(op.duration.count());
    mix(op.tag);
  }
  for (const Segment& segment : program.segments) mix(segment.duration.count());
  for (const Part& part : program.parts) mix(part.duration.count());
  for (const Time time : program.op_progress) mix(time.count());
  for (const Time time : program.part_progress) mix(time.count());
  for (const std::int16_t load : program.op_loads) mix(load);
  return print;
}

}  // namespace

ProgramClasses::ProgramClasses(const World& world) : first_equal_(world.programs.size()) {
  const std::size_t count = world.programs.size();
  std::vector<std::pair<std::uint64_t, std::size_t>> by_print(count);
  for (std::size_t p = 0; p < count; ++p) by_print[p] = {Fingerprint(world.programs[p]), p};
  std::sort(by_print.begin(), by_print.end());
  // A fingerprint only says whom to compare with.
  for (std::size_t i = 0; i < count; ++i) {
    const auto [print, p] = by_print[i];
    first_equal_[p] = static_cast<std::int32_t>(p);
    for (std::size_t j = i; j > 0 && by_print[j - 1].first == print; --j) {
      const std::size_t q = by_print[j - 1].second;
      if (first_equal_[q] == static_cast<std::int32_t>(q) && world.programs[q] == world.programs[p]) {
        first_equal_[p] = static_cast<std::int32_t>(q);
        break;
      }
    }
  }
}

Refinement::WiringUse::WiringUse(const Program& program)
    : channels(static_cast<std::size_t>(program.num_channels)), groups(static_cast<std::size_t>(program.num_groups)) {
  for (const Part& part : program.parts) channels[static_cast<std::size_t>(part.channel)] = true;
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::kCollective) groups[static_cast<std::size_t>(op.group)] = true;
  }
}

Refinement::Refinement(const World& world, const ProgramClasses& programs)
    : world_(world),
      first_group_(static_cast<std::int32_t>(world.units.size())),
      first_route_(first_group_ + static_cast<std::int32_t>(world.groups.size())),
      first_link_(first_route_ + static_cast<std::int32_t>(world.routes.size())),
      num_nodes_(first_link_ + static_cast<std::int32_t>(world.link_capacities.size())),
      members_(world.groups.size()),
      owners_(world.routes.size()),
      loads_(world.routes.size()),
      loaded_by_(world.link_capacities.size()) {
  LinkNodes(programs);
  LinkRoutes();
  StartFromContents();
  while (!dirty_.empty()) {
    Look();
    Split();
  }
}

std::int32_t Refinement::RouteOf(std::int32_t unit, std::size_t channel) const {
  const std::vector<std::int32_t>& routes = world_.units[static_cast<std::size_t>(unit)].routes;
  return routes.empty() ? -1 : routes[channel];
}

void Refinement::LinkNodes(const ProgramClasses& programs) {
  std::vector<std::int32_t> use_of_program(world_.programs.size(), -1);
  for (std::size_t p = 0; p < world_.programs.size(); ++p) {
    const auto first = static_cast<std::size_t>(programs[static_cast<std::int32_t>(p)]);
    if (first == p) {
      use_of_program[p] = static_cast<std::int32_t>(uses_.size());
      uses_.emplace_back(world_.programs[p]);
    } else {
      use_of_program[p] = use_of_program[first];
    }
  }
  for (std::int32_t u = 0; u < first_group_; ++u) {
    const Unit& unit = world_.units[static_cast<std::size_t>(u)];
    use_of_.push_back(use_of_program[static_cast<std::size_t>(unit.program)]);
    for (std::size_t slot = 0; slot < unit.groups.size(); ++slot) {
      if (UsesGroup(u, slot)) {
        members_[static_cast<std::size_t>(unit.groups[slot])].push_back({u, static_cast<std::int32_t>(slot)});
      }
    }
    for (std::size_t channel = 0; channel < unit.routes.size(); ++channel) {
      const std::int32_t route = unit.routes[channel];
      if (route < 0 || !UsesChannel(u, channel)) continue;
      owners_[static_cast<std::size_t>(route)].push_back({u, static_cast<std::int32_t>(channel)});
    }
  }
}

void Refinement::LinkRoutes() {
  for (std::size_t group = 0; group < world_.group_routes.size(); ++group) {
    if (members_[group].empty()) continue;
    for (std::size_t pattern = 0; pattern < world_.group_routes[group].size(); ++pattern) {
      const std::int32_t route = world_.group_routes[group][pattern];
      if (route < 0) continue;
      owners_[static_cast<std::size_t>(route)].push_back(
          {first_group_ + static_cast<std::int32_t>(group), static_cast<std::int32_t>(pattern)});
    }
  }
  for (const Route& route : world_.routes) {
    for (const LinkLoad& load : route.loads) amounts_.push_back(load.bytes);
  }
  std::sort(amounts_.begin(), amounts_.end());
  amounts_.erase(std::unique(amounts_.begin(), amounts_.end()), amounts_.end());
  for (std::size_t r = 0; r < world_.routes.size(); ++r) {
    if (owners_[r].empty()) continue;
    for (const LinkLoad& load : world_.routes[r].loads) {
      const auto amount =
          static_cast<std::int32_t>(std::lower_bound(amounts_.begin(), amounts_.end(), load.bytes) - amounts_.begin());
      loads_[r].push_back({first_link_ + load.link, amount});
      loaded_by_[static_cast<std::size_t>(load.link)].push_back({first_route_ + static_cast<std::int32_t>(r), amount});
    }
  }
}

// Units by program, routes by rate, links by capacity.
void Refinement::StartFromContents() {
  class_of_.resize(static_cast<std::size_t>(num_nodes_));
  is_dirty_.assign(static_cast<std::size_t>(num_nodes_), true);
  dirty_.resize(static_cast<std::size_t>(num_nodes_));
  std::iota(dirty_.begin(), dirty_.end(), 0);
  place_of_.resize(static_cast<std::size_t>(num_nodes_));
  std::map<std::pair<int, std::int64_t>, std::int32_t> classes;
  const auto enter = [&](std::int32_t node, int kind, std::int64_t content) {
    const auto [found, added] = classes.try_emplace({kind, content}, static_cast<std::int32_t>(nodes_of_.size()));
    if (added) nodes_of_.emplace_back();
    Enter(node, found->second);
  };
  for (std::int32_t u = 0; u < first_group_; ++u) enter(u, 0, use_of_[static_cast<std::size_t>(u)]);
  for (std::int32_t node = first_group_; node < first_route_; ++node) enter(node, 1, 0);
  for (std::int32_t node = first_route_; node < first_link_; ++node) {
    enter(node, 2, world_.routes[static_cast<std::size_t>(node - first_route_)].rate);
  }
  for (std::int32_t node = first_link_; node < num_nodes_; ++node) {
    enter(node, 3, world_.link_capacities[static_cast<std::size_t>(node - first_link_)]);
  }
}

void Refinement::Enter(std::int32_t node, std::int32_t class_id) {
  class_of_[static_cast<std::size_t>(node)] = class_id;
  place_of_[static_cast<std::size_t>(node)] = static_cast<std::int32_t>(NodesOf(class_id).size());
  NodesOf(class_id).push_back(node);
}

void Refinement::Leave(std::int32_t node) {
  std::vector<std::int32_t>& nodes = NodesOf(class_of_[static_cast<std::size_t>(node)]);
  const std::int32_t place = place_of_[static_cast<std::size_t>(node)];
  nodes[static_cast<std::size_t>(place)] = nodes.back();
  place_of_[static_cast<std::size_t>(nodes.back())] = place;
  nodes.pop_back();
}

void Refinement::AppendUnit(std::int32_t u) {
  const Unit& unit = world_.units[static_cast<std::size_t>(u)];
  for (std::size_t channel = 0; channel < unit.peers.size(); ++channel) {
    if (!UsesChannel(u, channel)) continue;
    signature_.push_back(ClassOfUnit(unit.peers[channel].unit));
    signature_.push_back(unit.peers[channel].channel);
    const std::int32_t route = RouteOf(u, channel);
    if (!unit.routes.empty()) signature_.push_back(route < 0 ? -1 : ClassOfRoute(route));
  }
  for (std::size_t slot = 0; slot < unit.groups.size(); ++slot) {
    if (UsesGroup(u, slot)) signature_.push_back(ClassOfGroup(unit.groups[slot]));
  }
}

void Refinement::AppendGroup(std::int32_t group) {
  pairs_.clear();
  for (const Neighbour& member : members_[static_cast<std::size_t>(group)]) {
    pairs_.emplace_back(ClassOf(member.node), member.as);
  }
  std::sort(pairs_.begin(), pairs_.end());
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
  for (const auto& [class_id, slot] : pairs_) {
    signature_.push_back(class_id);
    signature_.push_back(slot);
  }
  if (world_.group_routes.empty()) return;
  signature_.push_back(-1);
  for (const std::int32_t route : world_.group_routes[static_cast<std::size_t>(group)]) {
    signature_.push_back(route < 0 ? -1 : ClassOfRoute(route));
  }
}

// Which classes, as what, how often.
void Refinement::AppendCounted(const std::vector<Neighbour>& neighbours) {
  pairs_.clear();
  for (const Neighbour& neighbour : neighbours) pairs_.emplace_back(ClassOf(neighbour.node), neighbour.as);
  std::sort(pairs_.begin(), pairs_.end());
  for (std::size_t i = 0; i < pairs_.size();) {
    std::size_t end = i;
    while (end < pairs_.size() && pairs_[end] == pairs_[i]) ++end;
    signature_.push_back(pairs_[i].first);
    signature_.push_back(pairs_[i].second);
    signature_.push_back(static_cast<std::int32_t>(end - i));
    i = end;
  }
  signature_.push_back(-1);
}

void Refinement::AppendSignature(std::int32_t node) {
  if (node < first_group_) {
    AppendUnit(node);
  } else if (node < first_route_) {
    AppendGroup(node - first_group_);
  } else if (node < first_link_) {
    AppendCounted(owners_[static_cast<std::size_t>(node - first_route_)]);
    AppendCounted(loads_[static_cast<std::size_t>(node - first_route_)]);
  } else {
    AppendCounted(loaded_by_[static_cast<std::size_t>(node - first_link_)]);
  }
}

void Refinement::See(std::int32_t node, bool clean) {
  const std::size_t begin = signature_.size();
  AppendSignature(node);
  seen_.push_back({node, class_of_[static_cast<std::size_t>(node)], clean, begin, signature_.size()});
}

// Takes the signatures of all dirty nodes, and of one clean node of each of their classes, and sorts them.
void Refinement::Look() {
  seen_.clear();
  signature_.clear();
  std::sort(dirty_.begin(), dirty_.end(), [this](std::int32_t a, std::int32_t b) {
    return std::pair(class_of_[static_cast<std::size_t>(a)], a) < std::pair(class_of_[static_cast<std::size_t>(b)], b);
  });
  for (std::size_t i = 0; i < dirty_.size();) {
    const std::int32_t class_id = class_of_[static_cast<std::size_t>(dirty_[i])];
    std::size_t end = i;
    while (end < dirty_.size() && class_of_[static_cast<std::size_t>(dirty_[end])] == class_id) ++end;
    if (NodesOf(class_id).size() > 1) {
      for (std::size_t j = i; j < end; ++j) See(dirty_[j], false);
      if (NodesOf(class_id).size() > end - i) {
        const auto& nodes = NodesOf(class_id);
        const auto clean = std::find_if(nodes.begin(), nodes.end(), [this](std::int32_t node) {
          return !is_dirty_[static_cast<std::size_t>(node)];
        });
        See(*clean, true);
      }
    }
    i = end;
  }
  for (std::int32_t node : dirty_) is_dirty_[static_cast<std::size_t>(node)] = false;
  dirty_.clear();
  std::sort(seen_.begin(), seen_.end(), [this](const Seen& a, const Seen& b) {
    if (a.class_id != b.class_id) return a.class_id < b.class_id;
    const int order = Compare(a, b);
    return order != 0 ? order < 0 : a.node < b.node;
  });
}

int Refinement::Compare(const Seen& a, const Seen& b) const {
  const auto at = [this](std::size_t i) { return signature_.begin() + static_cast<std::ptrdiff_t>(i); };
  const auto order = std::lexicographical_compare_three_way(at(a.begin), at(a.end), at(b.begin), at(b.end));
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

// Splits every class seen into blocks of equal signatures.
void Refinement::Split() {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < seen_.size();) {
    const std::int32_t class_id = seen_[i].class_id;
    blocks.clear();
    std::size_t seen = 0;
    for (; i < seen_.size() && seen_[i].class_id == class_id; ++i) {
      if (blocks.empty() || Compare(seen_[blocks.back().begin], seen_[i]) != 0) blocks.push_back({i, i, 0, false});
      Block& block = blocks.back();
      block.end = i + 1;
      if (seen_[i].clean) {
        block.clean = true;
      } else {
        ++block.size;
        ++seen;
      }
    }
    if (blocks.size() == 1) continue;
    for (Block& block : blocks) {
      if (block.clean) block.size += NodesOf(class_id).size() - seen;
    }
    SplitClass(class_id, blocks);
  }
}

// The largest block stays. First go the blocks that were seen, then, if it must, what is left: the clean block.
void Refinement::SplitClass(std::int32_t class_id, const std::vector<Block>& blocks) {
  const auto largest =
      std::max_element(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.size < b.size; });
  for (const Block& block : blocks) {
    if (&block == &*largest) continue;
    const auto fresh = static_cast<std::int32_t>(nodes_of_.size());
    nodes_of_.emplace_back();
    for (std::size_t j = block.begin; j < block.end; ++j) {
      if (!seen_[j].clean) Move(seen_[j].node, fresh);
    }
    if (!block.clean) continue;
    // The clean nodes are those of the class that no block holds.
    std::vector<std::int32_t> in_other_blocks;
    for (const Block& other : blocks) {
      if (&other == &block) continue;
      for (std::size_t j = other.begin; j < other.end; ++j) in_other_blocks.push_back(seen_[j].node);
    }
    std::sort(in_other_blocks.begin(), in_other_blocks.end());
    const std::vector<std::int32_t> nodes = NodesOf(class_id);
    for (std::int32_t node : nodes) {
      if (!std::binary_search(in_other_blocks.begin(), in_other_blocks.end(), node)) Move(node, fresh);
    }
  }
}

void Refinement::Move(std::int32_t node, std::int32_t class_id) {
  Leave(node);
  Enter(node, class_id);
  if (node < first_group_) {
    const Unit& unit = world_.units[static_cast<std::size_t>(node)];
    for (std::size_t channel = 0; channel < unit.peers.size(); ++channel) {
      if (!UsesChannel(node, channel)) continue;
      Touch(unit.peers[channel].unit);
      if (const std::int32_t route = RouteOf(node, channel); route >= 0) Touch(first_route_ + route);
    }
    for (std::size_t slot = 0; slot < unit.groups.size(); ++slot) {
      if (UsesGroup(node, slot)) Touch(first_group_ + unit.groups[slot]);
    }
  } else if (node < first_route_) {
    const auto group = static_cast<std::size_t>(node - first_group_);
    for (const Neighbour& member : members_[group]) Touch(member.node);
    if (world_.group_routes.empty()) return;
    for (const std::int32_t route : world_.group_routes[group]) {
      if (route >= 0) Touch(first_route_ + route);
    }
  } else if (node < first_link_) {
    const auto route = static_cast<std::size_t>(node - first_route_);
    for (const Neighbour& owner : owners_[route]) Touch(owner.node);
    for (const Neighbour& load : loads_[route]) Touch(load.node);
  } else {
    for (const Neighbour& route : loaded_by_[static_cast<std::size_t>(node - first_link_)]) Touch(route.node);
  }
}

void Refinement::Touch(std::int32_t node) {
  if (is_dirty_[static_cast<std::size_t>(node)]) return;
  is_dirty_[static_cast<std::size_t>(node)] = true;
  dirty_.push_back(node);
}

}  // namespace orrery::engine
