// Whatever a user writes gets a message that names the place, the field and what is allowed, and never a crash.
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/loader.h"
#include "proto/rules.h"
#include "tests/proto/spec_fixture.h"

namespace orrery::spec {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Case {
  const char* name;  // of the rule
  std::vector<std::string> overrides;
  const char* field;    // that the message names
  const char* allowed;  // what it says is allowed
};

// The run has tp 2, pp 2, dp 4, 16 of 128 GPUs; 12 layers, hidden 1024, 16 heads; batch 32 of 2,048 tokens.
const std::vector<Case>& Cases() {
  static const std::vector<Case>* cases = new std::vector<Case>{
      // 2 x 2 x 1 x 4 = 16.
      {"world size", {"parallelism.gpus=17"}, "parallelism.gpus", "allowed: gpus = 16"},
      {"cluster smaller than the world", {"cluster.nodes=1"}, "cluster.nodes", "allowed: cluster.nodes of at least 2"},
      {"world larger than the cluster",
       {"parallelism.dp=64", "training.global_batch=64"},
       "parallelism.dp",
       "or a run on at most 128 GPUs"},
      {"uneven nics", {"cluster.node.nics=3"}, "cluster.node.nics", "allowed: a divisor or a multiple of 8"},
      {"batch does not divide", {"training.global_batch=30"}, "training.global_batch", "allowed: a multiple of 4"},
      {"batch by micro-batches", {"training.micro_batch=3"}, "training.micro_batch", "allowed: a multiple of 12"},
      {"heads by tp", {"model.heads=1", "model.head_dim=64"}, "model.heads", "allowed: a divisor of 1"},
      {"tp by heads",
       {"parallelism.tp=3"},
       "parallelism.tp",
       "does not divide model.heads = 16; allowed: a divisor of 16"},
      {"ffn by tp", {"model.ffn_hidden=4095"}, "model.ffn_hidden", "allowed: a divisor of 4095"},
      {"hidden by heads", {"model.heads=15"}, "model.heads", "allowed: a divisor of 1024, or a head_dim"},
      {"layers by stages", {"parallelism.pp=5"}, "parallelism.pp", "allowed: a product that divides 12"},
      {"layers by chunks", {"parallelism.virtual_stages=4"}, "parallelism.virtual_stages", "a product that divides 12"},
      {"chunks without a pipeline",
       {"parallelism.pp=1", "parallelism.virtual_stages=2"},
       "parallelism.virtual_stages",
       "allowed: 1, or pp from 2"},
      {"sequence by tp", {"training.seq_len=2047"}, "training.seq_len", "allowed: a multiple of 2"},
      {"sequence parallelism of one",
       {"parallelism.tp=1", "parallelism.sequence_parallel=true"},
       "parallelism.sequence_parallel",
       "allowed: false, or tp from 2"},
      {"scatter/gather of an odd message",
       {"parallelism.sequence_parallel=false", "training.seq_len=3", "model.hidden=1023", "model.head_dim=64",
        "model.ffn_hidden=4096"},
       "training.seq_len",
       "allowed: a tp that divides their number, or software.scatter_gather: false"},
      {"no peak", {"training.precision=FP16"}, "training.precision", "allowed: one of BF16"},
      {"peak twice",
       {"cluster.accelerator.peak=[{data_type: BF16 flops_per_second: 1e14}, {data_type: BF16 flops_per_second: "
        "2e14}]"},
       "cluster.accelerator.peak[1].data_type",
       "allowed: once"},
      {"no attention times",
       {"software.attention_kernel=FLASH_ATTENTION_2"},
       "software.attention_kernel",
       "allowed: one of FLASH_ATTENTION_1, UNFUSED"},
      {"window without flash attention",
       {"model.attention_window=128", "software.attention_kernel=UNFUSED"},
       "model.attention_window",
       "allowed: 0, or a fused kernel as FLASH_ATTENTION_2"},
      {"head without a kernel", {"model.head_dim=256"}, "model.head_dim", "allowed: up to 128"},
      {"slow GPU outside",
       {"perturbation.slow_gpus={rank: 16 factor: 2}"},
       "perturbation.slow_gpus[0].rank",
       "allowed: a whole number from 0 to 15"},
      {"slow GPU twice",
       {"perturbation.slow_gpus=[{rank: 1 factor: 2}, {rank: 1 factor: 3}]"},
       "perturbation.slow_gpus[1].rank",
       "allowed: once"},
      {"context parallelism", {"parallelism.cp=2"}, "parallelism.cp", "allowed: a whole number equal to 1"},
      {"expert parallelism", {"parallelism.ep=8"}, "parallelism.ep", "allowed: a whole number equal to 1"},
      {"zero stage 4", {"parallelism.zero_stage=4"}, "parallelism.zero_stage", "allowed: a whole number from 0 to 3"},
      {"zero stage 3 with a pipeline",
       {"parallelism.zero_stage=3"},
       "parallelism.zero_stage",
       "allowed: zero_stage up to 2, or pp = 1"},
      {"shards that do not divide",
       {"parallelism.shard_ranks=3"},
       "parallelism.shard_ranks",
       "allowed: a divisor of 4"},
      {"key and value heads", {"model.kv_heads=3"}, "model.kv_heads", "allowed: a divisor of "},
      {"layers of stages",
       {"parallelism.stage_layers=[1, 2]"},
       "parallelism.stage_layers",
       "allowed: pp x virtual_stages"},
      {"8 bits", {"training.precision=FP8"}, "training.precision", "allowed: FP16, BF16, FP32"},
      {"oversubscription below 1",
       {"cluster.fabric.oversubscription=0.5"},
       "cluster.fabric.oversubscription",
       "allowed: a number from 1 to 1000"},
      {"efficiency above 1",
       {"cluster.node.nic.efficiency=1.5"},
       "cluster.node.nic.efficiency",
       "allowed: a number from 0.01 to 1"},
      {"constant's own range",
       {"cluster.accelerator.profile.gemm[0].peak_efficiency={value: 2}"},
       "cluster.accelerator.profile.gemm[0].peak_efficiency.value",
       "allowed: a number from 0.001 to 1"},
      {"constant's unit",
       {"cluster.accelerator.profile.kernel_floor={unit: \"us\"}"},
       "cluster.accelerator.profile.kernel_floor.unit",
       "allowed: \"seconds\""},
      {"overlap rule that speeds up",
       {"software.overlap_rules={axis: DP pass: FORWARD micro_batches: FIRST compute_factor: 0.9 communication_factor: "
        "1}"},
       "software.overlap_rules[0].compute_factor",
       "allowed: a number from 1 to 100"},
      {"overlap rule without its axis",
       {"software.overlap_rules={pass: FORWARD micro_batches: FIRST compute_factor: 1 communication_factor: 1}"},
       "software.overlap_rules[0].axis",
       "allowed: one of TP, PP, DP"},
      {"overlap rule where nothing overlaps",
       {"software.overlap_rules={axis: DP pass: FORWARD micro_batches: LAST compute_factor: 1 communication_factor: "
        "1}"},
       "software.overlap_rules[0].micro_batches",
       "allowed: DP beside FORWARD passes of the FIRST or BACKWARD passes of the LAST"},
      {"overlap rule of another axis",
       {"software.overlap_rules={axis: TP pass: FORWARD micro_batches: FIRST compute_factor: 1 communication_factor: "
        "1}"},
       "software.overlap_rules[0].axis",
       "allowed: DP beside FORWARD passes of the FIRST or BACKWARD passes of the LAST"},
      {"too many operations", {"training.global_batch=100000000"}, "training.global_batch", "allowed: up to 5e+07"},
      {"too many unfolded GPUs",
       {"cluster.nodes=10000000", "parallelism.dp=10000000", "training.global_batch=10000000", "simulation.fold=OFF"},
       "simulation.fold",
       "allowed: up to 4194304 GPUs, or fold: ON"},
      {"too many sampled GPUs",
       {"cluster.nodes=10000000", "parallelism.dp=10000000", "training.global_batch=10000000",
        "perturbation.jitter.mode=SAMPLED"},
       "perturbation.jitter.mode",
       "allowed: up to 4194304 GPUs, or fold: ON"},
      {"activations beyond counting",
       {"training.seq_len=100000000", "training.micro_batch=1000000", "training.global_batch=4000000"},
       "training.micro_batch",
       "allowed: up to 9e+17"},
      {"time beyond counting",
       {"cluster.node.nic.bandwidth=1000"},
       "cluster.node.nic.bandwidth",
       "simulated seconds, most of them communication; allowed: up to 9e+06"},
      // One row of queries on one of 100,000 multiprocessors of 1e9 FLOP/s in all, started at the cost of 1e6 keys: 1e5
      // x
      // 1e6 x 64 x 4 / (0.5 x 1e9) = 5e4 s forward, in each of 6 layers and 8 micro-batches of 4 iterations.
      {"attention of few tokens beyond counting",
       {"training.seq_len=4", "cluster.accelerator.sms=100000", "software.attention_kernel=FLASH_ATTENTION_1",
        "cluster.accelerator.peak={data_type: BF16 flops_per_second: 1e9}",
        "cluster.accelerator.profile.attention[0].half_length={value: 1000000}"},
       "cluster.accelerator.peak",
       "simulated seconds, most of them multiplications; allowed: up to 9e+06"},
      // One tile of 65,536 x 65,536 x 1,024 on one of them: 8.8e12 FLOPs at 1e4 FLOP/s.
      {"products of few tokens beyond counting",
       {"training.seq_len=4", "cluster.accelerator.sms=100000",
        "cluster.accelerator.peak={data_type: BF16 flops_per_second: 1e9}",
        "cluster.accelerator.profile.gemm[0].tile={m: 65536 n: 65536}"},
       "cluster.accelerator.peak",
       "simulated seconds, most of them multiplications; allowed: up to 9e+06"},
      // The innermost block that an override wrote is not to blame.
      {"data beyond counting",
       {"training.data_seconds=86400", "simulation.iterations=1000", "simulation.fold=OFF"},
       "training.data_seconds",
       "simulated seconds, most of them loading data; allowed: up to 9e+06"},
      {"attention kernel without a name",
       {"cluster.accelerator.profile.attention[0].kernel=\"flash-attention-2\""},
       "cluster.accelerator.profile.attention[0].kernel",
       "allowed: one of UNFUSED, FLASH_ATTENTION_1, FLASH_ATTENTION_2"},
      {"attention kernel that has no times",
       {"cluster.accelerator.profile.attention[0].kernel=UNFUSED"},
       "cluster.accelerator.profile.attention[0].kernel",
       "allowed: a fused kernel, as FLASH_ATTENTION_2"},
      {"more slow GPUs than GPUs",
       {"parallelism.tp=1", "parallelism.pp=1", "parallelism.dp=1",
        "perturbation.slow_gpus=[{rank: 0 factor: 2}, {rank: 1 factor: 2}]"},
       "perturbation.slow_gpus",
       "allowed: up to 1, each rank once"},
      {"more than a number holds",
       {"perturbation.slow_gpus={rank: 99999999999999999999 factor: 2}"},
       "perturbation.slow_gpus[0].rank",
       "found 99999999999999999999; allowed: a whole number from 0 to 79999999"},
      {"unknown value", {"training.recompute=PARTIAL"}, "training.recompute", "allowed: one of NONE, SELECTIVE, FULL"},
      {"unspecified value",
       {"training.recompute=RECOMPUTE_UNSPECIFIED"},
       "training.recompute",
       "allowed: one of NONE, SELECTIVE, FULL"},
      {"value by number", {"training.recompute=1"}, "training.recompute", "allowed: one of NONE, SELECTIVE, FULL"},
      {"value in small letters", {"training.recompute=full"}, "training.recompute", "(did you mean 'FULL'?)"},
      {"unknown preset", {"software.preset=levle"}, "software.preset", "allowed: one of level (did you mean 'level'?)"},
      {"unknown field", {"model={layer: 3}"}, "model.layer", "(did you mean 'layers'?)"},
      {"text for a number", {"parallelism.tp=\"two\""}, "parallelism.tp", "allowed: a whole number from 1 to 1024"},
      {"fraction for a whole number",
       {"parallelism.tp=2.5"},
       "parallelism.tp",
       "allowed: a whole number from 1 to 1024"},
      {"number for a text", {"model={name: 3}"}, "model.name", "allowed: a text in quotes"},
      {"number for a truth", {"training.dropout=2"}, "training.dropout", "allowed: true or false"},
      {"word for a number",
       {"cluster.node.nic.bandwidth=fast"},
       "cluster.node.nic.bandwidth",
       "allowed: a number from 1000 to 1e+16 bytes/s"},
      {"block for a number", {"parallelism.tp={}"}, "parallelism.tp", "allowed: a whole number from 1 to 1024"},
      {"number for a block", {"parallelism=8"}, "parallelism", "allowed: a block { ... } of tp, pp, cp"},
      {"empty name of a schedule", {"schedule.name="}, "schedule.name", "allowed: a text in quotes"},
      {"list for a number", {"parallelism.tp=[1, 2]"}, "parallelism.tp", "allowed: a whole number from 1 to 1024"},
      {"slower than any link",
       {"simulation.network=FLOW", "perturbation.link={device: \"nic:0\" capacity: 1e-9}"},
       "perturbation.link[0].capacity",
       "allowed: 0 for a dead link, or a number from 1e-06 to 1"},
      {"element of no list", {"parallelism.tp[0]=1"}, "parallelism.tp[0]", "allowed: tp without an index"},
      {"field twice", {"parallelism={tp: 2 tp: 4}"}, "parallelism.tp", "allowed: once"},
  };
  return *cases;
}

TEST(BadInputTest, EveryRuleNamesFieldAndRange) {
  std::set<std::pair<std::string, std::string>> pairs;
  for (const Case& rule : Cases()) {
    const std::string error = ErrorOf(GoodText(), rule.overrides);
    EXPECT_THAT(error, AllOf(HasSubstr(absl::StrCat(rule.field, ": ")), HasSubstr(rule.allowed))) << rule.name;
    pairs.emplace(rule.field, rule.allowed);
  }
  RecordProperty("pairs", static_cast<int>(pairs.size()));
  EXPECT_GE(pairs.size(), 55u);
}

// Paths of all numeric fields of a resolved run, lists by their first element.
void CollectNumbers(const Descriptor* type, const std::string& path,
                    std::vector<std::pair<std::string, const FieldDescriptor*>>* numbers) {
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const std::string field_path = absl::StrCat(path, path.empty() ? "" : ".", field->name());
    if (field->message_type() != nullptr) {
      CollectNumbers(field->message_type(), absl::StrCat(field_path, field->is_repeated() ? "[0]" : ""), numbers);
    } else if (!field->is_repeated() && (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
                                         field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE)) {
      numbers->emplace_back(field_path, field);
    }
  }
}

// Every number of the schema at 0, -1 and the largest of its type, and the reals at infinity and NaN: out of its range,
// the message names field and range; within, nothing breaks.
TEST(BadInputTest, EveryNumberAtItsExtremes) {
  const absl::StatusOr<LoadedRun> loaded =
      LoadGood({"cluster.nodes=2", "perturbation.slow_gpus={rank: 1 factor: 2}", "simulation.network=FLOW",
                "perturbation.link={device: \"nic:0\" capacity: 1}",
                "software.overlap_rules={axis: DP pass: FORWARD micro_batches: "
                "FIRST compute_factor: 1 communication_factor: 1}"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  v1::Run run = loaded->run;
  ASSERT_TRUE(LoadPreset("2.28", {.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = {}},
                         run.mutable_software()->mutable_nccl())
                  .ok());
  v1::Cluster* cluster = run.mutable_cluster();
  ASSERT_TRUE(TextFormat::ParseFromString("a: 0 b: 1 links: 1", cluster->mutable_node()->add_nvlink_pair()));
  cluster->add_more_nodes()->set_nodes(1);
  *cluster->mutable_more_nodes(0)->mutable_node() = cluster->node();
  ASSERT_TRUE(TextFormat::ParseFromString("device { id: \"s\" kind: NVSWITCH } cable { a: \"g0\" b: \"s\" }",
                                          cluster->mutable_graph()));
  for (int gpu = 0; gpu < 16; ++gpu) {
    v1::Device* device = cluster->mutable_graph()->add_device();
    device->set_id(absl::StrCat("g", gpu));
    device->set_kind(v1::GPU);
  }
  *cluster->mutable_graph()->mutable_cable(0)->mutable_link() = cluster->node().nvlink();
  const std::string text = ResolvedText(run);
  std::vector<std::pair<std::string, const FieldDescriptor*>> numbers;
  CollectNumbers(v1::Run::descriptor(), "", &numbers);
  EXPECT_GE(numbers.size(), 60u);
  std::set<std::pair<std::string, std::string>> rejected;
  for (const auto& [path, field] : numbers) {
    const v1::Rule& rule = RuleOf(field);
    ASSERT_TRUE(rule.has_min() && rule.has_max()) << path << " has no range";
    const bool is_real = field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
    std::vector<std::pair<std::string, double>> values = {{"0", 0}, {"-1", -1}};
    if (is_real) {
      values.emplace_back("1.7976931348623157e308", std::numeric_limits<double>::max());
      values.emplace_back("inf", std::numeric_limits<double>::infinity());
      values.emplace_back("-inf", -std::numeric_limits<double>::infinity());
      values.emplace_back("nan", std::numeric_limits<double>::quiet_NaN());
    } else {
      values.emplace_back("9223372036854775807", 9223372036854775807.0);
      values.emplace_back("-9223372036854775808", -9223372036854775808.0);
      values.emplace_back("9223372036854775808", 9223372036854775808.0);
    }
    for (const auto& [value, number] : values) {
      const std::string error = ErrorOf(text, {absl::StrCat(path, "=", value)});
      if (number >= rule.min() && number <= rule.max()) continue;
      EXPECT_THAT(error, AllOf(HasSubstr(absl::StrCat("--set ", path, "=", value, ": ", path, ": found ")),
                               HasSubstr(absl::StrCat("; allowed: ", AllowedValues(field)))))
          << path << "=" << value;
      rejected.emplace(path, value);
    }
  }
  RecordProperty("pairs", static_cast<int>(rejected.size()));
  EXPECT_GE(rejected.size(), 200u);
}

TEST(BadInputTest, MissingFieldsAreNamed) {
  const std::string cluster =
      "cluster { nodes: 1 accelerator { preset: \"gpu\" } node { gpus: 8 nics: 8 nvlink { bandwidth: 3e11 efficiency: "
      "1 "
      "latency: 0 } nic { efficiency: 1 latency: 0 } } fabric { nodes_per_leaf: 1 hop_latency: 0 } }";
  const std::string error =
      ErrorOf("model { layers: 2 }\nsoftware { preset: \"level\" }\nparallelism { tp: 2 }\ntraining { seq_len: 8 }\n" +
              cluster);
  // A missing field is reported where the innermost block around it begins; columns count from 1.
  const std::string nic = absl::StrCat(cluster.find("nic {") + 1);
  const std::string fabric = absl::StrCat(cluster.find("fabric {") + 1);
  const std::vector<std::string> lines = absl::StrSplit(error, '\n');
  EXPECT_THAT(
      lines,
      ElementsAre("run.txtpb:1:1: model.hidden: is required and missing; allowed: a whole number from 1 to 1048576",
                  "run.txtpb:1:1: model.heads: is required and missing; allowed: a whole number from 1 to 65536",
                  "run.txtpb:1:1: model.vocab: is required and missing; allowed: a whole number from 1 to 100000000",
                  "run.txtpb:4:1: training.global_batch: is required and missing; allowed: a whole number from 1 to "
                  "100000000 sequences",
                  "run.txtpb:5:" + nic +
                      ": cluster.node.nic.bandwidth: is required and missing; allowed: a number "
                      "from 1000 to 1e+16 bytes/s",
                  "run.txtpb:5:" + fabric +
                      ": cluster.fabric.oversubscription: is required and missing; allowed: a "
                      "number from 1 to 1000"));
}

TEST(BadInputTest, AllErrorsInOrderOfPosition) {
  const std::string text =
      "name: 7\n"
      "model { preset: \"tinny\" layer: 3 }\n"
      "cluster { preset: \"pod\" nodes: 0 }\n"
      "software { preset: \"level\" message_mode: BATCH\n"
      "           tp_overlap: maybe }\n"
      "parallelism { tp: 0 pp: two dp 3 }\n"
      "training { global_batch: 1.5 micro_batch: -1 }\n"
      "optimizer { lr: 3 schedule { kind: 2 } }\n"
      "simulation { iterations: 5000 } }\n"
      "perturbation { slow_gpus { rank: 1 } ";
  std::vector<SpecError> errors;
  const absl::Status status =
      LoadRunFromText(text, "run.txtpb", FixtureOptions({"parallelism.cp=3"}), &errors).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  std::vector<std::string> places;
  for (const SpecError& error : errors) {
    places.push_back(absl::StrCat(error.file, ":", error.line, ":", error.column, " ", error.field));
    EXPECT_THAT(error.message, HasSubstr("allowed: "));
  }
  EXPECT_THAT(places, ElementsAre("run.txtpb:1:7 name", "run.txtpb:2:9 model.preset", "run.txtpb:2:25 model.layer",
                                  "run.txtpb:3:25 cluster.nodes", "run.txtpb:4:42 software.message_mode",
                                  "run.txtpb:5:24 software.tp_overlap", "run.txtpb:6:15 parallelism.tp",
                                  "run.txtpb:6:25 parallelism.pp", "run.txtpb:6:29 parallelism.dp",
                                  "run.txtpb:7:26 training.global_batch", "run.txtpb:7:30 training.micro_batch",
                                  "run.txtpb:8:1 optimizer", "run.txtpb:9:14 simulation.iterations", "run.txtpb:9:33 ",
                                  "run.txtpb:10:38 perturbation", "--set parallelism.cp=3:0:0 parallelism.cp"));
  EXPECT_EQ(absl::StrSplit(std::string(status.message()), '\n').begin()->substr(0, 16), "run.txtpb:1:7: n");
}

// 18 GPUs / (tp 2 x pp 2) is no whole number of replicas.
TEST(BadInputTest, GpusThatNoReplicaFits) {
  EXPECT_EQ(
      ErrorOf("model { preset: \"tiny\" } cluster { preset: \"pod\" } software { preset: \"level\" }\n"
              "parallelism { tp: 2 pp: 2 gpus: 18 } training { global_batch: 32 }"),
      "run.txtpb:2:27: parallelism.gpus: found 18, which does not divide by tp x pp x cp = 2 x 2 x 1 = 4; allowed: a "
      "multiple of 4");
}

TEST(BadInputTest, SyntaxErrors) {
  EXPECT_THAT(ErrorOf("model { preset: \"tiny\"\n"),
              HasSubstr("run.txtpb:2:1: model: is not closed at the end; allowed: \"}\""));
  EXPECT_THAT(ErrorOf("model preset\n"), HasSubstr("run.txtpb:1:7: model: found \"preset\"; allowed: a block"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("run.txtpb:1:1: found \"{\" where a field begins; allowed: one of name, model"));
  EXPECT_THAT(ErrorOf("name: \"x\n"), HasSubstr("run.txtpb:1:9: "));
  EXPECT_THAT(ErrorOf("[ext]: 3"), HasSubstr("run.txtpb:1:1: found \"[\" where a field begins"));
  EXPECT_THAT(ErrorOf("simulation { without: [CAUSE_HOST"), HasSubstr("simulation.without: found the end in a list"));
  EXPECT_THAT(ErrorOf("name: \"\\xff\""), HasSubstr("name: found bytes that are not UTF-8"));
  EXPECT_THAT(ErrorOf("name: \"a\" name: \"b\""), HasSubstr("run.txtpb:1:11: name: is written twice; allowed: once"));
}

// Every beginning of a valid file, and every file with one byte replaced, loads or fails; neither crashes.
TEST(BadInputTest, DamagedTexts) {
  const std::string text = GoodText();
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {  // the last byte is a line feed, which nothing needs
    const std::string cut = text.substr(0, i);
    EXPECT_FALSE(LoadRunFromText(cut, "run.txtpb", FixtureOptions()).ok()) << cut;
    for (const char c : {'}', '{', '"', ':', '[', '9', '-', '\n'}) {
      std::string changed = text;
      changed[i] = c;
      (void)LoadRunFromText(changed, "run.txtpb", FixtureOptions());
    }
  }
}

TEST(BadInputTest, DeepAndLongTexts) {
  std::string deep = "unknown ";
  for (int i = 0; i < 100000; ++i) deep += "{ a ";
  EXPECT_THAT(ErrorOf(deep), HasSubstr("unknown: no such field"));
  const std::string closers(100000, '}');
  // 100,000 errors, and those of three missing presets and the missing batch; the first 1,000 are kept.
  EXPECT_THAT(ErrorOf(closers), AllOf(HasSubstr("closes no block"), HasSubstr("\nand 99004 more errors")));
}

// The profile of the fixture has one kernel; the second is written beside it.
TEST(BadInputTest, AttentionKernelTwice) {
  const absl::StatusOr<LoadedRun> loaded = LoadGood();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  v1::Run run = loaded->run;
  v1::Profile& profile = *run.mutable_cluster()->mutable_accelerator()->mutable_profile();
  *profile.add_attention() = profile.attention(0);
  EXPECT_THAT(std::string(ResolveRun(run, FixtureOptions()).status().message()),
              HasSubstr("cluster.accelerator.profile.attention[1].kernel: FLASH_ATTENTION_1 is listed already by "
                        "attention[0] for FP16; allowed: once"));
}

// A thousand and one ranks outside of a world of 1,024: fields of the elements up to the thousandth have columns, and
// errors beyond the thousandth are counted.
TEST(BadInputTest, LongLists) {
  std::string text =
      "model { preset: \"tiny\" } cluster { preset: \"pod\" nodes: 128 } software { preset: \"level\" }\n"
      "parallelism { dp: 1024 } training { global_batch: 1024 }\nperturbation {\n";
  for (int i = 0; i <= 1000; ++i) absl::StrAppend(&text, "slow_gpus { rank: ", 1024 + i, " factor: 2 }\n");
  text += "}\n";
  const std::string error = ErrorOf(text);
  EXPECT_THAT(error, HasSubstr("run.txtpb:1003:13: perturbation.slow_gpus[999].rank: found 2023 in a world of 1024"));
  EXPECT_THAT(error, HasSubstr("\nand 1 more errors"));
  // The last one alone: the position is that of its block.
  for (int i = 0; i < 1000; ++i) {
    const std::string rank = absl::StrCat("rank: ", 1024 + i, " ");
    text.replace(text.find(rank), rank.size(), absl::StrCat("rank: ", i, " "));
  }
  EXPECT_THAT(ErrorOf(text), HasSubstr("run.txtpb:1004:11: perturbation.slow_gpus[1000].rank: found 2024 in a world"));
}

TEST(BadInputTest, BytesBeyondAscii) {
  EXPECT_EQ(ErrorOf("\xEF\xBB\xBF" + GoodText()), "");
  const std::string error = ErrorOf(GoodText() + "\xC3\xA4\xC3\xB6: 3\n");
  EXPECT_THAT(error,
              HasSubstr("run.txtpb:6:1: found a character beyond ASCII; allowed: only inside quotes and comments"));
  EXPECT_THAT(error, Not(HasSubstr("codepoint")));
  EXPECT_THAT(error, Not(HasSubstr("\xC3")));
  EXPECT_EQ(ErrorOf(GoodText(), {"name=\xFF"}),
            "--set name=\\xff: found bytes that are not UTF-8; allowed: path=value in UTF-8");
  EXPECT_THAT(ErrorOf(GoodText(), {"name"}), HasSubstr("--set name: is no override; allowed: path=value"));
}

TEST(BadInputTest, SpecPathsThatAreNoFolders) {
  const TemporaryFolder folder;
  for (const std::string& path : {std::string(), folder.path() + "/none", folder.Write("file", "x")}) {
    LoadOptions options = FixtureOptions();
    options.spec_path.insert(options.spec_path.begin(), path);
    const auto names_it = HasSubstr(absl::StrCat("spec path \"", path, "\": "));
    std::vector<SpecError> errors;
    const absl::Status status = LoadRunFromText(GoodText(), "run.txtpb", options, &errors).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), names_it);
    EXPECT_EQ(errors.size(), 1u);
    EXPECT_THAT(std::string(ListPresets("models", options).status().message()), names_it);
    v1::Model model;
    EXPECT_THAT(std::string(LoadPreset("tiny", options, &model).message()), names_it);
  }
}

// One stage sends no messages that could not be cut; a run on one node uses no NIC.
TEST(BadInputTest, WhatIsNotUsedIsNotJudged) {
  const std::vector<std::string> odd = {"parallelism.sequence_parallel=false", "training.seq_len=3",
                                        "model.hidden=1023", "model.head_dim=64", "model.ffn_hidden=4096"};
  std::vector<std::string> one_stage = odd;
  one_stage.push_back("parallelism.pp=1");
  EXPECT_THAT(ErrorOf(GoodText(), odd), HasSubstr("pipeline messages"));
  EXPECT_EQ(ErrorOf(GoodText(), one_stage), "");
  EXPECT_EQ(ErrorOf(GoodText(), {"cluster.node.nic.bandwidth=1000", "parallelism.dp=2"}), "");
}

std::string FileErrorOf(const std::string& path) {
  const absl::Status status = LoadRun(path, FixtureOptions()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(BadInputTest, FilesThatAreNoSpec) {
  const TemporaryFolder folder;
  const std::string empty = folder.Write("empty.txtpb", "");
  EXPECT_EQ(FileErrorOf(empty), empty + ": is empty; allowed: a protobuf text");
  const std::string comments = folder.Write("comments.txtpb", "# nothing\n\n");
  EXPECT_THAT(FileErrorOf(comments), HasSubstr(comments + ": has no fields; allowed: name, model"));
  const std::string binary = folder.Write("binary.txtpb", std::string("name: \"x\"\0", 10));
  EXPECT_EQ(FileErrorOf(binary), binary + ": is a binary file; allowed: a protobuf text in UTF-8");
  const std::string latin = folder.Write("latin.txtpb", "name: \"f\374r\"");
  EXPECT_EQ(FileErrorOf(latin), latin + ": is a binary file; allowed: a protobuf text in UTF-8");
  EXPECT_THAT(FileErrorOf(folder.path()), AllOf(HasSubstr(folder.path() + ": "), HasSubstr("directory")));
  const std::string missing = folder.path() + "/missing.txtpb";
  EXPECT_THAT(FileErrorOf(missing), AllOf(HasSubstr(missing + ": "), HasSubstr("no such file")));
  // A preset's file can be all that too.
  for (const char* damage : {"", "layers: 1\n\001\377"}) {
    folder.Write("models/tiny.txtpb", damage);
    LoadOptions options = FixtureOptions();
    options.spec_path.insert(options.spec_path.begin(), folder.path());
    const std::string error(LoadRunFromText(GoodText(), "run.txtpb", options).status().message());
    EXPECT_THAT(error, AllOf(HasSubstr("run.txtpb:1:9: model.preset: "), HasSubstr("models/tiny.txtpb: is ")))
        << damage;
  }
}

// Root reads everything, so it becomes somebody else for the moment.
TEST(BadInputTest, UnreadableFile) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("secret.txtpb", GoodText());
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  const bool is_root = geteuid() == 0;
  constexpr uid_t kNobody = 65534;
  if (is_root && seteuid(kNobody) != 0) GTEST_SKIP() << "runs as root and may not become another user";
  const std::string error = FileErrorOf(path);
  if (is_root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_THAT(error, AllOf(HasSubstr(path + ": "), HasSubstr("permission")));
}

}  // namespace
}  // namespace orrery::spec
