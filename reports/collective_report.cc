#include "reports/collective_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/status_macros.h"

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
constexpr std::size_t kWidths[] = {14, 13, 8, 6, 10, 8, 8, 13, 8, 8};
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
  const double seconds = SecondsFromTime(row.price.total());
  Figures figures;
  figures.microseconds = seconds * kMicro;
  if (seconds > 0) figures.algbw = static_cast<double>(row.bytes) / seconds / kGiga;
  figures.busbw = figures.algbw * nccl::BusFactor(sweep.operation, sweep.ranks);
  return figures;
}

}  // namespace

absl::StatusOr<CollectiveSweep> SweepCollective(const nccl::Model& model, nccl::Operation operation,
                                                const std::vector<std::int64_t>& sizes) {
  CollectiveSweep sweep;
  sweep.operation = operation;
  sweep.ranks = model.communicator().ranks;
  sweep.nodes = model.communicator().nodes;
  for (const std::int64_t bytes : sizes) {
    ABSL_ASSIGN_OR_RETURN(const nccl::Price price, model.PriceOf(operation, bytes));
    sweep.rows.push_back({bytes, price});
  }
  return sweep;
}

std::string CollectiveText(const CollectiveSweep& sweep) {
  std::string text = absl::StrCat("# ", nccl::OperationName(sweep.operation), ", ", sweep.ranks, " GPUs on ",
                                  sweep.nodes, sweep.nodes == 1 ? " node of " : " nodes of ", sweep.cluster, ", NCCL ",
                                  sweep.version, ", times ", sweep.times, "\n");
  text += Heading({"size", "count", "type", "redop", "time", "algbw", "busbw", "algorithm", "protocol", "channels"});
  text += Heading({"(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)"});
  for (const CollectiveSweep::Row& row : sweep.rows) {
    const Figures figures = FiguresOf(sweep, row);
    text += Line({absl::StrCat(row.bytes), absl::StrCat(CountOf(sweep, row.bytes)), "float",
                  HasReduction(sweep.operation) ? "sum" : "none", FormatFixed(figures.microseconds, 2),
                  FormatFixed(figures.algbw, 2), FormatFixed(figures.busbw, 2),
                  nccl::AlgorithmName(row.price.variant.algorithm), nccl::ProtocolName(row.price.variant.protocol),
                  absl::StrCat(row.price.channels)});
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
  json["rows"] = Json::array();
  for (const CollectiveSweep::Row& row : sweep.rows) {
    const Figures figures = FiguresOf(sweep, row);
    json["rows"].push_back({{"bytes", row.bytes},
                            {"time_s", SecondsFromTime(row.price.total())},
                            {"fixed_s", SecondsFromTime(row.price.fixed)},
                            {"algbw", figures.algbw},
                            {"busbw", figures.busbw},
                            {"algorithm", nccl::AlgorithmName(row.price.variant.algorithm)},
                            {"protocol", nccl::ProtocolName(row.price.variant.protocol)},
                            {"channels", row.price.channels},
                            {"nvlink_bytes_per_gpu", row.price.bytes.nvlink},
                            {"nic_bytes_per_gpu", row.price.bytes.nic},
                            {"uplink_bytes_per_gpu", row.price.bytes.uplink}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery::reports
