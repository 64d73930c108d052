// Carrying tokens to their experts and back: dispatch and combine of a mixture-of-experts layer.
//
// n ranks on N nodes hold E experts, E / n each. A token of a rank goes to its top k experts, which stand on at most
// G = min(max_nodes, N) nodes (node-limited routing). With nodes and experts drawn evenly, k out of the G E / N experts
// of the chosen nodes, a set of s of these experts is missed with probability
//
//   miss(s) = prod over i < k of (P - s - i) / (P - i),   P = G E / N
//
// so that a token reaches on average  nodes = G (1 - miss(E / N)),  ranks = G (n / N) (1 - miss(E / n)),  own node and
// own rank among them, the latter with chance 1 / N and 1 / n. B is the bytes of a rank's tokens, one copy of each.
//
// Throughput kernels (DeepEP): one copy crosses the network for every remote node, to the GPU of the sender's rail
// there, which hands copies on over NVLink, as does the sender to its own node; the kernel's multiprocessors move every
// copy, also the one for the own rank. Both stages run as one pipeline:
//
//   time = start + imbalance max(B nodes (N - 1) / N / NIC,  B nodes leaving / uplink,
//                                B ranks / min(NVLink, multiprocessors x their rate))
//
// Low-latency kernels: every one of the k copies goes straight to its expert, over the network where that is on another
// node, over NVLink beside it otherwise:
//
//   time = start + imbalance max(k B (N - 1) / N / NIC,  k B leaving / uplink,  k B (1 / N - 1 / n) / NVLink)
//
// `leaving` is the share that goes to nodes under other leaves, (N - m) / N with m nodes under the leaf, and the uplink
// a rank's part of what the leaf has above it.
// combine is dispatch backwards with bytes of its own. Bandwidths of links are achieved ones. Those that DeepEP
// publishes are logical, own node and rank included: B nodes / time, inside one node B ranks / time, and k B / time for
// low-latency kernels.
//
// All-to-all of NCCL, in one phase or two: a copy for each of the k experts, k B / n for every rank on average, own
// rank included; node limits change nothing. Its time is that of an all-to-all of imbalance k B bytes (nccl/time.h,
// nccl/hierarchical.h).
//
// Sources: DeepSeek-V3 technical report (arXiv 2412.19437), section 3.2.2; DeepEP, its tables and issue 51.
#ifndef ORRERY_SIM_COLLECTIVES_EXPERT_EXCHANGE_H_
#define ORRERY_SIM_COLLECTIVES_EXPERT_EXCHANGE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "orrery/v1/expert_transport.pb.h"

namespace orrery::collectives {

// What every rank sends.
struct ExpertExchange {
  std::int64_t tokens = 0;   // of one rank
  std::int64_t hidden = 0;   // elements of a token
  double element_bytes = 2;  // scales included: 1 + 4 / 128 for FP8 with a scale of four bytes for 128 elements
  std::int64_t top_k = 1;
  std::int64_t experts = 1;    // of the layer
  std::int64_t max_nodes = 0;  // that a token goes to; 0: any number
  double imbalance = 1;        // tokens of the most loaded rank, as a multiple of the mean
};

// Where the ranks are and how fast one GPU's links are, per direction.
struct ExpertRanks {
  std::int64_t ranks = 1;
  std::int64_t ranks_per_node = 1;
  BytesPerSecond nvlink;
  BytesPerSecond nic;
  // Of what goes to all nodes evenly, what leaves the leaf, and its wires for one rank; none where it leaves none.
  double leaving_leaf = 0;
  BytesPerSecond uplink = {};
};

// Of one rank, on average over tokens: how many nodes and ranks a token reaches, and what the rank's links carry.
struct ExpertTraffic {
  double nodes = 1;
  double ranks = 1;
  double nic_bytes = 0;
  double nvlink_bytes = 0;  // without copies for the own rank
  double uplink_bytes = 0;
};

struct ExpertTime {
  double seconds = 0;
  ExpertTraffic traffic;
  BytesPerSecond logical_bandwidth;  // as DeepEP publishes it; 0 where nothing takes time
};

// INVALID_ARGUMENT where ranks do not fill nodes, experts not ranks, top_k exceeds the experts that a token may reach,
// or a number is not positive.
absl::StatusOr<ExpertTime> ThroughputExchange(const ExpertExchange& exchange, const ExpertRanks& ranks,
                                              const v1::ExpertTransport& transport);
absl::StatusOr<ExpertTime> LowLatencyExchange(const ExpertExchange& exchange, const ExpertRanks& ranks,
                                              const v1::ExpertTransport& transport);

// Bytes of a rank's buffer in an all-to-all: the most loaded rank's. Errors as above.
absl::StatusOr<std::int64_t> AllToAllBytes(const ExpertExchange& exchange, const ExpertRanks& ranks);
// What an all-to-all that took `seconds` moved, in the same terms.
absl::StatusOr<ExpertTime> AllToAllTime(const ExpertExchange& exchange, const ExpertRanks& ranks, double seconds);

}  // namespace orrery::collectives

#endif  // ORRERY_SIM_COLLECTIVES_EXPERT_EXCHANGE_H_
