#include "proto/limits.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "proto/rules.h"

namespace orrery::spec {
namespace {

// Sizes of one rank in real numbers, which cannot overflow. Upper bounds, not predictions.
struct Sizes {
  explicit Sizes(const v1::Run& run);

  double iterations;     // replayed, warm-up included
  double micro_batches;  // of one replica
  double layers;         // of one rank
  double tokens;         // of one micro-batch
  double parameters;     // of one rank
  double layer_flops;    // forward, of one layer and one micro-batch, one rank
  double head_flops;     // the same of the output head
  double layer_bytes;    // activations of one layer and one micro-batch, one rank
  double head_bytes;     // logits of one micro-batch
  double buckets;        // of the gradient reduction
};

Sizes::Sizes(const v1::Run& run) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const v1::Model& model = run.model();
  const v1::Parallelism& parallelism = run.parallelism();
  const v1::Training& training = run.training();
  const double tp = real(parallelism.tp());
  const double width = real(model.heads()) * real(model.head_dim());
  const double hidden = real(model.hidden());
  const double ffn = real(model.ffn_hidden());
  iterations = real(run.simulation().iterations()) + 1;
  micro_batches = real(training.global_batch()) / (real(parallelism.dp()) * real(training.micro_batch()));
  layers = real(model.layers()) / real(parallelism.pp());
  tokens = real(training.micro_batch()) * real(training.seq_len());
  const double layer_parameters = 4 * hidden * width + 2 * hidden * ffn;
  parameters = (layers * layer_parameters + real(model.vocab()) * hidden + real(training.seq_len()) * hidden) / tp;
  // Scores are counted in full, whatever the kernel and the window.
  layer_flops = tokens * (2 * layer_parameters + 4 * real(training.seq_len()) * width) / tp;
  head_flops = tokens * 2 * hidden * real(model.vocab()) / tp;
  // Every value of a layer in four bytes, nothing sharded but what tensor parallelism shards in any case.
  layer_bytes =
      4 * tokens * (10 * hidden + (6 * width + 3 * ffn + 3 * real(training.seq_len()) * real(model.heads())) / tp);
  head_bytes = 8 * tokens * real(model.vocab()) / tp;
  // At most one per layer: model_states.h.
  buckets = std::min(4 * parameters / real(run.software().bucket_bytes()) + 1, layers + 1);
}

// Operations of one rank in all iterations. A layer has some twenty kernels and collectives per pass and three passes.
double RankOperations(const v1::Run& run, const Sizes& sizes) {
  constexpr double kPerLayer = 64;
  constexpr double kPerPass = 8;
  const double chunks = static_cast<double>(run.parallelism().virtual_stages());
  const double per_micro_batch =
      kPerPass * chunks + (run.simulation().granularity() == v1::OPERATOR ? kPerLayer * (sizes.layers + 1) : 0.0);
  const double buckets = run.software().gradient_reduction() == v1::OVERLAPPED ? sizes.buckets : 0.0;
  return sizes.iterations * (sizes.micro_batches * per_micro_batch + buckets);
}

// The lowest of a profile's efficiencies: constants between 0 and 1. What is not required is an alternative, taken only
// where it is faster.
double LowestShare(const google::protobuf::Message& message) {
  double lowest = 1;
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  const google::protobuf::Reflection* reflection = message.GetReflection();
  reflection->ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr || !RuleOf(field).required()) continue;
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const google::protobuf::Message& inner = field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                                                    : reflection->GetMessage(message, field);
      const bool is_constant = field->message_type() == v1::Constant::descriptor();
      if (is_constant && RuleOf(field).min() > 0 && RuleOf(field).max() == 1) {
        lowest = std::min(lowest, static_cast<const v1::Constant&>(inner).value());
      } else if (!is_constant) {
        lowest = std::min(lowest, LowestShare(inner));
      }
    }
  }
  return lowest;
}

// A generous bound on the seconds of the whole replay: four forward passes of FLOPs and bytes, every collective and
// message over the slowest link, every latency and launch, all one after the other on the slowest GPU.
double ReplaySeconds(const v1::Run& run, const Sizes& sizes) {
  constexpr double kPasses = 4;  // forward, recomputation, two gradients
  constexpr double kPerLayer = 64;
  const v1::Cluster& cluster = run.cluster();
  const v1::CollectiveProfile& collective = cluster.accelerator().profile().collective();
  const double share = LowestShare(cluster.accelerator().profile());
  const double efficiency = share * share;  // two of them may multiply
  double peak = 1;
  for (const v1::PeakRate& rate : cluster.accelerator().peak()) {
    if (rate.data_type() == run.training().precision()) peak = rate.flops_per_second();
  }
  const double flops = kPasses * sizes.micro_batches * (sizes.layers * sizes.layer_flops + sizes.head_flops);
  const double bytes =
      kPasses * sizes.micro_batches * (sizes.layers * sizes.layer_bytes + sizes.head_bytes) + 64 * sizes.parameters;
  double slowest = 1;
  for (const v1::SlowGpu& slow : run.perturbation().slow_gpus()) slowest = std::max(slowest, slow.factor());
  for (const v1::OverlapRule& rule : run.software().overlap_rules()) {
    slowest = std::max(slowest, rule.compute_factor() * rule.communication_factor());
  }
  const double nic_share = static_cast<double>(cluster.node().nics()) / static_cast<double>(cluster.node().gpus());
  const double link = std::min(cluster.node().nvlink().bandwidth() * cluster.node().nvlink().efficiency(),
                               cluster.node().nic().bandwidth() * cluster.node().nic().efficiency() *
                                   std::min(1.0, nic_share) / cluster.fabric().oversubscription());
  const double step = cluster.node().nvlink().latency() + cluster.node().nic().latency() +
                      8 * cluster.fabric().hop_latency() + collective.base_latency().value() +
                      collective.intra_step_latency().value() + collective.inter_step_latency().value() +
                      collective.message_latency().value();
  const double kernels = kPasses * kPerLayer * sizes.micro_batches * (sizes.layers + 1);
  const double launches =
      kernels * (run.software().issue_seconds() + cluster.accelerator().profile().kernel_floor().value());
  // A ring of n has 2 (n - 1) steps; tensor-parallel rings once per pass and layer, data-parallel ones once per bucket.
  const double steps = 2 * static_cast<double>(run.parallelism().tp()) * kernels / 8 +
                       2 * static_cast<double>(run.parallelism().dp()) * sizes.buckets;
  const double seconds = flops / (peak * efficiency) + bytes / (cluster.accelerator().memory_bandwidth() * efficiency) +
                         bytes / (link * efficiency) + launches + steps * step + run.training().data_seconds();
  return sizes.iterations * slowest * seconds;
}

}  // namespace

void CheckLimits(const v1::Run& run, const Origins& origins, Diagnostics* diagnostics) {
  const auto fail = [&](const std::string& path, const std::string& message) {
    diagnostics->Error(origins.Nearest(path), path, message);
  };
  const Sizes sizes(run);
  if (const double operations = RankOperations(run, sizes); operations > limits::kRankOperations) {
    fail("training.global_batch",
         absl::StrCat(FormatDouble(sizes.micro_batches), " micro-batches in ", FormatDouble(sizes.iterations),
                      " iterations make about ", FormatDouble(operations), " operations per GPU; allowed: up to ",
                      FormatDouble(limits::kRankOperations)));
    return;
  }
  const bool unfolded = run.simulation().fold() == v1::OFF || run.perturbation().jitter().mode() == v1::SAMPLED;
  if (unfolded && run.parallelism().gpus() > limits::kUnfoldedRanks) {
    fail(run.simulation().fold() == v1::OFF ? "simulation.fold" : "perturbation.jitter.mode",
         absl::StrCat("each of ", run.parallelism().gpus(), " GPUs would be replayed; allowed: up to ",
                      limits::kUnfoldedRanks, " GPUs, or fold: ON without SAMPLED jitter"));
  }
  const double activations = sizes.micro_batches * (sizes.layers * sizes.layer_bytes + sizes.head_bytes);
  if (activations > limits::kActivationBytes) {
    fail("training.micro_batch", absl::StrCat("one GPU's activations come to about ", FormatDouble(activations),
                                              " bytes; allowed: up to ", FormatDouble(limits::kActivationBytes)));
  } else if (const double seconds = ReplaySeconds(run, sizes); !(seconds <= limits::kReplaySeconds)) {
    fail(
        "simulation.iterations",
        absl::StrCat("the replay could cover ", FormatDouble(seconds), " simulated seconds; allowed: up to ",
                     FormatDouble(limits::kReplaySeconds), " (fewer iterations, a smaller batch or a faster machine)"));
  }
}

}  // namespace orrery::spec
