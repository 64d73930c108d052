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

// Sequence length 2,048; GPT-3's architecture, 16-bit training with dropout, unfused attention, fp32 main gradients.
inline v1::Run MakeRun(const TestModel& shape, std::int64_t tp, std::int64_t micro_batch) {
  v1::Run run;
  v1::Model& model = *run.mutable_model();
  model.set_layers(shape.layers);
  model.set_hidden(shape.hidden);
  model.set_heads(shape.heads);
  model.set_kv_heads(shape.heads);
  model.set_head_dim(shape.hidden / shape.heads);
  model.set_ffn_hidden(4 * shape.hidden);
  model.set_vocab(shape.vocab);
  model.set_block(v1::SERIAL);
  model.set_activation(v1::GELU);
  model.set_positions(v1::LEARNED);
  model.set_rotary_fraction(1);
  model.set_norm(v1::LAYER_NORM);
  model.set_biases(true);
  model.set_tied_embeddings(true);
  run.mutable_parallelism()->set_tp(tp);
  v1::Training& training = *run.mutable_training();
  training.set_seq_len(2048);
  training.set_micro_batch(micro_batch);
  training.set_global_batch(micro_batch);
  training.set_precision(v1::FP16);
  training.set_gradient_type(v1::FP32);
  training.set_recompute(v1::NONE);
  training.add_recompute_modules(v1::CORE_ATTENTION);  // where SELECTIVE
  training.set_dropout(true);
  v1::Software& software = *run.mutable_software();
  software.set_attention_kernel(v1::UNFUSED);
  software.set_fused_elementwise(true);
  software.set_fused_norm(true);
  software.set_fused_weight_gradient(true);
  return run;
}

// Llama 3 8B: h 4096, 32 heads, 8 of keys and values, f 14336; one kernel for each norm, activation and rotation,
// FlashAttention-2, no dropout.
inline v1::Run MakeLlama(std::int64_t tp, std::int64_t micro_batch) {
  v1::Run run = MakeRun({32, 4096, 32, 128256}, tp, micro_batch);
  v1::Model& model = *run.mutable_model();
  model.set_kv_heads(8);
  model.set_ffn_hidden(14336);
  model.set_activation(v1::SILU);
  model.set_gated_mlp(true);
  model.set_positions(v1::ROTARY);
  model.set_norm(v1::RMS_NORM);
  model.set_biases(false);
  model.set_tied_embeddings(false);
  run.mutable_training()->set_dropout(false);
  run.mutable_software()->set_attention_kernel(v1::FLASH_ATTENTION_2);
  run.mutable_software()->set_fused_rotary(true);
  return run;
}

// The same architecture and sizes of GPT as an eager framework runs it: no kernel fused but norms and loss, Triton's
// attention, gradients reduced with every micro-batch in 16 bit, no dropout. (llm-foundry, 2023.)
inline v1::Run MakeEager(const TestModel& shape, std::int64_t micro_batch) {
  v1::Run run = MakeRun(shape, 1, micro_batch);
  run.mutable_training()->set_dropout(false);
  run.mutable_training()->set_gradient_type(v1::BF16);
  v1::Software& software = *run.mutable_software();
  software.set_attention_kernel(v1::TRITON_ATTENTION);
  software.set_fused_elementwise(false);
  software.set_fused_loss(true);
  software.set_fused_weight_gradient(false);
  software.set_reduce_every_micro_batch(true);
  return run;
}

}  // namespace orrery::workloads

#endif  // ORRERY_TESTS_WORKLOADS_TEST_RUN_H_
