#include "bench/sim/network/fat_tree.h"

#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace orrery::network {

FatTree::FatTree(std::int32_t nodes, Cables cables)
    : nodes_(nodes),
      num_cables_(nodes + nodes / kNodesPerLeaf * kSpines),
      down_(cables == Cables::kHalfDuplex ? 0 : num_cables_) {
  ORRERY_CHECK(nodes % kNodesPerLeaf == 0);
}

FlowNetwork FatTree::MakeNetwork() const {
  FlowNetwork network;
  for (std::int32_t l = 0; l < num_links(); ++l)
    ORRERY_CHECK(network.AddLink(BytesPerSecondInteger(kLinkBytesPerSecond)).ok());
  return network;
}

LinkId FatTree::Uplink(std::int32_t from, std::int32_t to) const {
  if (from / kNodesPerLeaf == to / kNodesPerLeaf) return kNoLink;
  return LeafCable(from, to % kSpines);
}

std::span<const LinkLoad> FatTree::Path(std::int32_t from, std::int32_t to, std::array<LinkLoad, 4>& path) const {
  path[0].link = from;
  path[1].link = to + down_;
  path[2].link = Uplink(from, to);
  if (path[2].link == kNoLink) return {path.data(), 2};
  path[3].link = LeafCable(to, to % kSpines) + down_;
  return path;
}

std::vector<std::vector<std::int32_t>> RandomPermutations(std::int32_t nodes, std::int32_t steps) {
  std::vector<std::vector<std::int32_t>> result;
  for (std::int32_t step = 0; step < steps; ++step) {
    std::vector<std::int32_t> to(static_cast<std::size_t>(nodes));
    std::iota(to.begin(), to.end(), 0);
    // S. Sattolo, "An algorithm to generate a random cyclic permutation", Information Processing Letters 22(6), 1986.
    for (std::size_t i = to.size() - 1; i > 0; --i)
      std::swap(to[i], to[HashCombine(static_cast<std::uint64_t>(step), i) % i]);
    result.push_back(std::move(to));
  }
  return result;
}

}  // namespace orrery::network
