#include "reports/expert_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/text_table.h"

namespace orrery::reports {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicro = 1e6;
constexpr double kGiga = 1e9;

}  // namespace

std::string ExpertText(const ExpertSweep& sweep) {
  const collectives::ExpertExchange& exchange = sweep.exchange;
  std::string text =
      absl::StrCat("# ", sweep.collective, ", ", sweep.ranks, sweep.ranks == 1 ? " GPU on " : " GPUs on ", sweep.nodes,
                   sweep.nodes == 1 ? " node of " : " nodes of ", sweep.cluster, ", ", sweep.transport, "\n# hidden ",
                   exchange.hidden, ", top ", exchange.top_k, " of ", exchange.experts, " experts",
                   exchange.max_nodes == 0
                       ? ""
                       : absl::StrCat(" on at most ", exchange.max_nodes, exchange.max_nodes == 1 ? " node" : " nodes"),
                   ", ", sweep.data_type, " (", FormatDouble(exchange.element_bytes), " bytes per element), imbalance ",
                   FormatDouble(exchange.imbalance), "\n");
  for (const std::string& assumption : sweep.assumptions) absl::StrAppend(&text, "# ", assumption, "\n");
  using Align = TextTable::Align;
  TextTable table({{"tokens", Align::kRight},
                   {"bytes", Align::kRight},
                   {"time (us)", Align::kRight},
                   {"logical GB/s", Align::kRight},
                   {"NIC bytes", Align::kRight},
                   {"NVLink bytes", Align::kRight},
                   {"nodes", Align::kRight},
                   {"ranks", Align::kRight}});
  for (const ExpertSweep::Row& row : sweep.rows) {
    const collectives::ExpertTraffic& traffic = row.time.traffic;
    table.AddRow({absl::StrCat(row.tokens), FormatFixed(row.bytes, 0), FormatFixed(row.time.seconds * kMicro, 2),
                  FormatFixed(row.time.logical_bandwidth.count() / kGiga, 2), FormatFixed(traffic.nic_bytes, 0),
                  FormatFixed(traffic.nvlink_bytes, 0), FormatFixed(traffic.nodes, 2), FormatFixed(traffic.ranks, 2)});
  }
  return text + table.Render();
}

std::string ExpertJson(const ExpertSweep& sweep) {
  Json json = {{"collective", sweep.collective},
               {"cluster", sweep.cluster},
               {"gpus", sweep.ranks},
               {"nodes", sweep.nodes},
               {"transport", sweep.transport},
               {"hidden", sweep.exchange.hidden},
               {"top_k", sweep.exchange.top_k},
               {"experts", sweep.exchange.experts},
               {"max_nodes", sweep.exchange.max_nodes},
               {"data_type", sweep.data_type},
               {"bytes_per_element", sweep.exchange.element_bytes},
               {"imbalance", sweep.exchange.imbalance},
               {"one_copy_per_rank", sweep.one_copy_per_rank}};
  if (!sweep.assumptions.empty()) json["assumptions"] = sweep.assumptions;
  json["rows"] = Json::array();
  for (const ExpertSweep::Row& row : sweep.rows) {
    json["rows"].push_back({{"tokens", row.tokens},
                            {"bytes", row.bytes},
                            {"time_s", row.time.seconds},
                            {"logical_bandwidth", row.time.logical_bandwidth.count()},
                            {"nic_bytes_per_gpu", row.time.traffic.nic_bytes},
                            {"nvlink_bytes_per_gpu", row.time.traffic.nvlink_bytes},
                            {"uplink_bytes_per_gpu", row.time.traffic.uplink_bytes},
                            {"nodes_per_token", row.time.traffic.nodes},
                            {"ranks_per_token", row.time.traffic.ranks}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery::reports
