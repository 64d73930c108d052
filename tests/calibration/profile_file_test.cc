#include "calibration/profile_file.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace orrery::calibration {
namespace {

spec::LoadOptions Shipped() { return {.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = {}}; }

std::string WriteTemporary(const std::string& name, const std::string& text) {
  std::string path = testing::TempDir() + "/" + name;
  EXPECT_TRUE(WriteFile(path, text).ok());
  return path;
}

// Text and message are two forms of one thing, for every shipped profile.
TEST(ProfileFile, TextLoadsToTheSameProfile) {
  for (const char* name : {"a100", "h100", "h200", "b200", "gb300"}) {
    const absl::StatusOr<v1::Profile> profile = LoadProfile(name, Shipped());
    ASSERT_TRUE(profile.ok()) << profile.status();
    const std::string text = ProfileText(*profile, {"a comment"});
    const absl::StatusOr<v1::Profile> again = LoadProfile(WriteTemporary("again.txtpb", text), Shipped());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->SerializeAsString(), profile->SerializeAsString()) << name;
    EXPECT_EQ(ProfileText(*again, {"a comment"}), text);
  }
}

TEST(ProfileFile, EveryConstantHasASourceAndAPathOfItsOwn) {
  for (const char* name : {"a100", "h100", "h200", "h800", "b200", "b300", "gb200", "gb300"}) {
    const absl::StatusOr<v1::Profile> profile = LoadProfile(name, Shipped());
    ASSERT_TRUE(profile.ok()) << profile.status();
    std::set<std::string> paths;
    for (const ListedConstant& constant : ListConstants(*profile)) {
      if (!constant.is_constant) continue;
      EXPECT_FALSE(constant.source.empty()) << name << " " << constant.path;
      EXPECT_TRUE(paths.insert(constant.path).second) << name << " " << constant.path;
    }
  }
}

TEST(ProfileFile, BadFilesAreErrors) {
  EXPECT_EQ(LoadProfile("no-such-profile", Shipped()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(CheckPresetName("accelerators", "h100-sxm-80gp", Shipped()).message()),
              testing::HasSubstr("did you mean 'h100-sxm-80gb'?"));
  EXPECT_FALSE(LoadProfile("/no/such/file.txtpb", Shipped()).ok());
  const std::string wrong = WriteTemporary("wrong.txtpb", "name: \"x\"\ngemm { overhead { value: -1 } }\n");
  const absl::Status status = LoadProfile(wrong, Shipped()).status();
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("wrong.txtpb:2:"));
  EXPECT_FALSE(LoadProfile(WriteTemporary("empty.txtpb", ""), Shipped()).ok());
}

}  // namespace
}  // namespace orrery::calibration
