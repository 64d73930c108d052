// Internal to sim/pipeline/optimizer: a lower bound on the objective of every completion of a state.
//
// Earliest starts of all passes left are the longest path over
//   inputs        F(s,k) <- F(s-1,k);  I(s,k) <- F(s,k), I(s+1,k);  W(s,k) <- I(s,k); latency between ranks
//   order         passes of one kind on a stage, first-in-first-out
//   capacity      I(s,k) comes after all F(s',j), I(s',j) of its rank with s' >= s, j <= k, and after F(s',j), s' < s
//   memory        F(s,k) finds room only after enough I and W of its rank: with n_I and n_W of them done it needs
//                 (k + 1) M_B - n_I (M_B - M_W) - n_W M_W <= limit, for one of the pairs (n_I, n_W <= n_I)
// Then every rank runs its passes in order of earliest start, which ends as early as any order can (one machine,
// release times), and what must follow its last I elsewhere is added (StageModel::tail).
#ifndef ORRERY_SIM_PIPELINE_OPTIMIZER_BOUND_H_
#define ORRERY_SIM_PIPELINE_OPTIMIZER_BOUND_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/pipeline/optimizer/model.h"
#include "sim/pipeline/optimizer/state.h"

namespace orrery::pipeline::optimizer {

class Bound {
 public:
  struct Value {
    std::int64_t bound = 0;
    // Sum over the ranks of the bound that each alone would give: tells apart states of equal bound.
    std::int64_t sum = 0;
  };

  explicit Bound(const Model& model);

  Value Of(const State& state);
  // A bound on the start of a pass, valid for the state last given to Of that has not done it.
  std::int64_t Earliest(std::size_t stage, Kind kind, std::size_t k) const {
    return earliest_[(kKinds * stage + kind) * model_->micro_batches + k];
  }

 private:
  // Enough I and W for F(s,k) to find room: minimal pairs.
  struct Room {
    std::size_t input_gradients = 0;
    std::size_t weight_gradients = 0;
  };

  void FillRooms();
  void EarliestForward(const State& state, std::size_t stage, std::size_t k);
  void EarliestInputGradient(const State& state, std::size_t stage, std::size_t k);
  std::int64_t RoomAt(const State& state, std::size_t stage, std::size_t k) const;
  Value OfRank(const State& state, std::size_t rank);
  std::int64_t& At(std::size_t stage, Kind kind, std::size_t k) {
    return earliest_[(kKinds * stage + kind) * model_->micro_batches + k];
  }

  const Model* model_;
  std::vector<std::vector<std::vector<Room>>> rooms_;  // [chunks of the rank up to this one][k]
  std::vector<std::size_t> depth_;                     // [stage]: chunks of its rank up to it
  std::vector<std::int64_t> earliest_;                 // start
};

}  // namespace orrery::pipeline::optimizer

#endif  // ORRERY_SIM_PIPELINE_OPTIMIZER_BOUND_H_
