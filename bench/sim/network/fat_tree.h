// Random permutations of messages on a two-level fat tree, for this library and for SimGrid.
#ifndef ORRERY_BENCH_SIM_NETWORK_FAT_TREE_H_
#define ORRERY_BENCH_SIM_NETWORK_FAT_TREE_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/flow_network.h"

namespace orrery::network {

inline constexpr std::int32_t kNodesPerLeaf = 32;
inline constexpr std::int32_t kSpines = 32;
inline constexpr std::int64_t kLinkBytesPerSecond = 12'500'000'000;
inline constexpr std::int64_t kMessageBytes = 1 << 20;

// Half duplex: the two directions of a cable are one link. Messages then contend everywhere.
enum class Cables { kFullDuplex, kHalfDuplex };

// One cable from each node to its leaf and from each leaf to each spine, all of one capacity. The spine is the
// destination's number modulo the number of spines (D-mod-K: E. Zahavi, "D-Mod-K routing providing non-blocking traffic
// for shift permutations on real life fat trees", 2010), as in SimGrid's FAT_TREE.
class FatTree {
 public:
  // `nodes`: a multiple of kNodesPerLeaf.
  FatTree(std::int32_t nodes, Cables cables);

  std::int32_t num_links() const { return num_cables_ + down_; }
  FlowNetwork MakeNetwork() const;
  // In `path`, which is returned without what it did not need.
  std::span<const LinkLoad> Path(std::int32_t from, std::int32_t to, std::array<LinkLoad, 4>& path) const;
  // kNoLink within a leaf.
  LinkId Uplink(std::int32_t from, std::int32_t to) const;

 private:
  // Cables in this order: of nodes, of leaves (by leaf, then spine).
  std::int32_t LeafCable(std::int32_t node, std::int32_t spine) const {
    return nodes_ + node / kNodesPerLeaf * kSpines + spine;
  }

  std::int32_t nodes_;
  std::int32_t num_cables_;
  std::int32_t down_;  // from the link of the way up of a cable to that of the way down
};

// [step][from] = to: cyclic permutations, so that nobody sends to itself.
std::vector<std::vector<std::int32_t>> RandomPermutations(std::int32_t nodes, std::int32_t steps);

// When a step begins: for all when all of the step before has ended; or for each node when it has sent and received its
// message of the step before, and a message when both its ends are in its step.
enum class Steps { kTogether, kFree };

struct SimGridRun {
  double cpu_seconds = 0;  // of the simulation; the platform is built before
  double end = 0;          // s; 0: it failed
};
// In a process of its own.
SimGridRun RunInSimGrid(Cables cables, Steps steps, const std::vector<std::vector<std::int32_t>>& permutations);

}  // namespace orrery::network

#endif  // ORRERY_BENCH_SIM_NETWORK_FAT_TREE_H_
