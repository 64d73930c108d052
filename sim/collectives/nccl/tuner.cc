#include "sim/collectives/nccl/tuner.h"

#include <algorithm>
#include <bit>

namespace orrery::collectives::nccl {
namespace {

using v1::NcclProtocol;

constexpr std::int64_t kSmallestCorrected = 64;  // bytes
constexpr std::int64_t kPlateauFrom = 64;        // bytes per rank and channel
constexpr std::int64_t kLargestLlPart = 16384;   // bytes of a message on a channel (NCCL_P2P_LL_THRESHOLD)
constexpr std::int64_t kLeastPart = 65536;       // half of a network chunk, an eighth of one over NVLink
constexpr std::int64_t kLeastPciePart = 16384;   // an eighth of a chunk over PCIe
constexpr double kLl128Data = 120.0 / 128;

constexpr NcclProtocol kProtocols[] = {v1::LL, v1::LL128, v1::SIMPLE};

double Correction(const v1::NcclVersion& version, NcclProtocol protocol, std::int64_t bytes) {
  for (const v1::NcclCorrection& correction : version.correction()) {
    if (correction.protocol() != protocol) continue;
    const std::int64_t at = Log2(std::max<std::int64_t>(1, bytes / kSmallestCorrected));
    return at < correction.factor_size() ? correction.factor(static_cast<int>(at)) : 1;
  }
  return 1;
}

bool Reduces(Operation operation) { return operation == Operation::kAllReduce; }
bool Scatters(Operation operation) {
  return operation == Operation::kReduceScatter || operation == Operation::kAllGather;
}

}  // namespace

std::string_view NeedsOf(v1::NcclAlgorithm algorithm) {
  switch (algorithm) {
    case v1::TREE:
      return "all_reduce";
    case v1::NVLS:
      return "all_reduce, all_gather or reduce_scatter, NVSwitches, GPUs of compute capability 90, and across nodes "
             "switches that reduce (SHARP)";
    case v1::NVLS_TREE:
      return "all_reduce, NVSwitches, GPUs of compute capability 90 and several nodes";
    case v1::COLLNET_DIRECT:
      return "all_reduce, all_gather or reduce_scatter, several nodes of up to 8 ranks behind NVSwitches, and switches "
             "that reduce (SHARP)";
    case v1::COLLNET_CHAIN:
      return "all_reduce, several nodes and switches that reduce (SHARP)";
    case v1::PAT:
      return "all_gather or reduce_scatter, several nodes of one rank each, and NCCL from 2.23 on";
    case v1::P2P:
      return "alltoall or sendrecv";
    default:
      return "";
  }
}

double ProtocolOf(const v1::NcclLatency& latency, NcclProtocol protocol) {
  return protocol == v1::LL ? latency.ll() : protocol == v1::LL128 ? latency.ll128() : latency.simple();
}

std::int64_t Log2(std::int64_t nodes) {
  return static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(nodes))) - 1;
}

Tuner::Tuner(const Communicator& comm, const Channels& channels, const v1::NcclVersion& version, bool sharp)
    : comm_(comm),
      channels_(channels),
      version_(version),
      sharp_(sharp),
      bus_(comm.nodes <= 2 ? channels.ring.Intra() : channels.ring.Inter()) {}

std::vector<Variant> Tuner::Candidates(Operation operation) const {
  std::vector<Variant> found;
  const auto all_protocols = [&](v1::NcclAlgorithm algorithm) {
    for (const NcclProtocol protocol : kProtocols) {
      // LL128 needs stores of 128 bytes that arrive whole: NVLink inside the node, GPUs from 70 on.
      if (protocol == v1::LL128 && (!comm_.nvlink || comm_.compute_capability < 70)) continue;
      found.push_back({algorithm, protocol});
    }
  };
  const bool several = comm_.nodes > 1;
  const bool nvls = channels_.nvls.channels > 0;
  switch (operation) {
    case Operation::kAllToAll:
    case Operation::kSendRecv:
      return {{v1::P2P, v1::LL}, {v1::P2P, v1::SIMPLE}};
    case Operation::kBroadcast:
    case Operation::kReduce:
      all_protocols(v1::RING);
      return found;
    case Operation::kAllReduce:
      all_protocols(v1::TREE);
      all_protocols(v1::RING);
      break;
    case Operation::kAllGather:
    case Operation::kReduceScatter:
      all_protocols(v1::RING);
      if (several && comm_.ranks_per_node == 1 && version_.pat_share() > 0) found.push_back({v1::PAT, v1::SIMPLE});
      break;
  }
  if (several && sharp_ && comm_.nvswitch && comm_.ranks_per_node <= 8)
    found.push_back({v1::COLLNET_DIRECT, v1::SIMPLE});
  if (several && sharp_ && Reduces(operation)) found.push_back({v1::COLLNET_CHAIN, v1::SIMPLE});
  if (nvls && (!several || sharp_)) found.push_back({v1::NVLS, v1::SIMPLE});
  if (nvls && several && Reduces(operation)) found.push_back({v1::NVLS_TREE, v1::SIMPLE});
  return found;
}

double Tuner::Steps(Operation operation) const {
  const double ranks = static_cast<double>(comm_.ranks);
  if (Reduces(operation)) return 2 * (ranks - 1);
  return Scatters(operation) ? ranks - 1 : ranks;
}

double Tuner::LlMax() const {
  if (comm_.nodes == 1) return FigureOf(version_.ll_max(), comm_.compute_capability, 1);
  const v1::NcclByNodes& row = version_.ll_max(comm_.cpu == v1::AMD ? std::min(1, version_.ll_max_size() - 1) : 0);
  return comm_.nodes == 2 ? row.two() : row.more();
}

double Tuner::RingBandwidth(Operation operation, NcclProtocol protocol) const {
  double bus = bus_;
  if (protocol == v1::LL) bus = std::min(LlMax(), bus_ * version_.ring_ll_share());
  if (protocol == v1::LL128) {
    bus = std::min(0.92 * bus_, static_cast<double>(channels_.ring.channels) *
                                    FigureOf(version_.ring_ll128_channel(), comm_.compute_capability, comm_.nodes));
  }
  return bus * static_cast<double>(comm_.ranks) / Steps(operation);
}

double Tuner::TreeBandwidth(NcclProtocol protocol) const {
  const double channels = static_cast<double>(channels_.ring.channels);
  const auto cap = [&](const auto& rows) { return channels * FigureOf(rows, comm_.compute_capability, comm_.nodes); };
  double bus = std::min(0.92 * bus_, cap(version_.tree_channel()));
  if (protocol == v1::LL) bus = std::min(bus_ / 3.8, LlMax());
  if (protocol == v1::LL128) {
    bus = std::min(bus_ * (comm_.nodes == 1 ? 7.0 / 9 : kLl128Data), cap(version_.tree_ll128_channel()));
  }
  return bus / 2;
}

double Tuner::NvlsBandwidth(Operation operation, bool tree) const {
  const v1::NcclNvls& nvls = version_.nvls();
  const Graph& graph = channels_.nvls;
  const double ratio = static_cast<double>(comm_.ranks) / Steps(operation);
  const double efficiency = FigureOf(nvls.efficiency(), comm_.compute_capability, comm_.nodes);
  double intra = graph.Intra();
  if (efficiency > 0) {
    const double heads = static_cast<double>(graph.channels);
    const double local = static_cast<double>(comm_.ranks_per_node);
    intra *= efficiency * (heads - 1) / heads * (Reduces(operation) ? 2 : (local - 1) / local);
  }
  double inter = graph.Inter();
  if (tree) inter *= comm_.nodes == 2 ? nvls.tree_inter_two() : nvls.tree_inter_more();
  double bandwidth = comm_.nodes == 1 ? intra : std::min(intra, inter);
  const double cap = tree ? FigureOf(nvls.tree_channel(), comm_.compute_capability, comm_.nodes) : 0;
  if (cap > 0) bandwidth = std::min(bandwidth, cap * static_cast<double>(graph.channels));
  if (efficiency > 0) return bandwidth * ratio;
  if (tree && nvls.tree_share() > 0) {
    const double nodes = static_cast<double>(comm_.nodes);
    return bandwidth * nvls.tree_share() * nodes / (2 * (nodes - 1));
  }
  return bandwidth * nvls.ratio();
}

double Tuner::Bandwidth(Operation operation, const Variant& variant) const {
  switch (variant.algorithm) {
    case v1::RING:
      return RingBandwidth(operation, variant.protocol);
    case v1::TREE:
      return TreeBandwidth(variant.protocol);
    case v1::NVLS:
    case v1::NVLS_TREE:
      return NvlsBandwidth(operation, variant.algorithm == v1::NVLS_TREE);
    case v1::COLLNET_DIRECT: {
      if (!Reduces(operation)) return bus_ * 0.9;
      const double factor = static_cast<double>(comm_.ranks_per_node) /
                            static_cast<double>(std::max<std::int64_t>(1, channels_.ring.channels));
      return bus_ / (factor - (factor - 1) / 2) * (comm_.compute_capability >= 90 ? 0.85 : 1) / 2;
    }
    case v1::COLLNET_CHAIN:
      return bus_ / 2;
    case v1::PAT:
      return bus_ * version_.pat_share();
    default:
      return bus_;
  }
}

const v1::NcclAlgorithmLatency& Tuner::LatencyOf(v1::NcclAlgorithm algorithm) const {
  for (const v1::NcclAlgorithmLatency& latency : version_.latency()) {
    if (latency.algorithm() == algorithm) return latency;
  }
  return v1::NcclAlgorithmLatency::default_instance();
}

double Tuner::RingLatency(Operation operation, std::int64_t bytes, NcclProtocol protocol) const {
  const v1::NcclAlgorithmLatency& table = LatencyOf(v1::RING);
  const double intra = ProtocolOf(comm_.nvlink ? table.nvlink() : table.pci(), protocol);
  const double inter = ProtocolOf(comm_.ranks_per_node == 1 ? LatencyOf(v1::TREE).net() : table.net(), protocol);
  double overhead = comm_.nodes == 1 ? 0 : comm_.cpu == v1::AMD ? version_.net_overhead_amd() : version_.net_overhead();
  if (protocol == v1::SIMPLE) overhead *= 3;
  const double nodes = static_cast<double>(comm_.nodes);
  const double steps = Steps(operation);
  double crossings = Reduces(operation) ? 2 * (nodes - 1) : nodes - 1;
  if (version_.ring_crosses_all_nodes() && Reduces(operation) && comm_.nodes > 1)
    crossings = std::min(steps, 2 * nodes);
  const double base = ProtocolOf(table.base(), protocol);
  double latency = base + (steps - crossings) * std::max(intra, overhead) + crossings * inter;
  if (!Reduces(operation) && !Scatters(operation)) latency = base + std::max(intra, overhead);
  const bool plateau = Reduces(operation) && protocol == v1::SIMPLE && comm_.nodes > 1 &&
                       bytes / std::max<std::int64_t>(1, channels_.ring.channels * comm_.ranks) >= kPlateauFrom;
  if (plateau) {
    latency *= comm_.compute_capability < 80 ? version_.ring_simple_plateau_old() : version_.ring_simple_plateau();
  }
  return latency;
}

double Tuner::Latency(Operation operation, std::int64_t bytes, const Variant& variant) const {
  if (variant.algorithm == v1::RING) return RingLatency(operation, bytes, variant.protocol);
  const v1::NcclAlgorithmLatency& table = LatencyOf(variant.algorithm);
  const double base = ProtocolOf(table.base(), variant.protocol);
  const double intra = ProtocolOf(comm_.nvlink ? table.nvlink() : table.pci(), variant.protocol);
  const double inter = comm_.nodes > 1 ? ProtocolOf(table.net(), variant.protocol) : 0;
  const std::int64_t ranks_per_node = comm_.ranks / comm_.nodes;  // the library's division, too
  const auto local = static_cast<double>(ranks_per_node);
  const double depth = static_cast<double>(Log2(comm_.nodes));
  switch (variant.algorithm) {
    case v1::TREE:
      return base + 2 * ((local - 1) * intra + depth * inter);
    case v1::COLLNET_DIRECT:
      return base + 2 * (std::min(1.0, local - 1) * intra + (local - 1) * 0.4) + inter;
    case v1::COLLNET_CHAIN:
      return base + 2 * (local - 1) * intra + inter;
    case v1::NVLS:
      return base + intra + inter;
    case v1::NVLS_TREE:
      return base + intra + 2 * depth * inter;
    case v1::PAT:
      return base + depth * inter / 3.5 + 2.8 * static_cast<double>(comm_.ranks);
    default:
      return base;
  }
}

std::optional<double> Tuner::Microseconds(Operation operation, std::int64_t bytes, const Variant& variant) const {
  const std::vector<Variant> candidates = Candidates(operation);
  if (std::find(candidates.begin(), candidates.end(), variant) == candidates.end()) return std::nullopt;
  double bandwidth = Bandwidth(operation, variant);
  if (!(bandwidth > 0)) return std::nullopt;
  const v1::NcclNvls& nvls = version_.nvls();
  const bool corrected_nvls = variant.algorithm == v1::NVLS_TREE && nvls.corrected_from() > 0 &&
                              comm_.compute_capability >= nvls.corrected_from() && comm_.cpu != v1::ARM;
  if (variant.algorithm == v1::TREE || corrected_nvls) bandwidth *= Correction(version_, variant.protocol, bytes);
  return Latency(operation, bytes, variant) + static_cast<double>(bytes) / (1000 * bandwidth);
}

NcclProtocol Tuner::ProtocolOfMessages(Operation operation, std::int64_t bytes) const {
  const std::int64_t message = operation == Operation::kAllToAll ? (bytes + comm_.ranks - 1) / comm_.ranks : bytes;
  const std::int64_t least_part = comm_.nodes == 1 && !comm_.nvlink ? kLeastPciePart : kLeastPart;
  const std::int64_t parts = std::clamp<std::int64_t>(message / least_part, 1, channels_.p2p_per_peer);
  return message <= parts * kLargestLlPart ? v1::LL : v1::SIMPLE;
}

std::optional<Variant> Tuner::Choose(Operation operation, std::int64_t bytes, const Variant& forced) const {
  const bool messages = operation == Operation::kAllToAll || operation == Operation::kSendRecv;
  if (messages && forced.protocol == v1::NCCL_PROTOCOL_UNSPECIFIED) {
    return Choose(operation, bytes, {forced.algorithm, ProtocolOfMessages(operation, bytes)});
  }
  std::optional<Variant> best;
  double least = 0;
  for (const Variant& variant : Candidates(operation)) {
    if (forced.algorithm != v1::NCCL_ALGORITHM_UNSPECIFIED && forced.algorithm != variant.algorithm) continue;
    if (forced.protocol != v1::NCCL_PROTOCOL_UNSPECIFIED && forced.protocol != variant.protocol) continue;
    const std::optional<double> time = Microseconds(operation, bytes, variant);
    if (!time.has_value() || (best.has_value() && *time >= least)) continue;
    best = variant;
    least = *time;
  }
  return best;
}

}  // namespace orrery::collectives::nccl
