#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "schedules/families.h"
#include "schedules/schedule.h"

namespace orrery::schedules {
namespace {

// Keeps a mistyped batch size from allocating the machine's memory: 20 million actions are 320 MB.
constexpr std::int64_t kMaxActions = 20'000'000;

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
  // Divided instead of multiplied, so that nothing overflows.
  const std::int64_t passes = std::int64_t{2} * parameters.ranks * parameters.chunks;
  if (passes > kMaxActions || parameters.micro_batches > kMaxActions / passes) {
    return absl::InvalidArgumentError(absl::StrCat(
        View(family), ": micro_batches = ", parameters.micro_batches, " on ", parameters.ranks, " ranks with ",
        parameters.chunks, " stages each, allowed: at most ", kMaxActions, " passes over all ranks"));
  }
  return absl::OkStatus();
}

absl::Status CheckOneStagePerRank(std::string_view family, const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckCommon(family, parameters));
  if (parameters.chunks == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(View(family), ": chunks = ", parameters.chunks, ", allowed: 1 (one stage per rank)"));
}

const std::vector<Family>& Families() {
  static const auto* const families = new std::vector<Family>{kOneForwardOneBackward, kGpipe, kInterleaved};
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
