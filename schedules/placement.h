// Which stage of the model every chunk of a pipeline rank holds.
//
// A model is cut into S stages, 0 the first. A rank holds up to `chunks` of them. Bidirectional schedules keep several
// copies of the model, each a *pipeline* of its own: every stage exists once per pipeline, and a micro-batch runs
// through one of them (Schedule::pipeline_of).
#ifndef ORRERY_SCHEDULES_PLACEMENT_H_
#define ORRERY_SCHEDULES_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace orrery::schedules {

// A chunk of a rank.
struct Place {
  std::int32_t rank = 0;
  std::int32_t chunk = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

// What a chunk holds.
struct Held {
  std::int32_t stage = 0;
  std::int32_t pipeline = 0;

  friend bool operator==(const Held&, const Held&) = default;
};

class Placement {
 public:
  // One rank, one stage.
  Placement() : Placement({{Held{}}}) {}

  // Stage s is chunk s / ranks of rank s mod ranks.
  static Placement Loop(std::int32_t ranks, std::int32_t chunks);
  // Stages go up and down the ranks in turn: chunk 2k of rank r is stage 2kp + r, chunk 2k + 1 is stage 2kp + 2p - 1 -
  // r. With 2 chunks: the V of ZB-V and DualPipeV.
  static Placement Wave(std::int32_t ranks, std::int32_t chunks);
  // Two pipelines of one stage per rank: chunk 0 of rank r is stage r of pipeline 0, chunk 1 stage p - 1 - r of
  // pipeline 1 (DualPipe, Chimera).
  static Placement Bidirectional(std::int32_t ranks);
  // held[rank]: its chunks; ranks may hold different numbers of them. INVALID_ARGUMENT unless every stage from 0 to the
  // largest is held exactly once in every pipeline from 0 to the largest.
  static absl::StatusOr<Placement> Of(std::vector<std::vector<Held>> held);

  std::int32_t ranks() const { return static_cast<std::int32_t>(held_.size()); }
  // Most that one rank holds.
  std::int32_t chunks() const { return chunks_; }
  std::int32_t ChunksOf(std::int32_t rank) const { return static_cast<std::int32_t>(held_[At(rank)].size()); }
  // Of one pipeline.
  std::int32_t stages() const { return stages_; }
  std::int32_t pipelines() const { return pipelines_; }

  std::int32_t StageOf(std::int32_t rank, std::int32_t chunk) const { return held_[At(rank)][At(chunk)].stage; }
  std::int32_t PipelineOf(std::int32_t rank, std::int32_t chunk) const { return held_[At(rank)][At(chunk)].pipeline; }
  Place PlaceOf(std::int32_t stage, std::int32_t pipeline = 0) const {
    return place_[At(pipeline) * At(stages_) + At(stage)];
  }

  friend bool operator==(const Placement& a, const Placement& b) { return a.held_ == b.held_; }

 private:
  // `held` is legal.
  explicit Placement(std::vector<std::vector<Held>> held);

  static std::size_t At(std::int32_t i) { return static_cast<std::size_t>(i); }

  std::vector<std::vector<Held>> held_;  // [rank][chunk]
  std::vector<Place> place_;             // [pipeline x stages + stage]
  std::int32_t chunks_ = 1;
  std::int32_t stages_ = 1;
  std::int32_t pipelines_ = 1;
};

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_PLACEMENT_H_
