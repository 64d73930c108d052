// Inputs that somebody broke: seeded mutations of the samples. Whatever comes, the importers answer with a cluster that
// can be built, or with one line that names the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/topology/import/samples.h"
#include "topology/import/import.h"

namespace orrery::topology {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Replaces, inserts, deletes, doubles or cuts a few pieces.
std::string Mutated(std::string text, std::mt19937_64* random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>((*random)() % n); };
  constexpr const char* kPieces[] = {"\"",
                                     "<",
                                     ">",
                                     "/",
                                     "[",
                                     "]",
                                     "\n",
                                     "\r\n",
                                     "\t",
                                     "0",
                                     "99999999999999999999",
                                     "-1",
                                     "\xff\xfe",
                                     "NV",
                                     "X",
                                     "S-",
                                     "4x",
                                     "&a;",
                                     "<pci>",
                                     "Switch 2 \"S-1\"\n",
                                     "nan",
                                     "\x1b[4m"};
  for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
    const std::size_t at = text.empty() ? 0 : below(text.size());
    const std::size_t size = std::min(text.size() - at, 1 + below(40));
    switch (below(6)) {
      case 0:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 1:
        text.erase(at, size);
        break;
      case 2:
        text.insert(below(text.size() + 1), text.substr(at, size));
        break;
      case 3:
        if (!text.empty()) text[at] = static_cast<char>(below(256));
        break;
      case 4:
        text.replace(at, size, kPieces[below(std::size(kPieces))]);
        break;
      default:
        if (below(4) == 0) text.resize(at);
    }
  }
  return text;
}

int Rounds() { return std::getenv("ORRERY_SANITIZER") != nullptr ? 150 : 1500; }

class HostileTest : public ::testing::Test {
 protected:
  // Imports the options with one of their files mutated over and over.
  void Torture(ImportOptions options, std::optional<ImportFile> ImportOptions::*input, std::uint64_t seed) {
    options.load.spec_path = {ORRERY_SOURCE_DIR "/specs"};
    options.accelerator = "a100-sxm-80gb";
    options.like = "selene";
    const ImportFile original = *(options.*input);
    std::mt19937_64 random(seed);
    int imported = 0;
    for (int round = 0; round < Rounds(); ++round) {
      options.*input = ImportFile{original.name, Mutated(original.text, &random)};
      const absl::StatusOr<ImportResult> result = Import(options);
      if (result.ok()) {
        ++imported;
        EXPECT_EQ(CheckLoads(options, ImportedText(options, *result), "out.txtpb"), absl::OkStatus());
        continue;
      }
      EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
      EXPECT_THAT(result.status().message(), Not(HasSubstr("\n")));
      EXPECT_THAT(result.status().message(), HasSubstr(original.name)) << (options.*input)->text;
    }
    // Both answers occur, or the mutations test nothing.
    EXPECT_GT(imported, 0);
    EXPECT_LT(imported, Rounds());
  }
};

TEST_F(HostileTest, NcclTopology) {
  ImportOptions options;
  options.nccl_xml = ImportFile{"topo.xml", DumpedNode()};
  Torture(options, &ImportOptions::nccl_xml, 1);
}

TEST_F(HostileTest, NcclGraph) {
  ImportOptions options;
  options.nccl_xml = ImportFile{"topo.xml", DumpedNode()};
  options.nccl_graph = ImportFile{"graph.xml", Channels()};
  Torture(options, &ImportOptions::nccl_graph, 2);
}

TEST_F(HostileTest, NvidiaSmi) {
  ImportOptions options;
  options.nvidia_smi = ImportFile{"topo.txt", Matrix()};
  Torture(options, &ImportOptions::nvidia_smi, 3);
}

TEST_F(HostileTest, Ibnetdiscover) {
  ImportOptions options;
  FatTree tree;
  tree.hosts = 4;
  tree.per_leaf = 2;
  tree.uplinks = 1;
  options.ibnetdiscover = ImportFile{"fabric.txt", Discovered(tree)};
  Torture(options, &ImportOptions::ibnetdiscover, 4);
}

TEST_F(HostileTest, Ibsim) {
  ImportOptions options;
  options.ibnetdiscover = ImportFile{"fabric.net", Simulated()};
  Torture(options, &ImportOptions::ibnetdiscover, 5);
}

}  // namespace
}  // namespace orrery::topology
