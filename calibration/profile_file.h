// Profiles as files: read one by path, write one, list what is in it.
#ifndef ORRERY_CALIBRATION_PROFILE_FILE_H_
#define ORRERY_CALIBRATION_PROFILE_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "orrery/v1/profile.pb.h"
#include "proto/loader.h"

namespace orrery::calibration {

// The profile in the file `path`, with the presets that it starts from underneath, checked against its rules.
absl::StatusOr<v1::Profile> LoadProfileFile(const std::string& path, const spec::LoadOptions& options);
// INVALID_ARGUMENT that lists the presets of a kind where none has that name.
absl::Status CheckPresetName(std::string_view kind, const std::string& name, const spec::LoadOptions& options);
// By the name of a preset, or by a path where `name` ends in ".txtpb".
absl::StatusOr<v1::Profile> LoadProfile(const std::string& name, const spec::LoadOptions& options);

// One line a constant; `comment` (lines without "#") stands between the file's header and the fields. Equal profiles
// give equal bytes; loading the text gives the profile.
std::string ProfileText(const v1::Profile& profile, const std::vector<std::string>& comment);

// The fields of any message of a spec, one line a constant, without a header.
std::string MessageText(const google::protobuf::Message& message);

// A number of a profile: a Constant, or one that describes a kernel (the sides of a tile, a head dimension).
struct ListedConstant {
  std::string path;  // "gemm[FP16].overhead": entries of a list by what sets them apart
  std::string value;
  std::string unit;
  std::string source;
  bool is_constant = false;
};
// In the order of the schema.
std::vector<ListedConstant> ListConstants(const v1::Profile& profile);

}  // namespace orrery::calibration

#endif  // ORRERY_CALIBRATION_PROFILE_FILE_H_
