// What the forms of `orrery collective` share.
#ifndef ORRERY_CLI_COLLECTIVE_SETUP_H_
#define ORRERY_CLI_COLLECTIVE_SETUP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "sim/collectives/nccl/model.h"
#include "sim/collectives/placed_ranks.h"

namespace orrery::cli {

// GPUs on a cluster, and the library that they use. Must outlive models of it.
struct CollectiveSetup {
  LoadedCluster cluster;
  collectives::nccl::Library library;
  collectives::PlacedRanks placed;
  const v1::NcclVersion* version = nullptr;
  std::vector<std::string> assumptions = {};

  const v1::NcclTimes& times() const { return cluster.cluster.accelerator().nccl_times(); }
};

// Warns where the version lies outside of those that are listed.
absl::StatusOr<CollectiveSetup> SetUp(const CollectiveArguments& arguments);

// What `text` says of numbers up to `largest`: "8:16G:2" (from, to, factor), "8:1M:+8K" (step) or "1M,4M", with binary
// prefixes. For messages: `option` is what gave it, `allowed` the numbers in words.
absl::StatusOr<std::vector<std::int64_t>> RangeOf(const std::string& option, const std::string& text,
                                                  std::int64_t largest, const std::string& allowed);

// `orrery collective expert_dispatch | expert_combine`.
inline constexpr const char* kExpertExchanges[] = {"expert_dispatch", "expert_combine"};
bool IsExpertExchange(const std::string& collective);
absl::StatusOr<std::string> ExpertAnswer(const CollectiveArguments& arguments);

}  // namespace orrery::cli

#endif  // ORRERY_CLI_COLLECTIVE_SETUP_H_
