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
};

struct World {
  std::vector<Program> programs;
  std::vector<Unit> units;
  // Member units of each group, ascending, each once.
  std::vector<std::vector<std::int32_t>> groups;
};

// Checks programs and wiring: both sides of every link agree on the number of messages and every message's duration;
// all members of a group use it equally often with equal lead and duration. INTERNAL otherwise.
absl::Status CheckWorld(const World& world);

// The coarsest stable partition of a world: units of one class have the same program, talk to the same classes over the
// same channels, and are in groups of the same set of classes. All units of a class have the same timeline, so that one
// stands for all. Programs with equal content are one program.
struct Folding {
  World world;                         // one unit per class, ordered by first_rank; multiplicities add up
  std::vector<std::int32_t> class_of;  // by unit of the original world
};
Folding Fold(const World& world);

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_WORLD_H_
