#include "schedules/placement.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace orrery::schedules {
namespace {

// A bound on memory for what a file may claim.
constexpr std::int64_t kMostPlaces = 1 << 20;

}  // namespace

Placement::Placement(std::vector<std::vector<Held>> held) : held_(std::move(held)) {
  chunks_ = 0;
  for (const std::vector<Held>& rank : held_) {
    chunks_ = std::max(chunks_, static_cast<std::int32_t>(rank.size()));
    for (const Held& chunk : rank) {
      stages_ = std::max(stages_, chunk.stage + 1);
      pipelines_ = std::max(pipelines_, chunk.pipeline + 1);
    }
  }
  place_.resize(At(pipelines_) * At(stages_));
  for (std::int32_t rank = 0; rank < ranks(); ++rank) {
    for (std::int32_t chunk = 0; chunk < ChunksOf(rank); ++chunk) {
      place_[At(PipelineOf(rank, chunk)) * At(stages_) + At(StageOf(rank, chunk))] = {rank, chunk};
    }
  }
}

Placement Placement::Loop(std::int32_t ranks, std::int32_t chunks) {
  std::vector<std::vector<Held>> held(At(ranks));
  for (std::int32_t stage = 0; stage < ranks * chunks; ++stage) held[At(stage % ranks)].push_back({stage, 0});
  return Placement(std::move(held));
}

Placement Placement::Wave(std::int32_t ranks, std::int32_t chunks) {
  std::vector<std::vector<Held>> held(At(ranks));
  for (std::int32_t stage = 0; stage < ranks * chunks; ++stage) {
    const std::int32_t along = stage % ranks;
    held[At((stage / ranks) % 2 == 0 ? along : ranks - 1 - along)].push_back({stage, 0});
  }
  return Placement(std::move(held));
}

Placement Placement::Bidirectional(std::int32_t ranks) {
  std::vector<std::vector<Held>> held(At(ranks));
  for (std::int32_t rank = 0; rank < ranks; ++rank) held[At(rank)] = {{rank, 0}, {ranks - 1 - rank, 1}};
  return Placement(std::move(held));
}

absl::StatusOr<Placement> Placement::Of(std::vector<std::vector<Held>> held) {
  std::int32_t stages = 0;
  std::int32_t pipelines = 0;
  std::size_t chunks = 0;
  for (const std::vector<Held>& rank : held) {
    chunks += rank.size();
    for (const Held& chunk : rank) {
      if (chunk.stage < 0 || chunk.pipeline < 0) return absl::InvalidArgumentError("stages are numbered from 0");
      if (std::max(chunk.stage, chunk.pipeline) >= kMostPlaces) {
        return absl::InvalidArgumentError(absl::StrCat("stage ", chunk.stage, " is too large a number"));
      }
      stages = std::max(stages, chunk.stage + 1);
      pipelines = std::max(pipelines, chunk.pipeline + 1);
    }
  }
  if (chunks == 0) return absl::InvalidArgumentError("no rank holds a stage");
  const std::int64_t places = std::int64_t{stages} * pipelines;
  if (places >= kMostPlaces)
    return absl::InvalidArgumentError(absl::StrCat("stage ", stages - 1, " is too large a number"));
  std::vector<std::int32_t> holder(static_cast<std::size_t>(places), -1);
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    for (const Held& chunk : held[rank]) {
      std::int32_t& holds = holder[At(chunk.pipeline) * At(stages) + At(chunk.stage)];
      if (holds >= 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("stage ", chunk.stage, " is on rank ", holds, " and on rank ", rank, ", allowed: one rank"));
      }
      holds = static_cast<std::int32_t>(rank);
    }
  }
  const auto missing = std::find(holder.begin(), holder.end(), -1);
  if (missing != holder.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no rank holds stage ", (missing - holder.begin()) % stages, " of stages 0 to ", stages - 1));
  }
  return Placement(std::move(held));
}

}  // namespace orrery::schedules
