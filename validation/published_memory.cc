#include "validation/published_memory.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace orrery::validation {
namespace {

// The level with which the runs of a document were made.
struct LevelOfSource {
  std::string_view prefix;
  std::string_view level;
  // What its selective recomputation computes again.
  std::array<v1::RecomputeModule, 2> modules;
};
constexpr std::array kLevels = {
    LevelOfSource{
        "pytorch/torchtitan benchmarks/llama3_h100_202412", "torchtitan-2024.12", {v1::NORMS, v1::MLP_ACTIVATION}},
};

// Letters and digits in lower case; a minor version ("3.1") shares its architecture and is dropped.
std::string ModelKey(std::string_view name) {
  std::string key;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool minor = name[i] == '.' && i > 0 && absl::ascii_isdigit(static_cast<unsigned char>(name[i - 1])) &&
                       i + 2 < name.size() && name[i + 2] == '-';
    if (minor) {
      ++i;
    } else if (absl::ascii_isalnum(static_cast<unsigned char>(name[i]))) {
      key += absl::ascii_tolower(static_cast<unsigned char>(name[i]));
    }
  }
  return key;
}

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

class PeakReader {
 public:
  PeakReader(const Record& record, const Catalogue& catalogue, const std::vector<std::string>& models)
      : record_(record), catalogue_(catalogue), models_(models) {}

  absl::StatusOr<RunOfRow> Read() {
    ABSL_RETURN_IF_ERROR(CheckFeatures());
    ABSL_RETURN_IF_ERROR(ReadSoftware());
    ABSL_RETURN_IF_ERROR(ReadModel());
    ABSL_RETURN_IF_ERROR(ReadParallelism());
    ABSL_RETURN_IF_ERROR(ReadTraining());
    ABSL_RETURN_IF_ERROR(ReadCluster());
    run().set_name(absl::StrCat(std::string(record_.Text("model")), " of ", std::string(record_.Text("source"))));
    return std::move(result_);
  }

 private:
  v1::Run& run() { return result_.run; }
  void Assume(std::string text) { result_.assumptions.push_back(std::move(text)); }

  absl::Status CheckFeatures() const {
    const std::string_view metric = record_.Text("metric");
    if (metric != "peak" && metric != "max allocated") {
      return Missing(absl::StrCat("a peak of the device: the metric is ", std::string(metric)));
    }
    const std::string precision = absl::AsciiStrToLower(
        absl::StrCat(std::string(record_.Text("precision_optimizer")), " ", std::string(record_.Text("other"))));
    if (Contains(precision, "fp8") || Contains(precision, "float8")) return Missing("FP8");
    if (Contains(precision, "fp4")) return Missing("FP4");
    if (Contains(precision, "low-mem opt")) return Missing("optimizer states in 8 bit");
    for (const auto& [column, feature] : {std::pair{"cp", "context parallelism"}, {"ep", "expert parallelism"}}) {
      ABSL_ASSIGN_OR_RETURN(const std::int64_t degree, record_.PositiveOr(column, 1));
      if (degree > 1) return Missing(feature);
    }
    return absl::OkStatus();
  }

  absl::Status ReadSoftware() {
    const std::string_view source = record_.Text("source");
    for (const LevelOfSource& entry : kLevels) {
      if (!source.starts_with(entry.prefix)) continue;
      level_ = catalogue_.Level(entry.level);
      modules_ = entry.modules;
      if (level_ == nullptr) return Missing(absl::StrCat("software level ", std::string(entry.level)));
      run().mutable_software()->set_preset(std::string(entry.level));
      return absl::OkStatus();
    }
    return Missing(absl::StrCat("a software level of ", std::string(source)));
  }

  absl::Status ReadModel() {
    const std::string key = ModelKey(record_.Text("model"));
    for (const std::string& preset : models_) {
      if (ModelKey(preset) != key) continue;
      run().mutable_model()->set_preset(preset);
      return absl::OkStatus();
    }
    return Missing(absl::StrCat("model ", std::string(record_.Text("model"))));
  }

  absl::Status ReadParallelism() {
    v1::Parallelism& parallelism = *run().mutable_parallelism();
    ABSL_ASSIGN_OR_RETURN(const std::int64_t tp, record_.PositiveOr("tp", 1));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t pp, record_.PositiveOr("pp", 1));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t stages, record_.PositiveOr("vpp", 1));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t dp, record_.Positive("dp_or_fsdp"));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t gpus, record_.Positive("n_gpus"));
    parallelism.set_tp(tp);
    parallelism.set_pp(pp);
    parallelism.set_virtual_stages(stages);
    parallelism.set_dp(dp);
    parallelism.set_gpus(gpus);
    if (!record_.Blank("sp")) parallelism.set_sequence_parallel(record_.Text("sp") == "1" && tp > 1);
    return absl::OkStatus();
  }

  absl::Status ReadTraining() {
    v1::Training& training = *run().mutable_training();
    ABSL_ASSIGN_OR_RETURN(const std::int64_t seq_len, record_.Positive("seq"));
    ABSL_ASSIGN_OR_RETURN(const std::int64_t micro_batch, record_.Positive("mbs"));
    const std::int64_t smallest = micro_batch * run().parallelism().dp();
    ABSL_ASSIGN_OR_RETURN(const std::int64_t global_batch, record_.PositiveOr("gbs", smallest));
    if (record_.Blank("gbs")) Assume(absl::StrCat("global batch = ", smallest));
    training.set_seq_len(seq_len);
    training.set_micro_batch(micro_batch);
    training.set_global_batch(global_batch);
    const std::string_view recompute = record_.Text("recompute");
    if (recompute.starts_with("selective")) {
      training.set_recompute(v1::SELECTIVE);
    } else if (recompute.starts_with("full")) {
      training.set_recompute(v1::FULL);
    } else if (recompute == "none") {
      training.set_recompute(v1::NONE);
    } else if (recompute.empty()) {
      Assume(absl::StrCat("recompute = ", v1::Recompute_Name(level_->defaults().recompute())));
    } else {
      return Missing(absl::StrCat("recompute ", std::string(recompute)));
    }
    const bool selective = training.has_recompute() ? training.recompute() == v1::SELECTIVE
                                                    : level_->defaults().recompute() == v1::SELECTIVE;
    if (selective) {
      for (const v1::RecomputeModule module : modules_) training.add_recompute_modules(module);
    }
    return absl::OkStatus();
  }

  // "H100 96GB HBM2e 500W": the first word names the accelerator, another its memory.
  absl::Status ReadCluster() {
    const std::string_view gpu = record_.Text("gpu");
    std::string accelerator = catalogue_.AcceleratorPreset(gpu);
    if (accelerator.empty()) accelerator = catalogue_.AcceleratorPreset(gpu.substr(0, gpu.find(' ')));
    if (accelerator.empty()) return Missing(absl::StrCat("accelerator ", std::string(gpu)));
    for (const v1::ClusterDefault& choice : level_->defaults().clusters()) {
      if (choice.accelerator() != accelerator) continue;
      run().mutable_cluster()->set_preset(choice.cluster());
      run().mutable_cluster()->mutable_accelerator()->set_preset(accelerator);
      if (const std::int64_t memory = MemoryOf(gpu); memory > 0) {
        run().mutable_cluster()->mutable_accelerator()->set_memory_capacity_bytes(memory);
      }
      return absl::OkStatus();
    }
    return Missing(absl::StrCat("a cluster of ", std::string(gpu)));
  }

  // Bytes of the word "96GB", 0 where there is none: vendors count memory in powers of 2.
  static std::int64_t MemoryOf(std::string_view gpu) {
    const std::string words(gpu);
    for (absl::string_view word : absl::StrSplit(words, ' ')) {
      std::int64_t gib = 0;
      constexpr std::int64_t kMost = 1 << 20;
      if (absl::ConsumeSuffix(&word, "GB") && absl::SimpleAtoi(word, &gib) && gib > 0 && gib < kMost) {
        return gib << 30;
      }
    }
    return 0;
  }

  const Record& record_;
  const Catalogue& catalogue_;
  const std::vector<std::string>& models_;
  const v1::Software* level_ = nullptr;
  std::array<v1::RecomputeModule, 2> modules_{};
  RunOfRow result_;
};

}  // namespace

absl::StatusOr<RunOfRow> PublishedMemoryRun(const Record& record, const Catalogue& catalogue,
                                            const std::vector<std::string>& models) {
  return PeakReader(record, catalogue, models).Read();
}

}  // namespace orrery::validation
