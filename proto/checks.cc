#include "proto/checks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/limits.h"

namespace orrery::spec {
namespace {

using Paths = std::vector<std::string>;

class Checker {
 public:
  Checker(const v1::Run& run, const Origins& origins, Diagnostics* diagnostics)
      : run_(run), parallelism_(run.parallelism()), origins_(origins), diagnostics_(diagnostics) {}

  void Check() {
    CheckWorld();
    CheckCluster();
    CheckBatch();
    CheckTensorParallelism();
    CheckSequenceParallelism();
    CheckSharding();
    CheckPrecision();
    CheckStages();
    CheckMessages();
    CheckPeaks();
    CheckGemmProfile();
    CheckAttentionProfile();
    CheckAttention();
    CheckNetwork();
    CheckSlowGpus();
    CheckSlowLinks();
    CheckOverlapRules();
  }

 private:
  bool Good(const Paths& paths) const {
    for (const std::string& path : paths) {
      if (diagnostics_->IsBad(path)) return false;
    }
    return true;
  }

  void Fail(const Paths& paths, const std::string& message) { diagnostics_->ErrorAtWriter(origins_, paths, message); }

  void CheckWorld() {
    const Paths paths = {"parallelism.gpus", "parallelism.dp", "parallelism.tp", "parallelism.pp", "parallelism.cp"};
    if (!Good(paths)) return;
    const std::int64_t product = parallelism_.tp() * parallelism_.pp() * parallelism_.cp() * parallelism_.dp();
    if (parallelism_.gpus() != product) {
      Fail(paths, absl::StrCat("gpus = ", parallelism_.gpus(), " is not tp x pp x cp x dp = ", parallelism_.tp(), " x ",
                               parallelism_.pp(), " x ", parallelism_.cp(), " x ", parallelism_.dp(),
                               "; allowed: gpus = ", product));
    }
  }

  void CheckCluster() {
    const v1::Cluster& cluster = run_.cluster();
    const Paths paths = {"cluster.nodes",  "parallelism.gpus", "parallelism.dp",
                         "parallelism.tp", "parallelism.pp",   "cluster.node.gpus"};
    if (Good(paths)) {
      const std::int64_t gpus = cluster.nodes() * cluster.node().gpus();
      const std::int64_t needed = (parallelism_.gpus() + cluster.node().gpus() - 1) / cluster.node().gpus();
      if (gpus < parallelism_.gpus()) {
        Fail(paths, absl::StrCat("the cluster has ", cluster.nodes(), " nodes x ", cluster.node().gpus(), " GPUs = ",
                                 gpus, ", the run needs ", parallelism_.gpus(), "; allowed: cluster.nodes of at least ",
                                 needed, ", or a run on at most ", gpus, " GPUs"));
      }
    }
    if (Good({"cluster.node.nics", "cluster.node.gpus"}) && cluster.node().gpus() % cluster.node().nics() != 0 &&
        cluster.node().nics() % cluster.node().gpus() != 0) {
      Fail({"cluster.node.nics", "cluster.node.gpus"},
           absl::StrCat(cluster.node().nics(), " nics cannot be shared evenly by ", cluster.node().gpus(),
                        " gpus; allowed: a divisor or a multiple of ", cluster.node().gpus()));
    }
  }

  void CheckBatch() {
    const Paths paths = {"training.global_batch", "training.micro_batch", "parallelism.dp"};
    if (!Good(paths)) return;
    const std::int64_t unit = parallelism_.dp() * run_.training().micro_batch();
    if (run_.training().global_batch() % unit != 0) {
      Fail(paths, absl::StrCat("a global batch of ", run_.training().global_batch(),
                               " sequences does not divide into dp x micro_batch = ", parallelism_.dp(), " x ",
                               run_.training().micro_batch(), "; allowed: a multiple of ", unit));
    }
  }

  void CheckTensorParallelism() {
    if (!Good({"parallelism.tp"})) return;
    const auto divides = [&](const std::string& what, std::int64_t count) {
      const std::string path = absl::StrCat("model.", what);
      if (Good({path}) && count % parallelism_.tp() != 0) {
        Fail({"parallelism.tp", path}, absl::StrCat("tp = ", parallelism_.tp(), " does not divide ", path, " = ", count,
                                                    "; allowed: a divisor of ", count));
      }
    };
    divides("heads", run_.model().heads());
    CheckKeyValueHeads();
    divides("ffn_hidden", run_.model().ffn_hidden());
  }

  // Tensor-parallel ranks beyond the number of key and value heads hold copies of them.
  void CheckKeyValueHeads() {
    const Paths paths = {"model.kv_heads", "model.heads", "parallelism.tp"};
    if (!Good(paths)) return;
    const std::int64_t kv = run_.model().kv_heads();
    const std::int64_t tp = parallelism_.tp();
    if (run_.model().heads() % kv != 0) {
      Fail({"model.kv_heads", "model.heads"},
           absl::StrCat("kv_heads = ", kv, " does not divide heads = ", run_.model().heads(),
                        "; allowed: a divisor of ", run_.model().heads()));
    } else if (kv % tp != 0 && tp % kv != 0) {
      Fail(paths, absl::StrCat("kv_heads = ", kv, " can be neither shared nor copied evenly by tp = ", tp,
                               "; allowed: a divisor or a multiple of ", tp));
    }
  }

  void CheckSharding() {
    if (Good({"parallelism.shard_ranks", "parallelism.dp"}) && parallelism_.dp() % parallelism_.shard_ranks() != 0) {
      Fail({"parallelism.shard_ranks", "parallelism.dp"},
           absl::StrCat("shard_ranks = ", parallelism_.shard_ranks(), " does not divide dp = ", parallelism_.dp(),
                        "; allowed: a divisor of ", parallelism_.dp()));
    }
    if (Good({"parallelism.zero_stage", "parallelism.pp"}) && parallelism_.zero_stage() == 3 && parallelism_.pp() > 1) {
      Fail({"parallelism.zero_stage", "parallelism.pp"},
           absl::StrCat("zero_stage = 3 gathers parameters for every pass, pp = ", parallelism_.pp(),
                        " keeps them on a stage; allowed: zero_stage up to 2, or pp = 1"));
    }
  }

  void CheckPrecision() {
    if (Good({"training.precision"}) && run_.training().precision() == v1::FP8) {
      Fail({"training.precision"},
           "found FP8, which has kernel prices but no training recipe; allowed: FP16, BF16, FP32");
    }
    if (Good({"training.gradient_type"}) && run_.training().gradient_type() == v1::FP8) {
      Fail({"training.gradient_type"}, "found FP8; allowed: FP16, BF16, FP32");
    }
  }

  void CheckSequenceParallelism() {
    if (!Good({"parallelism.sequence_parallel", "parallelism.tp"}) || !parallelism_.sequence_parallel()) return;
    if (parallelism_.tp() == 1) {
      Fail({"parallelism.sequence_parallel", "parallelism.tp"},
           "sequence_parallel is true with tp = 1; allowed: false, or tp from 2");
    } else if (Good({"training.seq_len"}) && run_.training().seq_len() % parallelism_.tp() != 0) {
      Fail({"training.seq_len", "parallelism.tp"},
           absl::StrCat("a sequence of ", run_.training().seq_len(), " tokens cannot be sharded over tp = ",
                        parallelism_.tp(), " (sequence_parallel); allowed: a multiple of ", parallelism_.tp()));
    }
  }

  void CheckStages() {
    const std::int64_t chunks = parallelism_.virtual_stages();
    const Paths paths = {"parallelism.virtual_stages", "parallelism.pp", "model.layers"};
    if (!Good({"parallelism.virtual_stages", "parallelism.pp"})) return;
    if (chunks > 1 && parallelism_.pp() == 1) {
      Fail(paths, absl::StrCat("virtual_stages = ", chunks, " with pp = 1; allowed: 1, or pp from 2"));
    } else if (Good({"model.layers"})) {
      CheckStageLayers(parallelism_.pp() * chunks, chunks > 1 ? paths : Paths{"parallelism.pp", "model.layers"});
    }
  }

  void CheckStageLayers(std::int64_t stages, const Paths& paths) {
    const auto& layers = parallelism_.stage_layers();
    if (layers.empty()) {
      const std::string degrees =
          absl::StrCat("pp x virtual_stages = ", parallelism_.pp(), " x ", parallelism_.virtual_stages());
      if (Good({"parallelism.layer_split"}) && parallelism_.layer_split() != v1::EQUAL) {
        Fail(paths, absl::StrCat("model.layers = ", run_.model().layers(), " are too few for ", degrees, " with ",
                                 v1::LayerSplit_Name(parallelism_.layer_split()), "; allowed: fewer stages"));
      } else {
        Fail(paths, absl::StrCat("model.layers = ", run_.model().layers(), " do not divide by ", degrees,
                                 "; allowed: a product that divides ", run_.model().layers(),
                                 ", stage_layers, or another layer_split"));
      }
      return;
    }
    if (!Good({"parallelism.stage_layers"})) return;
    std::int64_t sum = 0;
    for (const std::int64_t count : layers) sum += count;
    if (layers.size() != stages || sum != run_.model().layers()) {
      Fail({"parallelism.stage_layers"}, absl::StrCat("lists ", layers.size(), " stages with ", sum,
                                                      " layers; allowed: pp x virtual_stages = ", stages,
                                                      " stages with model.layers = ", run_.model().layers()));
    }
  }

  // Scatter/gather cuts the tensor between two stages into tp equal parts; one stage sends none.
  void CheckMessages() {
    const Paths paths = {"parallelism.tp", "training.seq_len", "training.micro_batch", "model.hidden"};
    if (!Good(paths) || !Good({"software.scatter_gather", "parallelism.pp"})) return;
    if (!run_.software().scatter_gather() || parallelism_.pp() == 1) return;
    const std::int64_t tp = parallelism_.tp();
    // The factors may overflow together; their remainders cannot.
    const std::int64_t remainder = (run_.training().seq_len() % tp) * (run_.training().micro_batch() % tp) % tp *
                                   (run_.model().hidden() % tp) % tp;
    if (remainder != 0) {
      Fail(paths,
           absl::StrCat("pipeline messages of micro_batch x seq_len x hidden = ", run_.training().micro_batch(), " x ",
                        run_.training().seq_len(), " x ", run_.model().hidden(), " values cannot be cut into tp = ", tp,
                        " parts; allowed: a tp that divides their number, or software.scatter_gather: false"));
    }
  }

  void CheckPeaks() {
    std::set<v1::DataType> known;
    std::vector<std::string> names;
    const auto& peaks = run_.cluster().accelerator().peak();
    for (int i = 0; i < peaks.size(); ++i) {
      const std::string path = absl::StrCat("cluster.accelerator.peak[", i, "].data_type");
      if (!Good({path})) return;
      if (!known.insert(peaks[i].data_type()).second) {
        Fail({path}, absl::StrCat(v1::DataType_Name(peaks[i].data_type()), " is listed twice; allowed: once"));
      }
      names.push_back(v1::DataType_Name(peaks[i].data_type()));
    }
    if (Good({"training.precision", "cluster.accelerator.peak"}) && !known.contains(run_.training().precision())) {
      Fail({"training.precision", "cluster.accelerator.peak"},
           absl::StrCat("the accelerator states no peak for ", v1::DataType_Name(run_.training().precision()),
                        "; allowed: one of ", absl::StrJoin(names, ", ")));
    }
  }

  // A data type stands in one entry at most, and the run's in one of them.
  void CheckGemmProfile() {
    std::map<int, int> first;
    const auto& entries = run_.cluster().accelerator().profile().gemm();
    if (!Good({"cluster.accelerator.profile", "cluster.accelerator.profile.gemm"})) return;
    for (int i = 0; i < entries.size(); ++i) {
      const std::string path = absl::StrCat("cluster.accelerator.profile.gemm[", i, "].data_types");
      for (const int type : entries[i].data_types()) {
        const auto [it, is_new] = first.emplace(type, i);
        if (!is_new) {
          Fail({path},
               absl::StrCat(v1::DataType_Name(type), " is served already by gemm[", it->second, "]; allowed: once"));
        }
      }
    }
    if (entries.empty() || !Good({"training.precision"}) || first.contains(run_.training().precision())) return;
    std::vector<std::string> names;
    for (const auto& [type, entry] : first) names.push_back(v1::DataType_Name(type));
    Fail(
        {"training.precision", "cluster.accelerator.profile.gemm"},
        absl::StrCat("the accelerator's profile has no GEMM times for ", v1::DataType_Name(run_.training().precision()),
                     "; allowed: one of ", absl::StrJoin(names, ", ")));
  }

  void CheckAttentionProfile() {
    std::map<std::pair<int, int>, int> first;  // kernel, data type
    const auto& entries = run_.cluster().accelerator().profile().attention();
    for (int i = 0; i < entries.size(); ++i) {
      const std::string path = absl::StrCat("cluster.accelerator.profile.attention[", i, "].kernel");
      if (!Good({path})) continue;
      const std::string& name = v1::AttentionKernel_Name(entries[i].kernel());
      if (entries[i].kernel() == v1::UNFUSED) {
        Fail({path},
             "found UNFUSED, which is priced as GEMMs and a softmax; allowed: a fused kernel, as FLASH_ATTENTION_2");
        continue;
      }
      for (const int type : entries[i].data_types()) {
        const auto [it, is_new] = first.emplace(std::pair(entries[i].kernel(), type), i);
        if (!is_new) {
          Fail({path}, absl::StrCat(name, " is listed already by attention[", it->second, "] for ",
                                    v1::DataType_Name(type), "; allowed: once"));
        }
      }
    }
  }

  void CheckAttention() {
    if (!Good({"software.attention_kernel"})) return;
    const v1::AttentionKernel kernel = run_.software().attention_kernel();
    if (kernel == v1::UNFUSED) {
      if (Good({"model.attention_window"}) && run_.model().attention_window() > 0) {
        Fail({"model.attention_window", "software.attention_kernel"},
             absl::StrCat("a window of ", run_.model().attention_window(),
                          " tokens with attention kernel UNFUSED, which computes all scores; allowed: 0, or a fused "
                          "kernel as FLASH_ATTENTION_2"));
      }
      return;  // priced as GEMMs and a softmax
    }
    if (!Good({"cluster.accelerator.profile.attention"})) return;
    std::vector<std::string> names;
    for (const v1::AttentionProfile& entry : run_.cluster().accelerator().profile().attention()) {
      const bool serves = std::find(entry.data_types().begin(), entry.data_types().end(),
                                    static_cast<int>(run_.training().precision())) != entry.data_types().end();
      if (entry.kernel() == kernel && serves) return CheckHeadDim(entry);
      if (serves && entry.kernel() != v1::UNFUSED) names.push_back(v1::AttentionKernel_Name(entry.kernel()));
    }
    names.push_back("UNFUSED");
    Fail(
        {"software.attention_kernel", "cluster.accelerator.profile.attention"},
        absl::StrCat("the accelerator's profile has no times of ", v1::AttentionKernel_Name(kernel), " for ",
                     v1::DataType_Name(run_.training().precision()), "; allowed: one of ", absl::StrJoin(names, ", ")));
  }

  // Smaller heads are padded to the next size that has a kernel; larger ones have none.
  void CheckHeadDim(const v1::AttentionProfile& entry) {
    if (!Good({"model.head_dim", "cluster.accelerator.profile.attention"}) || entry.head_dims().empty()) return;
    const std::int64_t largest = *std::max_element(entry.head_dims().begin(), entry.head_dims().end());
    if (run_.model().head_dim() > largest) {
      Fail({"model.head_dim", "model.heads", "software.attention_kernel"},
           absl::StrCat("no kernel of ", v1::AttentionKernel_Name(entry.kernel()), " has heads of ",
                        run_.model().head_dim(), " elements; allowed: up to ", largest,
                        ", or attention_kernel UNFUSED"));
    }
  }

  // Data-parallel communication runs beside the first forward passes (parameters) and the last backward passes
  // (gradients), or beside those of all micro-batches (ZeRO-3; gradients reduced in every one), and nowhere else.
  void CheckOverlapRules() {
    std::map<std::pair<v1::PassKind, v1::MicroBatches>, int> first;
    const auto& rules = run_.software().overlap_rules();
    for (int i = 0; i < rules.size(); ++i) {
      const v1::OverlapRule& rule = rules[i];
      const std::string path = absl::StrCat("software.overlap_rules[", i, "]");
      const Paths paths = {path + ".micro_batches", path + ".pass", path + ".axis"};
      if (!Good(paths)) continue;
      const bool gathers = rule.pass() == v1::FORWARD && rule.micro_batches() == v1::FIRST;
      const bool reduces = rule.pass() == v1::BACKWARD && rule.micro_batches() == v1::LAST;
      const auto [it, is_new] = first.emplace(std::pair(rule.pass(), rule.micro_batches()), i);
      if (rule.axis() != v1::DP || !(gathers || reduces || rule.micro_batches() == v1::ALL)) {
        const Paths culprits =
            rule.axis() != v1::DP ? Paths{path + ".axis"} : Paths{path + ".micro_batches", path + ".pass"};
        Fail(
            culprits,
            absl::StrCat("no communication of ", v1::Axis_Name(rule.axis()), " runs beside ",
                         v1::PassKind_Name(rule.pass()), " passes of the ", v1::MicroBatches_Name(rule.micro_batches()),
                         " micro-batches; allowed: DP beside FORWARD passes of the FIRST or BACKWARD passes of "
                         "the LAST, or either of ALL"));
      } else if (!is_new) {
        Fail(paths, absl::StrCat("a rule for ", v1::PassKind_Name(rule.pass()), " passes of the ",
                                 v1::MicroBatches_Name(rule.micro_batches()),
                                 " micro-batches stands already in overlap_rules[", it->second, "]; allowed: one"));
      }
    }
  }

  void CheckNetwork() {
    const v1::Simulation& simulation = run_.simulation();
    if (!Good({"simulation.network", "simulation.engine"})) return;
    if (simulation.network() == v1::FLOW && simulation.engine() == v1::WORKLIST) {
      Fail({"simulation.engine", "simulation.network"},
           "the worklist knows no shared links; allowed with network FLOW: engine EVENT_QUEUE");
    }
    if (simulation.overlap() == v1::DYNAMIC) CheckDynamicOverlap();
    if (simulation.network() != v1::FLOW && run_.perturbation().link_size() > 0) {
      Fail({"perturbation.link", "simulation.network"},
           "slow links are not seen by network ANALYTIC; allowed: network FLOW, or no perturbation.link");
    }
  }

  void CheckDynamicOverlap() {
    const v1::Simulation& simulation = run_.simulation();
    if (simulation.engine() == v1::WORKLIST) {
      Fail({"simulation.engine", "simulation.overlap"},
           "the worklist knows no rates that change; allowed with overlap DYNAMIC: engine EVENT_QUEUE");
    }
    const auto& rules = run_.software().overlap_rules();
    for (int i = 0; i < rules.size() && simulation.network() == v1::FLOW; ++i) {
      if (rules[i].communication_factor() <= 1) continue;
      Fail({absl::StrCat("software.overlap_rules[", i, "].communication_factor"), "simulation.overlap",
            "simulation.network"},
           absl::StrCat("found ", rules[i].communication_factor(),
                        ": compute slows no transfers that share links; allowed with network FLOW and overlap "
                        "DYNAMIC: 1, or network ANALYTIC"));
    }
  }

  void CheckSlowGpus() {
    std::map<std::int64_t, int> first;
    const auto& slow = run_.perturbation().slow_gpus();
    if (Good({"parallelism.gpus"}) && slow.size() > parallelism_.gpus()) {
      Fail({"perturbation.slow_gpus"}, absl::StrCat("lists ", slow.size(), " GPUs in a world of ", parallelism_.gpus(),
                                                    "; allowed: up to ", parallelism_.gpus(), ", each rank once"));
      return;
    }
    for (int i = 0; i < slow.size(); ++i) {
      const std::string path = absl::StrCat("perturbation.slow_gpus[", i, "].rank");
      if (!Good({path})) continue;
      const auto [it, is_new] = first.emplace(slow[i].rank(), i);
      if (!is_new) {
        Fail({path},
             absl::StrCat("rank ", slow[i].rank(), " is listed already by slow_gpus[", it->second, "]; allowed: once"));
      }
      if (Good({"parallelism.gpus"}) && slow[i].rank() >= parallelism_.gpus()) {
        Fail({path}, absl::StrCat("found ", slow[i].rank(), " in a world of ", parallelism_.gpus(),
                                  "; allowed: a whole number from 0 to ", parallelism_.gpus() - 1));
      }
    }
  }

  // A link with less left is as good as dead, and what crosses it outlasts the clock.
  void CheckSlowLinks() {
    for (int i = 0; i < run_.perturbation().link_size(); ++i) {
      const std::string path = absl::StrCat("perturbation.link[", i, "].capacity");
      const double capacity = run_.perturbation().link(i).capacity();
      if (!Good({path}) || capacity == 0 || capacity >= limits::kLeastLinkShare) continue;
      Fail({path}, absl::StrCat("found ", capacity, "; allowed: 0 for a dead link, or a number from ",
                                limits::kLeastLinkShare, " to 1"));
    }
  }

  const v1::Run& run_;
  const v1::Parallelism& parallelism_;
  const Origins& origins_;
  Diagnostics* diagnostics_;
};

}  // namespace

void CheckAcrossFields(const v1::Run& run, const Origins& origins, Diagnostics* diagnostics) {
  Checker(run, origins, diagnostics).Check();
}

}  // namespace orrery::spec
