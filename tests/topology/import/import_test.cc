// From files to a cluster: what is regular, what is a graph, and that either loads and has what the files have.
#include "topology/import/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/reference.h"
#include "tests/topology/import/load.h"
#include "tests/topology/import/samples.h"
#include "topology/topology.h"

namespace orrery::topology {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

ImportFile File(const std::string& name, const std::string& text) { return {name, text}; }

ImportOptions Options() {
  ImportOptions options;
  options.load.spec_path = {ORRERY_SOURCE_DIR "/specs"};
  options.accelerator = "a100-sxm-80gb";
  options.command = "orrery topology import";
  return options;
}

bool HasCable(const v1::Graph& graph, const std::string& a, const std::string& b) {
  return std::any_of(graph.cable().begin(), graph.cable().end(),
                     [&](const v1::Cable& cable) { return cable.a() == a && cable.b() == b; });
}

std::string Refusal(const ImportOptions& options) { return std::string(Import(options).status().message()); }

TEST(ImportTest, ANodeByItself) {
  ImportOptions options = Options();
  options.nccl_xml = File("topo.xml", DumpedNode());
  const absl::StatusOr<ImportResult> result = Import(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->irregularity, "");
  EXPECT_EQ(result->cluster.nodes(), 1);
  const v1::Node& node = result->cluster.node();
  EXPECT_EQ(node.gpus(), 4);
  EXPECT_EQ(node.nics(), 4);
  EXPECT_EQ(node.nic().bandwidth(), 25e9);
  EXPECT_EQ(node.nvswitches(), 2);
  EXPECT_EQ(node.nvlinks(), 5);
  EXPECT_EQ(node.pcie_switches(), 4);
  EXPECT_EQ(node.cpus(), 2);
  EXPECT_EQ(node.cpu_vendor(), v1::AMD);
  const absl::StatusOr<Topology> topology = LoadTopology(ImportedText(options, *result));
  ASSERT_TRUE(topology.ok()) << topology.status();
  // 4 GPUs x 5 links.
  EXPECT_EQ(topology->Cables(LinkKind::kNvlink), 20);
}

TEST(ImportTest, ManyNodesTakeTheFabricOfAPreset) {
  ImportOptions options = Options();
  options.nvidia_smi = File("topo.txt", Matrix());
  options.nodes = 20;
  options.like = "selene";
  const absl::StatusOr<ImportResult> result = Import(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->findings.assumptions(), Contains(HasSubstr("fabric: all of it as in preset selene")));
  const absl::StatusOr<Topology> topology = LoadTopology(ImportedText(options, *result));
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->gpus(), 80);
}

// dgx-h100-ndr: 32 nodes under leaves of 32 x 25 / 50 = 16 uplinks; a pod of 128 nodes has 4 x 4 leaves of 16 cables,
// which fill 8 spines of 32 ports down and 32 up; each spine reaches at most 32 cores of 64 ports, so 64 pods.
TEST(ImportTest, MoreNodesThanThePresetsFabricHolds) {
  ImportOptions options = Options();
  options.nccl_xml = File("topo.xml", DumpedNode());
  options.like = "dgx-h100-ndr";
  options.nodes = 8192;
  const absl::StatusOr<ImportResult> result = Import(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->irregularity, "");
  EXPECT_EQ(result->cluster.nodes(), 8192);
  const absl::StatusOr<Topology> topology = LoadTopology(ImportedText(options, *result));
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->gpus(), 8192 * 4);
  for (const std::int64_t nodes : {8193, 10'000, 10'000'000}) {
    options.nodes = nodes;
    EXPECT_THAT(Refusal(options),
                AllOf(HasSubstr("--nodes " + std::to_string(nodes) + ": the fabric of preset dgx-h100-ndr holds 8192 "),
                      HasSubstr("allowed: 1 to 8192 nodes, or --like"), Not(HasSubstr("\n"))));
  }
}

TEST(ImportTest, LikeAGraphWithoutNodeAndFabric) {
  ImportOptions options = Options();
  options.nccl_xml = File("topo.xml", DumpedNode());
  options.like = "two-servers-graph";
  const char* refusal = "--like two-servers-graph: is given device by device, without node and fabric";
  EXPECT_THAT(Refusal(options), HasSubstr(refusal));
  options.accelerator = "";
  EXPECT_THAT(Refusal(options), HasSubstr(refusal));
}

TEST(ImportTest, WhatCannotBeReadAgain) {
  ImportOptions options = Options();
  options.nccl_xml = File("topo.xml", DumpedNode());
  absl::StatusOr<ImportResult> result = Import(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(CheckLoads(options, ImportedText(options, *result), "out.txtpb"), absl::OkStatus());
  const auto refusal = [&] {
    const absl::Status status = CheckLoads(options, ImportedText(options, *result), "out.txtpb");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  // A rule of the loader, two errors.
  v1::Link* nic = result->cluster.mutable_node()->mutable_nic();
  const double bandwidth = nic->bandwidth();
  nic->set_bandwidth(0);
  result->cluster.set_nodes(0);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("so it is not written: out.txtpb:"), HasSubstr("nodes: found 0; allowed: "),
                               EndsWith(" (and 1 more)"), Not(HasSubstr("\n"))));
  nic->set_bandwidth(bandwidth);
  result->cluster.set_nodes(1);
  EXPECT_EQ(CheckLoads(options, ImportedText(options, *result), "out.txtpb"), absl::OkStatus());
  // A graph of its own, which has no GPU.
  v1::Device* device = result->cluster.mutable_graph()->add_device();
  device->set_id("nic");
  device->set_kind(v1::NIC);
  EXPECT_THAT(refusal(), HasSubstr("GPUs, of which graph has 0"));
}

// 8 hosts, two rails, 4 hosts per leaf, 2 spines with 2 cables from each leaf: 4 x 50 GB/s below a leaf and above it.
TEST(ImportTest, ARegularFabric) {
  ImportOptions options = Options();
  options.ibnetdiscover = File("fabric.txt", Discovered({}));
  options.nvidia_smi =
      File("topo.txt", Replaced(Replaced(Matrix(), "NIC1: mlx5_1", "NIC1: mlx5_0"), "NIC2: mlx5_2", "NIC2: mlx5_1"));
  const absl::StatusOr<ImportResult> result = Import(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->irregularity, "");
  EXPECT_FALSE(result->cluster.has_graph());
  EXPECT_EQ(result->cluster.nodes(), 8);
  EXPECT_EQ(result->cluster.fabric().nodes_per_leaf(), 4);
  EXPECT_EQ(result->cluster.fabric().oversubscription(), 1);
  EXPECT_TRUE(result->cluster.fabric().rail_optimised());
  EXPECT_EQ(result->cluster.node().nic().bandwidth(), 50e9);
  EXPECT_EQ(result->hosts.size(), 8);
  const absl::StatusOr<Topology> topology = LoadTopology(ImportedText(options, *result));
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->Count(DeviceKind::kLeaf), 4);
  EXPECT_EQ(topology->Count(DeviceKind::kSpine), 2);
  EXPECT_EQ(topology->Cables(LinkKind::kLeafSpine), 16);
}

TEST(ImportTest, OversubscriptionIsWhatIsBelowALeafToWhatIsAboveIt) {
  FatTree tree;
  tree.uplinks = 1;
  ImportOptions options = Options();
  options.ibnetdiscover = File("fabric.txt", Discovered(tree));
  const absl::StatusOr<ImportResult> result = Import(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->irregularity, "");
  EXPECT_EQ(result->cluster.fabric().oversubscription(), 2);
  EXPECT_EQ(result->cluster.node().gpus(), 2);  // one per port
  EXPECT_THAT(result->findings.Warnings(), Contains(HasSubstr("one GPU per HCA port is assumed")));
}

// One of 16 cables at a twelfth of the speed.
TEST(ImportTest, ADegradedCableMakesAGraphAndKeepsItsSpeed) {
  FatTree tree;
  tree.first_uplink = "4xQDR";
  ImportOptions options = Options();
  options.ibnetdiscover = File("fabric.txt", Discovered(tree));
  const absl::StatusOr<ImportResult> result = Import(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->irregularity, "degraded cables");
  int slow = 0;
  for (const v1::Cable& cable : result->cluster.graph().cable()) {
    if (cable.link().bandwidth() != 4e9) continue;
    ++slow;
    EXPECT_EQ(cable.a(), "leaf0");
    EXPECT_EQ(cable.b(), "spine0");
    EXPECT_EQ(cable.has_count(), false);
  }
  EXPECT_EQ(slow, 1);
  EXPECT_THAT(result->findings.Warnings(), Contains(HasSubstr("degraded cable")));
  const absl::StatusOr<Topology> topology = LoadTopology(ImportedText(options, *result));
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->gpus(), 16);
  EXPECT_EQ(topology->Count(DeviceKind::kSpine), 2);
  EXPECT_EQ(topology->Cables(LinkKind::kLeafSpine), 16);
  EXPECT_EQ(topology->Cables(LinkKind::kNicLeaf), 16);
}

// Two ports and one: three GPUs, of which two nodes alike have two. The graph has them all.
TEST(ImportTest, HostsOfDifferentSizes) {
  ImportOptions options = Options();
  options.ibnetdiscover = File("fabric.txt",
                               "Switch 40 \"S-1\" # \"s\" base port 0 lid 1 lmc 0\n"
                               "[1] \"H-1\"[1] # \"a mlx5_0\" lid 2 4xHDR\n[2] \"H-2\"[1] # \"a mlx5_1\" lid 3 4xHDR\n"
                               "[3] \"H-3\"[1] # \"b mlx5_0\" lid 4 4xHDR\n");
  const absl::StatusOr<ImportResult> result = Import(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->irregularity, "hosts with different numbers of HCA ports");
  EXPECT_EQ(result->cluster.nodes(), 2);
  EXPECT_EQ(result->cluster.node().gpus(), 1);
  EXPECT_EQ(result->cluster.node().nics(), 1);
  EXPECT_EQ(CheckLoads(options, ImportedText(options, *result), "out.txtpb"), absl::OkStatus());
  const absl::StatusOr<Topology> topology = LoadTopology(ImportedText(options, *result));
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->gpus(), 3);
}

TEST(ImportTest, HostsWithoutGpusAreLeftOut) {
  ImportOptions options = Options();
  options.ibnetdiscover = File("fabric.txt", Discovered({}));
  options.gpu_hosts = {"node1", "node2", "node5"};
  const absl::StatusOr<ImportResult> result = Import(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->hosts, ElementsAre("node1", "node2", "node5"));
  EXPECT_EQ(result->other_hosts.size(), 5);
  EXPECT_THAT(result->findings.Warnings(), Contains(HasSubstr("5 hosts without GPUs: node0, node3")));
  options.gpu_hosts = {"gpu"};
  EXPECT_EQ(Refusal(options), "fabric.txt: no host begins with gpu; found: 2 ports: 8 hosts");
  options.gpu_hosts = {};
  options.nccl_xml = File("topo.xml", DumpedNode());
  EXPECT_EQ(Refusal(options), "fabric.txt: no host has the 4 NICs of the node in topo.xml; found: 2 ports: 8 hosts");
  for (const std::vector<std::string>& prefixes : {std::vector<std::string>{""}, {"node1", ""}}) {
    options.gpu_hosts = prefixes;
    EXPECT_THAT(Refusal(options), HasSubstr("--gpu-hosts must not be empty"));
  }
  options.gpu_hosts = {"node1"};
  EXPECT_THAT(Refusal(options), HasSubstr("host node1 has 2 ports in the fabric, the node of topo.xml 4 NICs"));
}

// NIC 0 of the matrix is management and not in the fabric; NICs 1 and 2 are on the second and first rail.
TEST(ImportTest, NicsFindTheirHcaByNameElseByOrder) {
  FatTree tree;
  tree.rails = 3;
  ImportOptions options = Options();
  options.ibnetdiscover = File("fabric.txt", Discovered(tree));
  options.nvidia_smi = File("topo.txt", Matrix());
  const absl::StatusOr<ImportResult> by_name = Import(options);
  ASSERT_TRUE(by_name.ok()) << by_name.status();
  // GPUs 0 and 1 are at mlx5_2, whose leaf is the third of the group.
  EXPECT_TRUE(HasCable(by_name->cluster.graph(), "node0/nic0", "leaf2"));
  const std::string unnamed = Matrix().substr(0, Matrix().find("NIC Legend"));
  options.nvidia_smi = File("topo.txt", unnamed);
  const absl::StatusOr<ImportResult> by_order = Import(options);
  ASSERT_TRUE(by_order.ok()) << by_order.status();
  EXPECT_THAT(by_order->findings.assumptions(), Contains(HasSubstr("in natural order of their names")));
  EXPECT_TRUE(HasCable(by_order->cluster.graph(), "node0/nic0", "leaf2"));
}

TEST(ImportTest, TheFabricKnowsTheSpeedOfAPort) {
  FatTree tree;
  tree.rails = 4;
  ImportOptions options = Options();
  options.ibnetdiscover = File("fabric.txt", Discovered(tree));
  options.nccl_xml = File("topo.xml", DumpedNode());
  const absl::StatusOr<ImportResult> result = Import(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->cluster.node().nic().bandwidth(), 50e9);
  EXPECT_THAT(result->findings.Warnings(),
              Contains(HasSubstr("mlx5_3 has 25 GB/s there, 50 in fabric.txt; taken: the fabric's")));
}

TEST(ImportTest, IrregularNodesAreGraphs) {
  // Three GPUs, of which the first shares a bridge with the only NIC, and the others one.
  const std::string xml =
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0:1\" class=\"0x060400\">"
      "<pci busid=\"0:2\" class=\"0x030200\"/><pci busid=\"0:3\" class=\"0x020700\"/></pci>"
      "<pci busid=\"0:4\" class=\"0x060400\"><pci busid=\"0:5\" class=\"0x030200\"/>"
      "<pci busid=\"0:6\" class=\"0x030200\"/></pci></cpu></system>";
  ImportOptions options = Options();
  options.nccl_xml = File("topo.xml", xml);
  const absl::StatusOr<ImportResult> result = Import(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->irregularity, HasSubstr("not dealt evenly"));
  const absl::StatusOr<Topology> topology = LoadTopology(ImportedText(options, *result));
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->gpus(), 3);
  options.nodes = 2;
  EXPECT_THAT(Refusal(options), AllOf(HasSubstr("topo.xml: a node that is not regular"),
                                      HasSubstr("allowed: --nodes 1, or --ibnetdiscover")));
}

TEST(ImportTest, SaysExactlyWhatIsMissing) {
  ImportOptions options = Options();
  EXPECT_THAT(Refusal(options), HasSubstr("nothing to import; allowed: --nccl-xml or --nvidia-smi for the node"));
  options.nccl_graph = File("graph.xml", Channels());
  EXPECT_THAT(Refusal(options), AllOf(HasSubstr("graph.xml: channels that NCCL found (ring: 1 channels of 20 GB/s"),
                                      HasSubstr("no devices")));
  options.nvidia_smi = File("topo.txt", Matrix());
  options.accelerator = "";
  EXPECT_THAT(Refusal(options), HasSubstr("topo.txt: does not name the GPU; give --accelerator, one of a100"));
  options.accelerator = "a100";
  EXPECT_THAT(Refusal(options), HasSubstr("--accelerator a100: no such preset"));
  options.accelerator = "a100-sxm-40gb";
  EXPECT_THAT(Refusal(options), HasSubstr("no cluster preset has accelerator a100-sxm-40gb"));
  options.like = "selene";
  const absl::StatusOr<ImportResult> like = Import(options);
  ASSERT_TRUE(like.ok()) << like.status();
  EXPECT_EQ(like->cluster.accelerator().preset(), "a100-sxm-40gb");
  EXPECT_THAT(like->graphs, ElementsAre(HasSubstr("ring: 1 channels")));
  options.nccl_xml = File("topo.xml", DumpedNode());
  EXPECT_THAT(Refusal(options), HasSubstr("allowed: one of the two"));
  options.nccl_xml = std::nullopt;
  options.gpu_hosts = {"gpu"};
  EXPECT_THAT(Refusal(options), HasSubstr("allowed: with --ibnetdiscover"));
  options.gpu_hosts = {};
  options.nodes = 0;
  EXPECT_THAT(Refusal(options), HasSubstr("--nodes 0; allowed: 1 to 10000000"));
}

// Every sample of the reference, where it is at hand.
TEST(ImportTest, ReferenceSamples) {
  struct Sample {
    const char* file;
    std::optional<ImportFile> ImportOptions::*input;
    const char* refusal;  // null: it is imported
    std::int64_t gpus;
    const char* gpu_hosts = "";
  };
  const Sample samples[] = {
      {"azure_ndv2-topo.xml", &ImportOptions::nccl_xml, nullptr, 8},
      {"azure_ndv4-topo.xml", &ImportOptions::nccl_xml, nullptr, 8},
      {"azure_ndv5-topo.xml", &ImportOptions::nccl_xml, nullptr, 8},
      {"azure_ncv4-graph.xml", &ImportOptions::nccl_graph, "no devices and no links", 0},
      {"nvidia_smi_topo_h20_8gpu_8nic.txt", &ImportOptions::nvidia_smi, nullptr, 8},
      {"nvidia_smi_topo_h100_8gpu_10nic_gpurows.txt", &ImportOptions::nvidia_smi, nullptr, 8},
      {"nvidia_smi_topo_a100_4gpu_2nic_notes.txt", &ImportOptions::nvidia_smi, "no matrix of nvidia-smi topo -m", 0},
      {"ibnetdiscover_edr_2spine4leaf.txt", &ImportOptions::ibnetdiscover, nullptr, 45, "gpu"},
      {"ibnetdiscover_man_sdr_excerpt.txt", &ImportOptions::ibnetdiscover, nullptr, 2},
      {"ibsim_2switch.net", &ImportOptions::ibnetdiscover, nullptr, 2}};
  int read = 0;
  for (const Sample& sample : samples) {
    const std::string path = tests::ReferenceFile(std::string("topologies/") + sample.file);
    if (path.empty()) continue;
    ++read;
    ImportOptions options = Options();
    options.*sample.input = File(sample.file, ReadText(path));
    if (*sample.gpu_hosts != '\0') options.gpu_hosts = {sample.gpu_hosts};
    const absl::StatusOr<ImportResult> result = Import(options);
    if (sample.refusal != nullptr) {
      EXPECT_THAT(result.status().message(), AllOf(HasSubstr(sample.file), HasSubstr(sample.refusal)));
      continue;
    }
    ASSERT_TRUE(result.ok()) << sample.file << ": " << result.status();
    const absl::StatusOr<Topology> topology = LoadTopology(ImportedText(options, *result));
    ASSERT_TRUE(topology.ok()) << sample.file << ": " << topology.status();
    EXPECT_EQ(topology->gpus(), sample.gpus) << sample.file;
  }
  if (read == 0) GTEST_SKIP() << "no reference files";
}

}  // namespace
}  // namespace orrery::topology
