#include "sweep/points.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "schedules/family.h"

namespace orrery::sweep {
namespace {

// Not a field of the schema: the global batch follows from it.
constexpr std::string_view kMicroBatches = "microbatches";
constexpr std::string_view kGlobalBatch = "training.global_batch";
constexpr std::string_view kSchedule = "schedule.name";
constexpr std::string_view kScheduleFile = "schedule.file";
constexpr std::string_view kVirtualStages = "parallelism.virtual_stages";

// A check costs about as much as loading a run. Beyond so many values of a field, points refuse what is wrong.
constexpr std::size_t kCheckedValues = 1000;

std::string PathOf(std::string_view field) {
  for (const ShortName& known : ShortNames()) {
    if (known.name == field) return std::string(known.path);
  }
  return std::string(field);
}

// What a point writes to where this is varied: two fields with the same target contradict each other.
std::string TargetOf(const std::string& path) { return path == kMicroBatches ? std::string(kGlobalBatch) : path; }

absl::Status CheckMicroBatches(const std::string& value) {
  constexpr std::int64_t kMost = 100'000'000;  // sequences of a global batch
  std::int64_t count = 0;
  if (absl::SimpleAtoi(value, &count) && count >= 1 && count <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("found \"", value, "\"; allowed: a whole number from 1 to ", kMost, ", micro-batches per pipeline"));
}

// Paths without a dot are short names or, rarely, fields of the run itself.
absl::Status CheckShortName(const std::string& field) {
  if (absl::StrContains(field, '.')) return absl::OkStatus();
  std::vector<std::string> names;
  for (const ShortName& known : ShortNames()) {
    if (known.name == field) return absl::OkStatus();
    names.emplace_back(known.name);
  }
  if (v1::Run::descriptor()->FindFieldByName(field) != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": is no field that can be varied; allowed: ", absl::StrJoin(names, ", "),
                   ", or a path such as training.seq_len", orrery::DidYouMean(field, names)));
}

absl::Status CheckValue(const std::string& path, const std::string& value, const spec::BaseRun& base) {
  if (path == kMicroBatches) return CheckMicroBatches(value);
  if (path == kSchedule) return schedules::FindFamily(value).status();
  return base.CheckOverride(absl::StrCat(path, "=", value));
}

absl::Status AsBadInput(const std::string& field, const absl::Status& status) {
  const std::string message(status.message());
  return absl::InvalidArgumentError(message.starts_with(field + ": ") ? message : absl::StrCat(field, ": ", message));
}

}  // namespace

const std::vector<ShortName>& ShortNames() {
  static const auto* const names = new std::vector<ShortName>{{"schedule", kSchedule},
                                                              {kMicroBatches, kMicroBatches},
                                                              {"tp", "parallelism.tp"},
                                                              {"pp", "parallelism.pp"},
                                                              {"dp", "parallelism.dp"},
                                                              {"cp", "parallelism.cp"},
                                                              {"ep", "parallelism.ep"},
                                                              {"gpus", "parallelism.gpus"},
                                                              {"virtual_stages", kVirtualStages},
                                                              {"zero", "parallelism.zero_stage"},
                                                              {"micro_batch", "training.micro_batch"},
                                                              {"global_batch", kGlobalBatch},
                                                              {"seq_len", "training.seq_len"},
                                                              {"recompute", "training.recompute"}};
  return *names;
}

absl::StatusOr<Points> Points::Make(std::vector<Axis> axes) {
  if (axes.empty()) return absl::InvalidArgumentError("nothing is varied; allowed: --vary FIELD=VALUE,... or --list");
  Points points;
  points.size_ = 1;
  std::vector<std::string> counts;
  bool too_many = false;
  for (const Axis& axis : axes) {
    points.fields_.insert(points.fields_.end(), axis.fields.begin(), axis.fields.end());
    const auto count = static_cast<std::int64_t>(axis.values.size());
    counts.push_back(absl::StrCat(count));
    too_many = too_many || __builtin_mul_overflow(points.size_, count, &points.size_) || points.size_ > kMostPoints;
  }
  if (too_many) {
    return absl::InvalidArgumentError(absl::StrCat("the sweep has ", absl::StrJoin(counts, " x "),
                                                   " points; allowed: up to ", kMostPoints, " in all"));
  }
  std::set<std::string> targets;
  for (const std::string& field : points.fields_) {
    points.paths_.push_back(PathOf(field));
    const std::string target = TargetOf(points.paths_.back());
    if (!targets.insert(target).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": ", target, " is varied twice; allowed: once, by one name"));
    }
  }
  points.axes_ = std::move(axes);
  return points;
}

std::vector<std::string> Points::At(std::int64_t index) const {
  std::vector<const std::vector<std::string>*> chosen(axes_.size());
  for (std::size_t a = axes_.size(); a-- > 0;) {
    const auto count = static_cast<std::int64_t>(axes_[a].values.size());
    chosen[a] = &axes_[a].values[static_cast<std::size_t>(index % count)];
    index /= count;
  }
  std::vector<std::string> cells;
  cells.reserve(fields_.size());
  for (const std::vector<std::string>* values : chosen) cells.insert(cells.end(), values->begin(), values->end());
  return cells;
}

Variation Points::VariationOf(std::int64_t index) const {
  const std::vector<std::string> cells = At(index);
  Variation variation;
  std::int32_t fixed_chunks = 0;
  bool says_stages = false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].empty()) continue;
    if (paths_[i] == kMicroBatches) {
      // What is no number was refused by Check, or is by the rule of the global batch.
      if (!absl::SimpleAtoi(cells[i], &variation.micro_batches)) variation.micro_batches = 0;
      if (variation.micro_batches < 1) variation.overrides.push_back(absl::StrCat(kGlobalBatch.data(), "=", cells[i]));
      continue;
    }
    if (paths_[i] == kSchedule) {
      const absl::StatusOr<const schedules::Family*> family = schedules::FindFamily(cells[i]);
      if (family.ok()) fixed_chunks = (*family)->fixed_chunks;
    }
    says_stages = says_stages || paths_[i] == kVirtualStages;
    variation.overrides.push_back(absl::StrCat(paths_[i], "=", cells[i]));
  }
  if (fixed_chunks > 0 && !says_stages) {
    variation.overrides.push_back(absl::StrCat(kVirtualStages.data(), "=", fixed_chunks));
  }
  return variation;
}

absl::Status Points::Check(const spec::BaseRun& base) const {
  std::size_t field = 0;
  for (const Axis& axis : axes_) {
    for (std::size_t column = 0; column < axis.fields.size(); ++column, ++field) {
      ABSL_RETURN_IF_ERROR(CheckShortName(fields_[field]));
      std::set<std::string> checked;
      for (const std::vector<std::string>& cells : axis.values) {
        const std::string& value = cells[column];
        if (value.empty() || checked.size() == kCheckedValues || !checked.insert(value).second) continue;
        const absl::Status status = CheckValue(paths_[field], value, base);
        if (!status.ok()) return AsBadInput(fields_[field], status);
      }
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> Points::Files() const {
  std::vector<std::string> files;
  std::size_t field = 0;
  for (const Axis& axis : axes_) {
    for (std::size_t column = 0; column < axis.fields.size(); ++column) {
      if (paths_[field + column] != kScheduleFile) continue;
      for (const std::vector<std::string>& cells : axis.values) files.push_back(cells[column]);
    }
    field += axis.fields.size();
  }
  return files;
}

std::string Points::Sha256(const spec::BaseRun& base) const {
  // Every cell with its length before it, so that no two lists of cells give one text.
  std::string text = base.Sha256();
  const auto append = [&text](const std::string& cell) { absl::StrAppend(&text, "\n", cell.size(), " ", cell); };
  for (const std::string& path : paths_) append(path);
  std::size_t field = 0;
  for (const Axis& axis : axes_) {
    absl::StrAppend(&text, "\n", axis.fields.size(), " x ", axis.values.size());
    std::set<std::string> read;
    for (const std::vector<std::string>& cells : axis.values) {
      for (std::size_t column = 0; column < cells.size(); ++column) {
        append(cells[column]);
        // What a preset or a file says is part of the sweep, too.
        const std::string& path = paths_[field + column];
        const std::string override = absl::StrCat(path, "=", cells[column]);
        const bool reads = absl::EndsWith(path, ".preset") || path == kScheduleFile;
        if (!reads || !read.insert(override).second) continue;
        append(base.Sha256({override}));
      }
    }
    field += axis.fields.size();
  }
  return Sha256Hex(text);
}

}  // namespace orrery::sweep
