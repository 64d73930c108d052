// The commands: each takes its parsed arguments, writes its answer, and returns the process's exit code.
//
// 0: done. 1: done, and the answer is no (does not fit; a deadlock; a threshold exceeded). 2: bad input. 3: our bug.
#ifndef ORRERY_CLI_COMMANDS_H_
#define ORRERY_CLI_COMMANDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace orrery::cli {

inline constexpr int kDone = 0;
inline constexpr int kAnswerIsNo = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kBug = 3;

struct SpecArguments {
  std::string spec;
  std::vector<std::string> overrides;
  std::vector<std::string> spec_path;
};

struct SimulateArguments {
  SpecArguments spec;
  bool json = false;
  // Leaves the `simulator` object out of the JSON, so that results can be compared byte by byte.
  bool no_simulator = false;
  std::int64_t report_links = 0;
  std::string output;
  std::string trace;
  std::vector<std::int64_t> trace_ranks;  // empty: one rank of each pipeline rank
};
int Simulate(const SimulateArguments& arguments);

struct SweepArguments {
  SpecArguments spec;
  std::vector<std::string> vary;
  std::string list;  // a file; empty: none
  int threads = 0;   // 0: as many as the machine runs at once
  std::int64_t top = 10;
  bool json = false;
  bool resume = false;
  std::string output;
};
// Exit code 1 where no point is legal and fits; 128 + the signal where one interrupted it.
int Sweep(const SweepArguments& arguments);

struct MemoryArguments {
  SpecArguments spec;
  bool json = false;
  std::string output;
};
// Exit code 1 where the run does not fit.
int Memory(const MemoryArguments& arguments);

struct SpecListArguments {
  std::string kind;  // empty: all
  std::vector<std::string> spec_path;
};
int SpecList(const SpecListArguments& arguments);
int SpecNew(const std::string& output);
int SpecCheck(const SpecArguments& arguments);
int SpecResolve(const SpecArguments& arguments, const std::string& output);

struct ValidateArguments {
  std::string kind;
  std::string file;
  std::vector<std::string> where;
  std::string by;   // empty: what is usual for the kind
  int threads = 0;  // 0: as many as the machine runs at once
  // Where to write the errors by family of runs; empty: nowhere.
  std::string expected_errors;
  std::vector<std::string> spec_path;
  bool json = false;
  bool csv = false;
  std::string output;
  // Thresholds as given; empty: none.
  std::optional<std::string> max_median;
  std::optional<std::string> max_p90;
  std::optional<std::string> max_mismatches;
};
int Validate(const ValidateArguments& arguments);

// How a schedule is costed and shown.
struct ScheduleView {
  std::string costs;        // "F=1,I=1,W=1,comm=0.1,block=3"
  std::string stage_costs;  // a table; empty: equal stages
  std::string format = "text";
  bool json = false;
  std::string output;
};

int ScheduleList(bool as_json, const std::string& output);

struct ScheduleShowArguments {
  std::string family;
  std::int32_t ranks = 4;
  std::int32_t chunks = 0;  // 0: what is usual for the family
  std::int32_t micro_batches = 8;
  std::int32_t group_size = 0;
  std::int32_t slices = 1;
  std::int32_t pipelines = 0;
  std::string memory_limit;  // empty: the family's own
  ScheduleView view;
};
int ScheduleShow(const ScheduleShowArguments& arguments);

struct ScheduleEvalArguments {
  std::string table;
  ScheduleView view;
};
// Exit code 1 where the table deadlocks.
int ScheduleEval(const ScheduleEvalArguments& arguments);

// Costs are those of a rank's share of a micro-batch: one stage of a loop, two of a V.
struct ScheduleOptimizeArguments {
  std::int32_t ranks = 4;
  std::int32_t micro_batches = 8;
  std::string memory_limit;  // empty: none
  std::string objective = "makespan";
  std::string placement = "all";
  std::int64_t effort = 400;  // in millions of passes
  ScheduleView view;
};
// 128 + the signal where one ended the search early: the best order so far is written all the same.
int ScheduleOptimize(const ScheduleOptimizeArguments& arguments);

// A cluster as spec::LoadCluster takes its name.
struct ClusterArguments {
  std::string name;
  std::vector<std::string> overrides;  // of fields of the cluster: "fabric.oversubscription=2"
  std::optional<std::int64_t> nodes;   // as an override of nodes
  std::vector<std::string> spec_path;
};

struct CollectiveArguments {
  std::string collective;
  ClusterArguments cluster;
  std::int64_t nodes = 0;  // 0: as many as the GPUs need
  std::int64_t gpus = 0;   // 0: all of the nodes
  std::optional<std::string> sizes;
  std::string algorithm;
  std::string protocol;
  std::string version;
  std::int64_t channels = 0;  // 0: the library's
  bool sharp = false;
  std::string network = "analytic";
  std::int64_t groups = 1;
  std::int64_t node_stride = 1;
  // Of expert_dispatch and expert_combine; 0, empty: not given.
  std::string tokens;
  std::int64_t hidden = 0;
  std::int64_t top_k = 0;
  std::int64_t experts = 0;
  std::int64_t max_nodes = 0;
  double imbalance = 0;
  std::string data_type;
  std::string transport;
  bool low_latency = false;
  bool json = false;
  std::string output;
};
int Collective(const CollectiveArguments& arguments);

struct CalibrateImportArguments {
  std::string gemm_csv;
  std::string attention_csv;
  std::string collectives_csv;
  std::string nccl_tests;
  std::string cluster;
  std::string collective;
  std::string nccl_version;
  std::string accelerator;
  std::string base;
  std::vector<std::string> gpus;
  std::vector<std::string> keep;
  std::vector<std::string> spec_path;
  bool json = false;
  std::string output;
};
int CalibrateImport(const CalibrateImportArguments& arguments);

// Profiles are named as presets or as files (.txtpb).
struct CalibrateShowArguments {
  std::string profile;
  std::vector<std::string> spec_path;
  bool json = false;
};
int CalibrateShow(const CalibrateShowArguments& arguments);

struct CalibrateDiffArguments {
  std::string left;
  std::string right;
  std::vector<std::string> spec_path;
  bool json = false;
};
int CalibrateDiff(const CalibrateDiffArguments& arguments);

struct TopologyShowArguments {
  ClusterArguments cluster;
  std::string format = "text";
  bool json = false;
  std::string output;
};
int TopologyShow(const TopologyShowArguments& arguments);

struct TopologyRouteArguments {
  ClusterArguments cluster;
  std::string from;  // "gpu:3", or a device's name
  std::string to;
  std::int64_t flow = 0;
  bool pxn = true;
  std::vector<std::string> without;  // devices whose links are dead; "A,B": the links between them
  bool json = false;
  std::string output;
};
int TopologyRoute(const TopologyRouteArguments& arguments);

struct TopologyImportArguments {
  std::string nccl_xml;
  std::string nvidia_smi;
  std::string ibnetdiscover;
  std::string nccl_graph;
  std::string accelerator;
  std::string like;
  std::optional<std::int64_t> nodes;
  std::vector<std::string> gpu_hosts;
  std::vector<std::string> spec_path;
  bool json = false;
  std::string output;
};
int TopologyImport(const TopologyImportArguments& arguments);

}  // namespace orrery::cli

#endif  // ORRERY_CLI_COMMANDS_H_
