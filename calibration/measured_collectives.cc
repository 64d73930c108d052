#include "calibration/measured_collectives.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "calibration/measured.h"
#include "google/protobuf/text_format.h"
#include "sim/collectives/node_links.h"

namespace orrery::calibration {
namespace {

namespace nccl = collectives::nccl;

constexpr char kFile[] = "record/collective_systems.txtpb";
constexpr double kMicro = 1e-6;
constexpr double kLongest = 1e12;  // microseconds
constexpr std::int64_t kMostRanks = 1 << 24;
constexpr char kUnstated[] = "unstated";

absl::StatusOr<v1::CollectiveRecord> LoadSystems(const std::vector<std::string>& spec_path) {
  for (const std::string& folder : spec_path) {
    const std::filesystem::path file = std::filesystem::path(folder) / kFile;
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) continue;
    constexpr std::int64_t kLargest = 1 << 20;  // bytes
    ABSL_ASSIGN_OR_RETURN(const std::string text, ReadFile(file.string(), kLargest));
    v1::CollectiveRecord record;
    if (google::protobuf::TextFormat::ParseFromString(text, &record)) return record;
    return absl::InvalidArgumentError(absl::StrCat(file.string(), ": not an orrery.v1.CollectiveRecord"));
  }
  return absl::NotFoundError(absl::StrCat("no folder of the spec path has ", kFile));
}

// MIN_CTAS= in free text; 0 where there is none.
absl::StatusOr<std::int64_t> LeastChannels(std::string_view network) {
  constexpr std::string_view kName = "MIN_CTAS=";
  constexpr std::int64_t kMost = 64;
  const std::size_t at = network.find(kName);
  if (at == std::string_view::npos) return 0;
  std::string_view text = network.substr(at + kName.size());
  text = text.substr(0, text.find_first_of(" ,;)"));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= kMost) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("network: MIN_CTAS=", std::string(text), "; allowed: a whole number from 1 to ", kMost));
}

// What `algorithm`, a cell, and `source` say was forced: "forced Ring/Simple" in the latter names both.
absl::StatusOr<nccl::Variant> Forced(std::string_view algorithm, std::string_view source) {
  constexpr std::string_view kForced = "forced ";
  nccl::Variant forced;
  ABSL_ASSIGN_OR_RETURN(forced.algorithm, nccl::AlgorithmOf(algorithm));
  const std::size_t at = source.find(kForced);
  if (at == std::string_view::npos) return forced;
  const std::string_view what = source.substr(at + kForced.size());
  const std::string_view pair = what.substr(0, what.find_first_of(" )"));
  const std::size_t slash = pair.find('/');
  if (slash == std::string_view::npos) return forced;
  ABSL_ASSIGN_OR_RETURN(const v1::NcclAlgorithm said, nccl::AlgorithmOf(pair.substr(0, slash)));
  ABSL_ASSIGN_OR_RETURN(forced.protocol, nccl::ProtocolOfName(pair.substr(slash + 1)));
  if (!algorithm.empty() && said != forced.algorithm) {
    return absl::InvalidArgumentError(absl::StrCat("algorithm: ", std::string(algorithm), ", and source says forced ",
                                                   std::string(pair), "; allowed: the same"));
  }
  forced.algorithm = said;
  return forced;
}

// A tuning that changes what the library does beyond its choice, or the network under it.
absl::Status CheckTuning(std::string_view tuning) {
  for (const char* known : {"", "default", "tuned", "sharp", "efa"}) {
    if (tuning == known) return absl::OkStatus();
  }
  if (tuning == "vm") return absl::UnimplementedError("a network as virtual machines see it");
  if (tuning == "tcpx") return absl::UnimplementedError("GPUDirect-TCPX");
  return absl::UnimplementedError(absl::StrCat("tuning ", std::string(tuning)));
}

// Each has its own GPUs, and an NVSwitch joins ports without sharing anything between two pairs.
absl::Status CheckGroups(const v1::Node& node, std::int64_t groups, std::int64_t ranks, std::int64_t nodes) {
  if (nodes > 1 || node.nvswitches() < 1) return absl::UnimplementedError("several groups that share links");
  if (groups <= node.gpus() / ranks) return absl::OkStatus();
  return absl::UnimplementedError("several groups on the same GPUs");
}

}  // namespace

absl::Status CheckCollectiveColumns(const CsvTable& table) {
  for (const char* column : {"hardware", "nodes", "gpus", "collective", "bytes", "time_us"}) {
    ABSL_RETURN_IF_ERROR(table.Column(column).status());
  }
  return absl::OkStatus();
}

absl::Status CheckUse(const CsvTable& table, const CsvRow& row) {
  if (!table.FindColumn("use").has_value()) return absl::OkStatus();
  const std::string_view use = Cell(table, row, "use");
  for (const char* known : {"fit", "check", "shape"}) {
    if (use == known) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(table.name(), ":", row.line, ": use: \"", std::string(use), "\"; allowed: fit, check, shape"));
}

absl::StatusOr<CollectiveRecord> CollectiveRecord::Load(const spec::LoadOptions& options) {
  CollectiveRecord record;
  ABSL_ASSIGN_OR_RETURN(nccl::Library library, nccl::Library::Load(options));
  record.library_ = std::make_unique<nccl::Library>(std::move(library));
  ABSL_ASSIGN_OR_RETURN(record.record_, LoadSystems(options.spec_path));
  for (const v1::CollectiveSystem& system : record.record_.system()) {
    v1::Cluster& cluster = record.clusters_[system.cluster()];
    if (!cluster.has_node()) ABSL_RETURN_IF_ERROR(spec::LoadPreset(system.cluster(), options, &cluster));
  }
  return record;
}

std::vector<std::string> CollectiveRecord::KnownHardware() const {
  std::set<std::string> names;
  for (const v1::CollectiveSystem& system : record_.system()) {
    names.insert(system.hardware().begin(), system.hardware().end());
  }
  return {names.begin(), names.end()};
}

const v1::CollectiveSystem* CollectiveRecord::SystemOf(std::string_view hardware, std::string_view network) const {
  const v1::CollectiveSystem* best = nullptr;
  std::size_t longest = 0;
  for (const v1::CollectiveSystem& system : record_.system()) {
    const bool fits = system.network().empty() ||
                      std::any_of(system.network().begin(), system.network().end(), [&](const std::string& word) {
                        return network.find(word) != std::string_view::npos;
                      });
    if (!fits) continue;
    for (const std::string& name : system.hardware()) {
      // One that asks for a network goes before one of the same name that does not.
      const std::size_t length = 2 * name.size() + (system.network().empty() ? 0 : 1);
      if (!hardware.starts_with(name) || length <= longest) continue;
      best = &system;
      longest = length;
    }
  }
  return best;
}

absl::StatusOr<MeasuredCollective> CollectiveRecord::Read(const CsvTable& table, const CsvRow& row) const {
  const auto cell = [&](std::string_view column) { return Cell(table, row, column); };
  MeasuredCollective measured;
  measured.line = row.line;
  measured.source = cell("source");
  measured.hardware = cell("hardware");
  measured.use = cell("use");
  ABSL_ASSIGN_OR_RETURN(measured.bytes, PositiveInteger(table, row, "bytes", std::int64_t{1} << 50));
  ABSL_ASSIGN_OR_RETURN(const double time, PositiveNumber(table, row, "time_us", 1e-3, kLongest));
  measured.seconds = time * kMicro;
  ABSL_ASSIGN_OR_RETURN(measured.ranks, PositiveInteger(table, row, "gpus", kMostRanks));
  if (measured.ranks == 1) return absl::UnimplementedError("one GPU, which communicates with none");
  ABSL_ASSIGN_OR_RETURN(std::int64_t nodes, PositiveInteger(table, row, "nodes", kMostRanks));
  const v1::CollectiveSystem* const system = SystemOf(measured.hardware, cell("network"));
  if (system == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("hardware ", measured.hardware, " (known: ", absl::StrJoin(KnownHardware(), ", "), ")"));
  }
  const absl::StatusOr<nccl::Operation> operation = nccl::OperationOf(cell("collective"));
  if (!operation.ok()) return absl::UnimplementedError(operation.status().message());
  measured.operation = *operation;
  measured.split =
      absl::StrCat(measured.source, "|", measured.hardware, "|", measured.ranks, "|", nccl::OperationName(*operation));
  ABSL_RETURN_IF_ERROR(CheckUse(table, row));
  ABSL_RETURN_IF_ERROR(CheckTuning(cell("tuning")));
  std::int64_t groups = 1;
  if (!cell("concurrent_groups").empty()) {
    ABSL_ASSIGN_OR_RETURN(groups, PositiveInteger(table, row, "concurrent_groups", kMostRanks));
  }

  v1::Cluster cluster = clusters_.at(system->cluster());
  measured.times = &clusters_.at(system->cluster()).accelerator().nccl_times();
  measured.assumptions.push_back(absl::StrCat("cluster = ", system->cluster()));
  if (system->nics() > 0) cluster.mutable_node()->set_nics(system->nics());
  if (system->nic_bandwidth() > 0) cluster.mutable_node()->mutable_nic()->set_bandwidth(system->nic_bandwidth());
  if (system->hosts_per_node() > 0) nodes = (nodes + system->hosts_per_node() - 1) / system->hosts_per_node();
  if (nodes > measured.ranks || (measured.ranks + nodes - 1) / nodes > cluster.node().gpus()) {
    return absl::InvalidArgumentError(absl::StrCat(table.name(), ":", row.line, ": gpus: ", measured.ranks, " on ",
                                                   nodes, " nodes; allowed: 1 to ", cluster.node().gpus(), " a node"));
  }
  if (groups > 1) {
    ABSL_RETURN_IF_ERROR(CheckGroups(cluster.node(), groups, measured.ranks, nodes));
    measured.assumptions.push_back(absl::StrCat(groups, " groups side by side share no link of NVSwitches"));
  }
  ABSL_ASSIGN_OR_RETURN(measured.communicator,
                        collectives::CommunicatorOn(cluster, nccl::EvenPlacement(cluster, measured.ranks, nodes)));

  std::string version(cell("nccl_version"));
  if (version.empty() || version == kUnstated) {
    version = system->nccl_version();
    measured.assumptions.push_back(absl::StrCat("nccl_version = ", version));
  }
  ABSL_ASSIGN_OR_RETURN(measured.version, library_->Version(version));
  ABSL_ASSIGN_OR_RETURN(measured.options.forced, Forced(cell("algorithm"), cell("source")));
  measured.options.sharp = cell("tuning") == "sharp";
  ABSL_ASSIGN_OR_RETURN(measured.options.channels.min, LeastChannels(cell("network")));
  const std::string_view harness = cell("harness");
  if (harness == "python") {
    measured.host_seconds = record_.python_overhead();
    measured.assumptions.push_back(absl::StrCat("host overhead = ", record_.python_overhead() / kMicro, " us"));
  } else if (nodes == 1 && (harness.empty() || harness == "nccl-tests")) {
    measured.issue_seconds = record_.issue_per_gpu() * static_cast<double>(measured.ranks * groups);
    measured.assumptions.push_back("one process issues for all GPUs of the node");
  }
  return measured;
}

absl::StatusOr<double> PredictCollective(const MeasuredCollective& row, const v1::NcclTimes& times,
                                         nccl::Price* price) {
  const nccl::Model model(row.communicator, *row.version, times, row.options);
  ABSL_ASSIGN_OR_RETURN(const nccl::Price found, model.PriceOf(row.operation, row.bytes));
  if (price != nullptr) *price = found;
  return std::max(SecondsFromTime(found.total()) + row.host_seconds, row.issue_seconds);
}

}  // namespace orrery::calibration
