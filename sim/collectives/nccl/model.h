// NCCL on a communicator: which algorithm and protocol an operation takes, and how long. Start here; channels.h,
// tuner.h and time.h have the formulas. Where nodes differ, the library chooses by what they have in common, and the
// slowest sort of node says how long it takes.
#ifndef ORRERY_SIM_COLLECTIVES_NCCL_MODEL_H_
#define ORRERY_SIM_COLLECTIVES_NCCL_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "orrery/v1/nccl.pb.h"
#include "proto/loader.h"
#include "sim/collectives/nccl/channels.h"
#include "sim/collectives/nccl/communicator.h"
#include "sim/collectives/nccl/time.h"
#include "sim/collectives/nccl/tuner.h"

namespace orrery::collectives::nccl {

// Whether tables of a version are listed: it is, it lies between two that are, or before or behind all of them.
enum class Coverage : std::uint8_t { kListed, kBetween, kOutside };

// The tables of specs/nccl.
class Library {
 public:
  static absl::StatusOr<Library> Load(const spec::LoadOptions& options);

  // "2.21", "2.21.5", "2.20-2.21" (the last counts): the listed version that is nearest, the older of two.
  // INVALID_ARGUMENT where that is no version.
  absl::StatusOr<const v1::NcclVersion*> Version(std::string_view text) const;
  // For a version that Version takes.
  Coverage CoverageOf(std::string_view text) const;
  // Which tables stand in for it, in words; empty where its own are listed.
  std::string StandIn(std::string_view text) const;

 private:
  std::vector<v1::NcclVersion> versions_;  // ascending
};

struct ModelOptions {
  ChannelLimits channels;
  Variant forced;  // unspecified: the library chooses
  bool sharp = false;
};

struct Price {
  Variant variant;
  std::int64_t channels = 0;  // that this size uses
  Time fixed;                 // launch and latencies
  Time progress;              // the part in which links are shared
  LinkBytes bytes;

  Time total() const { return fixed + progress; }
};

// Immutable.
class Model {
 public:
  // `version` and `times` must outlive the model.
  Model(const Communicator& comm, const v1::NcclVersion& version, const v1::NcclTimes& times,
        const ModelOptions& options)
      : Model(Views{comm}, version, times, options) {}
  Model(const Views& views, const v1::NcclVersion& version, const v1::NcclTimes& times, const ModelOptions& options);

  // 0 for one rank and for no bytes. INVALID_ARGUMENT where bytes are negative or nothing that is allowed can carry the
  // operation out. Bytes as nccl-tests counts them: of all-gather and reduce-scatter the whole tensor, of all-to-all
  // one rank's buffer.
  absl::StatusOr<Price> PriceOf(Operation operation, std::int64_t bytes) const;

  const Communicator& communicator() const { return comm_; }
  const Channels& channels() const { return channels_; }
  const Tuner& tuner() const { return tuner_; }
  // As the first sort of nodes sees it.
  const TimeModel& time() const { return collectives_.front(); }

 private:
  std::int64_t ChannelsOf(std::int64_t bytes, const Variant& variant) const;
  // Of what `forced` asks for: what that needs, and what can.
  absl::Status Refusal(Operation operation) const;
  // Over all sorts of nodes the longest fixed and the longest progress part, and most bytes.
  Duration DurationOf(Operation operation, std::int64_t bytes, const Variant& variant) const;

  Communicator comm_;  // what all nodes have in common
  ModelOptions options_;
  Channels channels_;
  Tuner tuner_;
  // By sort of nodes. Channels use as many NICs of each as the node with the fewest has; messages use their own.
  std::vector<TimeModel> collectives_;
  std::vector<TimeModel> messages_;

 public:
  // The parts refer to each other.
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
};

// "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "alltoall", "sendrecv".
absl::StatusOr<Operation> OperationOf(std::string_view name);
std::string OperationName(Operation operation);
std::vector<std::string> OperationNames();
// "Ring", "Tree", "NVLS", "NVLSTree", "CollNetDirect", "CollNetChain", "PAT", "P2P", letter case aside; "" for any.
absl::StatusOr<v1::NcclAlgorithm> AlgorithmOf(std::string_view name);
std::string AlgorithmName(v1::NcclAlgorithm algorithm);
absl::StatusOr<v1::NcclProtocol> ProtocolOfName(std::string_view name);
std::string ProtocolName(v1::NcclProtocol protocol);
// nccl-tests' bus bandwidth over its algorithm bandwidth.
double BusFactor(Operation operation, std::int64_t ranks);

}  // namespace orrery::collectives::nccl

#endif  // ORRERY_SIM_COLLECTIVES_NCCL_MODEL_H_
