// All-to-all in two phases, as libraries on top of NCCL do it (hierarchical, two-dimensional).
//
// n ranks on N nodes, g of them per node; S bytes in a rank's buffer, S / n for every rank.
//
//   inside    every rank hands the rank of the same node that stands at place j all that is for place j of any node:
//             g messages of S / g, of which S (g - 1) / g go over NVLink
//   between   the ranks of one place exchange over their rail: N messages of S / N, of which S (N - 1) / N go over NICs
//
// The phases are a kernel each (time.h: messages) and follow each other. NICs carry what they carry in one phase, S (n
// - g) / n = S (N - 1) / N, but in N - 1 messages in place of n - g, g times as large; in return the whole buffer
// crosses NVLink first. Copies between buffers are not counted. (Tutel, arXiv 2206.03382, section 3.4.)
#ifndef ORRERY_SIM_COLLECTIVES_NCCL_HIERARCHICAL_H_
#define ORRERY_SIM_COLLECTIVES_NCCL_HIERARCHICAL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sim/collectives/nccl/model.h"

namespace orrery::collectives::nccl {

struct TwoPhasePrice {
  Price inside;
  Price between;

  Time total() const { return inside.total() + between.total(); }
  Price Sum() const;
};

class HierarchicalAllToAll {
 public:
  // `version` and `times` must outlive it.
  HierarchicalAllToAll(const Communicator& comm, const v1::NcclVersion& version, const v1::NcclTimes& times,
                       const ChannelLimits& channels)
      : HierarchicalAllToAll(Views{comm}, version, times, channels) {}
  HierarchicalAllToAll(const Views& views, const v1::NcclVersion& version, const v1::NcclTimes& times,
                       const ChannelLimits& channels);

  // INVALID_ARGUMENT where nodes have different numbers of ranks; else as Model::PriceOf.
  absl::StatusOr<TwoPhasePrice> PriceOf(std::int64_t bytes) const;

 private:
  absl::Status status_;
  Model inside_;
  Model between_;
};

}  // namespace orrery::collectives::nccl

#endif  // ORRERY_SIM_COLLECTIVES_NCCL_HIERARCHICAL_H_
