#include "sim/engine/world.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sim/engine/program_index.h"

namespace orrery::engine {
namespace {

class WorldChecker {
 public:
  explicit WorldChecker(const World& world) : world_(world) {}

  absl::StatusOr<std::vector<ProgramIndex>> Index() {
    if (world_.units.empty()) return absl::InternalError("world: no units");
    indices_.reserve(world_.programs.size());
    for (const Program& program : world_.programs) {
      ABSL_ASSIGN_OR_RETURN(ProgramIndex index, IndexProgram(program));
      indices_.push_back(std::move(index));
      agreed_.emplace_back(program.num_channels);
    }
    for (std::size_t u = 0; u < world_.units.size(); ++u) ABSL_RETURN_IF_ERROR(CheckUnit(u));
    for (std::size_t u = 0; u < world_.units.size(); ++u) ABSL_RETURN_IF_ERROR(CheckChannels(u));
    ABSL_RETURN_IF_ERROR(CheckGroups());
    ABSL_RETURN_IF_ERROR(CheckRoutes());
    return std::move(indices_);
  }

 private:
  // A pair of program and channel that a channel was already compared with.
  struct Agreed {
    std::int32_t program = -1;
    std::int32_t channel = -1;
  };

  static absl::Status Wrong(std::size_t unit, const std::string& what) {
    return absl::InternalError(absl::StrCat("world: unit ", unit, " ", what));
  }

  const Program& ProgramOf(const Unit& unit) const { return world_.programs[static_cast<std::size_t>(unit.program)]; }
  const ProgramIndex& IndexOf(const Unit& unit) const { return indices_[static_cast<std::size_t>(unit.program)]; }

  bool UsesChannel(const Unit& unit, std::size_t channel) const {
    const ProgramIndex& index = IndexOf(unit);
    return !index.messages[2 * channel].empty() || !index.messages[2 * channel + 1].empty();
  }

  absl::Status CheckUnit(std::size_t u) const {
    const Unit& unit = world_.units[u];
    if (unit.program < 0 || static_cast<std::size_t>(unit.program) >= world_.programs.size()) {
      return Wrong(u, "has no program");
    }
    const Program& program = world_.programs[static_cast<std::size_t>(unit.program)];
    if (unit.multiplicity < 1) return Wrong(u, "stands for no rank");
    if (unit.peers.size() != static_cast<std::size_t>(program.num_channels)) return Wrong(u, "lacks peers");
    if (unit.groups.size() != static_cast<std::size_t>(program.num_groups)) return Wrong(u, "lacks groups");
    return absl::OkStatus();
  }

  absl::Status CheckChannels(std::size_t u) {
    const Unit& unit = world_.units[u];
    for (std::size_t channel = 0; channel < unit.peers.size(); ++channel) {
      if (!UsesChannel(unit, channel)) continue;
      const Peer& peer = unit.peers[channel];
      if (peer.unit < 0 || static_cast<std::size_t>(peer.unit) >= world_.units.size()) {
        return Wrong(u, absl::StrCat("has no peer on channel ", channel));
      }
      const Unit& other = world_.units[static_cast<std::size_t>(peer.unit)];
      if (peer.channel < 0 || static_cast<std::size_t>(peer.channel) >= other.peers.size() ||
          other.peers[static_cast<std::size_t>(peer.channel)] !=
              Peer{static_cast<std::int32_t>(u), static_cast<std::int32_t>(channel)}) {
        return Wrong(u, absl::StrCat("is not the peer of its peer on channel ", channel));
      }
      Agreed& agreed = agreed_[static_cast<std::size_t>(unit.program)][channel];
      if (agreed.program == other.program && agreed.channel == peer.channel) continue;
      if (!SendsMatch(unit, channel, other, static_cast<std::size_t>(peer.channel)) ||
          !SendsMatch(other, static_cast<std::size_t>(peer.channel), unit, channel)) {
        return Wrong(u, absl::StrCat("and its peer ", peer.unit, " disagree on the messages of channel ", channel));
      }
      agreed = {other.program, peer.channel};
      agreed_[static_cast<std::size_t>(other.program)][static_cast<std::size_t>(peer.channel)] = {
          unit.program, static_cast<std::int32_t>(channel)};
    }
    return absl::OkStatus();
  }

  // Equally many sends as receives; every pair both eager or both rendezvous, and of equal duration.
  bool SendsMatch(const Unit& from, std::size_t from_channel, const Unit& to, std::size_t to_channel) const {
    const auto& sends = IndexOf(from).messages[2 * from_channel + 1];
    const auto& receives = IndexOf(to).messages[2 * to_channel];
    if (sends.size() != receives.size()) return false;
    const bool all_eager = !IndexOf(from).meets[2 * from_channel + 1] && !IndexOf(to).meets[2 * to_channel];
    const Program& sender = world_.programs[static_cast<std::size_t>(from.program)];
    const Program& receiver = world_.programs[static_cast<std::size_t>(to.program)];
    for (std::size_t i = 0; i < sends.size(); ++i) {
      if (sender.parts[static_cast<std::size_t>(sends[i].part)].duration !=
              receiver.parts[static_cast<std::size_t>(receives[i].part)].duration ||
          ProgressOfPart(sender, sends[i].part) != ProgressOfPart(receiver, receives[i].part)) {
        return false;
      }
      if (!all_eager && sender.ops[static_cast<std::size_t>(sends[i].op)].kind !=
                            receiver.ops[static_cast<std::size_t>(receives[i].op)].kind) {
        return false;
      }
    }
    return true;
  }

  absl::Status CheckGroups() {
    for (std::size_t g = 0; g < world_.groups.size(); ++g) {
      const auto& members = world_.groups[g];
      if (std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) != members.end()) {
        return absl::InternalError(absl::StrCat("world: the members of group ", g, " do not ascend"));
      }
    }
    struct First {
      std::int32_t unit = -1;
      std::size_t slot = 0;
    };
    std::vector<First> first(world_.groups.size());
    std::vector<std::int32_t> last(world_.groups.size(), -1);
    std::vector<std::size_t> found(world_.groups.size(), 0);
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      const Unit& unit = world_.units[u];
      for (std::size_t slot = 0; slot < unit.groups.size(); ++slot) {
        if (IndexOf(unit).uses[slot].empty()) continue;
        if (unit.groups[slot] < 0 || static_cast<std::size_t>(unit.groups[slot]) >= world_.groups.size()) {
          return Wrong(u, absl::StrCat("uses group ", slot, " but is in none"));
        }
        const auto g = static_cast<std::size_t>(unit.groups[slot]);
        const auto id = static_cast<std::int32_t>(u);
        if (!std::binary_search(world_.groups[g].begin(), world_.groups[g].end(), id)) {
          return Wrong(u, absl::StrCat("is not a member of its group ", g));
        }
        if (last[g] != id) ++found[g];
        last[g] = id;
        if (first[g].unit < 0) {
          first[g] = {id, slot};
        } else if (!UsesMatch(world_.units[static_cast<std::size_t>(first[g].unit)], first[g].slot, unit, slot)) {
          return Wrong(u, absl::StrCat("and unit ", first[g].unit, " disagree on the uses of group ", g));
        }
      }
    }
    for (std::size_t g = 0; g < world_.groups.size(); ++g) {
      if (found[g] != 0 && found[g] != world_.groups[g].size()) {
        return absl::InternalError(absl::StrCat("world: not every member of group ", g, " uses it"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckRoutes() const {
    const auto routes = static_cast<std::int32_t>(world_.routes.size());
    const auto exist = [routes](const std::vector<std::int32_t>& named) {
      return std::all_of(named.begin(), named.end(), [routes](std::int32_t r) { return r >= -1 && r < routes; });
    };
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      const Unit& unit = world_.units[u];
      if (unit.routes.empty()) continue;
      if (unit.routes.size() != unit.peers.size() || !exist(unit.routes)) return Wrong(u, "has routes that do not fit");
    }
    if (!world_.group_routes.empty() && world_.group_routes.size() != world_.groups.size()) {
      return absl::InternalError("world: routes of some groups only");
    }
    for (const std::vector<std::int32_t>& of_group : world_.group_routes) {
      if (!exist(of_group)) return absl::InternalError("world: a group has a route that does not exist");
    }
    for (std::size_t r = 0; r < world_.routes.size(); ++r) {
      if (!RouteMakesSense(world_.routes[r]))
        return absl::InternalError(absl::StrCat("world: route ", r, " is broken"));
    }
    return absl::OkStatus();
  }

  bool RouteMakesSense(const Route& route) const {
    std::int32_t last = -1;
    for (const LinkLoad& load : route.loads) {
      if (load.link <= last || load.bytes < 1) return false;
      last = load.link;
    }
    if (!route.of_one.empty() && route.of_one.size() != route.loads.size()) return false;
    return route.rate >= 1 && last < static_cast<std::int32_t>(world_.link_capacities.size());
  }

  bool UsesMatch(const Unit& a, std::size_t slot_a, const Unit& b, std::size_t slot_b) const {
    if (a.program == b.program && slot_a == slot_b) return true;
    const auto& uses_a = IndexOf(a).uses[slot_a];
    const auto& uses_b = IndexOf(b).uses[slot_b];
    if (uses_a.size() != uses_b.size()) return false;
    for (std::size_t i = 0; i < uses_a.size(); ++i) {
      const Op& op_a = ProgramOf(a).ops[static_cast<std::size_t>(uses_a[i])];
      const Op& op_b = ProgramOf(b).ops[static_cast<std::size_t>(uses_b[i])];
      if (op_a.lead != op_b.lead || op_a.duration != op_b.duration || op_a.pattern != op_b.pattern ||
          ProgressOfOp(ProgramOf(a), uses_a[i]) != ProgressOfOp(ProgramOf(b), uses_b[i])) {
        return false;
      }
    }
    return true;
  }

  const World& world_;
  std::vector<ProgramIndex> indices_;        // [program]
  std::vector<std::vector<Agreed>> agreed_;  // [program][channel]: latest comparison
};

}  // namespace

absl::StatusOr<std::vector<ProgramIndex>> IndexWorld(const World& world) { return WorldChecker(world).Index(); }

absl::Status CheckWorld(const World& world) { return IndexWorld(world).status(); }

}  // namespace orrery::engine
