// From a plan to the engine's world: which ranks can differ, the program of each, and who talks to whom.
//
// Symbolic folding. Coordinates along tp and dp that nothing distinguishes collapse before any rank is enumerated:
// where the layout is regular, only coordinates that a slow GPU names stand alone, and the rest of an axis is one
// block. dp counts as two axes: which shard group, and which place in it. Exchanging two coordinates of one block (two
// whole shard groups; two places in all of them) maps the run onto itself, so all ranks of a block have one timeline.
// Where the layout is irregular every coordinate stands alone, and the engine's refinement finds what is alike.
// Unfolded, or with a speed drawn per rank, every coordinate stands alone and nothing is merged.
#ifndef ORRERY_SIM_TRAINING_WORLD_BUILDER_H_
#define ORRERY_SIM_TRAINING_WORLD_BUILDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/engine/world.h"
#include "sim/training/plan.h"
#include "sim/training/program_builder.h"
#include "sim/training/role_pricer.h"

namespace orrery::training {

// Coordinates of one axis that share a timeline; the smallest stands for all.
struct Block {
  std::int64_t first = 0;
  std::int64_t count = 1;
};

// Units are numbered tp block fastest, then place in the shard group, shard group, pipeline rank.
struct TrainingWorld {
  engine::World world;
  std::vector<Block> tp_blocks;
  std::vector<Block> place_blocks;    // dp mod shard_ranks
  std::vector<Block> shard_blocks;    // dp / shard_ranks
  std::vector<ProgramLabels> labels;  // by program
  // Every coordinate stands alone, and some may yet be alike.
  bool refinable = false;
  // Where transfers share links: by link of the world, the topology's.
  std::vector<std::int32_t> links = {};

  std::size_t UnitOf(const Plan& plan, std::int64_t rank) const;
};

// `tensor_links_shared`: tensor-parallel collectives are transfers of their own, not parts of passes.
// RESOURCE_EXHAUSTED where ranks differ so much that their programs together exceed 30 million operations.
absl::StatusOr<TrainingWorld> BuildWorld(const Plan& plan, RolePricer& pricer, bool tensor_links_shared = false);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_WORLD_BUILDER_H_
