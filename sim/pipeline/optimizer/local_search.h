// Internal to sim/pipeline/optimizer: improves a complete order by moving single passes along the critical path.
//
// Threshold accepting: a pass that waits for its rank on the critical path is moved to the front, or the pass before it
// to the back; the order is kept where it is legal, fits in memory, executes, and is worse by no more than a threshold
// that falls to 0. Seeded by a constant: the same input gives the same order.
#ifndef ORRERY_SIM_PIPELINE_OPTIMIZER_LOCAL_SEARCH_H_
#define ORRERY_SIM_PIPELINE_OPTIMIZER_LOCAL_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/pipeline/optimizer/model.h"

namespace orrery::pipeline::optimizer {

// Times an order. Reusable: holds its buffers.
class Timer {
 public:
  explicit Timer(const Model& model);

  // Objective of the order; nullopt where it deadlocks.
  std::optional<std::int64_t> Run(const Sequences& sequences);

  // Passes on a longest path that start when the pass before them on their rank ends, last first. After Run.
  struct Place {
    std::size_t rank = 0;
    std::size_t position = 0;
  };
  void Critical(const Sequences& sequences, std::vector<Place>& places) const;

 private:
  // Start of the next pass of `rank`, or nothing if its input is missing.
  std::optional<std::int64_t> Start(const Step& step, std::int64_t clock) const;
  std::size_t Index(std::size_t stage, std::size_t k) const { return stage * model_->micro_batches + k; }

  const Model* model_;
  std::vector<std::size_t> next_;           // [rank]
  std::vector<std::int64_t> clock_;         // [rank]
  std::vector<std::uint32_t> done_;         // [stage and kind]
  std::vector<std::int64_t> forward_end_;   // [stage and micro-batch]
  std::vector<std::int64_t> gradient_end_;  // likewise
  std::vector<std::size_t> forward_at_;     // position in the rank's sequence
  std::vector<std::size_t> gradient_at_;
  std::vector<std::vector<std::int64_t>> start_;  // [rank][position]
  std::vector<std::size_t> ready_;
  std::vector<bool> waiting_;
};

// Most memory that `rank` holds, or nullopt where the sequence runs an I before its F or a W before its I.
std::optional<std::int64_t> PeakMemory(const Model& model, const std::vector<Step>& sequence);

struct LocalSearchResult {
  Sequences sequences;
  std::int64_t value = 0;
  std::int64_t work = 0;  // passes timed
  bool stopped = false;
};
// `start` executes and fits. Ends at `target`, or when `work` passes have been timed, or when `pulse` says so.
LocalSearchResult LocalSearch(const Model& model, const Sequences& start, std::int64_t target, std::int64_t work,
                              const Pulse& pulse);

}  // namespace orrery::pipeline::optimizer

#endif  // ORRERY_SIM_PIPELINE_OPTIMIZER_LOCAL_SEARCH_H_
