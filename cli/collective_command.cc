#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "cli/collective_setup.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "proto/loader.h"
#include "reports/collective_report.h"
#include "sim/collectives/concurrent_groups.h"
#include "sim/collectives/nccl/hierarchical.h"
#include "sim/collectives/nccl/model.h"
#include "topology/routes.h"

namespace orrery::cli {
namespace {

namespace nccl = collectives::nccl;

constexpr std::size_t kMostSizes = 4096;
constexpr std::int64_t kLargest = std::int64_t{1} << 50;  // bytes

// "8", "4K", "16G": binary prefixes, as nccl-tests reads them. Below 0: not a size.
std::int64_t SizeOf(absl::string_view text, std::int64_t largest) {
  std::int64_t scale = 1;
  if (!text.empty()) {
    const std::size_t prefix = absl::string_view("KMGT").find(static_cast<char>(text.back() & ~0x20));
    if (prefix != absl::string_view::npos) {
      scale = std::int64_t{1} << (10 * (prefix + 1));
      text.remove_suffix(1);
    }
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > largest / scale) return -1;
  return value * scale;
}

// Options of the other kind of command are refused, not ignored.
absl::Status CheckOptions(const CollectiveArguments& arguments) {
  std::vector<std::string> wrong;
  const auto refuse = [&](bool given, const char* option) {
    if (given) wrong.push_back(option);
  };
  refuse(!arguments.tokens.empty(), "--tokens");
  refuse(arguments.hidden != 0, "--hidden");
  refuse(arguments.top_k != 0, "--top-k");
  refuse(arguments.experts != 0, "--experts");
  refuse(arguments.max_nodes != 0, "--max-nodes");
  refuse(arguments.imbalance != 0, "--imbalance");
  refuse(!arguments.data_type.empty(), "--dtype");
  refuse(!arguments.transport.empty(), "--transport");
  refuse(arguments.low_latency, "--low-latency");
  if (!wrong.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(wrong, ", "), ": of expert_dispatch and expert_combine alone"));
  }
  if (arguments.network == "analytic" && (arguments.groups != 1 || arguments.node_stride != 1)) {
    return absl::InvalidArgumentError("--concurrent-groups, --node-stride: allowed with --network=flow");
  }
  return absl::OkStatus();
}

absl::StatusOr<nccl::Operation> OperationOf(const std::string& name) {
  absl::StatusOr<nccl::Operation> operation = nccl::OperationOf(name);
  if (operation.ok()) return operation;
  std::vector<std::string> names = nccl::OperationNames();
  for (const char* of_experts : kExpertExchanges) names.emplace_back(of_experts);
  return absl::InvalidArgumentError(
      absl::StrCat("collective \"", name, "\"; allowed: ", absl::StrJoin(names, ", "), DidYouMean(name, names)));
}

bool IsHierarchical(const CollectiveArguments& arguments) {
  return absl::AsciiStrToLower(arguments.algorithm) == "hierarchical";
}

class Pricer {
 public:
  static absl::StatusOr<std::unique_ptr<Pricer>> Make(const CollectiveArguments& arguments,
                                                      const CollectiveSetup& setup) {
    auto pricer = std::make_unique<Pricer>();
    ABSL_ASSIGN_OR_RETURN(pricer->operation_, OperationOf(arguments.collective));
    nccl::ModelOptions options;
    options.sharp = arguments.sharp;
    options.channels = {.min = arguments.channels, .max = arguments.channels};
    const nccl::Views& views = setup.placed.views;
    if (IsHierarchical(arguments)) {
      if (pricer->operation_ != nccl::Operation::kAllToAll || !arguments.protocol.empty() || arguments.sharp) {
        return absl::InvalidArgumentError(
            "--algorithm Hierarchical: allowed for alltoall, without --protocol and --sharp");
      }
      pricer->hierarchical_ =
          std::make_unique<nccl::HierarchicalAllToAll>(views, *setup.version, setup.times(), options.channels);
      return pricer;
    }
    ABSL_ASSIGN_OR_RETURN(options.forced.algorithm, nccl::AlgorithmOf(arguments.algorithm));
    ABSL_ASSIGN_OR_RETURN(options.forced.protocol, nccl::ProtocolOfName(arguments.protocol));
    pricer->model_ = std::make_unique<nccl::Model>(views, *setup.version, setup.times(), options);
    return pricer;
  }

  nccl::Operation operation() const { return operation_; }

  // From now on no price is shorter than the links of `group`, which must outlive the pricer, allow it alone.
  void HoldTo(collectives::ConcurrentGroups* group) { group_ = group; }

  absl::StatusOr<nccl::Price> PriceOf(std::int64_t bytes) const {
    if (hierarchical_ == nullptr) return PriceOfOne(bytes);
    ABSL_ASSIGN_OR_RETURN(const nccl::TwoPhasePrice price, PriceOfTwo(bytes));
    return price.Sum();
  }

  absl::StatusOr<std::vector<collectives::Phase>> PhasesOf(std::int64_t bytes,
                                                           const collectives::RanksByNode& group) const {
    if (hierarchical_ == nullptr) {
      ABSL_ASSIGN_OR_RETURN(const nccl::Price price, PriceOfOne(bytes));
      ABSL_ASSIGN_OR_RETURN(const collectives::Phase phase, PhaseOfOne(bytes, price, group));
      return std::vector<collectives::Phase>{phase};
    }
    ABSL_ASSIGN_OR_RETURN(const nccl::TwoPhasePrice price, PriceOfTwo(bytes));
    return std::vector<collectives::Phase>{PhaseOf(Among::kNode, bytes, price.inside),
                                           PhaseOf(Among::kRail, bytes, price.between)};
  }

 private:
  using Among = collectives::Among;

  collectives::Phase PhaseOf(Among among, std::int64_t bytes, const nccl::Price& price) const {
    return {{.operation = operation_, .variant = price.variant, .bytes = bytes}, among, price.fixed, price.progress};
  }

  absl::StatusOr<collectives::Phase> PhaseOfOne(std::int64_t bytes, const nccl::Price& price,
                                                const collectives::RanksByNode& group) const {
    absl::StatusOr<collectives::Phase> phase = collectives::PhaseOf(operation_, bytes, price, group);
    if (!absl::IsUnimplemented(phase.status())) return phase;
    if (group_ != nullptr) {
      return absl::UnimplementedError(
          "--sharp: reductions in network switches are not modelled on nodes that differ, nor on a cluster given "
          "device by device");
    }
    return absl::UnimplementedError(
        "--sharp, --network=flow: reductions in network switches are not modelled on shared links; allowed: one of "
        "them");
  }

  absl::StatusOr<nccl::Price> PriceOfOne(std::int64_t bytes) const {
    ABSL_ASSIGN_OR_RETURN(nccl::Price price, model_->PriceOf(operation_, bytes));
    if (group_ == nullptr || price.progress == Time()) return price;
    ABSL_ASSIGN_OR_RETURN(const collectives::Phase phase, PhaseOfOne(bytes, price, group_->groups().front()));
    ABSL_RETURN_IF_ERROR(Hold(phase, &price));
    return price;
  }

  absl::StatusOr<nccl::TwoPhasePrice> PriceOfTwo(std::int64_t bytes) const {
    ABSL_ASSIGN_OR_RETURN(nccl::TwoPhasePrice price, hierarchical_->PriceOf(bytes));
    ABSL_RETURN_IF_ERROR(Hold(PhaseOf(Among::kNode, bytes, price.inside), &price.inside));
    ABSL_RETURN_IF_ERROR(Hold(PhaseOf(Among::kRail, bytes, price.between), &price.between));
    return price;
  }

  absl::Status Hold(const collectives::Phase& phase, nccl::Price* price) const {
    if (group_ == nullptr || price->progress == Time()) return absl::OkStatus();
    ABSL_ASSIGN_OR_RETURN(const Time least, group_->LeastProgress(phase));
    price->progress = std::max(price->progress, least);
    return absl::OkStatus();
  }

  nccl::Operation operation_ = nccl::Operation::kAllReduce;
  std::unique_ptr<nccl::Model> model_;
  std::unique_ptr<nccl::HierarchicalAllToAll> hierarchical_;
  collectives::ConcurrentGroups* group_ = nullptr;
};

// GPUs of every group. Several groups, or one on nodes apart, need nodes that are all alike.
absl::StatusOr<std::vector<collectives::RanksByNode>> GroupsOf(const CollectiveArguments& arguments,
                                                               const CollectiveSetup& setup) {
  if (arguments.groups == 1 && arguments.node_stride == 1)
    return std::vector<collectives::RanksByNode>{setup.placed.gpus};
  const v1::Cluster& cluster = setup.cluster.cluster;
  if (cluster.has_graph() || cluster.more_nodes_size() > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--concurrent-groups, --node-stride: ", arguments.cluster.name,
                     cluster.has_graph() ? " is given device by device" : " has more_nodes",
                     "; allowed: on clusters of one kind of node"));
  }
  return collectives::PlaceGroups(cluster, {.ranks = setup.placed.ranks,
                                            .nodes = static_cast<std::int64_t>(setup.placed.gpus.size()),
                                            .groups = arguments.groups,
                                            .node_stride = arguments.node_stride});
}

// Fills in what groups at once take.
absl::Status Share(const CollectiveArguments& arguments, const CollectiveSetup& setup, const topology::Routes& routes,
                   const Pricer& pricer, reports::CollectiveSweep* sweep) {
  const topology::Topology& topology = setup.cluster.topology;
  ABSL_ASSIGN_OR_RETURN(std::vector<collectives::RanksByNode> placed, GroupsOf(arguments, setup));
  // Groups are placed alike: the first stands for any of them.
  collectives::ConcurrentGroups one(routes, {placed.front()});
  collectives::ConcurrentGroups groups(routes, std::move(placed));
  for (reports::CollectiveSweep::Row& row : sweep->rows) {
    ABSL_ASSIGN_OR_RETURN(const std::vector<collectives::Phase> phases,
                          pricer.PhasesOf(row.bytes, groups.groups().front()));
    ABSL_ASSIGN_OR_RETURN(const collectives::ConcurrentTimes times, groups.Run(phases));
    Time alone = times.last;
    if (arguments.groups > 1) {
      ABSL_ASSIGN_OR_RETURN(const collectives::ConcurrentTimes of_one, one.Run(phases));
      alone = of_one.last;
    }
    row.shared = {
        .alone = alone, .first = times.first, .last = times.last, .busiest = "-", .utilisation = times.utilisation};
    if (!times.busiest.has_value()) continue;
    const topology::Link link = topology.link(*times.busiest);
    row.shared->busiest = absl::StrCat(topology.NameOf(link.from), " -> ", topology.NameOf(link.to));
  }
  sweep->groups = arguments.groups;
  sweep->node_stride = arguments.node_stride;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Answer(const CollectiveArguments& arguments) {
  if (IsExpertExchange(arguments.collective)) return ExpertAnswer(arguments);
  ABSL_RETURN_IF_ERROR(CheckOptions(arguments));
  ABSL_RETURN_IF_ERROR(OperationOf(arguments.collective).status());
  ABSL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> sizes,
                        RangeOf("--sizes", arguments.sizes.value_or("8:16G:2"), kLargest, "1 byte to 1024 TiB"));
  ABSL_ASSIGN_OR_RETURN(const CollectiveSetup setup, SetUp(arguments));
  ABSL_ASSIGN_OR_RETURN(const std::unique_ptr<Pricer> pricer, Pricer::Make(arguments, setup));
  reports::CollectiveSweep sweep;
  sweep.cluster = arguments.cluster.name;
  sweep.version = setup.version->name();
  sweep.times = setup.times().name();
  sweep.operation = pricer->operation();
  sweep.ranks = setup.placed.ranks;
  sweep.nodes = static_cast<std::int64_t>(setup.placed.gpus.size());
  sweep.hierarchical = IsHierarchical(arguments);
  sweep.assumptions = setup.assumptions;
  ABSL_ASSIGN_OR_RETURN(const topology::Routes routes, topology::Routes::Build(setup.cluster.topology));
  collectives::ConcurrentGroups alone(routes, {setup.placed.gpus});
  if (!setup.placed.is_regular) pricer->HoldTo(&alone);
  for (const std::int64_t bytes : sizes) {
    ABSL_ASSIGN_OR_RETURN(const nccl::Price price, pricer->PriceOf(bytes));
    sweep.rows.push_back({.bytes = bytes, .price = price});
  }
  if (arguments.network == "flow") ABSL_RETURN_IF_ERROR(Share(arguments, setup, routes, *pricer, &sweep));
  return arguments.json ? reports::CollectiveJson(sweep) : reports::CollectiveText(sweep);
}

}  // namespace

absl::StatusOr<std::vector<std::int64_t>> RangeOf(const std::string& option, const std::string& text,
                                                  std::int64_t largest, const std::string& allowed) {
  const auto wrong = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        option, ": \"", text, "\"; allowed: 8:16G:2 (from, to, factor from 2 on), 8:1M:+8K (step) or 1M,4M, ",
        "in whole numbers with K, M, G or T behind them; up to ", kMostSizes, " of ", allowed));
  };
  std::vector<std::int64_t> sizes;
  const std::vector<absl::string_view> range = absl::StrSplit(text, ':');
  if (range.size() == 1) {
    for (const absl::string_view part : absl::StrSplit(text, ',')) sizes.push_back(SizeOf(part, largest));
  } else {
    if (range.size() > 3) return wrong();
    absl::string_view step = range.size() == 3 ? range[2] : "2";
    const bool adds = !step.empty() && step[0] == '+';
    if (adds) step.remove_prefix(1);
    const std::int64_t from = SizeOf(range[0], largest), to = SizeOf(range[1], largest), by = SizeOf(step, largest);
    if (from < 0 || to < from || by < (adds ? 1 : 2)) return wrong();
    for (std::int64_t size = from; size <= to && sizes.size() <= kMostSizes;) {
      sizes.push_back(size);
      if (adds ? size > largest - by : size > largest / by) break;
      size = adds ? size + by : size * by;
    }
  }
  if (sizes.empty() || sizes.size() > kMostSizes || *std::min_element(sizes.begin(), sizes.end()) < 0) return wrong();
  return sizes;
}

absl::StatusOr<CollectiveSetup> SetUp(const CollectiveArguments& arguments) {
  ABSL_ASSIGN_OR_RETURN(LoadedCluster loaded, LoadClusterAndTopology(arguments.cluster));
  const std::int64_t nodes = loaded.topology.nodes();
  if (arguments.nodes > nodes) {
    return absl::InvalidArgumentError(absl::StrCat("--nodes: ", arguments.nodes, " nodes; allowed: up to the ", nodes,
                                                   " of ", arguments.cluster.name));
  }
  // Where links are shared on the graph, prices are those of a group alone.
  const nccl::Twins twins = arguments.network == "flow" ? nccl::Twins::kIdle : nccl::Twins::kActive;
  ABSL_ASSIGN_OR_RETURN(
      collectives::PlacedRanks placed,
      collectives::PlaceRanks(loaded.cluster, loaded.topology, arguments.gpus, arguments.nodes, twins));
  ABSL_ASSIGN_OR_RETURN(nccl::Library library, nccl::Library::Load(LoadOptionsOf(arguments.cluster.spec_path, {})));
  CollectiveSetup setup{.cluster = std::move(loaded), .library = std::move(library), .placed = std::move(placed)};
  setup.assumptions = setup.placed.assumptions;
  const std::string version = arguments.version.empty() ? setup.times().nccl_version() : arguments.version;
  ABSL_ASSIGN_OR_RETURN(setup.version, setup.library.Version(version));
  const std::string stand_in = setup.library.StandIn(version);
  if (!stand_in.empty()) setup.assumptions.push_back(stand_in);
  if (setup.library.CoverageOf(version) == nccl::Coverage::kOutside) Warn(stand_in);
  return setup;
}

int Collective(const CollectiveArguments& arguments) {
  if (const absl::Status read = CheckNotRead("--output", arguments.output, {arguments.cluster.name}); !read.ok())
    return Fail(read);
  const absl::StatusOr<std::string> answer = Answer(arguments);
  if (!answer.ok()) return Fail(answer.status());
  const absl::Status written = Write(*answer, arguments.output);
  return written.ok() ? kDone : Fail(written);
}

}  // namespace orrery::cli
