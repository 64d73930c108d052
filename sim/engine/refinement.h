// Partition refinement of a world: which of its units, groups, routes and links cannot differ.
//
// A node's signature is what it sees: a unit's, the classes of its peers with their channels, of its groups, and of the
// routes that it sends over; a group's, the set of (class of a member, slot in which the member holds the group), and
// the classes of its routes; a route's, how often it loads links of which class with how many bytes, and who owns it; a
// link's, how often routes of which class load it with how many bytes. Starting from "same program", "same capacity"
// and "same rate", classes split by signature until nothing changes. A set suffices for groups because a start is a
// maximum; where rates are shared, numbers count.
//
// Only nodes next to one whose class has changed are looked at again, and the largest part of a split class keeps its
// number, so that a node changes class at most log2(nodes) times. Classes are told apart by sorting signatures, never
// by hashing, and the coarsest stable partition is unique: the result depends on the world alone.
#ifndef ORRERY_SIM_ENGINE_REFINEMENT_H_
#define ORRERY_SIM_ENGINE_REFINEMENT_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/engine/world.h"

namespace orrery::engine {

// Programs with equal content.
class ProgramClasses {
 public:
  explicit ProgramClasses(const World& world);

  std::int32_t operator[](std::int32_t program) const { return first_equal_[static_cast<std::size_t>(program)]; }

 private:
  std::vector<std::int32_t> first_equal_;  // [program]: lowest index of an equal one
};

class Refinement {
 public:
  Refinement(const World& world, const ProgramClasses& programs);

  // Classes are numbered over all kinds of nodes.
  std::size_t num_classes() const { return nodes_of_.size(); }
  std::int32_t ClassOfUnit(std::int32_t unit) const { return ClassOf(unit); }
  std::int32_t ClassOfGroup(std::int32_t group) const { return ClassOf(first_group_ + group); }
  std::int32_t ClassOfRoute(std::int32_t route) const { return ClassOf(first_route_ + route); }
  std::int32_t ClassOfLink(std::int32_t link) const { return ClassOf(first_link_ + link); }
  bool UsesChannel(std::int32_t unit, std::size_t channel) const { return UseOf(unit).channels[channel]; }
  bool UsesGroup(std::int32_t unit, std::size_t slot) const { return UseOf(unit).groups[slot]; }
  // Whether anybody sends over it.
  bool IsOwned(std::int32_t route) const { return !owners_[static_cast<std::size_t>(route)].empty(); }

 private:
  // What of its wiring a program uses.
  struct WiringUse {
    explicit WiringUse(const Program& program);

    std::vector<bool> channels;
    std::vector<bool> groups;
  };
  // One end of an edge, and what it is to the other: a slot, a channel, a pattern, an index into amounts_.
  struct Neighbour {
    std::int32_t node = 0;
    std::int32_t as = 0;
  };
  // A node looked at: signature_[begin, end).
  struct Seen {
    std::int32_t node = 0;
    std::int32_t class_id = 0;
    bool clean = false;  // stands for all members of its class that were not looked at
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  // Nodes of a class with equal signatures: a range of seen_.
  struct Block {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t size = 0;
    bool clean = false;
  };

  std::int32_t ClassOf(std::int32_t node) const { return class_of_[static_cast<std::size_t>(node)]; }
  const WiringUse& UseOf(std::int32_t unit) const {
    return uses_[static_cast<std::size_t>(use_of_[static_cast<std::size_t>(unit)])];
  }
  std::vector<std::int32_t>& NodesOf(std::int32_t class_id) { return nodes_of_[static_cast<std::size_t>(class_id)]; }
  // Route of a unit's channel, or -1.
  std::int32_t RouteOf(std::int32_t unit, std::size_t channel) const;

  void LinkNodes(const ProgramClasses& programs);
  void LinkRoutes();
  void StartFromContents();
  void Enter(std::int32_t node, std::int32_t class_id);
  void Leave(std::int32_t node);
  void AppendSignature(std::int32_t node);
  void AppendUnit(std::int32_t unit);
  void AppendGroup(std::int32_t group);
  void AppendCounted(const std::vector<Neighbour>& neighbours);
  void See(std::int32_t node, bool clean);
  void Look();
  int Compare(const Seen& a, const Seen& b) const;
  void Split();
  void SplitClass(std::int32_t class_id, const std::vector<Block>& blocks);
  void Move(std::int32_t node, std::int32_t class_id);
  void Touch(std::int32_t node);

  const World& world_;
  // Nodes: units, then groups, routes, links.
  const std::int32_t first_group_;
  const std::int32_t first_route_;
  const std::int32_t first_link_;
  const std::int32_t num_nodes_;
  std::vector<WiringUse> uses_;                      // of distinct programs
  std::vector<std::int32_t> use_of_;                 // [unit]
  std::vector<std::vector<Neighbour>> members_;      // [group]
  std::vector<std::vector<Neighbour>> owners_;       // [route]
  std::vector<std::vector<Neighbour>> loads_;        // [route]
  std::vector<std::vector<Neighbour>> loaded_by_;    // [link]
  std::vector<std::int64_t> amounts_;                // distinct LinkLoad::bytes, ascending
  std::vector<std::int32_t> class_of_;               // [node]
  std::vector<std::vector<std::int32_t>> nodes_of_;  // [class], in no order that matters
  std::vector<std::int32_t> place_of_;               // [node] in nodes_of_
  std::vector<bool> is_dirty_;
  std::vector<std::int32_t> dirty_;
  std::vector<Seen> seen_;
  std::vector<std::int32_t> signature_;
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs_;
};

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_REFINEMENT_H_
