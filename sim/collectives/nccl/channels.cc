#include "sim/collectives/nccl/channels.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace orrery::collectives::nccl {
namespace {

constexpr double kGiga = 1e9;
constexpr std::int64_t kMostHeads = 32;          // NCCL_MAX_NVLS_ARITY
constexpr double kPcieShare = 0.75;              // of PCIe's bandwidth that the search counts: 24 of 32 GB/s
constexpr double kDuplicatedFrom = 25;           // GB/s
constexpr double kSlowest = 0.1;                 // GB/s: one channel at that where no speed of the list fits
constexpr double kLeastOfFound = 0.49;           // of a speed that was found: the search tries no slower one
constexpr double kNicPerP2pChannel = 14;         // GB/s
constexpr std::int64_t kP2pChannelsPerLink = 2;  // per NVLink

const v1::NcclSpeeds& SpeedsOf(const v1::NcclVersion& version, std::int64_t compute_capability) {
  const v1::NcclSpeeds* found = &version.speeds(0);
  for (const v1::NcclSpeeds& speeds : version.speeds()) {
    if (speeds.compute_capability() <= compute_capability) found = &speeds;
  }
  return *found;
}

// What the search counts for a GPU's links, GB/s.
double LinkBandwidth(const Communicator& comm, const v1::NcclSpeeds& speeds) {
  const double nominal = comm.nominal_nvlink.count() / kGiga;
  if (!comm.nvlink) return nominal * kPcieShare;
  return std::max(1.0, std::round(nominal / speeds.nvlink_nominal())) * speeds.nvlink();
}

Graph SearchRing(const Communicator& comm, const v1::NcclSpeeds& speeds, double link, std::int64_t most) {
  Graph best;
  const auto stops = [&](double speed) { return best.channels > 0 && speed <= kLeastOfFound * best.intra; };
  const auto offer = [&](double channels, double speed) {
    const std::int64_t whole = std::min(most, static_cast<std::int64_t>(channels));
    if (static_cast<double>(whole) * speed > best.Intra()) best = {whole, speed, speed};
  };
  const double local = static_cast<double>(comm.ranks_per_node);
  if (comm.nodes == 1) {
    for (const double speed : speeds.intra()) {
      if (stops(speed)) break;
      offer(std::floor(link / speed), speed);
    }
  } else {
    const double nic = comm.nominal_nic.count() / kGiga;
    for (const double speed : speeds.inter()) {
      if (stops(speed)) break;
      double channels = std::floor(nic / speed) * static_cast<double>(comm.nics);
      if (comm.ranks_per_node > 1) channels = std::min(channels, std::floor(link * local / (local - 1) / speed));
      offer(channels, speed);
    }
  }
  if (best.channels == 0) best = {1, kSlowest, kSlowest};
  const bool too_many = comm.compute_capability > 80 && best.intra < 50 && best.channels > 4;
  if (best.intra >= kDuplicatedFrom && !too_many && best.channels * 2 <= most) {
    best = {best.channels * 2, best.intra / 2, best.inter / 2};
  }
  return best;
}

// Inside the node.
Graph SearchNvls(const Communicator& comm, const v1::NcclSpeeds& speeds, double link) {
  Graph best;
  if (!comm.nvswitch || comm.compute_capability < 90 || comm.ranks_per_node < 2) return best;
  const std::int64_t wanted = std::min(comm.ranks_per_node, kMostHeads);
  for (const double speed : speeds.intra()) {
    const std::int64_t heads = std::min(wanted, static_cast<std::int64_t>(std::floor(link / speed)) - 1);
    if (heads < 1 || static_cast<double>(heads) * speed <= best.Intra()) continue;
    best = {heads, speed, 0};
    if (heads == wanted) break;
  }
  return best;
}

void Lower(const Graph& other, Graph* graph) {
  graph->channels = std::min(graph->channels, other.channels);
  graph->intra = std::min(graph->intra, other.intra);
  graph->inter = std::min(graph->inter, other.inter);
}

std::int64_t PowerOfTwo(std::int64_t count) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, count))));
}

// Of sends and receives: channels that a peer of a node wants.
std::int64_t P2pPerPeer(const Communicator& comm, const v1::NcclSpeeds& speeds, double link) {
  constexpr std::int64_t kLeast = 2;
  if (comm.nodes > 1) {
    const double network = comm.nominal_nic.count() / kGiga;
    return std::max(kLeast, static_cast<std::int64_t>(std::ceil(network / kNicPerP2pChannel)));
  }
  return comm.nvlink ? kP2pChannelsPerLink * std::llround(link / speeds.nvlink()) : kLeast;
}

void CountP2p(std::int64_t ranks, std::int64_t per_peer, std::int64_t most, Channels* found) {
  found->p2p = std::min(most, std::max(PowerOfTwo(found->communicator), PowerOfTwo(per_peer)));
  per_peer = std::min(found->p2p, PowerOfTwo(per_peer));
  // Until all peers fit four times over.
  while (per_peer * ranks > 4 * found->p2p && per_peer > 1) per_peer /= 2;
  found->p2p_per_peer = per_peer;
}

}  // namespace

const v1::NcclByNodes* RowOf(const google::protobuf::RepeatedPtrField<v1::NcclByNodes>& rows,
                             std::int64_t compute_capability) {
  const v1::NcclByNodes* found = nullptr;
  for (const v1::NcclByNodes& row : rows) {
    if (row.compute_capability() <= compute_capability) found = &row;
  }
  return found;
}

double FigureOf(const google::protobuf::RepeatedPtrField<v1::NcclByNodes>& rows, std::int64_t compute_capability,
                std::int64_t nodes) {
  const v1::NcclByNodes* const row = RowOf(rows, compute_capability);
  if (row == nullptr) return 0;
  return nodes == 1 ? row->one() : nodes == 2 ? row->two() : row->more();
}

Channels SearchChannels(const Views& views, const v1::NcclVersion& version, const ChannelLimits& limits) {
  const Communicator& comm = views.front();  // where all agree
  const v1::NcclSpeeds& speeds = SpeedsOf(version, comm.compute_capability);
  Channels found;
  std::int64_t per_peer = 0;
  for (const Communicator& view : views) {
    const double link = LinkBandwidth(view, speeds);
    const Graph ring = SearchRing(view, speeds, link, version.max_channels() / 2);
    const Graph nvls = SearchNvls(view, speeds, link);
    const std::int64_t peer = P2pPerPeer(view, speeds, link);
    if (&view == &views.front()) {
      found.ring = ring;
      found.nvls = nvls;
      per_peer = peer;
      continue;
    }
    Lower(ring, &found.ring);
    Lower(nvls, &found.nvls);
    per_peer = std::min(per_peer, peer);
  }
  if (found.nvls.channels > 0 && comm.nodes > 1) {
    found.nvls.inter = found.ring.Inter() / static_cast<double>(found.nvls.channels);
  }
  std::int64_t channels = std::max<std::int64_t>(1, 2 * found.ring.channels);
  if (comm.nodes > 1 && comm.compute_capability >= 90 && found.ring.intra > 45 && channels < 16) channels *= 2;
  const std::int64_t most = limits.max > 0 ? std::min(limits.max, version.max_channels()) : version.max_channels();
  const std::int64_t least = std::min(most, std::max<std::int64_t>(1, limits.min));
  found.communicator = std::clamp(channels, least, most);
  const double nvls = FigureOf(version.nvls().channels(), comm.compute_capability, comm.nodes);
  found.nvls_channels = std::clamp(static_cast<std::int64_t>(nvls), least, most);
  CountP2p(comm.ranks, per_peer, std::min<std::int64_t>(most, kMostHeads), &found);
  return found;
}

Channels SearchChannels(const Communicator& comm, const v1::NcclVersion& version, const ChannelLimits& limits) {
  return SearchChannels(Views{comm}, version, limits);
}

}  // namespace orrery::collectives::nccl
