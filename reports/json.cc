#include "reports/json.h"

#include <nlohmann/json.hpp>

#include "reports/memory_report.h"
#include "reports/time_classes.h"

namespace orrery::reports {
namespace {

using Json = nlohmann::ordered_json;

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

Json DelayJson(const training::TransferDelay& delay) {
  return {{"transfer", delay.transfer}, {"delay_s", SecondsFromTime(delay.delay)}};
}

Json LinksJson(const training::LinkSummary& summary) {
  Json links = Json::array();
  for (const training::LinkReport& link : summary.links) {
    Json users;
    for (const training::LinkUser& user : link.users) users[user.kind] = user.bytes;
    Json entry = {{"from", link.from},
                  {"to", link.to},
                  {"alike", link.alike},
                  {"capacity_bytes_per_s", link.capacity},
                  {"bytes", link.bytes},
                  {"utilisation", link.utilisation},
                  {"busy_fraction", link.busy_share},
                  {"delay_s", SecondsFromTime(link.delay)},
                  {"bytes_by", std::move(users)}};
    if (link.most_delayed.delay > Time()) {
      entry["most_delayed"] = DelayJson(link.most_delayed);
      if (link.most_taken.delay > Time()) entry["most_delayed"]["by"] = DelayJson(link.most_taken);
    }
    links.push_back(std::move(entry));
  }
  return links;
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
  if (provenance.expected_error.has_value()) {
    json["expected_error"] = {{"p50", provenance.expected_error->p50},
                              {"p90", provenance.expected_error->p90},
                              {"family", provenance.expected_error->family},
                              {"runs", provenance.expected_error->runs}};
  }
  if (result.links.has_value() && !result.links->links.empty()) json["links"] = LinksJson(*result.links);
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
    if (result.links.has_value()) {
      json["simulator"]["transfers"] = result.links->transfers;
      json["simulator"]["transfers_bypassed_solver"] = result.links->bypassed_solver;
      json["simulator"]["transfers_never_slowed"] = result.links->never_slowed;
    }
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery::reports
