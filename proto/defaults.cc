#include "proto/defaults.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/suggest.h"

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

void FillParallelism(const v1::SoftwareDefaults& level, v1::Parallelism* parallelism, const Origins& origins,
                     Diagnostics* diagnostics) {
  ORRERY_DEFAULT(parallelism, tp, 1);
  ORRERY_DEFAULT(parallelism, pp, 1);
  ORRERY_DEFAULT(parallelism, cp, 1);
  ORRERY_DEFAULT(parallelism, ep, 1);
  ORRERY_DEFAULT(parallelism, virtual_stages, 1);
  FillWorld(parallelism, origins, diagnostics);
  ORRERY_DEFAULT_FROM("parallelism", parallelism, zero_stage, level);
  if (parallelism->tp() == 1) ORRERY_DEFAULT(parallelism, sequence_parallel, false);
  ORRERY_DEFAULT_FROM("parallelism", parallelism, sequence_parallel, level);
}

void FillTraining(const v1::SoftwareDefaults& level, v1::Training* training, Diagnostics* diagnostics) {
  ORRERY_DEFAULT(training, seq_len, 2048);
  ORRERY_DEFAULT(training, micro_batch, 1);
  ORRERY_DEFAULT_FROM("training", training, precision, level);
  ORRERY_DEFAULT_FROM("training", training, gradient_type, level);
  ORRERY_DEFAULT_FROM("training", training, recompute, level);
  ORRERY_DEFAULT_FROM("training", training, dropout, level);
  ORRERY_DEFAULT_FROM("training", training, optimizer, level);
  ORRERY_DEFAULT(training, data_seconds, 0);
}

void FillSchedule(const v1::SoftwareDefaults& level, const v1::Parallelism& parallelism, v1::Schedule* schedule,
                  Diagnostics* diagnostics) {
  if (parallelism.virtual_stages() > 1) ORRERY_DEFAULT(schedule, name, "interleaved-1f1b");
  if (level.has_schedule()) ORRERY_DEFAULT(schedule, name, level.schedule());
  if (!schedule->has_name()) diagnostics->MarkBad("schedule.name");
  ORRERY_DEFAULT(schedule, group_size, parallelism.pp());
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
  ORRERY_DEFAULT(simulation, engine, v1::WORKLIST);
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
  ORRERY_DEFAULT(model, block, v1::SERIAL);
  ORRERY_DEFAULT(model, activation, v1::GELU);
  ORRERY_DEFAULT(model, positions, v1::LEARNED);
  ORRERY_DEFAULT(model, attention_window, 0);
  ORRERY_DEFAULT(model, tied_embeddings, true);
}

void FillCluster(v1::Run* run, const Origins& origins, Diagnostics* diagnostics) {
  const std::string& accelerator = run->cluster().accelerator().preset();
  // A cluster that describes its nodes or fabric is the user's own.
  if (run->cluster().has_preset() || run->cluster().has_node() || run->cluster().has_fabric() || accelerator.empty())
    return;
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

void FillDefaults(v1::Run* run, const Origins& origins, Diagnostics* diagnostics) {
  const v1::SoftwareDefaults& level = run->software().defaults();
  if (run->has_model()) FillModelDefaults("model", run->mutable_model(), origins, diagnostics);
  FillParallelism(level, run->mutable_parallelism(), origins, diagnostics);
  FillTraining(level, run->mutable_training(), diagnostics);
  FillSchedule(level, run->parallelism(), run->mutable_schedule(), diagnostics);
  FillPerturbation(run->cluster().accelerator().profile(), run->mutable_perturbation()->mutable_jitter(), diagnostics);
  FillSimulation(run->mutable_simulation());
}

#undef ORRERY_DEFAULT
#undef ORRERY_DEFAULT_FROM

}  // namespace orrery::spec
