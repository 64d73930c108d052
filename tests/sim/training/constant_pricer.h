// Runs of constant costs: worlds shaped like training, whose answers closed forms know.
#ifndef ORRERY_TESTS_SIM_TRAINING_CONSTANT_PRICER_H_
#define ORRERY_TESTS_SIM_TRAINING_CONSTANT_PRICER_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/training/plan.h"
#include "sim/training/role_pricer.h"
#include "sim/training/slowness.h"

namespace orrery::training::testing {

// Costs of one run, in picoseconds. A pass over a layer is two kernels with a tensor-parallel collective between them
// (tp > 1) that the second kernel needs, so that F = forward[0] + tp + forward[1]; with `ends`, the first stage begins
// with an embedding and the last ends with a head of one kernel each, in the backward pass likewise. A stage without
// layers computes nothing else.
struct ConstantCosts {
  // By stage, two kernels each.
  std::vector<std::array<std::int64_t, 2>> forward;
  std::vector<std::array<std::int64_t, 2>> backward;
  std::int64_t ends = 0;
  std::int64_t tp = 0;
  std::int64_t tp_lead = 0;
  std::int64_t message = 0;
  std::int64_t gather = 0;
  std::int64_t reduction = 0;
  std::int64_t replica_reduction = 0;
  // ZeRO-3: of a layer and of the root unit.
  std::int64_t layer_conversion = 0;
  std::int64_t layer_gather = 0;
  std::int64_t layer_reduction = 0;
  std::int64_t root_gather = 0;
  std::int64_t root_reduction = 0;
  std::int64_t step_overhead = 0;
  std::int32_t buckets = 1;
  std::int64_t copies_reduction = 0;  // of a chunk
  std::int64_t embedding_reduction = 0;
  std::int64_t norm_barrier = 0;
  std::int64_t slowest_wait = 0;
  std::int64_t optimizer = 0;

  std::int64_t Forward(std::size_t stage) const { return forward[stage][0] + tp_lead + tp + forward[stage][1]; }
  std::int64_t Backward(std::size_t stage) const { return backward[stage][0] + tp_lead + tp + backward[stage][1]; }
};

// A slow GPU takes `factor` times as long for each kernel, rounded to a picosecond, and nothing else.
class ConstantPricer final : public RolePricer {
 public:
  ConstantPricer(const Plan& plan, ConstantCosts costs) : plan_(plan), costs_(std::move(costs)), slowness_(plan) {}

  RolePrices PricesOf(const layout::Coordinates& at) override;

 private:
  const PricedChunk& Chunk(std::size_t stage, double slowness);
  PricedPass Pass(std::size_t stage, const std::array<std::int64_t, 2>& kernels, bool forward, double slowness) const;

  const Plan& plan_;
  ConstantCosts costs_;
  Slowness slowness_;
  std::map<std::pair<std::size_t, double>, PricedChunk> chunks_;
};

// A run with just the fields that plans and programs read; one layer per stage unless they are listed.
struct RunShape {
  std::int64_t tp = 1;
  std::int64_t dp = 1;
  std::int64_t pp = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batches = 1;
  std::int64_t group_size = 1;
  std::string schedule = "1f1b";
  v1::MessageMode message_mode = v1::EAGER;
  bool overlapped = false;
  std::int64_t zero_stage = 0;
  std::int64_t shard_ranks = 0;  // 0: dp
  bool reduce_every_micro_batch = false;
  bool reshard_after_forward = true;
  std::int64_t gather_ahead = 1;
  std::vector<std::int64_t> stage_layers = {};
  bool tied_embeddings = false;
  bool norm_barrier = true;
  double issue_seconds = 0;
  double data_seconds = 0;
  std::int64_t gpus_per_node = 8;
  std::int64_t nodes_per_leaf = 4;
};
v1::Run MakeRun(const RunShape& shape);

}  // namespace orrery::training::testing

#endif  // ORRERY_TESTS_SIM_TRAINING_CONSTANT_PRICER_H_
