// Measured collectives: rows of a table of the record (columns as in docs/collectives.md), and what they say about the
// machine, the library and the program that measured.
#ifndef ORRERY_CALIBRATION_MEASURED_COLLECTIVES_H_
#define ORRERY_CALIBRATION_MEASURED_COLLECTIVES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/csv.h"
#include "orrery/v1/cluster.pb.h"
#include "orrery/v1/nccl.pb.h"
#include "proto/loader.h"
#include "sim/collectives/nccl/model.h"

namespace orrery::calibration {

struct MeasuredCollective {
  int line = 0;
  std::string source;
  std::string hardware;
  collectives::nccl::Operation operation = collectives::nccl::Operation::kAllReduce;
  std::int64_t bytes = 0;
  double seconds = 0;
  double host_seconds = 0;   // that the program adds to every operation
  double issue_seconds = 0;  // below which its host does not get
  std::int64_t ranks = 1;
  collectives::nccl::Communicator communicator;
  const v1::NcclVersion* version = nullptr;
  const v1::NcclTimes* times = nullptr;  // of the cluster's accelerator
  collectives::nccl::ModelOptions options;
  std::string split;                     // what is held out of fits together
  std::string use;                       // fit, check, shape
  std::vector<std::string> assumptions;  // "field = value"
};

// Presets and tables that reading rows needs, loaded once.
class CollectiveRecord {
 public:
  static absl::StatusOr<CollectiveRecord> Load(const spec::LoadOptions& options);

  // UNIMPLEMENTED names what cannot be modelled; INVALID_ARGUMENT a cell that is no measurement. The record must
  // outlive what it returns.
  absl::StatusOr<MeasuredCollective> Read(const CsvTable& table, const CsvRow& row) const;

  const collectives::nccl::Library& library() const { return *library_; }
  // Seconds in which a program that drives several GPUs issues a kernel for one.
  double IssuePerGpu() const { return record_.issue_per_gpu(); }

 private:
  // How names of hardware may begin, in order.
  std::vector<std::string> KnownHardware() const;
  const v1::CollectiveSystem* SystemOf(std::string_view hardware, std::string_view network) const;

  std::unique_ptr<collectives::nccl::Library> library_;
  v1::CollectiveRecord record_;
  std::map<std::string, v1::Cluster> clusters_;  // by preset
};

// NOT_FOUND where the table lacks a column that Read needs.
absl::Status CheckCollectiveColumns(const CsvTable& table);

// INVALID_ARGUMENT where the row's `use` is none of fit, check and shape; a table without that column has no such row.
absl::Status CheckUse(const CsvTable& table, const CsvRow& row);

// What the row's program would have printed, in seconds, with these constants.
absl::StatusOr<double> PredictCollective(const MeasuredCollective& row, const v1::NcclTimes& times,
                                         collectives::nccl::Price* price = nullptr);

}  // namespace orrery::calibration

#endif  // ORRERY_CALIBRATION_MEASURED_COLLECTIVES_H_
