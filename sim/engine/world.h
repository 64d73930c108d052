// The wiring of programs: which unit talks to which. A *unit* is a rank, or, folded, a class of ranks that cannot
// differ.
#ifndef ORRERY_SIM_ENGINE_WORLD_H_
#define ORRERY_SIM_ENGINE_WORLD_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "sim/engine/program.h"

namespace orrery::engine {

// Where a channel of a unit leads: the peer unit, and the channel that is this link at the peer.
struct Peer {
  std::int32_t unit = -1;
  std::int32_t channel = -1;

  friend bool operator==(const Peer&, const Peer&) = default;
};

struct Unit {
  std::int32_t program = 0;
  // Ranks it stands for.
  std::int64_t multiplicity = 1;
  // Lowest rank it stands for: orders output.
  std::int64_t first_rank = 0;
  // One entry per channel and per group of its program; groups index World::groups. -1: not used by the program.
  std::vector<Peer> peers;
  std::vector<std::int32_t> groups;
  // Route of the messages sent on each channel, an index into World::routes, or -1; empty: none shares links.
  std::vector<std::int32_t> routes = {};
};

// What a transfer puts on a link while it moves.
struct LinkLoad {
  std::int32_t link = 0;
  // Bytes on the link for each byte of progress, above 0.
  std::int64_t bytes = 1;

  friend auto operator<=>(const LinkLoad&, const LinkLoad&) = default;
};

// How a transfer loads links that others use, as long as it makes progress (Program::op_progress, part_progress): as
// fast as stated where it is alone, slower where its links are shared.
struct Route {
  // Bytes of progress per second, alone.
  std::int64_t rate = 0;
  // Ascending by link, each once.
  std::vector<LinkLoad> loads = {};
  // Transfers that it stands for, each on links like these; and, by load, what one of them puts on such a link (on that
  // which it loads most). Empty: all of it.
  std::int64_t alike = 1;
  std::vector<std::int64_t> of_one = {};

  friend bool operator==(const Route&, const Route&) = default;
};

struct World {
  std::vector<Program> programs;
  std::vector<Unit> units;
  // Member units of each group, ascending, each once.
  std::vector<std::vector<std::int32_t>> groups;
  // Routes of each group's collectives by Op::pattern, or -1. Empty: none shares links.
  std::vector<std::vector<std::int32_t>> group_routes = {};
  std::vector<Route> routes = {};
  // Bytes per second of each link.
  std::vector<std::int64_t> link_capacities = {};
};

// Checks programs and wiring: both sides of every link agree on the number of messages and every message's duration;
// all members of a group use it equally often with equal lead, duration, progress and pattern; routes and links exist.
// INTERNAL otherwise.
absl::Status CheckWorld(const World& world);

// The coarsest stable partition of a world: units of one class have the same program, talk to the same classes over the
// same channels, and are in groups of the same set of classes. All units of a class have the same timeline, so that one
// stands for all. Programs with equal content are one program.
struct Folding {
  World world;                                // one unit per class, ordered by first_rank; multiplicities add up
  std::vector<std::int32_t> class_of;         // by unit of the original world
  std::vector<std::int32_t> link_class = {};  // likewise, by link
  // By link of `world`: the first of the original world that it stands for, and how many they are.
  std::vector<std::int32_t> first_link = {};
  std::vector<std::int64_t> links_alike = {};
};
Folding Fold(const World& world);

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_WORLD_H_
