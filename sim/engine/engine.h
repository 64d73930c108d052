// What the two engines have in common: their state between iterations, and how to explain a deadlock.
#ifndef ORRERY_SIM_ENGINE_ENGINE_H_
#define ORRERY_SIM_ENGINE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "sim/engine/accounting.h"
#include "sim/engine/program_index.h"
#include "sim/engine/replay.h"
#include "sim/engine/world.h"

namespace orrery::engine {

// Bit of the host in masks of streams.
inline constexpr std::uint32_t kHostBit = 1u << kMaxStreams;

// What an iteration leaves behind.
struct EngineState {
  explicit EngineState(const World& world)
      : clocks(world), hashes(world.units.size()), waited_for(world.units.size()) {}

  Clocks clocks;
  std::vector<std::uint64_t> hashes;      // [unit], over all iterations so far
  std::vector<std::uint32_t> waited_for;  // [unit]: streams, and the host, that something waited for in this iteration
  Time update_end;                        // latest end of an update_op of this iteration
  std::int64_t tasks = 0;
  std::int64_t events = 0;
};

// Evaluates all operations of one iteration, advances the clocks, and reports to the accountant what it wants.
class Engine {
 public:
  virtual ~Engine() = default;
  // With `until`, an engine may leave out what no compute stream, and no stream of a traced unit, is free to begin
  // before that instant, if that is all that is left.
  virtual absl::Status RunIteration(std::int32_t iteration, std::optional<Time> until) = 0;

  // A hash of all that decides what follows, right after an iteration; instants count from now, iterations from that
  // one. Where it repeats, so does everything after it, as long as hosts that wait for nothing and that nobody waited
  // for (EngineState::waited_for) fall no further ahead than iterations are long. nullopt where clocks say as much.
  virtual std::optional<std::uint64_t> Fingerprint() { return std::nullopt; }
};

struct EngineInputs {
  const World& world;
  const std::vector<ProgramIndex>& indices;
  const ReplayOptions& options;
  Accountant& accountant;
  EngineState& state;
};

std::unique_ptr<Engine> MakeWorklist(const EngineInputs& inputs);
std::unique_ptr<Engine> MakeEventQueue(const EngineInputs& inputs);

// How far an engine got when it could not go on: operations finished on a stream, host ops begun.
struct Progress {
  std::function<std::int32_t(std::int32_t unit, std::int32_t stream)> finished;
  std::function<std::int32_t(std::int32_t unit)> host_ops_begun;
};

// FAILED_PRECONDITION that names a cycle of waits.
absl::Status ExplainDeadlock(const World& world, const std::vector<ProgramIndex>& indices, const Progress& progress);

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_ENGINE_H_
