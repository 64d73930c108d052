// What communication takes from the compute beside it: see docs/overlap.md.
//
// Where the software level has a rule for data-parallel communication beside passes of a kind, its factors are what
// both run slower by. Else a communication takes the multiprocessors of its kernel, one a channel, from kernels that
// multiprocessors decide (c channels of m: rate 1 - c / m), and its memory traffic from those that memory decides
// (rate 1 - traffic / (seconds x memory bandwidth)). Traffic by what NCCL's primitives do, b bytes received by a rank:
//
//   ring     b = (n - 1) / n S, twice that for all-reduce: written into its buffer by the neighbour, and read: 2 b;
//            what a rank sends to another node (N of n hops) is written into a buffer, and read by the NIC: 2 b N / n
//            tensors: all-reduce S read and S written; reduce-scatter and all-gather S the one way and S / n the other
//   message  receiver: buffer written and read, tensor written: 3 S; sender: tensor read: S, to another node 3 S
//
// Assumed: every channel holds its multiprocessor alone from start to end; buffers are not served by the cache; other
// algorithms move as much as rings; sends and receives are kernels of their own. Channels:
// sim/collectives/nccl/model.h.
#ifndef ORRERY_SIM_TRAINING_OVERLAP_LOADS_H_
#define ORRERY_SIM_TRAINING_OVERLAP_LOADS_H_

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "orrery/v1/run.pb.h"
#include "sim/collectives/collective_prices.h"
#include "sim/engine/program.h"
#include "sim/layout/layout.h"
#include "sim/training/communication.h"

namespace orrery::training {

// Nothing where overlap is static, and for what takes no time.
class OverlapPricer {
 public:
  explicit OverlapPricer(const v1::Run& run) : run_(run) {}

  Taken OfCollective(const collectives::Price& price, const layout::Placement& group) const;
  // One end of a message.
  Taken OfMessage(const collectives::Price& price, bool is_send, bool across_nodes) const;

 private:
  Taken Shares(std::int64_t channels, double traffic, double seconds) const;

  const v1::Run& run_;
};

// Loads of a program, each once.
class OverlapLoads {
 public:
  // Rules for data-parallel communication beside forward and backward passes; null: none.
  OverlapLoads(const v1::OverlapRule* forward, const v1::OverlapRule* backward)
      : forward_(forward), backward_(backward) {}

  // Index of the load; -1 where nothing is slowed.
  std::int16_t IndexOf(const Communication& communication, v1::Axis axis);
  const std::vector<engine::Load>& loads() const { return loads_; }

 private:
  const v1::OverlapRule* const forward_;
  const v1::OverlapRule* const backward_;
  std::vector<engine::Load> loads_;
};

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_OVERLAP_LOADS_H_
