#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "proto/loader.h"
#include "reports/collective_report.h"
#include "sim/collectives/nccl/model.h"

namespace orrery::cli {
namespace {

namespace nccl = collectives::nccl;

constexpr std::size_t kMostSizes = 4096;
constexpr std::int64_t kLargest = std::int64_t{1} << 50;  // bytes

// "8", "4K", "16G": binary prefixes, as nccl-tests reads them. Below 0: not a size.
std::int64_t SizeOf(absl::string_view text) {
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
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > kLargest / scale) return -1;
  return value * scale;
}

// "8:16G:2" (from, to, factor), "8:1M:+8K" (step) or "1M,4M".
absl::StatusOr<std::vector<std::int64_t>> SizesOf(const std::string& text) {
  const auto wrong = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("--sizes: \"", text, "\"; allowed: 8:16G:2 (from, to, factor), 8:1M:+8K (step) or 1M,4M; up to ",
                     kMostSizes, " sizes of 1 byte to 1024 TiB"));
  };
  std::vector<std::int64_t> sizes;
  const std::vector<absl::string_view> range = absl::StrSplit(text, ':');
  if (range.size() == 1) {
    for (const absl::string_view part : absl::StrSplit(text, ',')) sizes.push_back(SizeOf(part));
  } else {
    if (range.size() > 3) return wrong();
    absl::string_view step = range.size() == 3 ? range[2] : "2";
    const bool adds = !step.empty() && step[0] == '+';
    if (adds) step.remove_prefix(1);
    const std::int64_t from = SizeOf(range[0]), to = SizeOf(range[1]), by = SizeOf(step);
    if (from < 0 || to < from || by < (adds ? 1 : 2)) return wrong();
    for (std::int64_t size = from; size <= to && sizes.size() <= kMostSizes;) {
      sizes.push_back(size);
      if (adds ? size > kLargest - by : size > kLargest / by) break;
      size = adds ? size + by : size * by;
    }
  }
  if (sizes.empty() || sizes.size() > kMostSizes || *std::min_element(sizes.begin(), sizes.end()) < 0) return wrong();
  return sizes;
}

absl::StatusOr<std::string> Answer(const CollectiveArguments& arguments) {
  const spec::LoadOptions load = LoadOptionsOf(arguments.spec_path, {});
  ABSL_ASSIGN_OR_RETURN(const nccl::Operation operation, nccl::OperationOf(arguments.collective));
  ABSL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> sizes, SizesOf(arguments.sizes));
  ABSL_ASSIGN_OR_RETURN(const v1::Cluster cluster, spec::LoadCluster(arguments.cluster, load));
  if (cluster.node().gpus() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--cluster: ", arguments.cluster, " is given device by device; allowed: one that states node and fabric"));
  }
  ABSL_ASSIGN_OR_RETURN(const nccl::Library library, nccl::Library::Load(load));
  const std::int64_t per_node = cluster.node().gpus();
  std::int64_t ranks = arguments.gpus;
  if (ranks == 0) ranks = per_node * std::max<std::int64_t>(1, arguments.nodes);
  const std::int64_t nodes = arguments.nodes > 0 ? arguments.nodes : (ranks + per_node - 1) / per_node;
  if (nodes > cluster.nodes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--nodes: ", nodes, " nodes; allowed: up to the ", cluster.nodes(), " of ", arguments.cluster));
  }
  ABSL_ASSIGN_OR_RETURN(const nccl::Communicator comm,
                        nccl::DescribeCommunicator(cluster, nccl::EvenPlacement(cluster, ranks, nodes)));
  ABSL_ASSIGN_OR_RETURN(const v1::NcclTimes* const times, library.Times(comm.compute_capability));
  const std::string version = arguments.version.empty() ? times->nccl_version() : arguments.version;
  ABSL_ASSIGN_OR_RETURN(const v1::NcclVersion* const tables, library.Version(version));
  nccl::ModelOptions options;
  options.sharp = arguments.sharp;
  options.channels = {.min = arguments.channels, .max = arguments.channels};
  ABSL_ASSIGN_OR_RETURN(options.forced.algorithm, nccl::AlgorithmOf(arguments.algorithm));
  ABSL_ASSIGN_OR_RETURN(options.forced.protocol, nccl::ProtocolOfName(arguments.protocol));
  const nccl::Model model(comm, *tables, *times, options);
  ABSL_ASSIGN_OR_RETURN(reports::CollectiveSweep sweep, reports::SweepCollective(model, operation, sizes));
  sweep.cluster = arguments.cluster;
  sweep.version = tables->name();
  sweep.times = times->name();
  return arguments.json ? reports::CollectiveJson(sweep) : reports::CollectiveText(sweep);
}

}  // namespace

int Collective(const CollectiveArguments& arguments) {
  const absl::StatusOr<std::string> answer = Answer(arguments);
  if (!answer.ok()) return Fail(answer.status());
  const absl::Status written = Write(*answer, arguments.output);
  return written.ok() ? kDone : Fail(written);
}

}  // namespace orrery::cli
