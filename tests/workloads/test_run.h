// Resolved specs for tests: only the fields that workloads/ reads.
#ifndef ORRERY_TESTS_WORKLOADS_TEST_RUN_H_
#define ORRERY_TESTS_WORKLOADS_TEST_RUN_H_

#include <cstdint>

#include "orrery/v1/run.pb.h"

namespace orrery::workloads {

struct TestModel {
  std::int64_t layers, hidden, heads, vocab;
};
inline constexpr TestModel k22B{48, 6144, 64, 51200};
inline constexpr TestModel k175B{96, 12288, 96, 51200};

// Sequence length 2,048; serial block, f = 4h, 16-bit training with dropout, unfused attention, fp32 main gradients.
inline v1::Run MakeRun(const TestModel& shape, std::int64_t tp, std::int64_t micro_batch) {
  v1::Run run;
  v1::Model& model = *run.mutable_model();
  model.set_layers(shape.layers);
  model.set_hidden(shape.hidden);
  model.set_heads(shape.heads);
  model.set_head_dim(shape.hidden / shape.heads);
  model.set_ffn_hidden(4 * shape.hidden);
  model.set_vocab(shape.vocab);
  model.set_block(v1::SERIAL);
  model.set_tied_embeddings(true);
  run.mutable_parallelism()->set_tp(tp);
  v1::Training& training = *run.mutable_training();
  training.set_seq_len(2048);
  training.set_micro_batch(micro_batch);
  training.set_global_batch(micro_batch);
  training.set_precision(v1::FP16);
  training.set_gradient_type(v1::FP32);
  training.set_recompute(v1::NONE);
  training.set_dropout(true);
  v1::Software& software = *run.mutable_software();
  software.set_attention_kernel(v1::UNFUSED);
  software.set_fused_elementwise(true);
  software.set_fused_weight_gradient(true);
  return run;
}

}  // namespace orrery::workloads

#endif  // ORRERY_TESTS_WORKLOADS_TEST_RUN_H_
