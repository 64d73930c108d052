// Command line: parse, call, return.
#include <CLI/CLI.hpp>

#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "cli/output.h"

namespace {

using orrery::cli::CalibrateDiffArguments;
using orrery::cli::CalibrateImportArguments;
using orrery::cli::CalibrateShowArguments;
using orrery::cli::ClusterArguments;
using orrery::cli::CollectiveArguments;
using orrery::cli::MemoryArguments;
using orrery::cli::ScheduleEvalArguments;
using orrery::cli::ScheduleOptimizeArguments;
using orrery::cli::ScheduleShowArguments;
using orrery::cli::ScheduleView;
using orrery::cli::SimulateArguments;
using orrery::cli::SpecArguments;
using orrery::cli::SpecListArguments;
using orrery::cli::SweepArguments;
using orrery::cli::TopologyImportArguments;
using orrery::cli::TopologyRouteArguments;
using orrery::cli::TopologyShowArguments;
using orrery::cli::ValidateArguments;

CLI::Validator NotEmpty() {
  return CLI::Validator([](const std::string& given) { return given.empty() ? "must not be empty" : ""; }, "");
}

void AddSpecPath(CLI::App* command, std::vector<std::string>* spec_path) {
  command->add_option("--spec-path", *spec_path, "Folder with your own models/, clusters/, ...; looked at first")
      ->type_name("DIR")
      ->check(NotEmpty());
}

void AddSpec(CLI::App* command, SpecArguments* spec) {
  command->add_option("spec", spec->spec, "Run to read (.txtpb)")->required()->type_name("FILE")->check(NotEmpty());
  command->add_option("--set", spec->overrides, "Override a field: parallelism.tp=4; may be repeated")
      ->type_name("PATH=VALUE")
      ->check(NotEmpty());
  AddSpecPath(command, &spec->spec_path);
}

void AddOutput(CLI::App* command, std::string* output) {
  command->add_option("-o,--output", *output, "Write here instead of to standard output")
      ->type_name("FILE")
      ->check(NotEmpty());
}

// `calibrate import | show | diff`. The arguments must outlive the parse.
struct CalibrateCommands {
  CalibrateImportArguments import;
  CalibrateShowArguments show;
  CalibrateDiffArguments diff;

  void Add(CLI::App* app, int* code) {
    CLI::App* calibrate = app->add_subcommand("calibrate", "Fit, print and compare profiles (docs/calibration.md)");
    calibrate->require_subcommand(1);
    CLI::App* import_command = calibrate->add_subcommand("import", "Fit a profile to tables of measured kernels");
    const auto text = [&](const char* option, std::string* value, const char* help) {
      return import_command->add_option(option, *value, help)->check(NotEmpty());
    };
    text("--gemm-csv", &import.gemm_csv, "Measured GEMMs")->type_name("FILE");
    text("--attention-csv", &import.attention_csv, "Measured attention kernels")->type_name("FILE");
    text("--collectives-csv", &import.collectives_csv, "Measured collectives")->type_name("FILE");
    text("--nccl-tests", &import.nccl_tests, "What a program of nccl-tests printed")->type_name("LOG");
    text("--cluster", &import.cluster, "Of a log: where it ran")->type_name("PRESET");
    text("--collective", &import.collective, "Of a log: what it measured, if it does not say so");
    text("--nccl-version", &import.nccl_version, "Of a log: NCCL's version, if it does not say so");
    text("--accelerator", &import.accelerator, "Of kernels: the accelerator that was measured")->type_name("PRESET");
    import_command
        ->add_option(
            "--base", import.base,
            "Profile whose other constants are kept: a preset or a .txtpb; of collectives a preset of nccl_times")
        ->required()
        ->type_name("PROFILE")
        ->check(NotEmpty());
    import_command
        ->add_option("--gpu", import.gpus,
                     "Rows whose gpu begins so; may be repeated; default: names and aliases of the accelerator")
        ->type_name("PREFIX")
        ->check(NotEmpty());
    import_command->add_option("--keep", import.keep, "Constant of GEMM that stays as the base has it; may be repeated")
        ->type_name("CONSTANT")
        ->check(NotEmpty());
    import_command->add_flag("--json", import.json, "Print the report as JSON");
    AddSpecPath(import_command, &import.spec_path);
    import_command->add_option("-o,--output", import.output, "Write the fitted profile here")
        ->type_name("FILE")
        ->check(NotEmpty());
    import_command->callback([this, code] { *code = orrery::cli::CalibrateImport(import); });
    CLI::App* show_command = calibrate->add_subcommand("show", "Print every constant of a profile with its source");
    show_command->add_option("profile", show.profile, "A preset or a .txtpb")->required()->check(NotEmpty());
    show_command->add_flag("--json", show.json, "Print JSON");
    AddSpecPath(show_command, &show.spec_path);
    show_command->callback([this, code] { *code = orrery::cli::CalibrateShow(show); });
    CLI::App* diff_command = calibrate->add_subcommand("diff", "Print the constants in which two profiles differ");
    diff_command->add_option("left", diff.left, "A preset or a .txtpb")->required()->check(NotEmpty());
    diff_command->add_option("right", diff.right, "A preset or a .txtpb")->required()->check(NotEmpty());
    diff_command->add_flag("--json", diff.json, "Print JSON");
    AddSpecPath(diff_command, &diff.spec_path);
    diff_command->callback([this, code] { *code = orrery::cli::CalibrateDiff(diff); });
  }
};

// `schedule list | show | eval`. The arguments must outlive the parse.
struct ScheduleCommands {
  bool list_json = false;
  std::string list_output;
  ScheduleShowArguments show;
  ScheduleEvalArguments eval;
  ScheduleOptimizeArguments optimize;

  void Add(CLI::App* app, int* code) {
    CLI::App* schedule =
        app->add_subcommand("schedule", "Pipeline schedules: list, show, evaluate, optimize (docs/schedules.md)");
    schedule->require_subcommand(1);
    CLI::App* list_command = schedule->add_subcommand("list", "Print the schedules that can be generated");
    list_command->add_flag("--json", list_json, "Print JSON");
    AddOutput(list_command, &list_output);
    list_command->callback([this, code] { *code = orrery::cli::ScheduleList(list_json, list_output); });
    CLI::App* show_command = schedule->add_subcommand("show", "Generate a schedule, draw it, and say what it costs");
    show_command->add_option("name", show.family, "As `schedule list` prints it")->required()->check(NotEmpty());
    AddShowParameters(show_command);
    AddView(show_command, &show.view);
    show_command->callback([this, code] { *code = orrery::cli::ScheduleShow(show); });
    CLI::App* eval_command = schedule->add_subcommand("eval", "Draw a table of actions, and say what it costs");
    eval_command->add_option("table", eval.table, "PyTorch's notation, a row per rank (.csv)")
        ->required()
        ->type_name("FILE")
        ->check(NotEmpty());
    AddView(eval_command, &eval.view);
    eval_command->callback([this, code] { *code = orrery::cli::ScheduleEval(eval); });
    CLI::App* optimize_command = schedule->add_subcommand(
        "optimize", "Search the best order under a memory limit; print a bound that none can beat");
    AddOptimizeParameters(optimize_command);
    AddView(optimize_command, &optimize.view);
    optimize_command->callback([this, code] { *code = orrery::cli::ScheduleOptimize(optimize); });
  }

  void AddOptimizeParameters(CLI::App* command) {
    command->add_option("--ranks", optimize.ranks, "Pipeline ranks; default: 4")->check(CLI::Range(1, (1 << 14) - 1));
    command->add_option("--microbatches", optimize.micro_batches, "Micro-batches; default: 8")
        ->check(CLI::Range(1, 1 << 14));
    command
        ->add_option("--memory-limit", optimize.memory_limit,
                     "Micro-batches whose activations a rank may hold (M), at least 1; default: no limit")
        ->type_name("NUMBER")
        ->check(NotEmpty());
    command
        ->add_option("--objective", optimize.objective,
                     "makespan, or span: last end - first start of the rank with the longest; default: makespan")
        ->check(NotEmpty());
    command
        ->add_option("--placement", optimize.placement,
                     "loop (one stage per rank), v (two of half the cost) or all; default: all")
        ->check(NotEmpty());
    command->add_option("--effort", optimize.effort, "Million passes that are timed or bounded; default: 400")
        ->check(CLI::Range(0, 1'000'000));
  }

  void AddShowParameters(CLI::App* command) {
    const auto add = [&](const char* flag, std::int32_t* value, const char* help) {
      command->add_option(flag, *value, help)->check(CLI::Range(1, 1 << 30));
    };
    add("--ranks", &show.ranks, "Pipeline ranks; default: 4");
    add("--chunks", &show.chunks, "Stages per rank; default: what the schedule has, 2 where it is free");
    add("--microbatches", &show.micro_batches, "Micro-batches; default: 8");
    add("--group-size", &show.group_size, "Micro-batches in a row per chunk (interleaved); default: the schedule's");
    add("--slices", &show.slices, "Slices per micro-batch (sequence-sliced); default: 1");
    add("--pipelines", &show.pipelines, "Copies of the model (Chimera); default: the schedule's");
    command
        ->add_option("--memory-limit", show.memory_limit,
                     "Micro-batches whose activations a rank may hold (M), at least 1 (automatic schedules)")
        ->type_name("NUMBER")
        ->check(NotEmpty());
  }

  static void AddView(CLI::App* command, ScheduleView* view) {
    command
        ->add_option("--costs", view->costs,
                     "F=1,I=1,W=1,comm=0.1,block=3: of a pass of one stage, a message, a fused block; B for I + W")
        ->type_name("NAME=NUMBER,...")
        ->check(NotEmpty());
    command->add_option("--stage-costs", view->stage_costs, "Costs by stage: columns stage, F, I, W (.csv)")
        ->type_name("FILE")
        ->check(NotEmpty());
    command->add_option("--format", view->format, "text, torch-csv, torch-comms-csv, json or svg; default: text")
        ->check(NotEmpty());
    command->add_flag("--json", view->json, "Print JSON, as --format json");
    AddOutput(command, &view->output);
  }
};

// `topology show | route | import`. The arguments must outlive the parse.
struct TopologyCommands {
  TopologyShowArguments show;
  TopologyRouteArguments route;
  TopologyImportArguments import;

  void Add(CLI::App* app, int* code) {
    CLI::App* topology =
        app->add_subcommand("topology", "Clusters as graphs: show, route, import (docs/topology_import.md)");
    topology->require_subcommand(1);
    CLI::App* show_command = topology->add_subcommand("show", "Count, measure and draw what a cluster is made of");
    show_command->add_option("cluster", show.cluster.name, "A preset or a .txtpb")->required()->check(NotEmpty());
    AddCluster(show_command, &show.cluster);
    show_command->add_option("--format", show.format, "text, json, dot or svg; default: text")->check(NotEmpty());
    show_command->add_flag("--json", show.json, "Print JSON, as --format json");
    AddOutput(show_command, &show.output);
    show_command->callback([this, code] { *code = orrery::cli::TopologyShow(show); });
    AddRoute(topology, code);
    AddImport(topology, code);
  }

  static void AddCluster(CLI::App* command, ClusterArguments* cluster) {
    command->add_option("--set", cluster->overrides, "Override a field: fabric.oversubscription=2; may be repeated")
        ->type_name("PATH=VALUE")
        ->check(NotEmpty());
    command->add_option("--nodes", cluster->nodes, "As --set nodes=N")->check(CLI::Range(1, 10'000'000));
    AddSpecPath(command, &cluster->spec_path);
  }

  void AddRoute(CLI::App* topology, int* code) {
    CLI::App* command = topology->add_subcommand("route", "The links between two GPUs, and what they were chosen from");
    route.cluster.name = "megascale-clos";
    command
        ->add_option("--cluster", route.cluster.name, "A preset or a .txtpb; default: megascale-clos, of 12,288 GPUs")
        ->check(NotEmpty());
    command->add_option("--from", route.from, "gpu:3, or a device's name")
        ->required()
        ->type_name("GPU")
        ->check(NotEmpty());
    command->add_option("--to", route.to, "gpu:9001, or a device's name")
        ->required()
        ->type_name("GPU")
        ->check(NotEmpty());
    command->add_option("--flow", route.flow, "Tells apart transfers between the two (hashed routing); default: 0")
        ->check(CLI::Range(0, 1'000'000));
    command->add_flag("--pxn,!--no-pxn", route.pxn, "NVLink to a GPU on the destination's rail first; default: yes");
    command->add_option("--without", route.without, "Links that are dead: all of a device's; may be repeated")
        ->type_name("DEVICE[,DEVICE]|railN")
        ->check(NotEmpty());
    AddCluster(command, &route.cluster);
    command->add_flag("--json", route.json, "Print JSON");
    AddOutput(command, &route.output);
    command->callback([this, code] { *code = orrery::cli::TopologyRoute(route); });
  }

  void AddImport(CLI::App* topology, int* code) {
    CLI::App* command = topology->add_subcommand("import", "Make a cluster of files that describe one");
    const auto add = [&](const char* option, std::string* file, const char* help) {
      command->add_option(option, *file, help)->type_name("FILE")->check(NotEmpty());
    };
    add("--nccl-xml", &import.nccl_xml, "A node: NCCL's topology file (NCCL_TOPO_DUMP_FILE)");
    add("--nvidia-smi", &import.nvidia_smi, "A node: what `nvidia-smi topo -m` prints");
    add("--ibnetdiscover", &import.ibnetdiscover, "The fabric: what `ibnetdiscover` prints, or a .net file of ibsim");
    add("--nccl-graph", &import.nccl_graph, "Channels that NCCL found (NCCL_GRAPH_DUMP_FILE), to stand beside them");
    command->add_option("--accelerator", import.accelerator, "The GPU, where the files do not tell")
        ->type_name("PRESET")
        ->check(NotEmpty());
    command->add_option("--like", import.like, "Cluster whose links say what no file does; default: by accelerator")
        ->type_name("PRESET")
        ->check(NotEmpty());
    command->add_option("--nodes", import.nodes, "Nodes, without a fabric; default: 1")
        ->check(CLI::Range(1, 10'000'000));
    command->add_option("--gpu-hosts", import.gpu_hosts, "Hosts with GPUs, by how their names begin; may be repeated")
        ->type_name("PREFIX")
        ->check(NotEmpty());
    command->add_flag("--json", import.json, "Print what was found and assumed as JSON");
    AddSpecPath(command, &import.spec_path);
    command->add_option("-o,--output", import.output, "Write the cluster here")->type_name("FILE")->check(NotEmpty());
    command->callback([this, code] { *code = orrery::cli::TopologyImport(import); });
  }
};

// Flags that are sugar for --set simulation.*.
void AddSimulationFlags(CLI::App* command, SpecArguments* spec) {
  const auto sugar = [&](const char* flag, const char* field,
                         const std::vector<std::pair<std::string, std::string>>& values, const char* help) {
    std::vector<std::string> names;
    for (const auto& value : values) names.push_back(value.first);
    command
        ->add_option_function<std::string>(
            flag,
            [spec, field, values](const std::string& given) {
              for (const auto& [name, value] : values) {
                if (name == given) spec->overrides.push_back(std::string(field) + "=" + value);
              }
            },
            help)
        ->check(CLI::IsMember(names));
  };
  sugar("--fold", "simulation.fold", {{"on", "ON"}, {"off", "OFF"}},
        "Simulate one rank of each class of ranks that cannot differ (on), or every rank (off)");
  sugar("--granularity", "simulation.granularity", {{"chunk", "CHUNK"}, {"operator", "OPERATOR"}},
        "One operation per pass of a stage, or per kernel");
  sugar("--engine", "simulation.engine", {{"worklist", "WORKLIST"}, {"queue", "EVENT_QUEUE"}},
        "How the programs are evaluated; the answer is the same");
  sugar("--network", "simulation.network", {{"analytic", "ANALYTIC"}, {"flow", "FLOW"}},
        "Transfers take the time that they would take alone, or share the links of the cluster");
  sugar("--overlap", "simulation.overlap", {{"static", "STATIC"}, {"dynamic", "DYNAMIC"}},
        "Communication and compute side by side slow each other down by fixed factors, or for as long as they do");
  command->add_option_function<std::string>(
      "--iterations", [spec](const std::string& given) { spec->overrides.push_back("simulation.iterations=" + given); },
      "Iterations to replay");
}

void AddSweep(CLI::App* app, SweepArguments* sweep, int* code) {
  CLI::App* command = app->add_subcommand("sweep", "Predict many runs: one spec with fields varied (docs/sweep.md)");
  AddSpec(command, &sweep->spec);
  command
      ->add_option("--vary", sweep->vary,
                   "Values of a field: tp=1,2,4, microbatches=8:64:*2, schedule=all; may be repeated, for every "
                   "combination")
      ->type_name("FIELD=VALUE,...")
      ->check(NotEmpty());
  command->add_option("--list", sweep->list, "Points as a table: the header names fields, one row per point (.csv)")
      ->type_name("FILE")
      ->check(NotEmpty());
  command->add_flag("--json", sweep->json, "One JSON object per line instead of CSV");
  command->add_option("--threads", sweep->threads, "Points side by side; default: as many as the machine can")
      ->check(CLI::Range(1, 1024));
  command->add_option("--top", sweep->top, "Rows of the table of the best at the end, on standard error; default: 10")
      ->check(CLI::Range(0, 1'000'000));
  CLI::Option* resume = command->add_flag("--resume", sweep->resume, "Go on behind the rows that FILE holds already");
  AddOutput(command, &sweep->output);
  resume->needs(command->get_option("--output"));
  command->callback([sweep, code] { *code = orrery::cli::Sweep(*sweep); });
}

void AddCollective(CLI::App* app, CollectiveArguments* collective, int* code) {
  CLI::App* command = app->add_subcommand("collective", "Predict a collective over sizes (docs/collectives.md)");
  const auto text = [&](const char* option, std::string* value, const char* help) {
    return command->add_option(option, *value, help)->check(NotEmpty());
  };
  const auto number = [&](const char* option, std::int64_t* value, std::int64_t most, const char* help) {
    command->add_option(option, *value, help)->check(CLI::Range(std::int64_t{1}, most));
  };
  constexpr std::int64_t kMany = 100'000'000;
  text("collective", &collective->collective,
       "all_reduce, reduce_scatter, all_gather, broadcast, reduce, alltoall, sendrecv, expert_dispatch or "
       "expert_combine")
      ->required();
  text("--cluster", &collective->cluster.name, "Where it runs: a preset or a .txtpb")->required()->type_name("CLUSTER");
  text("--nccl-version", &collective->version, "Default: of the time when the GPUs were new");
  number("--nodes", &collective->nodes, kMany, "Nodes (NVLink domains); default: as many as the GPUs need");
  number("--gpus", &collective->gpus, kMany, "GPUs, spread evenly; default: all of the nodes");
  number("--channels", &collective->channels, 64, "Default: NCCL's search");
  command->add_option("--sizes", collective->sizes, "FROM:TO:FACTOR, FROM:TO:+STEP or a list; default: 8:16G:2")
      ->check(NotEmpty());
  text("--algorithm", &collective->algorithm,
       "Ring, Tree, NVLS, NVLSTree, ...; default: NCCL's choice; of alltoall also Hierarchical: first inside nodes, "
       "then "
       "along rails");
  text("--protocol", &collective->protocol, "LL, LL128 or Simple; default: NCCL's choice");
  command->add_flag("--sharp", collective->sharp, "Switches reduce (NCCL_COLLNET_ENABLE)");
  command
      ->add_option("--network", collective->network,
                   "analytic: by formulas, as if the GPUs left over ran such groups, too; flow: alone, or with "
                   "--concurrent-groups, on the links of the cluster; default: analytic")
      ->check(CLI::IsMember({"analytic", "flow"}));
  number("--concurrent-groups", &collective->groups, 65536, "Groups at once, side by side (flow); default: 1");
  number("--node-stride", &collective->node_stride, kMany, "A group is on every so-manieth node (flow); default: 1");
  text("--tokens", &collective->tokens, "Of experts: tokens of a rank, as --sizes");
  number("--hidden", &collective->hidden, kMany, "Of experts: elements of a token");
  number("--top-k", &collective->top_k, 65536, "Of experts: that a token goes to");
  number("--experts", &collective->experts, kMany, "Of experts: all of the layer");
  number("--max-nodes", &collective->max_nodes, kMany, "Of experts: nodes that a token goes to; default: any number");
  command
      ->add_option("--imbalance", collective->imbalance,
                   "Of experts: the most loaded rank's tokens over the mean; default: 1")
      ->check(CLI::Range(1.0, 1e6));
  text("--dtype", &collective->data_type, "Of experts: bf16, fp8 (with scales), fp16 or fp32; default: bf16");
  text("--transport", &collective->transport, "Of experts: nccl, hierarchical or a preset (deepep-v1); default: nccl");
  command->add_flag("--low-latency", collective->low_latency, "Of experts: the preset's low-latency kernels");
  command
      ->add_option("--set", collective->cluster.overrides,
                   "Override a field of the cluster: fabric.routing=HASHED; may be repeated")
      ->type_name("PATH=VALUE")
      ->check(NotEmpty());
  command->add_flag("--json", collective->json, "Print JSON");
  AddSpecPath(command, &collective->cluster.spec_path);
  AddOutput(command, &collective->output);
  command->callback([collective, code] { *code = orrery::cli::Collective(*collective); });
}

int Main(int argc, char** argv) {
  CLI::App app{"Orrery: a discrete-event simulator of LLM training clusters"};
  app.set_version_flag("--version", "orrery " ORRERY_VERSION);
  app.require_subcommand(1);
  int code = orrery::cli::kDone;

  SimulateArguments simulate;
  CLI::App* simulate_command = app.add_subcommand("simulate", "Predict a training run");
  AddSpec(simulate_command, &simulate.spec);
  AddSimulationFlags(simulate_command, &simulate.spec);
  CLI::Option* json = simulate_command->add_flag("--json", simulate.json, "Print JSON (docs/results.md)");
  simulate_command
      ->add_flag("--no-simulator", simulate.no_simulator, "Leave the simulator's own figures out of the JSON")
      ->needs(json);
  simulate_command
      ->add_option("--report-links", simulate.report_links,
                   "With --network=flow: so many of the busiest links, what loads them and whom they slow")
      ->check(CLI::Range(1, 100000))
      ->type_name("N");
  CLI::Option* trace =
      simulate_command
          ->add_option("--trace", simulate.trace, "Write a Chrome/Perfetto timeline; gzip where it ends in .gz")
          ->type_name("FILE")
          ->check(NotEmpty());
  simulate_command
      ->add_option("--trace-ranks", simulate.trace_ranks, "Ranks of the timeline; default: one per pipeline rank")
      ->delimiter(',')
      ->type_name("RANK,...")
      ->needs(trace);
  AddOutput(simulate_command, &simulate.output);
  simulate_command->callback([&] { code = orrery::cli::Simulate(simulate); });

  SweepArguments sweep;
  AddSweep(&app, &sweep, &code);

  MemoryArguments memory;
  CLI::App* memory_command =
      app.add_subcommand("memory", "Say whether a run fits in memory, what holds it, and what would make it fit");
  AddSpec(memory_command, &memory.spec);
  memory_command->add_flag("--json", memory.json, "Print JSON (docs/memory.md)");
  AddOutput(memory_command, &memory.output);
  memory_command->callback([&] { code = orrery::cli::Memory(memory); });

  CLI::App* spec_command = app.add_subcommand("spec", "Presets and specs");
  spec_command->require_subcommand(1);
  SpecListArguments list;
  CLI::App* list_command = spec_command->add_subcommand("list", "Print the presets");
  list_command->add_option(
      "kind", list.kind,
      "accelerators, clusters, expert_transports, models, nccl, nccl_times, profiles or software; default: all");
  AddSpecPath(list_command, &list.spec_path);
  list_command->callback([&] { code = orrery::cli::SpecList(list); });
  std::string spec_output;
  CLI::App* new_command = spec_command->add_subcommand("new", "Print a commented run to start from");
  AddOutput(new_command, &spec_output);
  new_command->callback([&] { code = orrery::cli::SpecNew(spec_output); });
  SpecArguments check;
  CLI::App* check_command = spec_command->add_subcommand("check", "Report everything that is wrong with a run");
  AddSpec(check_command, &check);
  check_command->callback([&] { code = orrery::cli::SpecCheck(check); });
  SpecArguments resolve;
  CLI::App* resolve_command = spec_command->add_subcommand("resolve", "Print a run with every default made explicit");
  AddSpec(resolve_command, &resolve);
  AddOutput(resolve_command, &spec_output);
  resolve_command->callback([&] { code = orrery::cli::SpecResolve(resolve, spec_output); });

  ValidateArguments validate;
  CLI::App* validate_command = app.add_subcommand("validate", "Print predicted beside measured");
  validate_command
      ->add_option("kind", validate.kind,
                   "What the table records: runs, kernels, attention, collectives, memory or schedules")
      ->required();
  validate_command->add_option("file", validate.file, "The table (.csv)")->required()->type_name("FILE");
  validate_command->add_option("--where", validate.where, "Rows whose cell begins so; may be repeated")
      ->type_name("COLUMN=PREFIX");
  validate_command
      ->add_option("--by", validate.by, "Column to group by; default: source, of kernels gpu, dtype, library")
      ->type_name("COLUMN");
  CLI::Option* as_json = validate_command->add_flag("--json", validate.json, "Print JSON");
  validate_command->add_flag("--csv", validate.csv, "Print one line per predicted row")->excludes(as_json);
  validate_command->add_option("--max-median", validate.max_median, "Exit 1 where the median |error| exceeds this")
      ->type_name("FRACTION");
  validate_command->add_option("--max-p90", validate.max_p90, "Exit 1 where the 90th percentile exceeds this")
      ->type_name("FRACTION");
  validate_command
      ->add_option("--max-mismatches", validate.max_mismatches,
                   "Of schedules: exit 1 where more figures or orders differ than this")
      ->type_name("COUNT");
  validate_command
      ->add_option("--threads", validate.threads, "Rows predicted side by side; default: as many as the machine can")
      ->check(CLI::Range(1, 1024));
  validate_command
      ->add_option("--expected-errors", validate.expected_errors,
                   "Write the errors by family of runs here: what simulate prints as expected error")
      ->type_name("FILE")
      ->check(NotEmpty());
  AddSpecPath(validate_command, &validate.spec_path);
  AddOutput(validate_command, &validate.output);
  validate_command->callback([&] { code = orrery::cli::Validate(validate); });

  ScheduleCommands schedule;
  schedule.Add(&app, &code);

  CalibrateCommands calibrate;
  calibrate.Add(&app, &code);

  CollectiveArguments collective;
  AddCollective(&app, &collective, &code);

  TopologyCommands topology;
  topology.Add(&app, &code);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 prints help and version through exceptions as well; its own codes for errors become ours.
    std::ostringstream text;
    const int exit = app.exit(error, std::cout, text);
    if (exit == 0) return orrery::cli::kDone;
    std::cerr << "error: " << orrery::cli::PrintableLines(text.str());
    return orrery::cli::kBadInput;
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "internal error (please report it): " << error.what() << "\n";
    return orrery::cli::kBug;
  }
}
