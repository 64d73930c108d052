#include "proto/defaults.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/suggest.h"
#include "proto/layer_split.h"
#include "proto/limits.h"
#include "proto/rules.h"

namespace orrery::spec {
namespace {

// Sets run.message.field to `value` unless it is there.
#define ORRERY_DEFAULT(message, field, value)                     \
  do {                                                            \
    if (!(message)->has_##field()) (message)->set_##field(value); \
  } while (false)

// The same from the software level's defaults. Where the level lacks the field, the rules say so there, and once is
// enough.
#define ORRERY_DEFAULT_FROM(prefix, message, field, level)                                                       \
  do {                                                                                                           \
    if (!(message)->has_##field()) {                                                                             \
      (level).has_##field() ? (message)->set_##field((level).field()) : diagnostics->MarkBad(prefix "." #field); \
    }                                                                                                            \
  } while (false)

// tp pp cp, or 0 where a degree is out of its range (the rules report that).
std::int64_t ModelParallelSize(const v1::Parallelism& parallelism) {
  std::int64_t size = 1;
  for (const std::int64_t degree : {parallelism.tp(), parallelism.pp(), parallelism.cp()}) {
    constexpr std::int64_t kMaxDegree = 1 << 20;  // three of them fit an int64
    if (degree < 1 || degree > kMaxDegree) return 0;
    size *= degree;
  }
  return size;
}

void FillWorld(v1::Parallelism* parallelism, const Origins& origins, Diagnostics* diagnostics) {
  const std::int64_t replica = ModelParallelSize(*parallelism);
  if (replica == 0) {
    // Nothing can be derived, and nothing more is to be said about what would have been.
    for (const char* path : {"parallelism.dp", "parallelism.gpus"}) {
      if (!origins.Has(path)) diagnostics->MarkBad(path);
    }
    return;
  }
  if (!parallelism->has_dp() && parallelism->has_gpus() && parallelism->gpus() >= 1) {
    if (parallelism->gpus() % replica != 0) {
      diagnostics->Error(origins.Nearest("parallelism.gpus"), "parallelism.gpus",
                         absl::StrCat("found ", parallelism->gpus(), ", which does not divide by tp x pp x cp = ",
                                      parallelism->tp(), " x ", parallelism->pp(), " x ", parallelism->cp(), " = ",
                                      replica, "; allowed: a multiple of ", replica));
      diagnostics->MarkBad("parallelism.dp");
      return;
    }
    parallelism->set_dp(parallelism->gpus() / replica);
  }
  if (!parallelism->has_dp() && !parallelism->has_gpus()) parallelism->set_dp(1);
  std::int64_t world = 0;
  if (!parallelism->has_gpus()) {
    if (parallelism->dp() >= 1 && !__builtin_mul_overflow(replica, parallelism->dp(), &world)) {
      parallelism->set_gpus(world);
    } else {
      diagnostics->MarkBad("parallelism.gpus");  // dp is out of range and says so
    }
  }
  if (!parallelism->has_dp()) diagnostics->MarkBad("parallelism.dp");  // gpus is out of range and says so
}

void FillParallelism(const v1::SoftwareDefaults& level, std::int64_t stages_per_rank, v1::Parallelism* parallelism,
                     const Origins& origins, Diagnostics* diagnostics) {
  ORRERY_DEFAULT(parallelism, tp, 1);
  ORRERY_DEFAULT(parallelism, pp, 1);
  ORRERY_DEFAULT(parallelism, cp, 1);
  ORRERY_DEFAULT(parallelism, ep, 1);
  ORRERY_DEFAULT(parallelism, virtual_stages, stages_per_rank > 0 ? stages_per_rank : 1);
  FillWorld(parallelism, origins, diagnostics);
  ORRERY_DEFAULT_FROM("parallelism", parallelism, zero_stage, level);
  if (parallelism->has_dp()) {
    ORRERY_DEFAULT(parallelism, shard_ranks, parallelism->dp());
  } else if (!parallelism->has_shard_ranks()) {
    diagnostics->MarkBad("parallelism.shard_ranks");
  }
  if (parallelism->tp() == 1) ORRERY_DEFAULT(parallelism, sequence_parallel, false);
  ORRERY_DEFAULT_FROM("parallelism", parallelism, sequence_parallel, level);
}

// Stages of the pipeline, or 0 where a degree is out of its range.
std::int64_t Stages(const v1::Parallelism& parallelism) {
  constexpr std::int64_t kMost = 1 << 20;
  if (parallelism.pp() < 1 || parallelism.virtual_stages() < 1) return 0;
  if (parallelism.pp() > kMost / parallelism.virtual_stages()) return 0;
  return parallelism.pp() * parallelism.virtual_stages();
}

// Layers that divide are split equally, others as the software level does; checks.cc says where that does not exist.
void FillStages(const v1::Model& model, const v1::SoftwareDefaults& level, v1::Parallelism* parallelism,
                Diagnostics* diagnostics) {
  const std::int64_t stages = Stages(*parallelism);
  if (stages > 0 && model.layers() % stages == 0) ORRERY_DEFAULT(parallelism, layer_split, v1::EQUAL);
  ORRERY_DEFAULT_FROM("parallelism", parallelism, layer_split, level);
  if (parallelism->stage_layers_size() > 0) return;
  constexpr std::int64_t kMostLayers = 10000;
  if (stages == 0 || model.layers() < 1 || model.layers() > kMostLayers) {
    diagnostics->MarkBad("parallelism.stage_layers");  // what is out of its range says so
    return;
  }
  for (const std::int64_t layers : SplitLayers(parallelism->layer_split(), model.layers(), stages)) {
    parallelism->add_stage_layers(layers);
  }
}

// What follows from other fields. The level says how the host issues kernels, the profile what that takes.
void FillSoftware(const v1::HostProfile& host, v1::Software* software) {
  ORRERY_DEFAULT(software, split_message_mode, v1::EAGER);
  const v1::Constant& issue = software->host_issue() == v1::GRAPH_ISSUE ? host.graph_issue() : host.eager_issue();
  if (issue.has_value()) ORRERY_DEFAULT(software, issue_seconds, issue.value());
}

void FillTraining(const v1::SoftwareDefaults& level, v1::Training* training, Diagnostics* diagnostics) {
  ORRERY_DEFAULT(training, seq_len, 2048);
  ORRERY_DEFAULT(training, micro_batch, 1);
  ORRERY_DEFAULT_FROM("training", training, precision, level);
  if (training->precision() == v1::FP16 && level.has_fp16_gradient_type()) {
    ORRERY_DEFAULT(training, gradient_type, level.fp16_gradient_type());
  }
  ORRERY_DEFAULT_FROM("training", training, gradient_type, level);
  ORRERY_DEFAULT_FROM("training", training, recompute, level);
  ORRERY_DEFAULT_FROM("training", training, dropout, level);
  ORRERY_DEFAULT_FROM("training", training, optimizer, level);
  ORRERY_DEFAULT(training, data_seconds, 0);
  if (training->recompute() == v1::SELECTIVE && training->recompute_modules_size() == 0) {
    training->add_recompute_modules(v1::CORE_ATTENTION);
  }
}

// A table that stands in a file becomes part of the run.
void ReadSchedule(v1::Schedule* schedule, const Origins& origins, Diagnostics* diagnostics) {
  if (!schedule->has_file()) return;
  if (schedule->has_table()) {
    diagnostics->Error(origins.Nearest("schedule.file"), "schedule.file",
                       "stands beside schedule.table; allowed: one of them");
    diagnostics->MarkBad("schedule.file");
    return;
  }
  absl::StatusOr<std::string> text = ReadFile(schedule->file(), limits::kFileBytes);
  if (text.ok()) {
    schedule->set_table(*std::move(text));
    schedule->clear_file();
    return;
  }
  diagnostics->Error(origins.Nearest("schedule.file"), "schedule.file", std::string(text.status().message()));
  diagnostics->MarkBad("schedule.file");
}

void NameSchedule(const v1::SoftwareDefaults& level, const v1::Parallelism& parallelism, const Origins& origins,
                  v1::Schedule* schedule, Diagnostics* diagnostics) {
  ReadSchedule(schedule, origins, diagnostics);
  if (schedule->has_table()) ORRERY_DEFAULT(schedule, name, "table");
  if (parallelism.virtual_stages() > 1) ORRERY_DEFAULT(schedule, name, "interleaved-1f1b");
  if (level.has_schedule()) ORRERY_DEFAULT(schedule, name, level.schedule());
  if (!schedule->has_name()) diagnostics->MarkBad("schedule.name");
}

void FillPerturbation(const v1::Profile& profile, v1::Jitter* jitter, Diagnostics* diagnostics) {
  ORRERY_DEFAULT(jitter, mode, v1::NO_JITTER);
  if (profile.jitter_sigma().has_value()) ORRERY_DEFAULT(jitter, sigma, profile.jitter_sigma().value());
  if (!jitter->has_sigma()) diagnostics->MarkBad("perturbation.jitter.sigma");
  ORRERY_DEFAULT(jitter, seed, 1);
}

void FillSimulation(v1::Simulation* simulation) {
  ORRERY_DEFAULT(simulation, iterations, 3);
  ORRERY_DEFAULT(simulation, fold, v1::ON);
  ORRERY_DEFAULT(simulation, granularity, v1::CHUNK);
  ORRERY_DEFAULT(simulation, network, v1::ANALYTIC);
  ORRERY_DEFAULT(simulation, overlap, v1::STATIC);
  const bool needs_queue = simulation->network() == v1::FLOW || simulation->overlap() == v1::DYNAMIC;
  ORRERY_DEFAULT(simulation, engine, needs_queue ? v1::EVENT_QUEUE : v1::WORKLIST);
  ORRERY_DEFAULT(simulation, flops_convention, "model");
}

}  // namespace

void FillModelDefaults(const std::string& path, v1::Model* model, const Origins& origins, Diagnostics* diagnostics) {
  const std::string head_dim = JoinPath(path, "head_dim");
  if (!model->has_head_dim()) {
    const std::string heads = JoinPath(path, "heads");
    if (!model->has_hidden() || model->heads() < 1) {
      diagnostics->MarkBad(head_dim);  // what it derives from is missing or wrong, which is said elsewhere
    } else if (model->hidden() % model->heads() != 0) {
      diagnostics->Error(origins.Nearest(heads), heads,
                         absl::StrCat("found ", model->heads(), ", which does not divide hidden = ", model->hidden(),
                                      "; allowed: a divisor of ", model->hidden(), ", or a head_dim"));
      diagnostics->MarkBad(head_dim);
    } else {
      model->set_head_dim(model->hidden() / model->heads());
    }
  }
  constexpr std::int64_t kMaxHidden = 1 << 20;
  if (model->hidden() >= 1 && model->hidden() <= kMaxHidden) {
    ORRERY_DEFAULT(model, ffn_hidden, 4 * model->hidden());
  } else if (!model->has_ffn_hidden()) {
    diagnostics->MarkBad(JoinPath(path, "ffn_hidden"));
  }
  if (model->heads() >= 1) {
    ORRERY_DEFAULT(model, kv_heads, model->heads());
  } else if (!model->has_kv_heads()) {
    diagnostics->MarkBad(JoinPath(path, "kv_heads"));
  }
  ORRERY_DEFAULT(model, block, v1::SERIAL);
  ORRERY_DEFAULT(model, activation, v1::GELU);
  ORRERY_DEFAULT(model, gated_mlp, false);
  ORRERY_DEFAULT(model, positions, v1::LEARNED);
  ORRERY_DEFAULT(model, rotary_fraction, 1);
  ORRERY_DEFAULT(model, norm, v1::LAYER_NORM);
  ORRERY_DEFAULT(model, biases, true);
  ORRERY_DEFAULT(model, embedding_norm, false);
  ORRERY_DEFAULT(model, attention_window, 0);
  ORRERY_DEFAULT(model, tied_embeddings, true);
}

// Sets `field` of `link`, at `path`, unless it is there, to what `from` has in `like`. Where that is missing or out of
// its range, that is said there alone.
void FillLike(const v1::Link& from, const char* like, const char* field, const std::string& path, v1::Link* link,
              Diagnostics* diagnostics) {
  const google::protobuf::Reflection* const reflection = link->GetReflection();
  const google::protobuf::FieldDescriptor* const source = v1::Link::descriptor()->FindFieldByName(like);
  const google::protobuf::FieldDescriptor* const target = v1::Link::descriptor()->FindFieldByName(field);
  if (reflection->HasField(*link, target)) return;
  const double value = reflection->GetDouble(from, source);
  const v1::Rule& rule = RuleOf(source);
  if (reflection->HasField(from, source) && value >= rule.min() && value <= rule.max()) {
    reflection->SetDouble(link, target, value);
  } else {
    diagnostics->MarkBad(JoinPath(path, field));
  }
}

void FillMessageEfficiency(const std::string& path, v1::Link* link, Diagnostics* diagnostics) {
  FillLike(*link, "efficiency", "message_efficiency", path, link, diagnostics);
}

void FillLink(const v1::Link& from, const std::string& path, v1::Link* link, Diagnostics* diagnostics) {
  for (const char* field : {"bandwidth", "efficiency", "latency"}) {
    FillLike(from, field, field, path, link, diagnostics);
  }
}

// Fields of `path` that would follow from what is missing or out of its range are not judged: that says so itself.
void FillPcie(const std::string& path, const v1::Node& node, v1::Link* pcie, Diagnostics* diagnostics) {
  if (node.gpus() > 0 && node.nics() > 0 && node.nic().bandwidth() > 0) {
    const double nics_per_gpu = static_cast<double>(node.nics()) / static_cast<double>(node.gpus());
    ORRERY_DEFAULT(pcie, bandwidth, node.nic().bandwidth() * std::max(1.0, nics_per_gpu));
  } else if (!pcie->has_bandwidth()) {
    diagnostics->MarkBad(JoinPath(path, "pcie.bandwidth"));
    diagnostics->MarkBad(JoinPath(path, "cpu_link.bandwidth"));
  }
  ORRERY_DEFAULT(pcie, efficiency, 1);
  ORRERY_DEFAULT(pcie, latency, 0);
}

void FillNodeDefaults(const std::string& path, v1::Node* node, Diagnostics* diagnostics) {
  if (node->has_nic()) FillMessageEfficiency(JoinPath(path, "nic"), node->mutable_nic(), diagnostics);
  std::map<std::int64_t, std::int64_t> links_of_gpu;
  for (const v1::NvlinkPair& pair : node->nvlink_pair()) {
    links_of_gpu[pair.a()] += std::clamp<std::int64_t>(pair.links(), 0, 1024);
    links_of_gpu[pair.b()] += std::clamp<std::int64_t>(pair.links(), 0, 1024);
  }
  ORRERY_DEFAULT(node, nvswitches, links_of_gpu.empty() ? 1 : 0);
  std::int64_t most_links = std::clamp<std::int64_t>(node->nvswitches(), 0, 1024);
  for (const auto& [gpu, links] : links_of_gpu) most_links = std::max(most_links, links);
  ORRERY_DEFAULT(node, nvlinks, most_links);
  FillPcie(path, *node, node->mutable_pcie(), diagnostics);
  FillMessageEfficiency(JoinPath(path, "pcie"), node->mutable_pcie(), diagnostics);
  ORRERY_DEFAULT(node, pcie_switches, 0);
  ORRERY_DEFAULT(node, hosts, 1);
  ORRERY_DEFAULT(node, cpus, std::clamp<std::int64_t>(node->hosts(), 1, 1024));
  FillLink(node->pcie(), JoinPath(path, "cpu_link"), node->mutable_cpu_link(), diagnostics);
  FillMessageEfficiency(JoinPath(path, "cpu_link"), node->mutable_cpu_link(), diagnostics);
  ORRERY_DEFAULT(node, cpu_vendor, v1::INTEL);
  // Without NVLink, GPUs of a node exchange data over PCIe.
  const std::string nvlink = JoinPath(path, "nvlink");
  if (!node->has_nvlink() && node->nvlinks() == 0) {
    FillLink(node->pcie(), nvlink, node->mutable_nvlink(), diagnostics);
    FillLike(node->pcie(), "message_efficiency", "message_efficiency", nvlink, node->mutable_nvlink(), diagnostics);
    if (node->pcie().has_source()) node->mutable_nvlink()->set_source(node->pcie().source());
  }
  if (node->has_nvlink()) FillMessageEfficiency(nvlink, node->mutable_nvlink(), diagnostics);
}

void FillFabricDefaults(const std::string& path, const v1::Link& nic, v1::Fabric* fabric, Diagnostics* diagnostics) {
  ORRERY_DEFAULT(fabric, rail_optimised, true);
  ORRERY_DEFAULT(fabric, separate_rails, false);
  ORRERY_DEFAULT(fabric, planes, 1);
  if (fabric->planes() > 0 && nic.bandwidth() > 0) {
    ORRERY_DEFAULT(fabric, uplink_bandwidth, nic.bandwidth() / static_cast<double>(fabric->planes()));
  } else if (!fabric->has_uplink_bandwidth()) {
    diagnostics->MarkBad(JoinPath(path, "uplink_bandwidth"));
  }
  ORRERY_DEFAULT(fabric, switch_ports, 64);
  ORRERY_DEFAULT(fabric, nodes_per_pod, 0);
  ORRERY_DEFAULT(fabric, pod_oversubscription, 1);
  ORRERY_DEFAULT(fabric, routing, v1::ADAPTIVE);
  ORRERY_DEFAULT(fabric, hash_seed, 1);
}

void FillCluster(v1::Run* run, const Origins& origins, Diagnostics* diagnostics) {
  const std::string& accelerator = run->cluster().accelerator().preset();
  // A cluster that describes its nodes, fabric or graph is the user's own.
  if (run->cluster().has_preset() || run->cluster().has_node() || run->cluster().has_fabric() ||
      run->cluster().has_graph() || accelerator.empty()) {
    return;
  }
  std::vector<std::string> known;
  for (const v1::ClusterDefault& entry : run->software().defaults().clusters()) {
    if (entry.accelerator() == accelerator) {
      run->mutable_cluster()->set_preset(entry.cluster());
      // The default cluster holds the accelerator already.
      return;
    }
    known.push_back(entry.accelerator());
  }
  if (known.empty()) return;
  const std::string path = "cluster.accelerator.preset";
  diagnostics->Error(origins.Nearest(path), path,
                     absl::StrCat("found \"", accelerator, "\", for which software level ", run->software().name(),
                                  " has no default cluster; allowed: a cluster preset, or one of ",
                                  absl::StrJoin(known, ", "), orrery::DidYouMean(accelerator, known)));
  diagnostics->MarkBad("cluster");
}

void FillClusterDefaults(const std::string& path, v1::Cluster* cluster, Diagnostics* diagnostics) {
  if (cluster->has_node()) FillNodeDefaults(JoinPath(path, "node"), cluster->mutable_node(), diagnostics);
  for (int i = 0; i < cluster->more_nodes_size(); ++i) {
    v1::NodeGroup* group = cluster->mutable_more_nodes(i);
    if (!group->has_node()) continue;
    FillNodeDefaults(JoinPath(path, absl::StrCat("more_nodes[", i, "].node")), group->mutable_node(), diagnostics);
  }
  if (cluster->has_fabric()) {
    FillFabricDefaults(JoinPath(path, "fabric"), cluster->node().nic(), cluster->mutable_fabric(), diagnostics);
  }
  if (!cluster->has_graph()) return;
  ORRERY_DEFAULT(cluster->mutable_graph(), routing, v1::ADAPTIVE);
  ORRERY_DEFAULT(cluster->mutable_graph(), hash_seed, 1);
  for (int i = 0; i < cluster->graph().cable_size(); ++i) {
    v1::Cable* cable = cluster->mutable_graph()->mutable_cable(i);
    ORRERY_DEFAULT(cable, count, 1);
    if (!cable->has_link()) continue;
    FillMessageEfficiency(JoinPath(path, absl::StrCat("graph.cable[", i, "].link")), cable->mutable_link(),
                          diagnostics);
  }
}

void FillDefaults(const std::function<std::int64_t(const v1::Schedule&)>& stages_per_rank, v1::Run* run,
                  const Origins& origins, Diagnostics* diagnostics) {
  const v1::SoftwareDefaults& level = run->software().defaults();
  if (run->has_model() && level.has_tied_embeddings()) {
    ORRERY_DEFAULT(run->mutable_model(), tied_embeddings, level.tied_embeddings());
  }
  if (run->has_model()) FillModelDefaults("model", run->mutable_model(), origins, diagnostics);
  NameSchedule(level, run->parallelism(), origins, run->mutable_schedule(), diagnostics);
  FillParallelism(level, stages_per_rank ? stages_per_rank(run->schedule()) : 0, run->mutable_parallelism(), origins,
                  diagnostics);
  FillStages(run->model(), level, run->mutable_parallelism(), diagnostics);
  FillClusterDefaults("cluster", run->mutable_cluster(), diagnostics);
  if (run->has_software()) FillSoftware(run->cluster().accelerator().profile().host(), run->mutable_software());
  FillTraining(level, run->mutable_training(), diagnostics);
  ORRERY_DEFAULT(run->mutable_schedule(), group_size, run->parallelism().pp());
  FillPerturbation(run->cluster().accelerator().profile(), run->mutable_perturbation()->mutable_jitter(), diagnostics);
  FillSimulation(run->mutable_simulation());
}

void FillGlobalBatch(std::int64_t micro_batches, v1::Run* run, Diagnostics* diagnostics) {
  std::int64_t batch = 0;
  if (run->parallelism().dp() < 1 || run->training().micro_batch() < 1) {
    diagnostics->MarkBad("training.global_batch");  // what is missing or out of its range says so
  } else if (__builtin_mul_overflow(run->parallelism().dp(), run->training().micro_batch(), &batch) ||
             __builtin_mul_overflow(batch, micro_batches, &batch)) {
    run->mutable_training()->set_global_batch(std::numeric_limits<std::int64_t>::max());  // beyond its range
  } else {
    run->mutable_training()->set_global_batch(batch);
  }
}

#undef ORRERY_DEFAULT
#undef ORRERY_DEFAULT_FROM

}  // namespace orrery::spec
