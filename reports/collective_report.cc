#include "reports/collective_report.h"

#include <algorithm>
#include <cstddef>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/format.h"

namespace orrery::reports {
namespace {

using Json = nlohmann::ordered_json;
namespace nccl = collectives::nccl;

constexpr std::int64_t kElement = 4;  // bytes of a float, nccl-tests' default type
constexpr double kMicro = 1e6;
constexpr double kGiga = 1e9;

bool HasReduction(nccl::Operation operation) {
  return operation == nccl::Operation::kAllReduce || operation == nccl::Operation::kReduceScatter ||
         operation == nccl::Operation::kReduce;
}

// Elements as nccl-tests counts them: of one rank's part where the tensor is scattered or gathered.
std::int64_t CountOf(const CollectiveSweep& sweep, std::int64_t bytes) {
  const bool parts = sweep.operation == nccl::Operation::kAllGather ||
                     sweep.operation == nccl::Operation::kReduceScatter ||
                     sweep.operation == nccl::Operation::kAllToAll;
  return bytes / kElement / (parts ? sweep.ranks : 1);
}

struct Figures {
  double microseconds = 0, algbw = 0, busbw = 0;
};

// One line: cells right-aligned under each other, the names of algorithm and protocol left-aligned.
constexpr std::size_t kWidths[] = {14, 13, 8, 6, 10, 8, 8, 13, 8, 8, 10, 7, 0};
constexpr std::size_t kLeftFrom = 7, kLeftTo = 9;

std::string Line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string pad(kWidths[i] > cells[i].size() ? kWidths[i] - cells[i].size() : 0, ' ');
    const bool left = i >= kLeftFrom && i < kLeftTo;
    absl::StrAppend(&line, i == 0 ? "" : "  ", left ? cells[i] : pad, left ? pad : cells[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// A heading: the first cell's padding begins with "#".
std::string Heading(const std::vector<std::string>& cells) {
  std::string line = Line(cells);
  line[0] = '#';
  return line;
}

Figures FiguresOf(const CollectiveSweep& sweep, const CollectiveSweep::Row& row) {
  const double seconds = SecondsFromTime(row.time());
  Figures figures;
  figures.microseconds = seconds * kMicro;
  if (seconds > 0) figures.algbw = static_cast<double>(row.bytes) / seconds / kGiga;
  figures.busbw = figures.algbw * nccl::BusFactor(sweep.operation, sweep.ranks);
  return figures;
}

std::string AlgorithmOf(const CollectiveSweep& sweep, const CollectiveSweep::Row& row) {
  return sweep.hierarchical ? "Hierarchical" : nccl::AlgorithmName(row.price.variant.algorithm);
}

// By row: whether some larger size takes less.
std::vector<bool> SlowerThanLarger(const CollectiveSweep& sweep) {
  std::vector<bool> slower(sweep.rows.size());
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    slower[i] = std::any_of(sweep.rows.begin(), sweep.rows.end(), [&](const CollectiveSweep::Row& other) {
      return other.bytes > sweep.rows[i].bytes && other.time() < sweep.rows[i].time();
    });
  }
  return slower;
}

}  // namespace

std::string CollectiveText(const CollectiveSweep& sweep) {
  std::string text = absl::StrCat("# ", nccl::OperationName(sweep.operation), ", ", sweep.ranks,
                                  sweep.ranks == 1 ? " GPU on " : " GPUs on ", sweep.nodes,
                                  sweep.nodes == 1 ? " node of " : " nodes of ", sweep.cluster, ", NCCL ",
                                  sweep.version, ", times ", sweep.times, "\n");
  const bool shared = std::any_of(sweep.rows.begin(), sweep.rows.end(),
                                  [](const CollectiveSweep::Row& row) { return row.shared.has_value(); });
  if (shared) {
    absl::StrAppend(&text, "# ", sweep.groups, sweep.groups == 1 ? " group" : " groups at once",
                    sweep.node_stride == 1 ? "" : absl::StrCat(", nodes ", sweep.node_stride, " apart"),
                    ": time is that of the last, on links that they share\n");
  }
  for (const std::string& assumption : sweep.assumptions) absl::StrAppend(&text, "# ", assumption, "\n");
  std::vector<std::string> names = {"size",  "count", "type",      "redop",    "time",
                                    "algbw", "busbw", "algorithm", "protocol", "channels"};
  std::vector<std::string> units = {"(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "", "", ""};
  if (shared) {
    names.insert(names.end(), {"alone", "used", "of link"});
    units.insert(units.end(), {"(us)", "", ""});
  }
  text += Heading(names);
  text += Heading(units);
  const std::vector<bool> slower = SlowerThanLarger(sweep);
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const CollectiveSweep::Row& row = sweep.rows[i];
    const Figures figures = FiguresOf(sweep, row);
    std::vector<std::string> cells = {absl::StrCat(row.bytes),
                                      absl::StrCat(CountOf(sweep, row.bytes)),
                                      "float",
                                      HasReduction(sweep.operation) ? "sum" : "none",
                                      FormatFixed(figures.microseconds, 2) + (slower[i] ? "*" : ""),
                                      FormatFixed(figures.algbw, 2),
                                      FormatFixed(figures.busbw, 2),
                                      AlgorithmOf(sweep, row),
                                      nccl::ProtocolName(row.price.variant.protocol),
                                      absl::StrCat(row.price.channels)};
    if (row.shared.has_value()) {
      cells.insert(cells.end(), {FormatFixed(SecondsFromTime(row.shared->alone) * kMicro, 2),
                                 FormatPercent(row.shared->utilisation), row.shared->busiest});
    }
    text += Line(cells);
  }
  if (std::find(slower.begin(), slower.end(), true) != slower.end()) {
    text += "# * a larger size takes less: the tables of this version choose badly here\n";
  }
  return text;
}

std::string CollectiveJson(const CollectiveSweep& sweep) {
  Json json = {{"collective", nccl::OperationName(sweep.operation)},
               {"cluster", sweep.cluster},
               {"gpus", sweep.ranks},
               {"nodes", sweep.nodes},
               {"nccl_version", sweep.version},
               {"times", sweep.times}};
  if (!sweep.assumptions.empty()) json["assumptions"] = sweep.assumptions;
  if (!sweep.rows.empty() && sweep.rows.front().shared.has_value()) {
    json["network"] = "flow";
    json["concurrent_groups"] = sweep.groups;
    json["node_stride"] = sweep.node_stride;
  }
  json["rows"] = Json::array();
  const std::vector<bool> slower = SlowerThanLarger(sweep);
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const CollectiveSweep::Row& row = sweep.rows[i];
    const Figures figures = FiguresOf(sweep, row);
    json["rows"].push_back({{"bytes", row.bytes},
                            {"time_s", SecondsFromTime(row.time())},
                            {"fixed_s", SecondsFromTime(row.price.fixed)},
                            {"algbw", figures.algbw},
                            {"busbw", figures.busbw},
                            {"algorithm", AlgorithmOf(sweep, row)},
                            {"protocol", nccl::ProtocolName(row.price.variant.protocol)},
                            {"channels", row.price.channels},
                            {"nvlink_bytes_per_gpu", row.price.bytes.nvlink},
                            {"nic_bytes_per_gpu", row.price.bytes.nic},
                            {"uplink_bytes_per_gpu", row.price.bytes.uplink}});
    Json& printed = json["rows"].back();
    if (slower[i]) printed["slower_than_larger"] = true;
    if (!row.shared.has_value()) continue;
    printed["alone_s"] = SecondsFromTime(row.shared->alone);
    printed["first_group_s"] = SecondsFromTime(row.shared->first);
    printed["busiest_link"] = {{"link", row.shared->busiest}, {"utilisation", row.shared->utilisation}};
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery::reports
