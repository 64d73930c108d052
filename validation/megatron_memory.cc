#include "validation/megatron_memory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace orrery::validation {
namespace {

// The level whose features the tests' arguments do not change.
constexpr std::string_view kLevel = "megatron-core-0.8";
// GPT-2's byte-pair encoding, which the tests use.
constexpr std::int64_t kVocabulary = 50257;
// GPUs of one DGX node: tests without a recipe ran on one.
constexpr std::int64_t kNodeGpus = 8;
// --num-distributed-optimizer-instances of the tests named for it.
constexpr std::int64_t kOptimizerInstances = 2;

// Features that a non-blank column asks for; "true" alone asks for a switch.
struct AskedBy {
  std::string_view column;
  std::string_view feature;
};
constexpr std::array kRefusedColumns = {
    AskedBy{"num-experts", "mixture of experts"},
    AskedBy{"multi-latent-attention", "multi-head latent attention"},
    AskedBy{"fp8-format", "FP8"},
    AskedBy{"mtp-num-layers", "multi-token prediction"},
    AskedBy{"use-megatron-fsdp", "Megatron-FSDP"},
    AskedBy{"use-custom-fsdp", "Megatron-FSDP"},
    AskedBy{"optimizer-cpu-offload", "optimizer states on the host"},
};
// Arguments without a column that a test is named for.
constexpr std::array kRefusedNames = {
    AskedBy{"inference", "inference"},
    AskedBy{"grpo", "reinforcement learning"},
    AskedBy{"distill", "distillation"},
    AskedBy{"qk_layernorm", "norms of queries and keys"},
    AskedBy{"defer_embedding_wgrad", "a deferred weight gradient of the head"},
    AskedBy{"cross_entropy_loss_fusion", "a loss fused by the compiler, which keeps another fp32 copy of the logits"},
    AskedBy{"uneven_pipeline", "layers of the first and last stage, which the row does not print"},
};

// One row's run, argument by argument.
class ArgumentReader {
 public:
  ArgumentReader(const Record& record, const Catalogue& catalogue)
      : record_(record), catalogue_(catalogue), name_(record.Text("test_case")) {}

  absl::StatusOr<RunOfRow> Read() {
    ABSL_RETURN_IF_ERROR(CheckFlags());
    ABSL_RETURN_IF_ERROR(CheckFeatures());
    ABSL_RETURN_IF_ERROR(ReadModel());
    ABSL_RETURN_IF_ERROR(ReadParallelism());
    ABSL_RETURN_IF_ERROR(ReadTraining());
    ABSL_RETURN_IF_ERROR(ReadSchedule());
    ABSL_RETURN_IF_ERROR(ReadSoftware());
    ABSL_RETURN_IF_ERROR(ReadCluster());
    run().set_name(std::string(name_));
    return std::move(result_);
  }

 private:
  v1::Run& run() { return result_.run; }
  void Assume(std::string text) { result_.assumptions.push_back(std::move(text)); }
  bool Named(std::string_view word) const { return name_.find(word) != std::string_view::npos; }
  bool True(std::string_view column) const { return record_.Text(column) == "true"; }
  bool Asked(std::string_view column) const { return !record_.Blank(column) && record_.Text(column) != "false"; }

  absl::Status CheckFlags() const {
    for (const char* const column :
         {"group-query-attention", "swiglu", "untie-embeddings-and-output-weights", "sequence-parallel",
          "use-distributed-optimizer", "fp16", "bf16", "accumulate-allreduce-grads-in-fp32"}) {
      const std::string_view cell = record_.Text(column);
      if (cell.empty() || cell == "true" || cell == "false") continue;
      return absl::InvalidArgumentError(
          absl::StrCat(column, ": \"", std::string(cell), "\"; allowed: true, false, or blank"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckFeatures() const {
    for (const AskedBy& refused : kRefusedColumns) {
      if (Asked(refused.column)) return Missing(refused.feature);
    }
    for (const AskedBy& refused : kRefusedNames) {
      if (Named(refused.column)) return Missing(refused.feature);
    }
    ABSL_ASSIGN_OR_RETURN(const std::int64_t cp, record_.PositiveOr("context-parallel-size", 1));
    if (cp > 1) return Missing("context parallelism");
    if (Asked("cuda-graph-impl") && record_.Text("cuda-graph-impl") != "none") return Missing("CUDA graphs");
    return absl::OkStatus();
  }

  absl::Status ReadModel() {
    v1::Model& model = *run().mutable_model();
    ABSL_ASSIGN_OR_RETURN(const std::int64_t layers, record_.Positive("num-layers"));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t hidden, record_.Positive("hidden-size"));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t heads, record_.Positive("num-attention-heads"));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t ffn, record_.PositiveOr("ffn-hidden-size", 0));
    model.set_name(std::string(name_));
    model.set_layers(layers);
    model.set_hidden(hidden);
    model.set_heads(heads);
    if (True("group-query-attention")) {
      ABSL_ASSIGN_OR_RETURN(const std::int64_t groups, record_.Positive("num-query-groups"));
      model.set_kv_heads(groups);
    }
    if (True("swiglu")) {
      model.set_activation(v1::SILU);
      model.set_gated_mlp(true);
      // The gate halves what Megatron-LM takes by default: 4 x hidden x 2 / 3 rounded to a multiple of 64.
      constexpr std::int64_t kMultiple = 64;
      model.set_ffn_hidden(ffn > 0 ? ffn : hidden * 8 / 3 / kMultiple * kMultiple);
    } else if (ffn > 0) {
      model.set_ffn_hidden(ffn);
    }
    if (Named("rope_embeddings")) model.set_positions(v1::ROTARY);
    if (Named("disable_bias_linear")) model.set_biases(false);
    model.set_tied_embeddings(!True("untie-embeddings-and-output-weights"));
    model.set_vocab(kVocabulary);
    Assume(absl::StrCat("vocabulary = ", kVocabulary));
    return absl::OkStatus();
  }

  // The environment ends in the accelerator, but for the suffix of repeated runs; "lts" alone is the A100 pool.
  std::string_view Gpu() const {
    for (const std::string_view gpu : {"gb200", "h100", "a100"}) {
      if (record_.Text("environment").find(gpu) != std::string_view::npos) return gpu;
    }
    return record_.Text("environment") == "lts" ? "a100" : "";
  }

  // "gb200:2x4;h100:1x8": nodes x GPUs by accelerator; another accelerator runs the same test on as many as the last.
  absl::StatusOr<std::int64_t> WorldSize() {
    const std::string recipe(record_.Text("recipe_nodesxgpus"));
    if (recipe.empty()) {
      // Tests that print no batch either are long runs on clusters.
      if (record_.Blank("global-batch-size")) return Missing("a number of GPUs");
      Assume(absl::StrCat("gpus = ", kNodeGpus));
      return kNodeGpus;
    }
    std::int64_t last = 0;
    bool mine = false;
    for (const absl::string_view entry : absl::StrSplit(recipe, ';')) {
      const std::pair<std::string, std::string> named = absl::StrSplit(entry, absl::MaxSplits(':', 1));
      const std::pair<std::string, std::string> sizes = absl::StrSplit(named.second, absl::MaxSplits('x', 1));
      const std::optional<std::int64_t> nodes = Count(sizes.first);
      const std::optional<std::int64_t> gpus = Count(sizes.second);
      if (!nodes.has_value() || !gpus.has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("recipe_nodesxgpus: \"", recipe, "\"; allowed: gb200:2x4;h100:1x8, or blank"));
      }
      last = *nodes * *gpus;
      mine = named.first == Gpu();
      if (mine) break;
    }
    if (!mine) Assume(absl::StrCat("gpus = ", last));
    return last;
  }
  static std::optional<std::int64_t> Count(const std::string& text) {
    constexpr std::int64_t kMost = 1 << 20;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > kMost) return std::nullopt;
    return value;
  }

  absl::Status ReadParallelism() {
    v1::Parallelism& parallelism = *run().mutable_parallelism();
    ABSL_ASSIGN_OR_RETURN(const std::int64_t tp, record_.PositiveOr("tensor-model-parallel-size", 1));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t pp, record_.PositiveOr("pipeline-model-parallel-size", 1));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t world, WorldSize());
    if (tp > world || pp > world / tp || world % (tp * pp) != 0) return Missing("a number of GPUs");
    const std::int64_t dp = world / (tp * pp);
    parallelism.set_tp(tp);
    parallelism.set_pp(pp);
    parallelism.set_dp(dp);
    parallelism.set_sequence_parallel(True("sequence-parallel") && tp > 1);
    parallelism.set_zero_stage(True("use-distributed-optimizer") ? 1 : 0);
    if (Named("multi_dist_optimizer_instances") && dp % kOptimizerInstances == 0) {
      parallelism.set_shard_ranks(dp / kOptimizerInstances);
      Assume(absl::StrCat("optimizer instances = ", kOptimizerInstances));
    }
    if (Named("account_for_embedding_loss_in_pipeline_split")) parallelism.set_layer_split(v1::ENDS_AS_LAYERS);
    return absl::OkStatus();
  }

  absl::Status ReadTraining() {
    v1::Training& training = *run().mutable_training();
    ABSL_ASSIGN_OR_RETURN(const std::int64_t seq_len, record_.Positive("seq-length"));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t micro_batch, record_.Positive("micro-batch-size"));
    const std::int64_t smallest = micro_batch * run().parallelism().dp();
    ABSL_ASSIGN_OR_RETURN(const std::int64_t global_batch, record_.PositiveOr("global-batch-size", smallest));
    if (record_.Blank("global-batch-size")) Assume(absl::StrCat("global batch = ", smallest));
    training.set_seq_len(seq_len);
    training.set_micro_batch(micro_batch);
    training.set_global_batch(global_batch);
    training.set_dropout(true);
    // --bf16 implies fp32 main gradients, --fp16 does not.
    if (True("fp16")) {
      training.set_precision(v1::FP16);
      training.set_gradient_type(True("accumulate-allreduce-grads-in-fp32") ? v1::FP32 : v1::FP16);
    } else if (True("bf16")) {
      training.set_precision(v1::BF16);
      training.set_gradient_type(v1::FP32);
    } else {
      return Missing("training in fp32");
    }
    return ReadRecompute(training);
  }

  absl::Status ReadRecompute(v1::Training& training) {
    const std::string_view granularity = record_.Text("recompute-granularity");
    training.set_recompute(v1::NONE);
    if (granularity.empty()) return absl::OkStatus();
    if (granularity == "selective") {
      training.set_recompute(v1::SELECTIVE);
      return absl::OkStatus();
    }
    if (granularity != "full") return Missing(absl::StrCat("recompute-granularity ", std::string(granularity)));
    training.set_recompute(v1::FULL);
    ABSL_ASSIGN_OR_RETURN(const std::int64_t layers, record_.PositiveOr("recompute-num-layers", 1));
    if (record_.Text("recompute-method") == "block") {
      training.set_recompute_layers(layers);
    } else if (layers > 1) {
      return Missing("recomputation of several layers at a time");
    }
    return absl::OkStatus();
  }

  absl::Status ReadSchedule() {
    const std::int64_t pp = run().parallelism().pp();
    ABSL_ASSIGN_OR_RETURN(const std::int64_t per_stage, record_.PositiveOr("num-layers-per-virtual-pipeline-stage", 0));
    ABSL_ASSIGN_OR_RETURN(std::int64_t stages, record_.PositiveOr("num-virtual-stages-per-pipeline-rank", 1));
    if (per_stage > 0) stages = std::max<std::int64_t>(1, run().model().layers() / pp / per_stage);
    run().mutable_parallelism()->set_virtual_stages(stages);
    run().mutable_schedule()->set_name(stages > 1 ? "interleaved-1f1b" : "1f1b");
    const v1::Training& training = run().training();
    const std::int64_t sequences = run().parallelism().dp() * training.micro_batch();
    if (stages > 1 && training.global_batch() / sequences % pp != 0) {
      return Missing("interleaving of micro-batches that the pipeline size does not divide");
    }
    return absl::OkStatus();
  }

  absl::Status ReadSoftware() {
    const v1::Software* level = catalogue_.Level(kLevel);
    if (level == nullptr) return Missing(absl::StrCat("software level ", std::string(kLevel)));
    run().mutable_software()->set_preset(std::string(kLevel));
    const std::string_view backend = record_.Text("attention-backend");
    v1::AttentionKernel kernel = v1::FLASH_ATTENTION_2;
    if (record_.Text("transformer-impl") == "local" || backend == "unfused" || backend == "local") {
      kernel = v1::UNFUSED;
    } else if (backend.empty() || backend == "auto") {
      const bool unfused = record_.Text("environment").starts_with("lts_dgxa100");
      if (unfused) kernel = v1::UNFUSED;
      Assume(unfused ? "attention = unfused" : "attention = fused");
    }
    run().mutable_software()->set_attention_kernel(kernel);
    return absl::OkStatus();
  }

  absl::Status ReadCluster() {
    const std::string accelerator = catalogue_.AcceleratorPreset(PresetName(Gpu()));
    if (accelerator.empty()) {
      return Missing(absl::StrCat("an accelerator of environment ", std::string(record_.Text("environment"))));
    }
    for (const v1::ClusterDefault& choice : catalogue_.Level(kLevel)->defaults().clusters()) {
      if (choice.accelerator() != accelerator) continue;
      run().mutable_cluster()->set_preset(choice.cluster());
      run().mutable_cluster()->mutable_accelerator()->set_preset(accelerator);
      return absl::OkStatus();
    }
    return Missing(absl::StrCat("a cluster of ", accelerator));
  }
  static std::string_view PresetName(std::string_view gpu) {
    if (gpu == "a100") return "a100-sxm-80gb";
    return gpu == "h100" ? "h100-sxm-80gb" : gpu;
  }

  const Record& record_;
  const Catalogue& catalogue_;
  const std::string_view name_;
  RunOfRow result_;
};

}  // namespace

absl::StatusOr<RunOfRow> MegatronTestRun(const Record& record, const Catalogue& catalogue) {
  return ArgumentReader(record, catalogue).Read();
}

}  // namespace orrery::validation
