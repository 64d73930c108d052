// NCCL's choice of algorithm and protocol: the formula of src/graph/tuning.cc with the tables of a version.
//
//   microseconds = latency + bytes / (1000 bandwidth),   bandwidth in GB/s
//
// n ranks, N nodes, g = n / N; bus = channels x GB/s of the ring's graph (inside a node for N <= 2, else between
// nodes).
//
//   Ring    steps 2 (n - 1) all-reduce, n - 1 all-gather and reduce-scatter, n broadcast and reduce; of bus: Simple
//   all,
//           LL min(llMax, bus x share), LL128 min(0.92 bus, channels x cap); x n / steps
//   Tree    Simple min(0.92 bus, channels x cap), LL min(bus / 3.8, llMax), LL128 min(bus x 7/9 or 120/128, channels x
//           cap); x 1/2, x correction by size
//   NVLS    from 2.28 on GB/s x efficiency x (heads - 1) x 2 (all-reduce), x n / steps; before, heads x GB/s x 5/6
//   NVLSTree  least of NVLS's inside the node, the network's, and from 2.28 on a cap per channel
//   CollNet   bus / 2, PAT a share of bus
//
// Messages are no matter of estimates: LL up to 16 KiB for each channel that carries a part of one, else Simple. Parts
// have 64 KiB or more, over PCIe inside a node 16 KiB.
//
// Latencies are base + steps inside the node and across nodes. What is enabled: Candidates().
#ifndef ORRERY_SIM_COLLECTIVES_NCCL_TUNER_H_
#define ORRERY_SIM_COLLECTIVES_NCCL_TUNER_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "orrery/v1/nccl.pb.h"
#include "sim/collectives/nccl/channels.h"
#include "sim/collectives/nccl/communicator.h"

namespace orrery::collectives::nccl {

enum class Operation : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kAllToAll,
  kSendRecv,
};

struct Variant {
  v1::NcclAlgorithm algorithm = v1::NCCL_ALGORITHM_UNSPECIFIED;
  v1::NcclProtocol protocol = v1::NCCL_PROTOCOL_UNSPECIFIED;

  friend bool operator==(const Variant&, const Variant&) = default;
};

class Tuner {
 public:
  // `version` must outlive the tuner. `sharp`: switches reduce (NCCL_COLLNET_ENABLE).
  Tuner(const Communicator& comm, const Channels& channels, const v1::NcclVersion& version, bool sharp);

  // What may carry out an operation, in the library's order.
  std::vector<Variant> Candidates(Operation operation) const;
  // The library's estimate; nothing where the variant cannot carry out the operation here.
  std::optional<double> Microseconds(Operation operation, std::int64_t bytes, const Variant& variant) const;
  // The least estimate among candidates that `forced` (unspecified: any) allows, of messages what their size says;
  // nothing where there is none.
  std::optional<Variant> Choose(Operation operation, std::int64_t bytes, const Variant& forced) const;

  // GB/s of the algorithm without the correction by size, and latency in microseconds.
  double Bandwidth(Operation operation, const Variant& variant) const;
  double Latency(Operation operation, std::int64_t bytes, const Variant& variant) const;
  const v1::NcclAlgorithmLatency& LatencyOf(v1::NcclAlgorithm algorithm) const;

 private:
  double RingBandwidth(Operation operation, v1::NcclProtocol protocol) const;
  double TreeBandwidth(v1::NcclProtocol protocol) const;
  double NvlsBandwidth(Operation operation, bool tree) const;
  double RingLatency(Operation operation, std::int64_t bytes, v1::NcclProtocol protocol) const;
  double LlMax() const;
  v1::NcclProtocol ProtocolOfMessages(Operation operation, std::int64_t bytes) const;
  double Steps(Operation operation) const;

  const Communicator comm_;
  const Channels channels_;
  const v1::NcclVersion& version_;
  const bool sharp_;
  double bus_ = 0;
};

// Where an algorithm is among the candidates, in words; empty for those that go anywhere.
std::string_view NeedsOf(v1::NcclAlgorithm algorithm);
// One of a latency's protocols.
double ProtocolOf(const v1::NcclLatency& latency, v1::NcclProtocol protocol);
// floor(log2 nodes).
std::int64_t Log2(std::int64_t nodes);

}  // namespace orrery::collectives::nccl

#endif  // ORRERY_SIM_COLLECTIVES_NCCL_TUNER_H_
