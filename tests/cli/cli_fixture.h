// Runs the built binary and catches what it says.
#ifndef ORRERY_TESTS_CLI_CLI_FIXTURE_H_
#define ORRERY_TESTS_CLI_CLI_FIXTURE_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace orrery::cli {

namespace fs = std::filesystem;

inline std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

class CliTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "orrery_cli_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path Path(const std::string& name) const { return folder_ / name; }
  std::string File(const std::string& name, const std::string& contents) const {
    std::ofstream(Path(name), std::ios::binary) << contents;
    return Path(name).string();
  }

  // What a shell makes of `command`, in which "$ORRERY" is the binary.
  Outcome Shell(const std::string& command) const {
    const std::string script = "ORRERY='" ORRERY_BINARY "'; { " + command + "\n} >'" + Path("stdout").string() +
                               "' 2>'" + Path("stderr").string() + "'";
    const int status = std::system(script.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Contents(Path("stdout")), Contents(Path("stderr"))};
  }

  // Runs the binary with `arguments` as a shell would split them.
  Outcome Orrery(const std::string& arguments) const { return Shell("\"$ORRERY\" " + arguments); }

  static std::string Example(const std::string& name) { return ORRERY_SOURCE_DIR "/specs/runs/" + name + ".txtpb"; }

 private:
  fs::path folder_;
};

}  // namespace orrery::cli

#endif  // ORRERY_TESTS_CLI_CLI_FIXTURE_H_
