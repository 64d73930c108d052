// A run on the small presets of testdata/, and what tests do with it.
#ifndef ORRERY_TESTS_PROTO_SPEC_FIXTURE_H_
#define ORRERY_TESTS_PROTO_SPEC_FIXTURE_H_

#include <string>
#include <vector>

#include "proto/loader.h"

namespace orrery::spec {

// tiny (12 layers, hidden 1024, 16 heads, vocabulary 32000) on pod (16 nodes x 8 GPUs) by level; tp 2, pp 2, dp 4,
// batch 32. Lines: 1 model, 2 cluster, 3 software, 4 parallelism, 5 training.
std::string GoodText();

// testdata/, a profile "constants", nccl_times "steps" and nccl "tables" that have whatever the schema asks of them, at
// arbitrary values within their ranges but: jitter_sigma 0.02, times of FLASH_ATTENTION_1 for heads of 64 and 128.
LoadOptions FixtureOptions(std::vector<std::string> overrides = {});

// GoodText with overrides.
absl::StatusOr<LoadedRun> LoadGood(std::vector<std::string> overrides = {});

// The message of the failed load of `text`; "" where it loads.
std::string ErrorOf(const std::string& text, std::vector<std::string> overrides = {});

// A new folder that is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  // Writes a file, making folders as needed; its path.
  std::string Write(const std::string& name, const std::string& contents) const;

 private:
  std::string path_;
};

}  // namespace orrery::spec

#endif  // ORRERY_TESTS_PROTO_SPEC_FIXTURE_H_
