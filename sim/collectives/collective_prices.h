// How long a collective or message takes, from the cluster graph and the profile's latencies.
//
// n ranks on N nodes, S bytes. The price is the least over algorithm and protocol of
//
//   latency + (moved + fill) / (bandwidth x protocol efficiency)
//
//             latency = base + steps, where a step is intra inside a node and inter between nodes
//   ring      all-reduce: 2 (n - 1) steps, 2 (N - 1) of them inter; moved 2 (n - 1) / n S
//             reduce-scatter, all-gather: half of both
//             broadcast: n - 1 steps, N - 1 of them inter; moved S
//   tree      all-reduce only: 2 (g - 1) intra and 2 ceil(log2 N) inter steps, g = most ranks on a node; moved 2 S
//   fill      steps x min(half of a step's chunk, fill_bytes); the chunk is S / n, in broadcast and tree S: a GPU
//   passes
//             a slice on when it has all of it, and a slice is half of a chunk until it reaches its cap. A slower ring
//             has fewer channels and holds back less: the cap is in proportion to bandwidth / (that of an NVLink ring)
//
// These are the latency and bandwidth terms of NCCL's tuning model (src/graph/tuning.cc), plus the fill that it leaves
// out and for which it falls short of measured times between 2 and 128 MB.
//
// bandwidth: inside a node that of a ring over NVLink. Across nodes also that of the NICs: a flat ring enters and
// leaves every node once, so that all NICs which its ranks own on one node together carry `moved`. Every group of the
// axis runs at the same time, so a rank owns NICs of node / GPUs of node; the node with fewest ranks decides. Across
// leaf switches a ring of N / L nodes per leaf leaves each leaf once; the leaf's uplinks are shared by that many nodes,
// so that oversubscription up to N / L costs nothing. Step latencies of the profile include the way inside a node or
// over one leaf; where the graph's is longer than the whole step, it counts instead. Every further switch of the graph
// on the way between leaves adds its latency to the steps that cross them.
//
// Message: start + one step + bytes / bandwidth, where the bandwidth is what one message reaches (message_efficiency of
// the link) over NVLink, or over one NIC and that uplink. All GPUs of a node send at the same time, the tensor-parallel
// ranks of a stage and whoever else is there, so that a GPU has no more than its share of the node's NICs.
//
// Not modelled: NVLS and SHARP (A100 has neither by default), chunk sizes, contention with other traffic.
#ifndef ORRERY_SIM_COLLECTIVES_COLLECTIVE_PRICES_H_
#define ORRERY_SIM_COLLECTIVES_COLLECTIVE_PRICES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "orrery/v1/run.pb.h"
#include "sim/layout/layout.h"
#include "topology/cluster_graph.h"

namespace orrery::collectives {

enum class CollectiveType : std::uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast };

// Seconds of a collective or message alone, and the last part of them in which it moves its bytes at full bandwidth;
// the rest is latency and fill.
struct Price {
  double seconds = 0;
  double progress = 0;
};

// Immutable; copies what it needs of graph and profile.
class CollectivePrices {
 public:
  CollectivePrices(const topology::ClusterGraph& graph, const v1::CollectiveProfile& profile);

  // Seconds of a collective over one group; the other groups of its kind run at the same time, each on its share of the
  // node's NICs (members on the node / GPUs of the node). `bytes` is the full tensor: what all-reduce holds on every
  // rank, all-gather's output, reduce-scatter's input. 0 for one rank and for no bytes. The cheaper of ring and tree.
  Price PriceOf(CollectiveType type, Bytes bytes, const layout::Placement& group) const;
  double Seconds(CollectiveType type, Bytes bytes, const layout::Placement& group) const {
    return PriceOf(type, bytes, group).seconds;
  }
  // Bytes per second that a ring over the group moves through each rank.
  double RingBandwidth(const layout::Placement& group) const;

  // A message of `bytes` between two ranks; every GPU of the node may send at the same time on its own NIC
  // share. 0 between a rank and itself.
  Price MessagePrice(Bytes bytes, std::int64_t from_rank, std::int64_t to_rank) const;
  double MessageSeconds(Bytes bytes, std::int64_t from_rank, std::int64_t to_rank) const {
    return MessagePrice(bytes, from_rank, to_rank).seconds;
  }
  // Bytes per second of such a message.
  double MessageBandwidth(std::int64_t from_rank, std::int64_t to_rank) const;

 private:
  struct Protocol {
    double base = 0;  // seconds
    double intra = 0;
    double inter = 0;
    double intra_efficiency = 1;
    double inter_efficiency = 1;
  };

  // What an algorithm does with a group, whatever the protocol.
  struct Work {
    double intra_steps = 0;
    double inter_steps = 0;
    double crossing_steps = 0;  // of the inter steps: between leaves
    double moved = 0;           // bytes through a GPU, and through the NICs of a node
    double fill = 0;            // bytes that the last rank waits for
    double bandwidth = 0;
  };

  Work Ring(CollectiveType type, double bytes, const layout::Placement& group) const;
  Work Tree(double bytes, const layout::Placement& group) const;
  double Fill(double steps, double chunk, double bandwidth) const;
  Price Cheapest(const Work& work, bool across_nodes) const;
  std::size_t DistanceOf(std::int64_t from_rank, std::int64_t to_rank) const;

  std::vector<Protocol> protocols_;
  double fill_bytes_ = 0;
  double tree_efficiency_ = 1;
  double ring_nvlink_ = 0;       // bytes/s of one GPU
  double nic_share_ = 0;         // bytes/s of NICs per GPU of a node
  double uplink_ratio_ = 1;      // capacity above a leaf / below it
  double crossing_latency_ = 0;  // of the further switches between leaves
  std::int64_t gpus_per_node_ = 1;
  std::int64_t nodes_per_leaf_ = 1;

  // A message: start and bandwidth by topology::Distance.
  double message_start_[3] = {};
  double message_bandwidth_[3] = {};
};

}  // namespace orrery::collectives

#endif  // ORRERY_SIM_COLLECTIVES_COLLECTIVE_PRICES_H_
