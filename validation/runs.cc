#include "validation/runs.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/parallel.h"
#include "base/status_macros.h"
#include "sim/training/simulate.h"
#include "validation/constants.h"

namespace orrery::validation {
namespace {

// Builds the run of one row, field by field.
class RowReader {
 public:
  RowReader(const Record& record, const Catalogue& catalogue) : record_(record), catalogue_(catalogue) {}

  absl::StatusOr<RunOfRow> Read() {
    ABSL_RETURN_IF_ERROR(CheckFeatures());
    ABSL_RETURN_IF_ERROR(ReadSoftware());
    ABSL_RETURN_IF_ERROR(ReadModel());
    ABSL_RETURN_IF_ERROR(ReadTraining());
    ABSL_RETURN_IF_ERROR(ReadParallelism());
    ABSL_RETURN_IF_ERROR(ReadSchedule());
    ABSL_RETURN_IF_ERROR(ReadCluster());
    run().mutable_perturbation()->mutable_jitter()->set_mode(v1::EXPECTED);
    run().set_name(std::string(record_.Text("id")));
    // What the record's compiler filled in.
    for (const absl::string_view name : absl::StrSplit(std::string(record_.Text("assumed")), ' ', absl::SkipEmpty())) {
      const bool open = name == "vpp-unknown" || (name == "micro_batch" && result_.micro_batch_open);
      if (!open) Assume(absl::StrCat(name, " (filled in by the record)"));
    }
    return std::move(result_);
  }

 private:
  v1::Run& run() { return result_.run; }
  const v1::SoftwareDefaults& defaults() const { return software_->defaults(); }
  void Assume(std::string text) { result_.assumptions.push_back(std::move(text)); }

  // Features that no software level has yet, in the order of the record's columns.
  absl::Status CheckFeatures() const {
    if (!record_.Blank("moe")) return Missing("mixture of experts");
    ABSL_ASSIGN_OR_RETURN(const std::optional<bool> multi_token, YesOrNo("mtp"));
    if (multi_token.value_or(false)) return Missing("multi-token prediction");
    for (const absl::string_view word : absl::StrSplit(std::string(record_.Text("variant")), ' ', absl::SkipEmpty())) {
      if (word != "parallel-block" && word != "swa") return Missing(absl::StrCat("variant ", word));
    }
    if (record_.Text("task") != "pretrain" && !record_.Blank("task")) {
      return Missing(absl::StrCat("task ", std::string(record_.Text("task"))));
    }
    for (const std::string_view degree : {"cp", "ep"}) {
      if (!record_.Blank(degree) && record_.Text(degree) != "1") {
        return Missing(degree == "cp" ? "context parallelism" : "expert parallelism");
      }
    }
    const std::string_view precision = record_.Text("precision");
    if (precision != "fp16" && precision != "bf16" && !precision.empty()) {
      return Missing(absl::StrCat("precision ", std::string(precision)));
    }
    return absl::OkStatus();
  }

  absl::Status ReadSoftware() {
    const std::string level(record_.Text("software"));
    software_ = catalogue_.Level(level);
    if (software_ == nullptr) return Missing(absl::StrCat("software level ", level));
    run().mutable_software()->set_preset(level);
    return absl::OkStatus();
  }

  // Reads yes or no; nullopt where blank.
  absl::StatusOr<std::optional<bool>> YesOrNo(std::string_view column) const {
    const std::string_view cell = record_.Text(column);
    if (cell.empty()) return std::optional<bool>();
    if (cell == "yes" || cell == "no") return std::optional<bool>(cell == "yes");
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(column), ": \"", std::string(cell), "\"; allowed: yes, no, or blank"));
  }
  // Reads an integer; a blank is `otherwise`, and reported.
  absl::StatusOr<std::int64_t> IntegerOr(std::string_view column, std::int64_t otherwise) {
    ABSL_ASSIGN_OR_RETURN(const std::optional<std::int64_t> value, record_.Integer(column));
    if (!value.has_value()) Assume(absl::StrCat(std::string(column), " = ", otherwise));
    return value.value_or(otherwise);
  }

  absl::Status ReadModel() {
    v1::Model& model = *run().mutable_model();
    // What a table does not print of a model's architecture follows from the family that it names.
    if (const v1::Model* family = catalogue_.FamilyOf(record_.Text("model")); family != nullptr) {
      model = *family;
    } else {
      Assume("architecture = GPT");
    }
    for (const char* size : {"preset", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn_hidden", "vocab"}) {
      model.GetReflection()->ClearField(&model, model.GetDescriptor()->FindFieldByName(size));
    }
    if (defaults().has_tied_embeddings()) model.set_tied_embeddings(defaults().tied_embeddings());
    model.set_name(std::string(record_.Text("model")));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t layers, record_.Positive("layers"));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t hidden, record_.Positive("hidden"));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t heads, record_.Positive("heads"));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t vocab, record_.Positive("vocab"));
    ABSL_ASSIGN_OR_RETURN(const std::optional<std::int64_t> ffn, record_.Integer("ffn_hidden"));
    ABSL_ASSIGN_OR_RETURN(const std::optional<std::int64_t> head_dim, record_.Integer("head_dim"));
    model.set_layers(layers);
    model.set_hidden(hidden);
    model.set_heads(heads);
    model.set_vocab(vocab);
    if (ffn.has_value()) model.set_ffn_hidden(*ffn);
    if (head_dim.has_value()) model.set_head_dim(*head_dim);
    ABSL_ASSIGN_OR_RETURN(const std::optional<std::int64_t> kv_heads, record_.Integer("kv_heads"));
    if (kv_heads.has_value()) model.set_kv_heads(*kv_heads);
    const std::string_view variant = record_.Text("variant");
    if (variant.find("parallel-block") != std::string_view::npos) model.set_block(v1::PARALLEL);
    if (variant.find("swa") != std::string_view::npos) {
      if (!defaults().has_attention_window()) return Missing("the size of the attention window");
      model.set_attention_window(defaults().attention_window());
      Assume(absl::StrCat("attention_window = ", defaults().attention_window()));
    }
    return absl::OkStatus();
  }

  absl::Status ReadTraining() {
    v1::Training& training = *run().mutable_training();
    ABSL_ASSIGN_OR_RETURN(const std::int64_t seq_len, record_.Positive("seq_len"));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t global_batch, record_.Positive("global_batch"));
    // Without a pipeline nothing speaks for a small micro-batch: see LargestMicroBatch.
    ABSL_ASSIGN_OR_RETURN(const std::int64_t pp, record_.Positive("pp"));
    const bool filled_in = absl::StrContains(std::string(record_.Text("assumed")), "micro_batch");
    result_.micro_batch_open = pp == 1 && (filled_in || record_.Blank("micro_batch"));
    std::int64_t micro_batch = 1;
    if (!result_.micro_batch_open) {
      ABSL_ASSIGN_OR_RETURN(micro_batch, IntegerOr("micro_batch", 1));
    }
    training.set_seq_len(seq_len);
    training.set_global_batch(global_batch);
    training.set_micro_batch(micro_batch);
    if (!record_.Blank("precision")) {
      training.set_precision(record_.Text("precision") == "fp16" ? v1::FP16 : v1::BF16);
    } else {
      Assume(absl::StrCat("precision = ", v1::DataType_Name(defaults().precision())));
    }
    const std::string_view recompute = record_.Text("recompute");
    if (recompute == "none") {
      training.set_recompute(v1::NONE);
    } else if (recompute == "selective") {
      training.set_recompute(v1::SELECTIVE);
    } else if (recompute == "full") {
      training.set_recompute(v1::FULL);
    } else if (recompute.empty()) {
      training.set_recompute(defaults().recompute());
      Assume(absl::StrCat("recompute = ", v1::Recompute_Name(defaults().recompute())));
    } else {
      return Missing(absl::StrCat("recompute ", std::string(recompute)));
    }
    return absl::OkStatus();
  }

  absl::Status ReadParallelism() {
    v1::Parallelism& parallelism = *run().mutable_parallelism();
    ABSL_ASSIGN_OR_RETURN(const std::int64_t gpus, record_.Positive("gpus"));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t tp, record_.Positive("tp"));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t pp, record_.Positive("pp"));
    std::int64_t zero = 3;
    if (record_.Text("zero_stage") != "fsdp") {
      ABSL_ASSIGN_OR_RETURN(zero, IntegerOr("zero_stage", defaults().zero_stage()));
    }
    parallelism.set_gpus(gpus);
    parallelism.set_tp(tp);
    parallelism.set_pp(pp);
    ABSL_ASSIGN_OR_RETURN(const std::optional<std::int64_t> dp, record_.Integer("dp"));
    if (dp.has_value()) parallelism.set_dp(*dp);
    parallelism.set_zero_stage(zero);
    ABSL_ASSIGN_OR_RETURN(const std::optional<std::int64_t> shard_ranks, record_.Integer("optimizer_shard_group"));
    if (shard_ranks.has_value()) parallelism.set_shard_ranks(*shard_ranks);
    ABSL_ASSIGN_OR_RETURN(const std::optional<bool> sequence_parallel, YesOrNo("sequence_parallel"));
    if (tp > 1 && !sequence_parallel.has_value()) {
      Assume(absl::StrCat("sequence_parallel = ", defaults().sequence_parallel() ? "yes" : "no"));
    } else if (tp > 1) {
      parallelism.set_sequence_parallel(*sequence_parallel);
    }
    return absl::OkStatus();
  }

  absl::Status ReadSchedule() {
    const std::string_view schedule = record_.Text("schedule");
    const std::int64_t pp = run().parallelism().pp();
    const std::string_view name = FamilyOf(schedule);
    if (name.empty()) return Missing(absl::StrCat("schedule ", std::string(schedule)));
    run().mutable_schedule()->set_name(std::string(name));
    // What the source says of the update; the level's way where it says nothing.
    if (record_.Text("notes").find("all-reduce synchronised optimizer step") != std::string_view::npos) {
      run().mutable_software()->set_post_validation(false);
    }
    ABSL_ASSIGN_OR_RETURN(std::optional<std::int64_t> stages, record_.Integer("vpp"));
    if (!stages.has_value() && schedule == "interleaved-1F1B") {
      // Where the ends count as layers, so they do here.
      const std::int64_t layers = run().model().layers();
      const std::int64_t units =
          layers % pp == 0 || defaults().layer_split() != v1::ENDS_AS_LAYERS ? layers : layers + 2;
      stages = LargestDivisor(units / pp, defaults().max_virtual_stages());
      Assume(absl::StrCat("vpp = ", *stages));
    }
    if (stages.has_value()) run().mutable_parallelism()->set_virtual_stages(*stages);
    // One stage per rank interleaves nothing.
    if (stages.value_or(1) == 1 && name == "interleaved-1f1b") run().mutable_schedule()->set_name("1f1b");
    if (schedule.empty() && pp > 1) {
      if (stages.value_or(1) > 1) run().mutable_schedule()->set_name("interleaved-1f1b");
      Assume(absl::StrCat("schedule = ", run().schedule().name()));
    }
    return absl::OkStatus();
  }

  // Our name of a schedule of the table; empty: there is none.
  static std::string_view FamilyOf(std::string_view schedule) {
    if (schedule == "none" || schedule.empty()) return "1f1b";
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"1F1B", "1f1b"},        {"interleaved-1F1B", "interleaved-1f1b"},
        {"ZB-1p", "zb-1p"},      {"ZB-2p", "zb-2p"},
        {"ZB-V", "zb-v-greedy"}, {"DualPipe", "dualpipe"}};
    for (const auto& [theirs, ours] : kNames) {
      if (schedule == theirs) return ours;
    }
    return "";
  }

  static std::int64_t LargestDivisor(std::int64_t number, std::int64_t at_most) {
    std::int64_t largest = 1;
    for (std::int64_t i = 2; i <= std::min(number, at_most); ++i) {
      if (number % i == 0) largest = i;
    }
    return largest;
  }

  absl::Status ReadCluster() {
    const std::string gpu(record_.Text("gpu"));
    const std::string accelerator = catalogue_.AcceleratorPreset(gpu);
    if (accelerator.empty()) return Missing(absl::StrCat("accelerator ", gpu));
    for (const v1::ClusterDefault& choice : defaults().clusters()) {
      if (choice.accelerator() != accelerator) continue;
      const v1::Cluster* cluster = catalogue_.ClusterOf(choice.cluster());
      if (cluster == nullptr) {
        return absl::NotFoundError(absl::StrCat("software level ", software_->name(), " names cluster ",
                                                choice.cluster(), ", for which there is no preset"));
      }
      const std::int64_t per_node = cluster->node().gpus();
      v1::Cluster& named = *run().mutable_cluster();
      named.set_preset(choice.cluster());
      named.mutable_accelerator()->set_preset(accelerator);
      named.set_nodes(std::max((run().parallelism().gpus() + per_node - 1) / per_node, cluster->nodes()));
      return absl::OkStatus();
    }
    return Missing(absl::StrCat("a cluster of ", gpu));
  }

  const Record& record_;
  const Catalogue& catalogue_;
  const v1::Software* software_ = nullptr;
  RunOfRow result_;
};

// The sequences of one replica.
std::int64_t SequencesPerReplica(const v1::Run& run) { return run.training().global_batch() / run.parallelism().dp(); }

struct Prediction {
  spec::LoadedRun loaded;
  training::Result result;
};

absl::StatusOr<Prediction> Simulated(const v1::Run& run, const spec::LoadOptions& options) {
  Prediction prediction;
  ABSL_ASSIGN_OR_RETURN(prediction.loaded, spec::ResolveRun(run, options));
  ABSL_ASSIGN_OR_RETURN(prediction.result, training::Simulate(prediction.loaded.run));
  return prediction;
}

// Without a pipeline the largest micro-batch that fits in memory is fastest, and what is run where a source does not
// say; 1 where none fits.
absl::StatusOr<Prediction> LargestMicroBatch(v1::Run run, const spec::LoadOptions& options) {
  ABSL_ASSIGN_OR_RETURN(Prediction prediction, Simulated(run, options));
  const std::int64_t sequences = SequencesPerReplica(prediction.loaded.run);
  for (std::int64_t size = sequences; size > 1; --size) {
    if (sequences % size != 0) continue;
    run.mutable_training()->set_micro_batch(size);
    ABSL_ASSIGN_OR_RETURN(Prediction larger, Simulated(run, options));
    if (larger.result.Fits()) return larger;
  }
  return prediction;
}

void Predict(const Record& record, const Catalogue& catalogue, const spec::LoadOptions& options, Row& row) {
  const auto fail = [&](const absl::Status& status) {
    row.status = status.code() == absl::StatusCode::kUnimplemented ? Status::kRefused : Status::kFailed;
    row.reason = std::string(status.message());
  };
  absl::StatusOr<RunOfRow> made = MakeRun(record, catalogue);
  if (!made.ok()) return fail(made.status());
  row.assumptions = made->assumptions;
  const absl::StatusOr<Prediction> prediction =
      made->micro_batch_open ? LargestMicroBatch(made->run, options) : Simulated(made->run, options);
  if (!prediction.ok()) return fail(prediction.status());
  const v1::Run& run = prediction->loaded.run;
  if (made->micro_batch_open) {
    row.assumptions.push_back(absl::StrCat("micro_batch = ", run.training().micro_batch(), ", the largest that fits"));
  }
  row.predicted = SecondsFromTime(prediction->result.iteration_time);
  row.software = run.software().name();
  row.accelerator = run.cluster().accelerator().name();
  row.constants = ConstantsInUse(run);
  if (!prediction->result.Fits()) row.flags.emplace_back("does not fit in memory");
}

Row PredictRow(const Record& record, const Catalogue& catalogue, const RunsOptions& options) {
  Row row;
  row.id = std::string(record.Text("id"));
  row.line = record.line();
  row.group = std::string(record.Text(options.group_column));
  const absl::StatusOr<std::optional<double>> measured = record.Number("time_s");
  constexpr double kShortest = 1e-9;  // seconds
  constexpr double kLongest = 1e9;
  if (measured.ok() && measured->has_value() && **measured >= kShortest && **measured <= kLongest) {
    row.measured = **measured;
    Predict(record, catalogue, options.load, row);
  } else {
    row.status = Status::kFailed;
    row.reason = "time_s: not a number of seconds between 1e-9 and 1e9";
  }
  return row;
}

}  // namespace

absl::StatusOr<RunOfRow> MakeRun(const Record& record, const Catalogue& catalogue) {
  return RowReader(record, catalogue).Read();
}

absl::StatusOr<Report> ValidateRuns(const CsvTable& table, const RunsOptions& options, Progress& progress) {
  for (const std::string_view column : {"id", "software", "gpu", "gpus", "time_s"}) {
    ABSL_RETURN_IF_ERROR(table.Column(column).status());
  }
  ABSL_RETURN_IF_ERROR(table.Column(options.group_column).status());
  ABSL_ASSIGN_OR_RETURN(const std::vector<const CsvRow*> rows, SelectRows(table, options.where));
  if (rows.empty()) return NoRows(table);
  ABSL_ASSIGN_OR_RETURN(const Catalogue catalogue, Catalogue::Load(options.load));
  Report report;
  report.group_column = options.group_column;
  report.rows.resize(rows.size());
  progress.Start("validating runs", static_cast<std::int64_t>(rows.size()));
  std::mutex one_at_a_time;
  ParallelFor(static_cast<std::int64_t>(rows.size()), options.threads, [&](std::int64_t i) {
    report.rows[static_cast<std::size_t>(i)] =
        PredictRow(Record(table, *rows[static_cast<std::size_t>(i)]), catalogue, options);
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    progress.Advance(1);
  });
  return report;
}

}  // namespace orrery::validation
