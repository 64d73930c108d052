#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "schedules/families.h"

namespace orrery::schedules {
namespace {

absl::string_view View(std::string_view text) { return absl::string_view(text.data(), text.size()); }

absl::Status CheckPositive(std::string_view family, std::string_view name, std::int32_t value) {
  if (value >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(View(family), ": ", View(name), " = ", value, ", allowed: at least 1"));
}

}  // namespace

absl::Status CheckCommon(std::string_view family, const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckPositive(family, "ranks", parameters.ranks));
  ABSL_RETURN_IF_ERROR(CheckPositive(family, "chunks", parameters.chunks));
  ABSL_RETURN_IF_ERROR(CheckPositive(family, "micro_batches", parameters.micro_batches));
  // Divided instead of multiplied: 2 x ranks x chunks fits in 64 bits, times micro_batches it may not.
  const std::int64_t per_micro_batch = std::int64_t{2} * parameters.ranks * parameters.chunks;
  const std::int64_t most = kMostPasses / per_micro_batch;
  if (parameters.micro_batches <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      View(family), ": micro_batches = ", parameters.micro_batches,
      " (global_batch / (dp x micro_batch)) on ranks = ", parameters.ranks, " (pp) with chunks = ", parameters.chunks,
      " (virtual_stages), allowed: ", most > 0 ? absl::StrCat("micro_batches up to ", most) : "fewer ranks or chunks",
      ", for at most ", kMostPasses, " passes in all, 2 x micro_batches x ranks x chunks"));
}

absl::Status CheckOneStagePerRank(std::string_view family, const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckCommon(family, parameters));
  if (parameters.chunks == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(View(family), ": chunks = ", parameters.chunks, ", allowed: 1 (one stage per rank)"));
}

absl::Status CheckTwoStagesPerRank(std::string_view family, const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckCommon(family, parameters));
  if (parameters.chunks == 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(View(family), ": chunks = ", parameters.chunks, ", allowed: 2 (two stages per rank)"));
}

const std::vector<Family>& Families() {
  static const auto* const families = [] {
    auto* all = new std::vector<Family>{kOneForwardOneBackward,
                                        kGpipe,
                                        kInterleaved,
                                        kZbV,
                                        kVHalf,
                                        kVMin,
                                        kDualPipe,
                                        kDualPipeV,
                                        kChimera,
                                        kZb1p,
                                        kZb2p,
                                        kZbAuto,
                                        kZbVGreedy,
                                        kVAuto,
                                        kLoopedBfs,
                                        kInterleavedTorch,
                                        kInterleavedZb,
                                        kZbH1,
                                        kZbH2,
                                        kCombined,
                                        kOneForwardOneBackwardOverlap,
                                        kGrouped,
                                        kSeq1f1b,
                                        kHanayo,
                                        kOneForwardOneBackwardV};
    std::sort(all->begin(), all->end(), [](const Family& a, const Family& b) { return a.name < b.name; });
    return all;
  }();
  return *families;
}

absl::StatusOr<const Family*> FindFamily(std::string_view name) {
  std::vector<std::string> names;
  for (const Family& family : Families()) {
    if (family.name == name) return &family;
    names.emplace_back(family.name);
  }
  return absl::NotFoundError(absl::StrCat("no schedule is called \"", View(name), "\"", DidYouMean(name, names),
                                          "; there are: ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<Schedule> Generate(std::string_view name, const Parameters& parameters) {
  ABSL_ASSIGN_OR_RETURN(const Family* family, FindFamily(name));
  ABSL_RETURN_IF_ERROR(family->check(parameters));
  return family->generate(parameters);
}

}  // namespace orrery::schedules
