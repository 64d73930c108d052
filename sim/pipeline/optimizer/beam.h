// Internal to sim/pipeline/optimizer: search over partial orders, layer by layer.
//
// A layer holds states of equally many passes. A state's successors are those of Giffler and Thompson's active orders:
// of all passes that could come next the one that could end first is taken, and its rank runs it or one that could
// start before that end; any other choice would leave room to put that pass in front, delaying nothing. States that
// another of equal counts dominates, and those whose bound reaches the best value known, are dropped. What is left
// beyond `width` is cut, worst bound first. A pass over the layers that cuts nothing is a proof.
//
// With several chunks, putting an F in front may take the room of an F of another chunk, so orders in which the rank
// does not run it next are searched too: the F is marked deferred until its rank has run another pass.
#ifndef ORRERY_SIM_PIPELINE_OPTIMIZER_BEAM_H_
#define ORRERY_SIM_PIPELINE_OPTIMIZER_BEAM_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sim/pipeline/optimizer/model.h"

namespace orrery::pipeline::optimizer {

struct BeamLimits {
  std::size_t width = 1;
  // Passes left, summed over the states evaluated.
  std::int64_t work = 0;
  Pulse pulse;
};

struct BeamResult {
  // Better than the best value known, if one was found.
  std::optional<Sequences> sequences;
  std::int64_t value = 0;
  // No order is better than min(best value known, this).
  std::int64_t lower_bound = 0;
  std::int64_t work = 0;
  std::int64_t states = 0;
  bool cut = false;         // states were cut
  bool unfinished = false;  // `work` or `pulse` ended it
};

// `best`: the objective of the best order known; only better ones are looked for.
BeamResult BeamSearch(const Model& model, std::int64_t best, const BeamLimits& limits);

}  // namespace orrery::pipeline::optimizer

#endif  // ORRERY_SIM_PIPELINE_OPTIMIZER_BEAM_H_
