// Schedule families by name: their parameters, when they are legal, and their generators.
#ifndef ORRERY_SCHEDULES_FAMILY_H_
#define ORRERY_SCHEDULES_FAMILY_H_

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schedules/schedule.h"

namespace orrery::schedules {

// Durations of the passes of one stage, in any unit that all costs of a schedule share.
struct PassCosts {
  std::int64_t forward = 1;
  std::int64_t input_gradient = 1;
  std::int64_t weight_gradient = 1;

  std::int64_t backward() const { return input_gradient + weight_gradient; }
  friend bool operator==(const PassCosts&, const PassCosts&) = default;
};

// Activation memory of one chunk and micro-batch, in any unit: F takes `forward` (M_B of the zero-bubble paper), I
// frees forward - weight, W frees `weight` (M_W), B frees all.
struct PassMemory {
  std::int64_t forward = 2;
  std::int64_t weight = 1;

  friend bool operator==(const PassMemory&, const PassMemory&) = default;
};

// Most that the costs of all passes and messages of an order may add up to: sums of a few such times fit in 64 bits.
inline constexpr std::int64_t kMostTime = std::numeric_limits<std::int64_t>::max() / 4;

// What automatic schedules plan with. The others ignore it.
struct PlanningCosts {
  // By stage, or one entry for all.
  std::vector<PassCosts> stages = {PassCosts{}};
  // From the end of a pass to the start of the pass on another rank that needs it.
  std::int64_t latency = 0;
  PassMemory memory;
  // Most that a rank may hold, in the unit of `memory`; 0: the family's own limit, which its constraints state.
  std::int64_t memory_limit = 0;

  const PassCosts& Of(std::int32_t stage) const {
    return stages.size() == 1 ? stages.front() : stages[static_cast<std::size_t>(stage)];
  }
};

struct Parameters {
  std::int32_t ranks = 1;  // p
  // Stages per rank of one pipeline, v.
  std::int32_t chunks = 1;
  std::int32_t micro_batches = 1;  // m
  // Interleaved: micro-batches in a row per chunk, N. 0: the family's default.
  std::int32_t group_size = 0;
  // Sequence-sliced: slices per micro-batch, s.
  std::int32_t slices = 1;
  // Chimera: copies of the model. 0: the family's default.
  std::int32_t pipelines = 0;
  PlanningCosts planning = {};
};

// One schedule family, registered in its own file.
struct Family {
  std::string_view name;         // "1f1b"
  std::string_view summary;      // one sentence
  std::string_view reference;    // paper or code
  std::string_view constraints;  // in words
  std::string_view closed_form;  // idle time of a rank and peak, with where they hold; empty: none is known
  // INVALID_ARGUMENT that names the parameter, its value and what is allowed.
  absl::Status (*check)(const Parameters&);
  // `check` has passed. RESOURCE_EXHAUSTED where no order keeps to the memory limit.
  absl::StatusOr<Schedule> (*generate)(const Parameters&);
  // Stages per rank that it always has, or 0 where `chunks` is free.
  std::int32_t fixed_chunks = 0;
  // Plans by Parameters::planning.
  bool automatic = false;
  // Stages per rank where `chunks` is free and nobody says how many.
  std::int32_t default_chunks = 1;
  // Cuts micro-batches into Parameters::slices.
  bool sliced = false;
  // Keeps Parameters::pipelines copies of the model.
  bool takes_pipelines = false;

  std::int32_t usual_chunks() const { return fixed_chunks > 0 ? fixed_chunks : default_chunks; }
};

// All families, in the order in which they are listed to a user.
const std::vector<Family>& Families();
// NOT_FOUND lists the names, and one that is near.
absl::StatusOr<const Family*> FindFamily(std::string_view name);
absl::StatusOr<Schedule> Generate(std::string_view name, const Parameters& parameters);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_FAMILY_H_
