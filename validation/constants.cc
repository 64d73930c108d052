#include "validation/constants.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace orrery::validation {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool Serves(const google::protobuf::RepeatedField<int>& types, v1::DataType type) {
  return std::find(types.begin(), types.end(), static_cast<int>(type)) != types.end();
}

// All Constants below `message`, by path.
void Collect(const Message& message, const std::string& path, std::set<std::string>* names) {
  if (message.GetDescriptor() == v1::Constant::descriptor()) {
    names->insert(path);
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
  Collect(profile, profile.name(), &names);
  for (const char* link : {"nvlink", "nic"}) {
    for (const char* constant : {"efficiency", "message_efficiency", "latency"}) {
      names.insert(absl::StrCat(run.cluster().name(), ".", link, ".", constant));
    }
  }
  names.insert(absl::StrCat(run.cluster().name(), ".hop_latency"));
  for (int i = 0; i < run.software().overlap_rules_size(); ++i) {
    names.insert(absl::StrCat(run.software().name(), ".overlap_rules[", i, "].compute_factor"));
    names.insert(absl::StrCat(run.software().name(), ".overlap_rules[", i, "].communication_factor"));
  }
  return names;
}

}  // namespace orrery::validation
