// How long NCCL's kernels take. The tuner's formula only chooses: between 2 and 128 MB it falls short by 15 to 40 %,
// for it knows no chunks.
//
// S bytes, n ranks on N nodes, g per node, C channels. Constants by architecture (NcclTimes) in small letters. Every
// sum begins with launch and the base latency of algorithm and protocol (NcclVersion).
//
//   step(c)   time until every channel has moved a chunk of c bytes on by one hop: two limits that blend as (x^4 +
//             y^4)^(1/4), because channels of one link do not wait for each other,
//               x = latency + c / channel_bandwidth              each channel by itself: one multiprocessor
//               y = C c / capacity                               all channels on the narrowest link they share
//             latency: nvlink_step; across nodes the mean over the ring's hops, N of n being net_step. Wires count
//             where they are longer than that. Whatever crosses leaves does so over further switches, whose latency is
//             added.
//
//   Ring, Simple   a loop moves C n c bytes in `steps` steps (tuner.h) and the next begins when it has ended; c is a
//                  buffer's chunk (2 MiB), less in the last loop:   sum over loops of steps x step(c)
//                  Broadcast, reduce: (n - 2 + S / (C c)) step(c), c one buffer slot
//                  capacity: NVLink of a GPU, which has (g - 1) / g of a ring across nodes; all NICs of a node, for the
//                  ring leaves a node once
//   Ring, LL*      latencies of the version per step, N of n (2 N of 2 (n - 1)) across nodes, + S / bandwidth as the
//                  tuner has it, no more than the links carry, nor C channel_bandwidth through each rank (LL sends
//                  twice, LL128 16/15 of the data)
//   Tree           latencies likewise + S / bandwidth + (2 (g - 1 + log2 N)) c / channel_bandwidth: a chunk is
//                  forwarded when it is complete; bandwidth as the tuner has it, no more than C tree_channel_bandwidth,
//                  half of that for LL; c a buffer slot, of LL128 cut by size
//   NVLS           a loop moves C h c bytes, h heads one after the other; chunks c as the library cuts them by size:
//                    nvls_launch + (S / (C h c) + 1) h (nvls_chunk + C c / (C nvls_channel_bandwidth))
//                  the + 1 fills the pipeline
//   NVLSTree       the same with 1 + log2 N loops to fill, nvls_tree_step up and down per level of the tree, and per
//                  head the longer of the multiprocessors' work, x nvls_tree_work per neighbour in the tree (2 for two
//                  nodes, 3 beyond), and the NICs' x C c / NICs of a node, x = 1 for two nodes, 2 beyond
//   NVLS, CollNet across nodes   reductions in the switch: every byte leaves a node once, at sharp_share of the NICs;
//                  CollNet's channels move it on at C channel_bandwidth, twice for all-reduce
//   PAT            log2 N net_steps + S (n - 1) / n over the NICs, or at C channel_bandwidth
//   Messages       send/recv: rank r sends to r + 1 and receives from r - 1, as nccl-tests has it; of a node's messages
//                  one crosses the network, over one NIC, and of a leaf's one leaves it
//                  all-to-all loads GPU ports with S (g - 1) / n, NICs with S (n - g) / n per rank (PXN: over the
//                  rail's NIC), uplinks with S (n - m) / n per rank, m of them under the leaf, and eight peers are
//                  served at a time
//
// For a fixed variant time never falls with size: where the library takes larger chunks from a size on and gains by it,
// smaller sizes take no longer than that size. What a link carries over the time is at most its capacity: the progress
// part is no shorter than that. Uplinks of a leaf, which a ring leaves once, trees and PAT with every edge that
// joins two leaves (node_edges.h), come in here alone: a slow one is a hop of many, and the others' steps are hidden
// behind it.
#ifndef ORRERY_SIM_COLLECTIVES_NCCL_TIME_H_
#define ORRERY_SIM_COLLECTIVES_NCCL_TIME_H_

#include <cstdint>

#include "orrery/v1/nccl.pb.h"
#include "sim/collectives/nccl/channels.h"
#include "sim/collectives/nccl/communicator.h"
#include "sim/collectives/nccl/tuner.h"

namespace orrery::collectives::nccl {

// Bytes that the busiest rank's share of each kind of link carries in one direction: its NVLink port, its share (1 /
// ranks per node) of the node's NICs, and of what the leaf has above it.
struct LinkBytes {
  double nvlink = 0;
  double nic = 0;
  double uplink = 0;
};

// `fixed` needs no bandwidth: launch and latencies. `progress` is what shares links.
struct Duration {
  double fixed = 0;  // seconds
  double progress = 0;
  LinkBytes bytes;

  double seconds() const { return fixed + progress; }
};

// Bytes on the wire per byte of data.
double Wire(v1::NcclProtocol protocol);
// Bytes that a ring moves through every rank, as a share of the operation's.
double RingShare(Operation operation, double ranks);
// What an operation of `bytes` moves, of which its flows carry shares (sim/collectives/footprint.h).
double MovedBytes(Operation operation, const Variant& variant, double bytes, double ranks, double ranks_per_node);

class TimeModel {
 public:
  // `version`, `times` and `tuner` must outlive the model.
  TimeModel(const Communicator& comm, const Channels& channels, const v1::NcclVersion& version,
            const v1::NcclTimes& times, const Tuner& tuner);

  // Of a variant that can carry out the operation, more than one rank. All-to-all: bytes of one rank's buffer.
  Duration Of(Operation operation, std::int64_t bytes, const Variant& variant) const;

  // Bytes per second that a rank has of each kind of link: what LinkBytes are held against.
  double NvlinkCapacity() const;
  double NicCapacity() const;
  double UplinkCapacity() const;

 private:
  double Seconds(Operation operation, double bytes, const Variant& variant) const;
  double Step(double chunk, double latency) const;
  // Of bytes that a rank moves on, over all channels.
  double ChannelSeconds(double moved) const;
  double RingSimple(Operation operation, double bytes) const;
  double RingLow(Operation operation, double bytes, v1::NcclProtocol protocol) const;
  double Tree(double bytes, v1::NcclProtocol protocol) const;
  double TreeChunk(double bytes, v1::NcclProtocol protocol) const;
  // Least over this size and the larger ones from which chunks are larger.
  double Nvls(Operation operation, double bytes, const Variant& variant) const;
  double NvlsOf(Operation operation, double bytes, double chunk, const Variant& variant) const;
  double CollNet(Operation operation, double bytes, const Variant& variant) const;
  double Pat(Operation operation, double bytes) const;
  double Messages(Operation operation, double data, v1::NcclProtocol protocol) const;
  double MessageLatency(v1::NcclProtocol protocol) const;
  LinkBytes BytesOf(Operation operation, double bytes, const Variant& variant) const;
  // Seconds of the most loaded link of a node.
  double NodeLinks(Operation operation, double bytes, const Variant& variant) const;
  double Crossings(Operation operation) const;
  double MeanLatency() const;
  // Seconds per step, no shorter than the wires; and what so many crossings between leaves add.
  double NvlinkStep() const;
  double NetStep() const;
  // The library's tables have the rest: a hop inside a node, and one across the network.
  double TableStep(v1::NcclAlgorithm algorithm, v1::NcclProtocol protocol) const;
  double TableNetStep(v1::NcclAlgorithm algorithm, v1::NcclProtocol protocol) const;
  double LeafCrossings(double crossings) const;

  const Communicator comm_;
  const Channels channels_;
  const v1::NcclVersion& version_;
  const v1::NcclTimes& times_;
  const Tuner& tuner_;
  double n_ = 1, nodes_ = 1, local_ = 1, ring_ = 1;  // ring_: channels of the communicator
};

}  // namespace orrery::collectives::nccl

#endif  // ORRERY_SIM_COLLECTIVES_NCCL_TIME_H_
