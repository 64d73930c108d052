#include "tests/proto/spec_fixture.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/rules.h"

namespace orrery::spec {

using google::protobuf::FieldDescriptor;

std::string GoodText() {
  return "model { preset: \"tiny\" }\n"
         "cluster { preset: \"pod\" }\n"
         "software { preset: \"level\" }\n"
         "parallelism { tp: 2 pp: 2 dp: 4 }\n"
         "training { global_batch: 32 }\n";
}

namespace {

// Fills every number that a profile has, a list with one element.
void Fill(google::protobuf::Message* message) {
  const google::protobuf::Reflection* reflection = message->GetReflection();
  const google::protobuf::Descriptor* type = message->GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const v1::Rule& rule = RuleOf(field);
    const bool is_inner = field->message_type() != nullptr;
    if (!rule.required() && !is_inner) continue;
    if (field->message_type() == v1::Constant::descriptor()) {
      auto* constant = static_cast<v1::Constant*>(reflection->MutableMessage(message, field));
      constant->set_value(std::clamp(0.5, rule.min(), rule.max()));
      if (rule.has_unit()) constant->set_unit(rule.unit());
    } else if (is_inner) {
      Fill(field->is_repeated() ? reflection->AddMessage(message, field) : reflection->MutableMessage(message, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
      const auto smallest = static_cast<std::int64_t>(rule.min());
      field->is_repeated() ? reflection->AddInt64(message, field, smallest)
                           : reflection->SetInt64(message, field, smallest);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      field->is_repeated() ? reflection->AddDouble(message, field, rule.min())
                           : reflection->SetDouble(message, field, rule.min());
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      reflection->SetBool(message, field, false);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection->SetString(message, field, "x");
    }
  }
}

std::string TextOf(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

std::string NcclText() {
  v1::NcclVersion version;
  Fill(&version);
  version.mutable_latency(0)->set_algorithm(v1::RING);
  version.mutable_correction(0)->set_protocol(v1::LL);
  return TextOf(version);
}

std::string NcclTimesText() {
  v1::NcclTimes times;
  Fill(&times);
  times.set_nccl_version("tables");
  // Half a second for every step would be more than the clock can hold, as would be so slow a channel.
  for (v1::Constant* latency :
       {times.mutable_launch(), times.mutable_nvlink_step(), times.mutable_net_step(), times.mutable_nvls_launch(),
        times.mutable_nvls_chunk(), times.mutable_nvls_tree_step()}) {
    latency->set_value(1e-6);
  }
  for (v1::Constant* bandwidth : {times.mutable_channel_bandwidth(), times.mutable_tree_channel_bandwidth(),
                                  times.mutable_nvls_channel_bandwidth()}) {
    bandwidth->set_value(1e10);
  }
  return TextOf(times);
}

std::string ConstantsText() {
  v1::Profile profile;
  Fill(&profile);
  profile.mutable_jitter_sigma()->set_value(0.02);
  // Half a second for every wave of tiles would be more than the clock can hold.
  profile.mutable_gemm(0)->mutable_wave_overhead()->set_value(0);
  v1::AttentionProfile* attention = profile.mutable_attention(0);
  attention->set_kernel(v1::FLASH_ATTENTION_1);
  for (const v1::DataType type : {v1::FP16, v1::BF16, v1::FP32}) {
    profile.mutable_gemm(0)->add_data_types(type);
    attention->add_data_types(type);
  }
  // Efficiencies multiply: with all at their least a run takes longer than can be counted.
  attention->mutable_causal_efficiency()->set_value(1);
  attention->clear_head_dims();
  attention->add_head_dims(64);
  attention->add_head_dims(128);
  return TextOf(profile);
}

}  // namespace

LoadOptions FixtureOptions(std::vector<std::string> overrides) {
  static const TemporaryFolder generated;
  static const std::string profile = generated.Write("profiles/constants.txtpb", ConstantsText());
  static const std::string nccl = generated.Write("nccl/tables.txtpb", NcclText());
  static const std::string times = generated.Write("nccl_times/steps.txtpb", NcclTimesText());
  return {.spec_path = {std::string(ORRERY_SOURCE_DIR) + "/tests/proto/testdata", generated.path()},
          .overrides = std::move(overrides)};
}

absl::StatusOr<LoadedRun> LoadGood(std::vector<std::string> overrides) {
  return LoadRunFromText(GoodText(), "run.txtpb", FixtureOptions(std::move(overrides)));
}

std::string ErrorOf(const std::string& text, std::vector<std::string> overrides) {
  return std::string(LoadRunFromText(text, "run.txtpb", FixtureOptions(std::move(overrides))).status().message());
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = testing::TempDir() + "orrery_spec_XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::Write(const std::string& name, const std::string& contents) const {
  const std::filesystem::path file = std::filesystem::path(path_) / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << contents;
  return file.string();
}

}  // namespace orrery::spec
