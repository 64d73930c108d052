#include "reports/json.h"

#include <nlohmann/json.hpp>

#include "reports/time_classes.h"

namespace orrery::reports {
namespace {

using Json = nlohmann::ordered_json;

Json MemoryJson(const training::Result& result) {
  std::int64_t allocator_peak = 0;
  std::int64_t device_peak = 0;
  Json ranks = Json::array();
  for (const training::PipelineRankResult& rank : result.pipeline_ranks) {
    const memory::Ledger& memory = rank.memory;
    allocator_peak = std::max(allocator_peak, memory.AllocatorPeak().count());
    device_peak = std::max(device_peak, memory.DevicePeak().count());
    ranks.push_back({{"pipeline_rank", rank.pipeline_rank},
                     {"weights", memory.weights.count()},
                     {"gradients", memory.gradients.count()},
                     {"optimizer", memory.optimizer.count()},
                     {"activations", memory.activations.count()},
                     {"logits", memory.logits.count()},
                     {"buffers", memory.buffers.count()},
                     {"runtime", memory.runtime.count()},
                     {"allocator_peak_bytes", memory.AllocatorPeak().count()}});
  }
  return {{"fits", result.Fits()},
          {"capacity_bytes", result.memory_capacity},
          {"allocator_peak_bytes", allocator_peak},
          {"device_peak_bytes", device_peak},
          {"pipeline_ranks", std::move(ranks)}};
}

Json WaterfallJson(const Waterfall& waterfall) {
  Json steps = Json::array();
  for (const WaterfallStep& step : waterfall.steps) {
    Json entry = {{"name", step.name}, {"seconds", SecondsFromTime(step.time)}, {"mfu_points", 100 * step.mfu}};
    if (!step.note.empty()) entry["note"] = step.note;
    steps.push_back(std::move(entry));
  }
  Json remainder = {{"name", "remainder"},
                    {"seconds", SecondsFromTime(waterfall.remainder)},
                    {"mfu_points", 100 * waterfall.remainder_mfu}};
  if (!waterfall.remainder_note.empty()) remainder["note"] = waterfall.remainder_note;
  steps.push_back(std::move(remainder));
  return steps;
}

Json PipelineRanksJson(const training::Result& result) {
  Json ranks = Json::array();
  for (const training::PipelineRankResult& rank : result.pipeline_ranks) {
    Json seconds;
    for (const NamedTimeClass& named : TimeClasses()) {
      seconds[std::string(named.key)] = rank.SecondsOf(named.time_class);
    }
    ranks.push_back({{"pipeline_rank", rank.pipeline_rank}, {"layers", rank.layers}, {"seconds", std::move(seconds)}});
  }
  return ranks;
}

}  // namespace

std::string ResultJson(const training::Result& result, const Waterfall& waterfall, const Provenance& provenance,
                       const SimulatorCost* cost) {
  const double seconds = SecondsFromTime(result.iteration_time);
  const v1::Run& run = result.plan->run;
  Json json;
  json["iteration_time_s"] = seconds;
  json["first_iteration_time_s"] = SecondsFromTime(result.first_iteration_time);
  json["mfu"] = result.Mfu();
  json["hfu"] = result.Hfu();
  json["flops_convention"] = run.simulation().flops_convention();
  json["peak_tflops"] = result.peak.count() / 1e12;
  json["model_tflops_per_gpu"] = result.model_flops.count() / seconds / static_cast<double>(result.gpus) / 1e12;
  json["tokens_per_s"] = result.tokens / seconds;
  json["tokens_per_s_per_gpu"] = result.tokens / seconds / static_cast<double>(result.gpus);
  json["gpus"] = result.gpus;
  Json account;
  for (const NamedTimeClass& named : TimeClasses()) {
    account[std::string(named.key)] = result.Fraction(named.time_class);
  }
  json["time_account"] = std::move(account);
  json["bubble_fraction"] = result.Fraction(engine::TimeClass::kBubble);
  json["span_bubble_fraction"] = result.span_bubble_fraction;
  json["exposed_communication_fraction"] = result.ExposedCommunicationFraction();
  json["waterfall"] = WaterfallJson(waterfall);
  json["memory"] = MemoryJson(result);
  json["pipeline_ranks"] = PipelineRanksJson(result);
  json["warnings"] = result.warnings;
  json["provenance"] = {{"version", provenance.version},
                        {"spec_sha256", provenance.spec_sha256},
                        {"profile", provenance.profile},
                        {"software", provenance.software},
                        {"schedule", run.schedule().name()}};
  if (cost != nullptr) {
    json["simulator"] = {{"ranks_simulated", result.ranks_simulated},
                         {"events", result.events},
                         {"tasks", result.tasks},
                         {"wall_time_s", cost->wall_seconds},
                         {"peak_rss_bytes", cost->peak_rss_bytes}};
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery::reports
