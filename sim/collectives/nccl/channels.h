// The channels that NCCL finds: its search over link speeds (src/graph/search.cc), in closed form for nodes whose GPUs
// are all alike.
//
// W = links of a GPU x what the library counts for one; s a speed of the list, highest first; the first s with the
// largest channels x s counts.
//
//   ring on one node      floor(W / s) channels: each leaves a GPU once
//   ring across nodes     floor(NIC / s) per NIC, as long as W carries (g - 1) / g of them, g ranks per node
//   end                   no speed is tried below 0.49 of one that was found
//   duplication           speeds of 25 GB/s and more are halved and channels doubled, but not above compute capability
//                         80 for more than four channels below 50 GB/s
//   NVLS                  a channel has a head GPU, whose link takes two shares and any other's one: (heads + 1) s <=
//   W;
//                         the first s at which every GPU is a head, else the largest heads x s
//
// Where nodes differ, each is searched by itself, and the least of channels and of either speed counts for all.
//
// A communicator then runs every ring channel twice; across nodes, GPUs from 90 on with rings faster than 45 GB/s
// double once more below 16 channels. Trees use the ring's channels.
#ifndef ORRERY_SIM_COLLECTIVES_NCCL_CHANNELS_H_
#define ORRERY_SIM_COLLECTIVES_NCCL_CHANNELS_H_

#include <cstdint>

#include "orrery/v1/nccl.pb.h"
#include "sim/collectives/nccl/communicator.h"

namespace orrery::collectives::nccl {

// What the search found for a pattern: GB/s per channel inside a node and between nodes. No channels: not possible.
struct Graph {
  std::int64_t channels = 0;
  double intra = 0;
  double inter = 0;

  double Intra() const { return static_cast<double>(channels) * intra; }
  double Inter() const { return static_cast<double>(channels) * inter; }
};

struct Channels {
  Graph ring;
  Graph nvls;                      // its channels are heads
  std::int64_t communicator = 1;   // of ring and tree kernels
  std::int64_t nvls_channels = 0;  // of NVLS kernels
  std::int64_t p2p = 1;            // of kernels that send and receive
  std::int64_t p2p_per_peer = 1;
};

// Limits that a user sets (NCCL_MIN_CTAS, NCCL_MAX_CTAS); 0: none.
struct ChannelLimits {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

Channels SearchChannels(const Views& views, const v1::NcclVersion& version, const ChannelLimits& limits);
Channels SearchChannels(const Communicator& comm, const v1::NcclVersion& version, const ChannelLimits& limits);

// The last row that a GPU reaches; nullptr where there is none.
const v1::NcclByNodes* RowOf(const google::protobuf::RepeatedPtrField<v1::NcclByNodes>& rows,
                             std::int64_t compute_capability);
// Its figure for a number of nodes; 0 without a row.
double FigureOf(const google::protobuf::RepeatedPtrField<v1::NcclByNodes>& rows, std::int64_t compute_capability,
                std::int64_t nodes);

}  // namespace orrery::collectives::nccl

#endif  // ORRERY_SIM_COLLECTIVES_NCCL_CHANNELS_H_
