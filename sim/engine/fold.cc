// Folding by partition refinement.
//
// Nodes are units and groups. A node's signature is what it sees: a unit's, the classes of its peers with their
// channels, and of its groups; a group's, the set of (class of a member, slot in which the member holds the group).
// Starting from "same program", classes split by signature until nothing changes. A set suffices for groups because a
// start is a maximum.
//
// Only nodes next to one whose class has changed are looked at again, and the largest part of a split class keeps its
// number, so that a node changes class at most log2(nodes) times. Classes are told apart by sorting signatures, never
// by hashing, and the coarsest stable partition is unique: the result depends on the world alone.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/engine/world.h"

namespace orrery::engine {
namespace {

// Programs with equal content.
class ProgramClasses {
 public:
  explicit ProgramClasses(const World& world) : first_equal_(world.programs.size()) {
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

  std::int32_t operator[](std::int32_t program) const { return first_equal_[static_cast<std::size_t>(program)]; }

 private:
  static std::uint64_t Fingerprint(const Program& program) {
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
    return print;
  }

  std::vector<std::int32_t> first_equal_;  // [program]: lowest index of an equal one
};

// What of its wiring a program uses.
struct WiringUse {
  explicit WiringUse(const Program& program)
      : channels(static_cast<std::size_t>(program.num_channels)), groups(static_cast<std::size_t>(program.num_groups)) {
    for (const Part& part : program.parts) channels[static_cast<std::size_t>(part.channel)] = true;
    for (const Op& op : program.ops) {
      if (op.kind == OpKind::kCollective) groups[static_cast<std::size_t>(op.group)] = true;
    }
  }

  std::vector<bool> channels;
  std::vector<bool> groups;
};

struct Membership {
  std::int32_t unit = 0;
  std::int32_t slot = 0;
};

class Refinement {
 public:
  Refinement(const World& world, const ProgramClasses& programs)
      : world_(world), num_units_(static_cast<std::int32_t>(world.units.size())) {
    LinkNodes(programs);
    StartFromPrograms();
    while (!dirty_.empty()) {
      Look();
      Split();
    }
  }

  std::int32_t ClassOfUnit(std::int32_t unit) const { return class_of_[static_cast<std::size_t>(unit)]; }
  std::int32_t ClassOfGroup(std::int32_t group) const {
    return class_of_[world_.units.size() + static_cast<std::size_t>(group)];
  }
  bool UsesChannel(std::int32_t unit, std::size_t channel) const { return UseOf(unit).channels[channel]; }
  bool UsesGroup(std::int32_t unit, std::size_t slot) const { return UseOf(unit).groups[slot]; }

 private:
  // A node looked at: signature_[begin, end).
  struct Seen {
    std::int32_t node = 0;
    std::int32_t class_id = 0;
    bool clean = false;  // stands for all members of its class that were not looked at
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  const WiringUse& UseOf(std::int32_t unit) const {
    return uses_[static_cast<std::size_t>(use_of_[static_cast<std::size_t>(unit)])];
  }

  void LinkNodes(const ProgramClasses& programs) {
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
    members_.resize(world_.groups.size());
    for (std::int32_t u = 0; u < num_units_; ++u) {
      const Unit& unit = world_.units[static_cast<std::size_t>(u)];
      use_of_.push_back(use_of_program[static_cast<std::size_t>(unit.program)]);
      for (std::size_t slot = 0; slot < unit.groups.size(); ++slot) {
        if (UsesGroup(u, slot)) {
          members_[static_cast<std::size_t>(unit.groups[slot])].push_back({u, static_cast<std::int32_t>(slot)});
        }
      }
    }
  }

  void StartFromPrograms() {
    const std::size_t nodes = world_.units.size() + world_.groups.size();
    class_of_.resize(nodes);
    is_dirty_.assign(nodes, true);
    dirty_.resize(nodes);
    std::iota(dirty_.begin(), dirty_.end(), 0);
    const auto groups_class = static_cast<std::int32_t>(uses_.size());
    for (std::size_t node = 0; node < nodes; ++node) {
      class_of_[node] = node < world_.units.size() ? use_of_[node] : groups_class;
    }
    nodes_of_.resize(uses_.size() + 1);
    place_of_.resize(nodes);
    for (std::size_t node = 0; node < nodes; ++node) Enter(static_cast<std::int32_t>(node), class_of_[node]);
  }

  std::vector<std::int32_t>& NodesOf(std::int32_t class_id) { return nodes_of_[static_cast<std::size_t>(class_id)]; }

  void Enter(std::int32_t node, std::int32_t class_id) {
    class_of_[static_cast<std::size_t>(node)] = class_id;
    place_of_[static_cast<std::size_t>(node)] = static_cast<std::int32_t>(NodesOf(class_id).size());
    NodesOf(class_id).push_back(node);
  }
  void Leave(std::int32_t node) {
    std::vector<std::int32_t>& nodes = NodesOf(class_of_[static_cast<std::size_t>(node)]);
    const std::int32_t place = place_of_[static_cast<std::size_t>(node)];
    nodes[static_cast<std::size_t>(place)] = nodes.back();
    place_of_[static_cast<std::size_t>(nodes.back())] = place;
    nodes.pop_back();
  }

  void AppendSignature(std::int32_t node) {
    if (node < num_units_) {
      const Unit& unit = world_.units[static_cast<std::size_t>(node)];
      for (std::size_t channel = 0; channel < unit.peers.size(); ++channel) {
        if (!UsesChannel(node, channel)) continue;
        signature_.push_back(ClassOfUnit(unit.peers[channel].unit));
        signature_.push_back(unit.peers[channel].channel);
      }
      for (std::size_t slot = 0; slot < unit.groups.size(); ++slot) {
        if (UsesGroup(node, slot)) signature_.push_back(ClassOfGroup(unit.groups[slot]));
      }
      return;
    }
    pairs_.clear();
    for (const Membership& member : members_[static_cast<std::size_t>(node - num_units_)]) {
      pairs_.emplace_back(ClassOfUnit(member.unit), member.slot);
    }
    std::sort(pairs_.begin(), pairs_.end());
    pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
    for (const auto& [class_id, slot] : pairs_) {
      signature_.push_back(class_id);
      signature_.push_back(slot);
    }
  }

  void See(std::int32_t node, bool clean) {
    const std::size_t begin = signature_.size();
    AppendSignature(node);
    seen_.push_back({node, class_of_[static_cast<std::size_t>(node)], clean, begin, signature_.size()});
  }

  // Takes the signatures of all dirty nodes, and of one clean node of each of their classes, and sorts them.
  void Look() {
    seen_.clear();
    signature_.clear();
    std::sort(dirty_.begin(), dirty_.end(), [this](std::int32_t a, std::int32_t b) {
      return std::pair(class_of_[static_cast<std::size_t>(a)], a) <
             std::pair(class_of_[static_cast<std::size_t>(b)], b);
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

  int Compare(const Seen& a, const Seen& b) const {
    const auto at = [this](std::size_t i) { return signature_.begin() + static_cast<std::ptrdiff_t>(i); };
    const auto order = std::lexicographical_compare_three_way(at(a.begin), at(a.end), at(b.begin), at(b.end));
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }

  // Splits every class seen into blocks of equal signatures.
  void Split() {
    struct Block {
      std::size_t begin = 0;  // in seen_
      std::size_t end = 0;
      std::size_t size = 0;
      bool clean = false;
    };
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
      const auto largest = std::max_element(blocks.begin(), blocks.end(),
                                            [](const Block& a, const Block& b) { return a.size < b.size; });
      // First the blocks that were seen, then, if it must go, what is left: the clean block.
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
  }

  void Move(std::int32_t node, std::int32_t class_id) {
    Leave(node);
    Enter(node, class_id);
    if (node < num_units_) {
      const Unit& unit = world_.units[static_cast<std::size_t>(node)];
      for (std::size_t channel = 0; channel < unit.peers.size(); ++channel) {
        if (UsesChannel(node, channel)) Touch(unit.peers[channel].unit);
      }
      for (std::size_t slot = 0; slot < unit.groups.size(); ++slot) {
        if (UsesGroup(node, slot)) Touch(num_units_ + unit.groups[slot]);
      }
    } else {
      for (const Membership& member : members_[static_cast<std::size_t>(node - num_units_)]) Touch(member.unit);
    }
  }

  void Touch(std::int32_t node) {
    if (is_dirty_[static_cast<std::size_t>(node)]) return;
    is_dirty_[static_cast<std::size_t>(node)] = true;
    dirty_.push_back(node);
  }

  const World& world_;
  const std::int32_t num_units_;
  std::vector<WiringUse> uses_;                      // of distinct programs
  std::vector<std::int32_t> use_of_;                 // [unit]
  std::vector<std::vector<Membership>> members_;     // [group]
  std::vector<std::int32_t> class_of_;               // [node]
  std::vector<std::vector<std::int32_t>> nodes_of_;  // [class], in no order that matters
  std::vector<std::int32_t> place_of_;               // [node] in nodes_of_
  std::vector<bool> is_dirty_;
  std::vector<std::int32_t> dirty_;
  std::vector<Seen> seen_;
  std::vector<std::int32_t> signature_;
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs_;
};

// The world of one unit per class.
class Quotient {
 public:
  Quotient(const World& world, const ProgramClasses& programs, const Refinement& classes)
      : world_(world), programs_(programs), classes_(classes) {}

  Folding Build() {
    ChooseRepresentatives();
    new_program_.assign(world_.programs.size(), -1);
    new_group_.assign(world_.units.size() + world_.groups.size() + world_.programs.size() + 1, -1);
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
    std::vector<std::int32_t> number(num_units + world_.groups.size() + world_.programs.size() + 1, -1);
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
    }
    const auto id = static_cast<std::int32_t>(folding_.world.units.size());
    for (std::size_t slot = 0; slot < original.groups.size(); ++slot) {
      std::int32_t group = -1;
      if (classes_.UsesGroup(representative, slot)) {
        std::int32_t& of_class = new_group_[static_cast<std::size_t>(classes_.ClassOfGroup(original.groups[slot]))];
        if (of_class < 0) {
          of_class = static_cast<std::int32_t>(folding_.world.groups.size());
          folding_.world.groups.emplace_back();
        }
        group = of_class;
        folding_.world.groups[static_cast<std::size_t>(group)].push_back(id);
      }
      unit.groups.push_back(group);
    }
    folding_.world.units.push_back(std::move(unit));
  }

  const World& world_;
  const ProgramClasses& programs_;
  const Refinement& classes_;
  std::vector<std::int32_t> representatives_;  // [class of the folding]: unit
  std::vector<std::int32_t> new_program_;      // [program]
  std::vector<std::int32_t> new_group_;        // [class of groups]
  Folding folding_;
};

}  // namespace

Folding Fold(const World& world) {
  const ProgramClasses programs(world);
  const Refinement classes(world, programs);
  return Quotient(world, programs, classes).Build();
}

}  // namespace orrery::engine
