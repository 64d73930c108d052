#include "proto/limits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/math.h"
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
  layers = 0;
  for (int stage = 0; stage < parallelism.stage_layers_size(); ++stage) {
    layers = std::max(layers, real(parallelism.stage_layers(stage)));
  }
  layers *= real(parallelism.virtual_stages());
  tokens = real(training.micro_batch()) * real(training.seq_len());
  const double layer_parameters = 4 * hidden * width + 2 * hidden * ffn;
  parameters = (layers * layer_parameters + real(model.vocab()) * hidden + real(training.seq_len()) * hidden) / tp;
  const bool has_scores = run.software().attention_kernel() == v1::UNFUSED;
  const double scores = has_scores ? 3 * real(training.seq_len()) * real(model.heads()) : 0;  // per token
  // Every value of a layer in four bytes, nothing sharded but what tensor parallelism shards in any case.
  layer_bytes = 4 * tokens * (10 * hidden + (6 * width + 3 * ffn + scores) / tp);
  head_bytes = 8 * tokens * real(model.vocab()) / tp;
  // At most one per layer: model_states.h.
  buckets = std::min(4 * parameters / real(run.software().bucket_bytes()) + 1, layers + 1);
}

// Whether parameters are gathered for every pass, or gradients reduced after every backward pass.
bool CommunicatesEveryMicroBatch(const v1::Run& run) {
  return run.parallelism().zero_stage() == 3 || run.software().reduce_every_micro_batch();
}

// Operations of one rank in all iterations. A layer has some twenty kernels and collectives per pass and three passes.
// A unit of ZeRO-3 is converted, gathered and computed twice, and reduced in two steps; a bucket cuts its passes once
// more, is gathered and reduced in two steps.
double RankOperations(const v1::Run& run, const Sizes& sizes) {
  constexpr double kPerLayer = 96;
  constexpr double kPerPass = 8;
  constexpr double kPerUnit = 8;
  constexpr double kPerBucket = 5;
  const double chunks = static_cast<double>(run.parallelism().virtual_stages());
  const double per_micro_batch =
      kPerPass * chunks + (run.simulation().granularity() == v1::OPERATOR ? kPerLayer * (sizes.layers + 1) : 0.0);
  const double units = run.parallelism().zero_stage() == 3 ? kPerUnit * (sizes.layers + 2) : 0.0;
  const double reductions = kPerBucket * (sizes.buckets + chunks);
  const double times = CommunicatesEveryMicroBatch(run) ? sizes.micro_batches : 1.0;
  return sizes.iterations * (sizes.micro_batches * (per_micro_batch + units) + times * reductions);
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

// Slots of one iteration's pipeline: every micro-batch, and its filling and draining.
double Passes(const v1::Run& run, const Sizes& sizes) {
  return sizes.micro_batches + 2 * static_cast<double>(run.parallelism().pp());
}

// The entry for the run's precision; checks.cc says where there is none.
const v1::GemmProfile& GemmProfileOf(const v1::Run& run) {
  for (const v1::GemmProfile& entry : run.cluster().accelerator().profile().gemm()) {
    for (const int type : entry.data_types()) {
      if (type == run.training().precision()) return entry;
    }
  }
  return v1::GemmProfile::default_instance();
}

// Seconds that one product takes at most, in any order of its dimensions. The library takes its fastest tile and cut of
// k, so that each is a bound: here the smallest tile and no cut, edges padded, the last wave as long as a full one, and
// memory left to MemorySeconds but for what it exposes. See sim/kernels/gemm.h.
double ProductSeconds(const v1::Accelerator& accelerator, const v1::GemmProfile& profile, double peak, double batch,
                      double m, double n, double k) {
  double side = std::numeric_limits<double>::infinity();
  double shorter = 1;
  for (const v1::GemmTile& tile : profile.tile()) {
    const auto longer = static_cast<double>(std::max(tile.m(), tile.n()));
    if (longer >= side) continue;
    side = longer;
    shorter = static_cast<double>(std::min(tile.m(), tile.n()));
  }
  const double efficiency = profile.efficiency().value() * profile.sustained().value() *
                            std::min(profile.misaligned_factor().value(), profile.misaligned_batch_factor().value()) /
                            (1 + 2 * profile.operand_reload().value() / shorter);
  const double pad = std::max(side, profile.k_step().value());
  const auto sms = static_cast<double>(accelerator.sms());
  const double flops = 2 * batch * (m + pad) * (n + pad) * (k + pad);
  const double last_wave = 2 * sms * side * side * (std::max({m, n, k}) + pad);
  // Any two of the three dimensions may span the tiles.
  const double small = std::min({m, n, k}) / shorter + 1;
  const double tiles = batch * (m / shorter + 1) * (n / shorter + 1) * (k / shorter + 1) / small;
  const double waves = (tiles / sms + 1) * profile.wave_overhead().value();
  return (1 + profile.exposed_share().value()) * ((flops + last_wave) / (peak * efficiency) + waves);
}

// Seconds of all products of one micro-batch on one rank: forward, recomputation, two gradients.
double ProductsSeconds(const v1::Run& run, const Sizes& sizes, double peak) {
  constexpr double kPasses = 4;
  const v1::Model& model = run.model();
  const auto tp = static_cast<double>(run.parallelism().tp());
  const auto hidden = static_cast<double>(model.hidden());
  const auto head_dim = static_cast<double>(model.head_dim());
  const double heads = static_cast<double>(model.heads()) / tp;
  const double ffn = static_cast<double>(model.ffn_hidden()) / tp;
  const auto product = [&](double batch, double m, double n, double k) {
    return ProductSeconds(run.cluster().accelerator(), GemmProfileOf(run), peak, batch, m, n, k);
  };
  double layer = product(1, sizes.tokens, 3 * heads * head_dim, hidden) +
                 product(1, sizes.tokens, hidden, heads * head_dim) + 3 * product(1, sizes.tokens, ffn, hidden);
  if (run.software().attention_kernel() == v1::UNFUSED) {
    const auto length = static_cast<double>(run.training().seq_len());
    layer += 2 * product(static_cast<double>(run.training().micro_batch()) * heads, length, length, head_dim);
  }
  // Every rank's share of the vocabulary is rounded up to a multiple of 128: workloads/parameters.cc.
  const double head = product(1, sizes.tokens, static_cast<double>(model.vocab()) / tp + 128, hidden);
  return kPasses * (sizes.layers * layer + head);
}

// The same of fused attention, without what mask or window saves. See sim/kernels/attention.h.
double AttentionSeconds(const v1::Run& run, const Sizes& sizes, double peak) {
  constexpr double kFlops = 4 + 4 + 10;  // per pair and element: forward, again, backward
  const v1::Accelerator& accelerator = run.cluster().accelerator();
  for (const v1::AttentionProfile& profile : accelerator.profile().attention()) {
    if (profile.kernel() != run.software().attention_kernel()) continue;
    const std::int64_t wanted = run.model().head_dim();
    std::int64_t width = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t size : profile.head_dims()) {
      if (size >= wanted) width = std::min(width, size);
    }
    // Above head dimension 128 the rate changes as its power.
    const double factor =
        Pow(std::max(static_cast<double>(width), 128.0) / 128, Log(profile.wide_factor().value()) / Log(2));
    const double efficiency = std::min(profile.forward_efficiency().value(), profile.backward_efficiency().value()) *
                              factor * profile.causal_efficiency().value();
    const double block = std::trunc(profile.block().value());
    const double rows = static_cast<double>(run.training().seq_len()) / block + 1;
    const double problems = static_cast<double>(run.training().micro_batch()) *
                            static_cast<double>(run.model().heads()) / static_cast<double>(run.parallelism().tp());
    // With fewer thread blocks than multiprocessors a row takes as long as if there were one for each.
    const double all_rows = problems * rows + static_cast<double>(accelerator.sms());
    const double keys = rows * block + std::max(profile.half_length().value(), profile.backward_half_length().value());
    const double elements = static_cast<double>(width) + profile.softmax_width().value();
    return sizes.layers * all_rows * block * keys * elements * kFlops / (peak * efficiency);
  }
  return 0;
}

// Everything that a rank moves through its memory in one iteration.
double MemorySeconds(const v1::Run& run, const Sizes& sizes) {
  constexpr double kTouches = 16;         // of each activation: read or written
  constexpr double kParameterBytes = 64;  // gradients and their sum, and the optimizer once
  const v1::Accelerator& accelerator = run.cluster().accelerator();
  const double passes = Passes(run, sizes);
  const double bytes = kTouches * passes * (sizes.layers * sizes.layer_bytes + sizes.head_bytes) +
                       kParameterBytes * (passes + 1) * sizes.parameters;
  const double share = LowestShare(accelerator.profile());
  return bytes / (accelerator.memory_bandwidth() * share);
}

// The least bandwidth of a link that anything sees.
double LeastBandwidth(const v1::Link& link) {
  return link.bandwidth() * std::min(link.efficiency(), link.message_efficiency());
}

// Seconds: the most that a version's tables count for one step of any algorithm and protocol, its base, a way over each
// kind of link and both ends of the network's (three times `net_overhead` for Simple) included.
double LongestTableStep(const v1::NcclVersion& version) {
  const auto slowest = [](const v1::NcclLatency& latency) {
    return std::max({latency.ll(), latency.ll128(), latency.simple()});
  };
  double longest = 0;
  for (const v1::NcclAlgorithmLatency& latency : version.latency()) {
    longest = std::max(
        longest, slowest(latency.base()) + slowest(latency.nvlink()) + slowest(latency.pci()) + slowest(latency.net()));
  }
  const double overhead = 3 * std::max(version.net_overhead(), version.net_overhead_amd());
  return 1e-6 * (longest + overhead) * std::max(version.ring_simple_plateau(), version.ring_simple_plateau_old());
}

// The least bandwidth that a channel of any protocol or algorithm reaches, and the longest step. See
// sim/collectives/nccl/time.h.
struct NcclExtremes {
  NcclExtremes(const v1::NcclTimes& times, const v1::NcclVersion& version)
      : bandwidth(
            std::min({times.channel_bandwidth().value(), times.tree_channel_bandwidth().value(),
                      times.nvls_channel_bandwidth().value() / std::max(1.0, 3 * times.nvls_tree_work().value())})),
        share(std::min(times.nvlink_share().value(), times.message_share().value())),
        step(times.launch().value() + times.nvls_launch().value() + times.nvlink_step().value() +
             times.net_step().value() + times.nvls_tree_step().value() + LongestTableStep(version)),
        per_byte(1 / bandwidth + step / kRingPiece + times.nvls_chunk().value() / kNvlsPiece) {}

  // What a step of a ring moves at least where bandwidth counts: a slot of Simple's buffer, 4 MiB / 8 in all versions.
  // The steps of less are counted by themselves.
  static constexpr double kRingPiece = 524288;
  // The least that NCCL cuts a chunk of NVLS to: sim/collectives/nccl/time.cc.
  static constexpr double kNvlsPiece = 16384;

  double bandwidth;  // bytes/s
  double share;      // of NVLink
  double step;       // seconds
  double per_byte;   // seconds
};

// Every collective and message of an iteration. See sim/collectives/collective_prices.h.
double CommunicationSeconds(const v1::Run& run, const Sizes& sizes) {
  constexpr double kCollectives = 12;  // of the activations between two layers: per layer, all passes
  constexpr double kBytes = 3 * 4;     // per value: sent twice, with the fill that comes to half of it; FP32
  const v1::Parallelism& parallelism = run.parallelism();
  if (parallelism.gpus() == 1) return 0;
  const v1::Node& node = run.cluster().node();
  const v1::Fabric& fabric = run.cluster().fabric();
  const NcclExtremes nccl(run.cluster().accelerator().nccl_times(), run.software().nccl());
  // Limits of links and of channels blend. LL has a quarter of a ring's bandwidth at least (ring_ll_share), half of its
  // bytes flags: a byte takes eight times what the link needs for it, and ten are above that.
  const auto blended = [&](double link) { return 1 / (10 / link + nccl.per_byte); };
  const double nvlink = blended(LeastBandwidth(node.nvlink()) * nccl.share);
  double link = nvlink;
  double step = node.nvlink().latency() + nccl.step;
  if (parallelism.gpus() > node.gpus()) {
    const double nics_per_gpu = static_cast<double>(node.nics()) / static_cast<double>(node.gpus());
    const double nic = std::min(LeastBandwidth(node.nic()), LeastBandwidth(node.pcie()));
    link = std::min(link, blended(nic * std::min(1.0, nics_per_gpu) / fabric.oversubscription()));
    step += node.nic().latency() + 8 * fabric.hop_latency();
  }
  const auto tp = static_cast<double>(parallelism.tp());
  const double tensor_link = node.gpus() % parallelism.tp() == 0 ? nvlink : link;  // tp counts fastest
  const double passes = Passes(run, sizes);
  const double between = kBytes * sizes.tokens * static_cast<double>(run.model().hidden());
  // The embedding and the head stand beside the layers.
  const double tensor_bytes = parallelism.tp() == 1 ? 0 : kCollectives * passes * (sizes.layers + 2) * between;
  const double chunks = parallelism.pp() == 1 ? 0 : static_cast<double>(parallelism.virtual_stages());
  const double message_bytes = 2 * passes * chunks * between;
  // Reduced, gathered twice, and the tied embeddings.
  const double times = CommunicatesEveryMicroBatch(run) ? sizes.micro_batches : 1.0;
  const double state_bytes = times * 64 * sizes.parameters;
  // A ring of n has 2 (n - 1) steps; a bucket or unit is reduced in two steps and gathered twice; a message takes one
  // step.
  const double units = parallelism.zero_stage() == 3 ? sizes.layers + 1 : sizes.buckets + chunks;
  const double steps = 2 * tp * kCollectives * passes * (sizes.layers + 2) + 2 * passes * chunks +
                       times * 2 * 4 * static_cast<double>(parallelism.dp()) * (units + 1);
  return tensor_bytes / tensor_link + (message_bytes + state_bytes) / link + steps * step;
}

// Issue, floor and overhead of all kernels of an iteration; what the host adds to it as a whole, its skew as far as the
// latest of all ranks may be.
double LaunchSeconds(const v1::Run& run, const Sizes& sizes) {
  constexpr double kKernels = 256;  // per layer, all passes
  const v1::Profile& profile = run.cluster().accelerator().profile();
  constexpr double kMostSigmas = 9;
  const double once = profile.host().step_overhead().value() + kMostSigmas * profile.host().launch_skew().value();
  return once +
         kKernels * Passes(run, sizes) * (sizes.layers + 1) *
             (run.software().issue_seconds() + profile.kernel_floor().value() + GemmProfileOf(run).overhead().value());
}

// Factor by which the slowest GPU is slower at most, rules of overlap included.
double SlowestFactor(const v1::Run& run) {
  // Three groups may each wait for the slowest of up to 8e7 normal draws, 5.6 sigma; one draw stays below 9.
  constexpr double kMostSigmas = 20;
  double slowest = 1;
  for (const v1::SlowGpu& slow : run.perturbation().slow_gpus()) slowest = std::max(slowest, slow.factor());
  double overlapped = 1;
  for (const v1::OverlapRule& rule : run.software().overlap_rules()) {
    overlapped = std::max(overlapped, rule.compute_factor() * rule.communication_factor());
  }
  const v1::Jitter& jitter = run.perturbation().jitter();
  const double jitter_factor = jitter.mode() == v1::NO_JITTER ? 1 : 1 + kMostSigmas * jitter.sigma();
  return slowest * overlapped * jitter_factor;
}

// Part of a generous bound on the seconds of the whole replay, and the fields that decide it.
struct Part {
  double seconds;
  const char* what;
  std::vector<std::string> paths;
};

// The bound: everything that one rank does, one after the other, on the slowest GPU.
std::vector<Part> ReplayParts(const v1::Run& run, const Sizes& sizes) {
  double peak = 1;
  for (const v1::PeakRate& rate : run.cluster().accelerator().peak()) {
    if (rate.data_type() == run.training().precision()) peak = rate.flops_per_second();
  }
  const double slow = sizes.iterations * SlowestFactor(run);
  // Where overlap is dynamic, compute is slower while its rank communicates, and then only: as if what is beside it
  // came after it. The longest path meets more passes than a rank has, those of the pipeline's fill.
  const double fill = static_cast<double>(run.parallelism().pp()) / sizes.micro_batches;
  const double beside = run.simulation().overlap() == v1::DYNAMIC ? 1 + fill : 0;
  const double passes = Passes(run, sizes);
  const std::string accelerator = "cluster.accelerator";
  std::vector<Part> parts;
  parts.push_back({slow * passes * (ProductsSeconds(run, sizes, peak) + AttentionSeconds(run, sizes, peak)),
                   "multiplications",
                   {accelerator + ".peak", "training.seq_len"}});
  parts.push_back(
      {slow * MemorySeconds(run, sizes), "memory traffic", {accelerator + ".memory_bandwidth", "training.seq_len"}});
  parts.push_back({slow * (1 + beside) * CommunicationSeconds(run, sizes),
                   "communication",
                   {"cluster.node.nic.bandwidth", "cluster.node.nvlink.bandwidth", "cluster.fabric.oversubscription",
                    "cluster.node.nic.latency", "cluster.node.nvlink.latency", "cluster.fabric.hop_latency"}});
  parts.push_back(
      {slow * LaunchSeconds(run, sizes),
       "kernel launches",
       {"software.issue_seconds", accelerator + ".profile.kernel_floor", accelerator + ".profile.gemm.overhead"}});
  parts.push_back({sizes.iterations * run.training().data_seconds(), "loading data", {"training.data_seconds"}});
  for (Part& part : parts) {
    for (const char* path : {"perturbation.slow_gpus", "simulation.iterations", "training.global_batch"}) {
      part.paths.push_back(path);
    }
  }
  return parts;
}

// Reports a replay that an int64 of picoseconds might not hold.
void CheckReplaySeconds(const v1::Run& run, const Sizes& sizes, const Origins& origins, Diagnostics* diagnostics) {
  const std::vector<Part> parts = ReplayParts(run, sizes);
  double seconds = 0;
  const Part* largest = &parts[0];
  for (const Part& part : parts) {
    seconds += part.seconds;
    if (part.seconds > largest->seconds) largest = &part;
  }
  if (seconds <= limits::kReplaySeconds) return;
  diagnostics->ErrorAtWriter(
      origins, largest->paths,
      absl::StrCat("the replay could cover ", FormatDouble(seconds), " simulated seconds, most of them ", largest->what,
                   "; allowed: up to ", FormatDouble(limits::kReplaySeconds),
                   " (fewer iterations, a smaller batch or a faster machine)"));
}

}  // namespace

void CheckLimits(const v1::Run& run, const Origins& origins, Diagnostics* diagnostics) {
  const auto fail = [&](const std::vector<std::string>& paths, const std::string& message) {
    diagnostics->ErrorAtWriter(origins, paths, message);
  };
  const Sizes sizes(run);
  if (const double operations = RankOperations(run, sizes); operations > limits::kRankOperations) {
    fail({"training.global_batch", "simulation.iterations", "simulation.granularity", "parallelism.virtual_stages",
          "model.layers"},
         absl::StrCat(FormatDouble(sizes.micro_batches), " micro-batches in ", FormatDouble(sizes.iterations),
                      " iterations make about ", FormatDouble(operations), " operations per GPU; allowed: up to ",
                      FormatDouble(limits::kRankOperations)));
    return;
  }
  const bool unfolded = run.simulation().fold() == v1::OFF || run.perturbation().jitter().mode() == v1::SAMPLED;
  if (unfolded && run.parallelism().gpus() > limits::kUnfoldedRanks) {
    fail({run.simulation().fold() == v1::OFF ? "simulation.fold" : "perturbation.jitter.mode"},
         absl::StrCat("each of ", run.parallelism().gpus(), " GPUs would be replayed; allowed: up to ",
                      limits::kUnfoldedRanks, " GPUs, or fold: ON without SAMPLED jitter"));
  }
  const double activations = sizes.micro_batches * (sizes.layers * sizes.layer_bytes + sizes.head_bytes);
  if (activations > limits::kActivationBytes) {
    fail({"training.micro_batch", "training.seq_len", "training.global_batch"},
         absl::StrCat("one GPU's activations come to about ", FormatDouble(activations), " bytes; allowed: up to ",
                      FormatDouble(limits::kActivationBytes)));
  } else {
    CheckReplaySeconds(run, sizes, origins, diagnostics);
  }
}

}  // namespace orrery::spec
