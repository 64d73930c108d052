#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "cli/collective_setup.h"
#include "cli/environment.h"
#include "orrery/v1/expert_transport.pb.h"
#include "proto/loader.h"
#include "reports/expert_report.h"
#include "sim/collectives/expert_exchange.h"
#include "sim/collectives/nccl/hierarchical.h"

namespace orrery::cli {
namespace {

using collectives::ExpertExchange;
using collectives::ExpertRanks;
using collectives::ExpertTime;
namespace nccl = collectives::nccl;

constexpr std::int64_t kMostTokens = std::int64_t{1} << 30;

struct DataType {
  const char* name;
  double bytes;
};
// FP8 with a scale of four bytes for 128 elements.
constexpr DataType kDataTypes[] = {{"bf16", 2}, {"fp8", 1 + 4.0 / 128}, {"fp16", 2}, {"fp32", 4}};

absl::StatusOr<DataType> DataTypeOf(const std::string& given) {
  std::vector<std::string> names;
  for (const DataType& type : kDataTypes) {
    if (given == type.name) return type;
    names.emplace_back(type.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--dtype ", given, "; allowed: ", absl::StrJoin(names, ", "), DidYouMean(given, names)));
}

absl::Status CheckOptions(const CollectiveArguments& arguments) {
  std::vector<std::string> lacking, wrong;
  if (arguments.tokens.empty()) lacking.push_back("--tokens");
  if (arguments.hidden == 0) lacking.push_back("--hidden");
  if (arguments.top_k == 0) lacking.push_back("--top-k");
  if (arguments.experts == 0) lacking.push_back("--experts");
  if (!lacking.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(arguments.collective, ": required: ", absl::StrJoin(lacking, ", ")));
  }
  if (std::isnan(arguments.imbalance)) {
    return absl::InvalidArgumentError("--imbalance: found nan; allowed: 1 to 1e6");
  }
  if (arguments.sizes.has_value()) wrong.push_back("--sizes");
  if (!arguments.algorithm.empty()) wrong.push_back("--algorithm");
  if (!arguments.protocol.empty()) wrong.push_back("--protocol");
  if (arguments.sharp) wrong.push_back("--sharp");
  if (arguments.network != "analytic") wrong.push_back("--network");
  if (arguments.groups != 1) wrong.push_back("--concurrent-groups");
  if (arguments.node_stride != 1) wrong.push_back("--node-stride");
  if (!wrong.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(wrong, ", "), ": does not apply to ", arguments.collective));
  }
  return absl::OkStatus();
}

bool IsOfNccl(const std::string& transport) { return transport == "nccl" || transport == "hierarchical"; }

// Over NCCL's all-to-all, in one phase or two.
absl::StatusOr<ExpertTime> OverNccl(const CollectiveArguments& arguments, const CollectiveSetup& setup,
                                    const ExpertExchange& exchange, const ExpertRanks& ranks) {
  nccl::ModelOptions options;
  options.channels = {.min = arguments.channels, .max = arguments.channels};
  ABSL_ASSIGN_OR_RETURN(const std::int64_t bytes, collectives::AllToAllBytes(exchange, ranks));
  Time time;
  if (arguments.transport == "hierarchical") {
    const nccl::HierarchicalAllToAll model(setup.placed.views, *setup.version, setup.times(), options.channels);
    ABSL_ASSIGN_OR_RETURN(const nccl::TwoPhasePrice price, model.PriceOf(bytes));
    time = price.total();
  } else {
    const nccl::Model model(setup.placed.views, *setup.version, setup.times(), options);
    ABSL_ASSIGN_OR_RETURN(const nccl::Price price, model.PriceOf(nccl::Operation::kAllToAll, bytes));
    time = price.total();
  }
  return collectives::AllToAllTime(exchange, ranks, SecondsFromTime(time));
}

// Whether all ranks of a node reach each other over NVLink.
bool IsJoined(const collectives::NodeSort& sort) {
  const std::int64_t pairs = sort.node.gpus() * (sort.node.gpus() - 1) / 2;
  return sort.node.nvswitches() > 0 || sort.ranks == 1 || sort.node.nvlink_pair_size() >= pairs;
}

// What one GPU's links carry of an even exchange, no more than the most loaded one of its node allows.
ExpertRanks RanksOf(const nccl::Communicator& comm) {
  const double local = static_cast<double>(comm.ranks_per_node), nodes = static_cast<double>(comm.nodes);
  ExpertRanks ranks{.ranks = comm.ranks,
                    .ranks_per_node = comm.ranks_per_node,
                    .nvlink = comm.nvlink_bandwidth,
                    .nic = comm.NodeNetwork() * (1 / local),
                    .leaving_leaf = comm.LeavingLeaf(),
                    .uplink = comm.NodeUplinks() * (1 / local)};
  if (const double seconds = comm.node_seconds.inside_nodes; seconds > 0) {
    ranks.nvlink = std::min(ranks.nvlink, BytesPerSecond((local - 1) / local / seconds));
  }
  if (const double seconds = comm.node_seconds.on_rails; seconds > 0) {
    ranks.nic = std::min(ranks.nic, BytesPerSecond((nodes - 1) / nodes / seconds));
  }
  return ranks;
}

// Where nodes differ, the slowest links of any.
absl::StatusOr<ExpertRanks> RanksOf(const CollectiveArguments& arguments, const collectives::PlacedRanks& placed) {
  if (!IsOfNccl(arguments.transport) && !std::all_of(placed.sorts.begin(), placed.sorts.end(), IsJoined)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--transport ", arguments.transport, ": its kernels write to GPUs of the node over NVLink, which ",
                     arguments.cluster.name, " does not have between all of them; allowed: nccl, hierarchical"));
  }
  ExpertRanks ranks = RanksOf(placed.views.front());
  for (const nccl::Communicator& view : placed.views) {
    const ExpertRanks seen = RanksOf(view);
    ranks.nvlink = std::min(ranks.nvlink, seen.nvlink);
    ranks.nic = std::min(ranks.nic, seen.nic);
    ranks.uplink = std::min(ranks.uplink, seen.uplink);
  }
  return ranks;
}

absl::StatusOr<v1::ExpertTransport> TransportOf(const CollectiveArguments& arguments) {
  v1::ExpertTransport transport;
  if (IsOfNccl(arguments.transport)) {
    if (!arguments.low_latency) return transport;
    return absl::InvalidArgumentError(absl::StrCat("--low-latency: ", arguments.transport,
                                                   " has no such kernels; allowed: with a preset of --transport"));
  }
  const spec::LoadOptions load = LoadOptionsOf(arguments.cluster.spec_path, {});
  ABSL_ASSIGN_OR_RETURN(std::vector<std::string> names, spec::ListPresets("expert_transports", load));
  const bool known = std::find(names.begin(), names.end(), arguments.transport) != names.end();
  names.insert(names.end(), {"nccl", "hierarchical"});
  if (!known) {
    return absl::InvalidArgumentError(absl::StrCat("--transport ", arguments.transport, "; allowed: ",
                                                   absl::StrJoin(names, ", "), DidYouMean(arguments.transport, names)));
  }
  if (!arguments.version.empty() || arguments.channels != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--nccl-version, --channels: ", arguments.transport, " does not use NCCL's kernels"));
  }
  ABSL_RETURN_IF_ERROR(spec::LoadPreset(arguments.transport, load, &transport));
  return transport;
}

}  // namespace

bool IsExpertExchange(const std::string& collective) {
  return std::find(std::begin(kExpertExchanges), std::end(kExpertExchanges), collective) != std::end(kExpertExchanges);
}

absl::StatusOr<std::string> ExpertAnswer(const CollectiveArguments& given) {
  CollectiveArguments arguments = given;
  if (arguments.transport.empty()) arguments.transport = "nccl";
  if (arguments.data_type.empty()) arguments.data_type = "bf16";
  ABSL_RETURN_IF_ERROR(CheckOptions(arguments));
  ABSL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> tokens,
                        RangeOf("--tokens", arguments.tokens, kMostTokens, "1 to 1G"));
  ABSL_ASSIGN_OR_RETURN(const DataType type, DataTypeOf(arguments.data_type));
  ABSL_ASSIGN_OR_RETURN(const v1::ExpertTransport transport, TransportOf(arguments));
  ABSL_ASSIGN_OR_RETURN(const CollectiveSetup setup, SetUp(arguments));
  const nccl::Communicator comm = nccl::CommonOf(setup.placed.views);
  ABSL_ASSIGN_OR_RETURN(const ExpertRanks ranks, RanksOf(arguments, setup.placed));
  if (comm.ranks != comm.nodes * comm.ranks_per_node) {
    return absl::InvalidArgumentError(
        absl::StrCat(comm.ranks, " GPUs on ", comm.nodes, " nodes; allowed for experts: as many on every node"));
  }
  reports::ExpertSweep sweep{.collective = arguments.collective,
                             .cluster = arguments.cluster.name,
                             .transport = arguments.transport,
                             .data_type = type.name,
                             .ranks = comm.ranks,
                             .nodes = comm.nodes,
                             .one_copy_per_rank = !IsOfNccl(arguments.transport) && !arguments.low_latency};
  sweep.exchange = {.tokens = 0,
                    .hidden = arguments.hidden,
                    .element_bytes = type.bytes,
                    .top_k = arguments.top_k,
                    .experts = arguments.experts,
                    .max_nodes = arguments.max_nodes,
                    .imbalance = arguments.imbalance == 0 ? 1 : arguments.imbalance};
  if (arguments.low_latency) sweep.transport += ", low latency";
  if (IsOfNccl(arguments.transport)) {
    absl::StrAppend(&sweep.transport, ", NCCL ", setup.version->name());
    sweep.assumptions = setup.assumptions;
  }
  for (const std::int64_t count : tokens) {
    ExpertExchange exchange = sweep.exchange;
    exchange.tokens = count;
    const absl::StatusOr<ExpertTime> time = IsOfNccl(arguments.transport) ? OverNccl(arguments, setup, exchange, ranks)
                                            : arguments.low_latency
                                                ? collectives::LowLatencyExchange(exchange, ranks, transport)
                                                : collectives::ThroughputExchange(exchange, ranks, transport);
    if (!time.ok()) return time.status();
    const double bytes = static_cast<double>(count) * static_cast<double>(exchange.hidden) * exchange.element_bytes;
    sweep.rows.push_back({.tokens = count, .bytes = bytes, .time = *time});
  }
  return arguments.json ? reports::ExpertJson(sweep) : reports::ExpertText(sweep);
}

}  // namespace orrery::cli
