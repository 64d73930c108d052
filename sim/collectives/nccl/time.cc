#include "sim/collectives/nccl/time.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "sim/collectives/nccl/node_edges.h"

namespace orrery::collectives::nccl {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;
constexpr double kLlWire = 2;               // a line of 16 bytes holds 8 of data
constexpr double kLl128Wire = 128.0 / 120;  // likewise 120 of 128
constexpr double kMessagesAtATime = 8;      // sends and receives of one work batch

bool Reduces(Operation operation) { return operation == Operation::kAllReduce; }
bool Scatters(Operation operation) {
  return operation == Operation::kReduceScatter || operation == Operation::kAllGather;
}

// What the fullest leaf sends to others in trees, in bytes of the operation.
double TreesLeaving(const Communicator& comm) {
  LeafCount count(comm.leaves, std::llround(comm.nodes_per_leaf));
  ForEachTreeEdge(comm.nodes, [&](std::int64_t child, std::int64_t parent) {
    count.Add(child, parent, 1);
    count.Add(parent, child, 1);
  });
  return static_cast<double>(count.most()) / 2;
}

// Likewise in PAT, in bytes that a node moves.
double PatLeaving(const Communicator& comm) {
  LeafCount count(comm.leaves, std::llround(comm.nodes_per_leaf));
  ForEachPatMessage(comm.nodes,
                    [&](std::int64_t from, std::int64_t to, std::int64_t share) { count.Add(from, to, share); });
  return static_cast<double>(count.most()) / static_cast<double>(comm.nodes - 1);
}

// Two limits that blend.
double Blend(double x, double y) {
  const double xx = x * x, yy = y * y;
  return std::sqrt(std::sqrt(xx * xx + yy * yy));
}

// Levels of a tree over nodes, and what a node sends over the network, in bytes of the operation: either way once with
// two nodes, where it is root of one tree and leaf of the other; twice in the middle of a larger one.
double TreeSends(double nodes) { return nodes <= 2 ? 1 : 2; }

}  // namespace

double Wire(v1::NcclProtocol protocol) { return protocol == v1::LL ? kLlWire : protocol == v1::LL128 ? kLl128Wire : 1; }

double RingShare(Operation operation, double ranks) {
  if (Reduces(operation)) return 2 * (ranks - 1) / ranks;
  return Scatters(operation) ? (ranks - 1) / ranks : 1;
}

double MovedBytes(Operation operation, const Variant& variant, double bytes, double ranks, double ranks_per_node) {
  const double wire = bytes * Wire(variant.protocol);
  switch (variant.algorithm) {
    case v1::RING:
    case v1::PAT:
      return wire * RingShare(operation, ranks);
    case v1::NVLS:
    case v1::NVLS_TREE:
      return wire * (Reduces(operation) ? 1 + 1 / ranks_per_node : 1);
    default:
      return wire;
  }
}

TimeModel::TimeModel(const Communicator& comm, const Channels& channels, const v1::NcclVersion& version,
                     const v1::NcclTimes& times, const Tuner& tuner)
    : comm_(comm),
      channels_(channels),
      version_(version),
      times_(times),
      tuner_(tuner),
      n_(static_cast<double>(comm.ranks)),
      nodes_(static_cast<double>(comm.nodes)),
      local_(static_cast<double>(comm.ranks_per_node)),
      ring_(static_cast<double>(channels.communicator)) {}

double TimeModel::NvlinkCapacity() const { return comm_.nvlink_bandwidth.count(); }
double TimeModel::NicCapacity() const { return comm_.NodeNetwork().count() / local_; }
double TimeModel::UplinkCapacity() const { return comm_.NodeUplinks().count() / local_; }

double TimeModel::Crossings(Operation operation) const {
  if (comm_.nodes == 1) return 0;
  return Reduces(operation) ? std::min(2 * nodes_, 2 * (n_ - 1)) : std::min(nodes_, n_ - 1);
}

double TimeModel::NvlinkStep() const { return std::max(times_.nvlink_step().value(), comm_.nvlink_latency); }
double TimeModel::NetStep() const { return std::max(times_.net_step().value(), comm_.net_latency); }

double TimeModel::TableStep(v1::NcclAlgorithm algorithm, v1::NcclProtocol protocol) const {
  const v1::NcclAlgorithmLatency& table = tuner_.LatencyOf(algorithm);
  return std::max(kMicro * ProtocolOf(comm_.nvlink ? table.nvlink() : table.pci(), protocol), comm_.nvlink_latency);
}
double TimeModel::TableNetStep(v1::NcclAlgorithm algorithm, v1::NcclProtocol protocol) const {
  return std::max(kMicro * ProtocolOf(tuner_.LatencyOf(algorithm).net(), protocol), comm_.net_latency);
}

double TimeModel::LeafCrossings(double crossings) const {
  return comm_.leaves > 1 ? crossings * comm_.crossing_latency : 0;
}

double TimeModel::MeanLatency() const {
  const double crossing = comm_.nodes == 1 ? 0 : nodes_ / n_;
  return crossing * NetStep() + (1 - crossing) * NvlinkStep() + LeafCrossings(static_cast<double>(comm_.leaves) / n_);
}

double TimeModel::Step(double chunk, double latency) const {
  const double all = ring_ * chunk;
  double link = 0;
  if (comm_.ranks_per_node > 1) {
    // Without NVLink a GPU reaches its NIC over the link that it reaches its neighbours by.
    const double share = comm_.nodes == 1 || !comm_.nvlink ? 1 : (local_ - 1) / local_;
    link = all * share / (NvlinkCapacity() * times_.nvlink_share().value());
  }
  if (comm_.nodes > 1) link = std::max(link, all / comm_.NodeNetwork().count());
  return Blend(latency + chunk / times_.channel_bandwidth().value(), link);
}

double TimeModel::ChannelSeconds(double moved) const { return moved / (ring_ * times_.channel_bandwidth().value()); }

double TimeModel::RingSimple(Operation operation, double bytes) const {
  const double slot =
      static_cast<double>(version_.simple_buffer_bytes()) / static_cast<double>(version_.buffer_steps());
  const double latency = MeanLatency();
  if (!Reduces(operation) && !Scatters(operation)) {
    const double chunk = std::min(slot, bytes / ring_);
    const double loops = std::max(1.0, bytes / (ring_ * slot));
    return (std::max(0.0, n_ - 2) + loops) * Step(chunk, latency);
  }
  const double steps = Reduces(operation) ? 2 * (n_ - 1) : n_ - 1;
  const double chunk = slot * static_cast<double>(version_.chunk_steps());
  const double loop = ring_ * n_ * chunk;
  const double whole = std::floor(bytes / loop);
  const double rest = bytes - whole * loop;
  double sum = whole * Step(chunk, latency);
  if (rest > 0) sum += Step(rest / (ring_ * n_), latency);
  return steps * sum;
}

double TimeModel::RingLow(Operation operation, double bytes, v1::NcclProtocol protocol) const {
  // Steps inside a node wait for those that drive the network.
  const double overhead =
      comm_.nodes == 1 ? 0 : kMicro * (comm_.cpu == v1::AMD ? version_.net_overhead_amd() : version_.net_overhead());
  const double steps = Reduces(operation) ? 2 * (n_ - 1) : n_ - 1;
  const double crossings = Crossings(operation);
  const double leaves = crossings / std::max(1.0, nodes_) * static_cast<double>(comm_.leaves);
  return (steps - crossings) * std::max(TableStep(v1::RING, protocol), overhead) +
         crossings * TableNetStep(v1::RING, protocol) + LeafCrossings(leaves) +
         std::max(bytes / (kGiga * tuner_.Bandwidth(operation, {v1::RING, protocol})),
                  ChannelSeconds(bytes * RingShare(operation, n_) * Wire(protocol)));
}

double TimeModel::Tree(double bytes, v1::NcclProtocol protocol) const {
  const double depth = static_cast<double>(Log2(comm_.nodes));
  const double latency = 2 * ((local_ - 1) * TableStep(v1::TREE, protocol) + depth * TableNetStep(v1::TREE, protocol));
  const double hops = 2 * (local_ - 1 + depth);
  const double chunk = std::min(TreeChunk(bytes, protocol), bytes / ring_);
  // The constant is that of Simple and LL128; a multiprocessor moves twice as much for LL's flags.
  const double channel = times_.tree_channel_bandwidth().value() / (protocol == v1::LL ? kLlWire : 1);
  const double bandwidth =
      std::min(kGiga * tuner_.Bandwidth(Operation::kAllReduce, {v1::TREE, protocol}), ring_ * channel);
  return latency + LeafCrossings(2 * static_cast<double>(Log2(comm_.leaves))) + bytes / bandwidth +
         hops * chunk * Wire(protocol) / times_.channel_bandwidth().value();
}

double TimeModel::TreeChunk(double bytes, v1::NcclProtocol protocol) const {
  const double steps = static_cast<double>(version_.buffer_steps());
  if (protocol == v1::LL) return static_cast<double>(version_.ll_buffer_bytes()) / kLlWire / steps;
  if (protocol == v1::SIMPLE) return static_cast<double>(version_.simple_buffer_bytes()) / steps;
  double chunk = static_cast<double>(version_.ll128_buffer_bytes()) / kLl128Wire / steps;
  // Cut while a channel has fewer chunks than its tree is deep.
  const double depth = 1 + static_cast<double>(Log2(comm_.nodes)) + 0.1 * local_;
  while (bytes / (ring_ * chunk) < 64 * depth / local_ && chunk > 131072) chunk /= 2;
  while (bytes / (ring_ * chunk) < 16 * depth / local_ && chunk > 32768) chunk /= 2;
  return chunk;
}

double TimeModel::NvlsOf(Operation operation, double bytes, double chunk, const Variant& variant) const {
  const bool tree = variant.algorithm == v1::NVLS_TREE;
  const double heads = local_;
  const double channels = static_cast<double>(channels_.nvls_channels);
  const double loop = channels * heads * chunk;
  const double loops = std::max(1.0, bytes / loop);
  const double all = std::min(chunk, bytes / (channels * heads)) * channels;  // of one head, in every channel
  double work = all / (channels * times_.nvls_channel_bandwidth().value());
  // All-gather and reduce-scatter do one half of an all-reduce.
  if (Scatters(operation)) work /= 2;
  double network = 0, fill = 1, latency = times_.nvls_launch().value();
  if (tree) {
    work *= std::max(1.0, times_.nvls_tree_work().value() * (comm_.nodes == 2 ? 2 : 3));
    network = all * TreeSends(nodes_) / comm_.NodeNetwork().count();
    fill += static_cast<double>(Log2(comm_.nodes));
    const double step = std::max(times_.nvls_tree_step().value(), comm_.net_latency);
    latency +=
        2 * static_cast<double>(Log2(comm_.nodes)) * step + LeafCrossings(2 * static_cast<double>(Log2(comm_.leaves)));
  } else if (comm_.nodes > 1) {
    network = all / (comm_.NodeNetwork().count() * times_.sharp_share().value());
    latency += NetStep() + LeafCrossings(1);
    fill += 1;
  }
  return latency + (loops + fill) * heads * (times_.nvls_chunk().value() + std::max(work, network));
}

double TimeModel::Nvls(Operation operation, double bytes, const Variant& variant) const {
  const v1::NcclNvls& nvls = version_.nvls();
  const bool tree = variant.algorithm == v1::NVLS_TREE;
  // From how many full loops on a chunk is used: cut below `loops` of the next larger one.
  struct Cut {
    double loops, chunk;
  };
  constexpr Cut kNvls[] = {{64, 65536}, {8, 32768}, {2, 16384}};
  constexpr Cut kTree[] = {{4, 65536}, {1, 32768}};
  double chunk = static_cast<double>(nvls.chunk_bytes());
  if (tree && comm_.nodes >= 4) chunk = std::min(chunk, static_cast<double>(nvls.tree_chunk_bytes()));
  const double concurrent = static_cast<double>(channels_.nvls_channels) * local_;
  double least = 0;
  const auto consider = [&](double size, double with) {
    const double time = NvlsOf(operation, size, with, variant);
    if (least == 0 || time < least) least = time;
  };
  bool fits = false;
  const auto cut = [&](const Cut& next) {
    if (fits || chunk <= next.chunk) return;
    const double from = next.loops * concurrent * chunk;
    consider(std::max(bytes, from), chunk);
    fits = bytes >= from;
    if (!fits) chunk = next.chunk;
  };
  if (tree) {
    for (const Cut& next : kTree) cut(next);
  } else {
    for (const Cut& next : kNvls) cut(next);
  }
  if (!fits) consider(bytes, chunk);
  return least;
}

double TimeModel::CollNet(Operation operation, double bytes, const Variant& variant) const {
  const double network = bytes / (comm_.NodeNetwork().count() * times_.sharp_share().value());
  const double bandwidth = bytes / (kGiga * tuner_.Bandwidth(Operation::kAllReduce, variant));
  const double channels = ChannelSeconds(bytes * (Reduces(operation) ? 2 : 1));  // up to the switch, and down
  // The library's table has one step over the network.
  const double table = kMicro * ProtocolOf(tuner_.LatencyOf(variant.algorithm).net(), variant.protocol);
  const double wires = comm_.nodes > 1 ? std::max(0.0, comm_.net_latency - table) : 0;
  return kMicro * tuner_.Latency(Operation::kAllReduce, 0, variant) + wires + std::max({network, bandwidth, channels});
}

double TimeModel::Pat(Operation operation, double bytes) const {
  const double moved = bytes * RingShare(operation, n_);
  return static_cast<double>(Log2(comm_.nodes)) * NetStep() + LeafCrossings(static_cast<double>(Log2(comm_.leaves))) +
         std::max(moved / comm_.NodeNetwork().count(), ChannelSeconds(moved));
}

double TimeModel::MessageLatency(v1::NcclProtocol protocol) const {
  const double leaves = comm_.nodes > 1 ? LeafCrossings(1) : 0;
  if (protocol != v1::LL) return (comm_.nodes > 1 ? NetStep() : NvlinkStep()) + leaves;
  return (comm_.nodes > 1 ? TableNetStep(v1::RING, protocol) : TableStep(v1::RING, protocol)) + leaves;
}

double TimeModel::Messages(Operation operation, double data, v1::NcclProtocol protocol) const {
  const double bytes = data * Wire(protocol);
  const double per_channel = times_.channel_bandwidth().value();
  const double port = NvlinkCapacity() * times_.nvlink_share().value();
  const double p2p = static_cast<double>(channels_.p2p);
  if (operation == Operation::kSendRecv) {
    // A kernel starts as that of a ring does.
    const double start = kMicro * ProtocolOf(tuner_.LatencyOf(v1::RING).base(), protocol) + MessageLatency(protocol);
    const double kernel = std::min(p2p, static_cast<double>(channels_.p2p_per_peer)) * per_channel;
    double time = 0;
    if (comm_.ranks_per_node > 1) {
      time = bytes / std::min(NvlinkCapacity() * times_.message_share().value(), kernel);
    }
    if (comm_.nodes > 1) {
      time = std::max(time, bytes / std::min({kernel, comm_.nic_message.count(), comm_.NodeNetwork().count()}));
    }
    return start + time;
  }
  const double batches = std::ceil((n_ - 1) / kMessagesAtATime);
  const double sent = bytes * (n_ - 1) / n_;
  double time = std::max(bytes * (local_ - 1) / n_ / port, sent / (p2p * per_channel));
  if (comm_.nodes > 1) {
    // PXN: what leaves the node also crosses NVLink to the GPU of the destination's rail, but for its own.
    const double leaving = bytes * (n_ - local_) / n_;
    time = std::max(time, (bytes * (local_ - 1) / n_ + leaving * (local_ - 1) / local_) / port);
    time = std::max(time, leaving / NicCapacity());
  }
  // Of a batch, whatever the protocol: nine of them take 66 us on 72 GPUs of a GB200 rack with messages of 16 bytes.
  return batches * MessageLatency(v1::SIMPLE) + time;
}

double TimeModel::Seconds(Operation operation, double bytes, const Variant& variant) const {
  const double base = kMicro * ProtocolOf(tuner_.LatencyOf(variant.algorithm).base(), variant.protocol);
  const double start = times_.launch().value();
  switch (variant.algorithm) {
    case v1::RING:
      return start + base +
             (variant.protocol == v1::SIMPLE ? RingSimple(operation, bytes)
                                             : RingLow(operation, bytes, variant.protocol));
    case v1::TREE:
      return start + base + Tree(bytes, variant.protocol);
    case v1::NVLS:
    case v1::NVLS_TREE:
      return start + Nvls(operation, bytes, variant);
    case v1::COLLNET_DIRECT:
    case v1::COLLNET_CHAIN:
      return start + CollNet(operation, bytes, variant);
    case v1::PAT:
      return start + base + Pat(operation, bytes);
    default:
      return start + Messages(operation, bytes, variant.protocol);
  }
}

LinkBytes TimeModel::BytesOf(Operation operation, double bytes, const Variant& variant) const {
  LinkBytes sent;
  const bool several = comm_.nodes > 1;
  const bool leaves = several && comm_.leaves > 1;
  const double wire = Wire(variant.protocol);
  // Of what leaves the fullest leaf, this rank's share. A ring, or a reduction in switches, leaves each leaf once.
  const double leaf_share = leaves ? 1 / (local_ * comm_.nodes_per_leaf) : 0;
  switch (variant.algorithm) {
    case v1::RING: {
      const double moved = bytes * RingShare(operation, n_) * wire;
      sent.nvlink = comm_.ranks_per_node == 1 ? 0 : moved * (several && comm_.nvlink ? (local_ - 1) / local_ : 1);
      sent.nic = several ? moved / local_ : 0;
      sent.uplink = moved * leaf_share;
      break;
    }
    case v1::TREE:
      // Either way: up to the next of the chain and, on the way back, down to the one before.
      sent.nvlink = comm_.ranks_per_node == 1 ? 0 : 2 * bytes * wire;
      sent.nic = several ? TreeSends(nodes_) * bytes * wire / local_ : 0;
      if (leaves) sent.uplink = TreesLeaving(comm_) * bytes * wire * leaf_share;
      break;
    case v1::NVLS:
    case v1::NVLS_TREE:
    case v1::COLLNET_DIRECT:
    case v1::COLLNET_CHAIN: {
      // Each port serves the heads' reads, and its head's result goes out once.
      const double reads = Reduces(operation) ? 1 + 1 / local_ : 1;
      sent.nvlink = comm_.ranks_per_node == 1 ? 0 : bytes * reads;
      const bool tree = variant.algorithm == v1::NVLS_TREE;
      sent.nic = several ? (tree ? TreeSends(nodes_) : 1) * bytes / local_ : 0;
      if (leaves) sent.uplink = (tree ? TreesLeaving(comm_) : 1) * bytes * leaf_share;
      break;
    }
    case v1::PAT:
      sent.nic = bytes * RingShare(operation, n_) / local_;
      if (leaves) sent.uplink = PatLeaving(comm_) * bytes * RingShare(operation, n_) * leaf_share;
      break;
    default: {
      const double moved = bytes * wire;
      if (operation == Operation::kSendRecv) {
        sent.nvlink = comm_.ranks_per_node > 1 ? moved : 0;
        if (!several) break;
        // One message leaves each node, over one NIC; one leaves each leaf, over what that has above it.
        const double nics = static_cast<double>(comm_.nics);
        sent.nic = moved * std::min(1.0, nics / local_);
        if (comm_.leaves > 1) sent.uplink = moved * nics / local_ / comm_.nodes_per_leaf / (comm_.rails ? 1 : nics);
        return sent;
      }
      sent.nvlink = moved * (local_ - 1) / n_ * (several ? nodes_ : 1);
      sent.nic = moved * (n_ - local_) / n_;
      sent.uplink = moved * comm_.LeavingLeaf();
      return sent;
    }
  }
  return sent;
}

double TimeModel::NodeLinks(Operation operation, double bytes, const Variant& variant) const {
  const auto seconds_per_byte = [&] {
    switch (variant.algorithm) {
      case v1::RING:
        return comm_.node_seconds.ring;
      case v1::TREE:
        return comm_.node_seconds.tree;
      case v1::COLLNET_CHAIN:
        return comm_.node_seconds.chain;
      case v1::PAT:
        return comm_.node_seconds.pat;
      case v1::P2P:
        return operation == Operation::kSendRecv ? comm_.node_seconds.send_recv : comm_.node_seconds.all_to_all;
      default:
        return 0.0;
    }
  };
  return seconds_per_byte() * MovedBytes(operation, variant, bytes, n_, local_);
}

Duration TimeModel::Of(Operation operation, std::int64_t bytes, const Variant& variant) const {
  Duration duration;
  const double size = static_cast<double>(bytes);
  duration.fixed = Seconds(operation, 0, variant);
  duration.progress = std::max(0.0, Seconds(operation, size, variant) - duration.fixed);
  duration.bytes = BytesOf(operation, size, variant);
  const double links = std::max({duration.bytes.nvlink / NvlinkCapacity(), duration.bytes.nic / NicCapacity(),
                                 duration.bytes.uplink / UplinkCapacity()});
  duration.progress = std::max({duration.progress, links, NodeLinks(operation, size, variant)});
  return duration;
}

}  // namespace orrery::collectives::nccl
