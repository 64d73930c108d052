#include "validation/constants.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/format.h"

namespace orrery::validation {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool Serves(const google::protobuf::RepeatedField<int>& types, v1::DataType type) {
  return std::find(types.begin(), types.end(), static_cast<int>(type)) != types.end();
}

// A constant is what it says, not where: one that two presets state alike counts once. What is zero plays no part.
void Add(const std::string& path, double value, std::set<std::string>* names) {
  if (value != 0) names->insert(absl::StrCat(path, " = ", FormatDouble(value)));
}

// All Constants below `message`, by path.
void Collect(const Message& message, const std::string& path, std::set<std::string>* names) {
  if (message.GetDescriptor() == v1::Constant::descriptor()) {
    Add(path, static_cast<const v1::Constant&>(message).value(), names);
    return;
  }
  const google::protobuf::Reflection* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr) continue;
    const std::string inner = absl::StrCat(path, ".", field->name());
    if (!field->is_repeated()) {
      Collect(reflection->GetMessage(message, field), inner, names);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      Collect(reflection->GetRepeatedMessage(message, field, i), absl::StrCat(inner, "[", i, "]"), names);
    }
  }
}

void CollectLink(const v1::Link& link, const std::string& path, std::set<std::string>* names) {
  Add(path + ".efficiency", link.efficiency(), names);
  if (link.message_efficiency() != link.efficiency()) {
    Add(path + ".message_efficiency", link.message_efficiency(), names);
  }
  Add(path + ".latency", link.latency(), names);
}

// What NCCL's times have on this GPU; the tables of its versions are the library's own.
v1::NcclTimes NcclConstants(const v1::Accelerator& accelerator) {
  constexpr std::int64_t kNvlsFrom = 90;
  v1::NcclTimes times = accelerator.nccl_times();
  times.clear_sharp_share();  // no run reduces in switches
  if (accelerator.compute_capability() >= kNvlsFrom) return times;
  times.clear_nvls_launch();
  times.clear_nvls_chunk();
  times.clear_nvls_channel_bandwidth();
  times.clear_nvls_tree_work();
  times.clear_nvls_tree_step();
  return times;
}

}  // namespace

std::set<std::string> ConstantsInUse(const v1::Run& run) {
  v1::Profile profile = run.cluster().accelerator().profile();
  const v1::DataType precision = run.training().precision();
  auto& gemm = *profile.mutable_gemm();
  gemm.erase(std::remove_if(gemm.begin(), gemm.end(),
                            [&](const v1::GemmProfile& entry) { return !Serves(entry.data_types(), precision); }),
             gemm.end());
  auto& attention = *profile.mutable_attention();
  attention.erase(std::remove_if(attention.begin(), attention.end(),
                                 [&](const v1::AttentionProfile& entry) {
                                   return entry.kernel() != run.software().attention_kernel() ||
                                          !Serves(entry.data_types(), precision);
                                 }),
                  attention.end());
  std::set<std::string> names;
  Collect(profile, "profile", &names);
  Collect(NcclConstants(run.cluster().accelerator()), "nccl", &names);
  CollectLink(run.cluster().node().nvlink(), "nvlink", &names);
  CollectLink(run.cluster().node().nic(), "nic", &names);
  Add("hop_latency", run.cluster().fabric().hop_latency(), &names);
  for (int i = 0; i < run.software().overlap_rules_size(); ++i) {
    const v1::OverlapRule& rule = run.software().overlap_rules(i);
    Add(absl::StrCat("overlap_rules[", i, "].compute_factor"), rule.compute_factor(), &names);
    Add(absl::StrCat("overlap_rules[", i, "].communication_factor"), rule.communication_factor(), &names);
  }
  return names;
}

std::set<std::string> ConstantsOf(const google::protobuf::Message& message, const std::string& name) {
  std::set<std::string> names;
  Collect(message, name, &names);
  return names;
}

}  // namespace orrery::validation
