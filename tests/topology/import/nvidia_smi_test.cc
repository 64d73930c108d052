// What nvidia-smi topo -m prints.
#include "topology/import/nvidia_smi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/topology/import/samples.h"

namespace orrery::topology {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Server> Read(const std::string& text, Findings* findings, const NvidiaSmiOptions& options = {}) {
  return ReadNvidiaSmi(text, "topo.txt", options, findings);
}

TEST(NvidiaSmiTest, TwoGpusPerNicAndAManagementNic) {
  Findings findings;
  const absl::StatusOr<Server> server = Read(Matrix(), &findings);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->gpus.size(), 4);
  EXPECT_EQ(server->cpus.size(), 2);
  EXPECT_EQ(server->pcie_switches.size(), 2);
  ASSERT_EQ(server->nics.size(), 2);
  EXPECT_EQ(server->nics[0].name, "mlx5_2");  // that of GPUs 0 and 1
  EXPECT_THAT(server->other_nics, ElementsAre("mlx5_0"));
  // Four links to each of three others are 12 of at most 18: without NVSwitch.
  EXPECT_EQ(server->pairs.size(), 6);
  EXPECT_EQ(server->nvlinks(), 12);
  EXPECT_EQ(Irregularity(*server), "");
  EXPECT_THAT(findings.Warnings(), ElementsAre(HasSubstr("mlx5_0: no GPU shares a PCIe switch"),
                                               HasSubstr("rails in the order of the GPUs: mlx5_2, mlx5_1")));
}

TEST(NvidiaSmiTest, MoreLinksThanAGpuHasGoThroughNvswitches) {
  Findings findings;
  NvidiaSmiOptions options;
  options.nvlinks_per_gpu = 10;
  options.nvswitches = 3;
  const absl::StatusOr<Server> server = Read(Matrix(), &findings, options);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->pairs.size(), 0);
  EXPECT_THAT(server->nvswitch_links[3], ElementsAre(2, 1, 1));  // four
  EXPECT_THAT(findings.assumptions(), ElementsAre(HasSubstr("would need 12 and has 10 at most")));
}

// The same facts, pasted in other ways.
TEST(NvidiaSmiTest, PastedForms) {
  std::string spaces;
  for (const char c : Matrix()) spaces += c == '\t' ? std::string("   ") : std::string(1, c);
  std::string crlf;
  for (const char c : Matrix()) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const std::string gpu_rows = Matrix().substr(0, Matrix().find("NIC0\tNODE"));
  const std::string glued = Replaced(gpu_rows, "0-31\t0", "0-310");
  Findings findings;
  for (const std::string& text : {spaces, crlf, "$ nvidia-smi topo -m\n" + gpu_rows}) {
    const absl::StatusOr<Server> server = Read(text, &findings);
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_EQ(server->nics.size(), 2);
    EXPECT_EQ(server->nvlinks(), 12);
    EXPECT_EQ(server->cpus.size(), 2);
    EXPECT_EQ(Irregularity(*server), "");
  }
  EXPECT_TRUE(Read(glued, &findings).ok());
}

// A virtual machine says SYS wherever it does not say PIX; four NICs for eight GPUs, at every second one.
TEST(NvidiaSmiTest, VirtualMachineWithHalfAsManyNics) {
  std::string text = "\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tmlx5_1\n";
  for (int gpu = 0; gpu < 4; ++gpu) {
    text += "GPU" + std::to_string(gpu);
    for (int other = 0; other < 4; ++other) text += gpu == other ? "\tX" : "\tNV12";
    for (int nic = 0; nic < 2; ++nic) text += gpu == 2 * nic ? "\tPIX" : "\tSYS";
    text += "\n";
  }
  Findings findings;
  const absl::StatusOr<Server> server = Read(text, &findings);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->pcie_switches.size(), 4);
  EXPECT_EQ(server->nics[1].pcie_switch, 2);
  EXPECT_EQ(server->nvlinks(), 12);  // 36 directly: through NVSwitches
  EXPECT_EQ(Irregularity(*server), "");
}

// PXB: bridges below a bridge, as where two GPUs and two NICs share a switch in pairs.
TEST(NvidiaSmiTest, BridgesBelowBridgesAreIrregular) {
  const std::string text =
      "\tGPU0\tGPU1\tNIC0\tNIC1\n"
      "GPU0\tX\tPXB\tPIX\tPXB\n"
      "GPU1\tPXB\tX\tPXB\tPIX\n";
  Findings findings;
  const absl::StatusOr<Server> server = Read(text, &findings);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->pcie_switches.size(), 3);
  EXPECT_THAT(Irregularity(*server), HasSubstr("PCIe switches below PCIe switches"));
  EXPECT_EQ(server->nvlinks(), 0);
}

TEST(NvidiaSmiTest, Refusals) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "topo.txt: no matrix of nvidia-smi topo -m"},
      {"GPU-NIC: PIX for every pair\n", "no matrix"},
      {Replaced(Matrix(), "NV4\tNV4\tNV4\tNODE", "NV4\tNV4\tNV4"),
       "topo.txt:2: row GPU0, column NIC2: \"0-31\"; allowed: X, NV<links>"},
      {Replaced(Matrix(), "GPU3\tNV4", "GPU2\tNV4"), "topo.txt:5: row \"GPU2\" stands in line 4 too"},
      {Replaced(Matrix(), "GPU3\tNV4", "GPU9\tNV4"), "topo.txt:5: row \"GPU9\" has no column of its own"},
      {Replaced(Matrix(), "GPU0\t X ", "GPU0\tNV4"), "allowed: X where a device meets itself"},
      {Replaced(Matrix(), "GPU1\tGPU2", "GPU0\tGPU2"), "column \"GPU0\" stands there twice"},
      {Replaced(Matrix(), "GPU1\tNV4\t X ", "GPU1\tNV0\t X "), "\"NV0\""},
      {Replaced(Matrix(), "GPU1\tNV4\t X ", "GPU1\tNV99999999999\t X "), "\"NV99999999999\""},
      {Matrix().substr(0, Matrix().find("GPU3\tNV4")), "topo.txt:1: column GPU3 has no row of its own"},
      {Replaced(Matrix(), "NIC0\tNIC1", "NIC0\tGPU7"), "behind those of NICs"}};
  for (const auto& [text, message] : cases) {
    Findings findings;
    EXPECT_THAT(Read(text, &findings).status().message(), HasSubstr(message));
  }
}

TEST(NvidiaSmiTest, DirectionsThatDifferAreReported) {
  Findings findings;
  const absl::StatusOr<Server> server = Read(Replaced(Matrix(), "GPU1\tNV4\t X ", "GPU1\tNV2\t X "), &findings);
  ASSERT_TRUE(server.ok());
  EXPECT_EQ(server->pairs[0].links(), 2);
  EXPECT_THAT(findings.Warnings(), Contains(HasSubstr("4 NVLinks from GPU0 to GPU1 and 2 back; taken: 2")));
}

}  // namespace
}  // namespace orrery::topology
