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
#include "sim/collectives/node_links.h"
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

// What a size takes alone, in its phases.
struct Priced {
  nccl::Price price;
  std::vector<collectives::Phase> phases;
};

class Pricer {
 public:
  static absl::StatusOr<std::unique_ptr<Pricer>> Make(const CollectiveArguments& arguments,
                                                      const CollectiveSetup& setup) {
    auto pricer = std::make_unique<Pricer>();
    ABSL_ASSIGN_OR_RETURN(pricer->operation_, OperationOf(arguments.collective));
    nccl::ModelOptions options;
    options.sharp = arguments.sharp;
    options.channels = {.min = arguments.channels, .max = arguments.channels};
    const nccl::Communicator& comm = setup.communicator;
    if (IsHierarchical(arguments)) {
      if (pricer->operation_ != nccl::Operation::kAllToAll || !arguments.protocol.empty() || arguments.sharp) {
        return absl::InvalidArgumentError(
            "--algorithm Hierarchical: allowed for alltoall, without --protocol and --sharp");
      }
      pricer->hierarchical_ =
          std::make_unique<nccl::HierarchicalAllToAll>(comm, *setup.version, setup.times(), options.channels);
      return pricer;
    }
    ABSL_ASSIGN_OR_RETURN(options.forced.algorithm, nccl::AlgorithmOf(arguments.algorithm));
    ABSL_ASSIGN_OR_RETURN(options.forced.protocol, nccl::ProtocolOfName(arguments.protocol));
    pricer->model_ = std::make_unique<nccl::Model>(comm, *setup.version, setup.times(), options);
    return pricer;
  }

  nccl::Operation operation() const { return operation_; }

  absl::StatusOr<nccl::Price> PriceOf(std::int64_t bytes) const {
    if (hierarchical_ == nullptr) return model_->PriceOf(operation_, bytes);
    ABSL_ASSIGN_OR_RETURN(const nccl::TwoPhasePrice price, hierarchical_->PriceOf(bytes));
    return price.Sum();
  }

  absl::StatusOr<std::vector<collectives::Phase>> PhasesOf(std::int64_t bytes,
                                                           const collectives::RanksByNode& group) const {
    if (hierarchical_ == nullptr) {
      ABSL_ASSIGN_OR_RETURN(const nccl::Price price, model_->PriceOf(operation_, bytes));
      const absl::StatusOr<collectives::Phase> phase = collectives::PhaseOf(operation_, bytes, price, group);
      if (absl::IsUnimplemented(phase.status())) {
        return absl::UnimplementedError(
            "--sharp, --network=flow: reductions in network switches are not modelled on shared links; allowed: one of "
            "them");
      }
      if (!phase.ok()) return phase.status();
      return std::vector<collectives::Phase>{*phase};
    }
    ABSL_ASSIGN_OR_RETURN(const nccl::TwoPhasePrice price, hierarchical_->PriceOf(bytes));
    const auto footprint = [&](const nccl::Price& phase) {
      return collectives::Footprint{.operation = operation_, .variant = phase.variant, .bytes = bytes};
    };
    return std::vector<collectives::Phase>{
        {footprint(price.inside), collectives::Among::kNode, price.inside.fixed, price.inside.progress},
        {footprint(price.between), collectives::Among::kRail, price.between.fixed, price.between.progress}};
  }

 private:
  nccl::Operation operation_ = nccl::Operation::kAllReduce;
  std::unique_ptr<nccl::Model> model_;
  std::unique_ptr<nccl::HierarchicalAllToAll> hierarchical_;
};

// Fills in what groups at once take.
absl::Status Share(const CollectiveArguments& arguments, const CollectiveSetup& setup, const Pricer& pricer,
                   reports::CollectiveSweep* sweep) {
  const topology::Topology& topology = setup.cluster.topology;
  ABSL_ASSIGN_OR_RETURN(const topology::Routes routes, topology::Routes::Build(topology));
  ABSL_ASSIGN_OR_RETURN(std::vector<collectives::RanksByNode> placed,
                        collectives::PlaceGroups(setup.cluster.cluster, {.ranks = sweep->ranks,
                                                                         .nodes = sweep->nodes,
                                                                         .groups = arguments.groups,
                                                                         .node_stride = arguments.node_stride}));
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
  sweep.ranks = setup.communicator.ranks;
  sweep.nodes = setup.communicator.nodes;
  sweep.hierarchical = IsHierarchical(arguments);
  sweep.assumptions = setup.assumptions;
  for (const std::int64_t bytes : sizes) {
    ABSL_ASSIGN_OR_RETURN(const nccl::Price price, pricer->PriceOf(bytes));
    sweep.rows.push_back({.bytes = bytes, .price = price});
  }
  if (arguments.network == "flow") ABSL_RETURN_IF_ERROR(Share(arguments, setup, *pricer, &sweep));
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
  const v1::Cluster& cluster = loaded.cluster;
  if (cluster.node().gpus() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--cluster: ", arguments.cluster.name, " is given device by device; allowed: one that states node and fabric"));
  }
  const std::int64_t per_node = cluster.node().gpus();
  std::int64_t ranks = arguments.gpus;
  if (ranks == 0) ranks = per_node * std::max<std::int64_t>(1, arguments.nodes);
  const std::int64_t nodes = arguments.nodes > 0 ? arguments.nodes : (ranks + per_node - 1) / per_node;
  if (nodes > cluster.nodes()) {
    return absl::InvalidArgumentError(absl::StrCat("--nodes: ", nodes, " nodes; allowed: up to the ", cluster.nodes(),
                                                   " of ", arguments.cluster.name));
  }
  // Where links are shared on the graph, prices are those of a group alone.
  const nccl::Twins twins = arguments.network == "flow" ? nccl::Twins::kIdle : nccl::Twins::kActive;
  ABSL_ASSIGN_OR_RETURN(const nccl::Communicator comm,
                        collectives::CommunicatorOn(cluster, nccl::EvenPlacement(cluster, ranks, nodes), twins));
  ABSL_ASSIGN_OR_RETURN(nccl::Library library, nccl::Library::Load(LoadOptionsOf(arguments.cluster.spec_path, {})));
  CollectiveSetup setup{.cluster = std::move(loaded), .library = std::move(library), .communicator = comm};
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
