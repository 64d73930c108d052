// What a graph says of its nodes, against the same told by node and fabric, and by hand.
#include "topology/node_kinds.h"

#include <string>
#include <vector>

#include "base/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/loader.h"

namespace orrery::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void AddDevice(v1::Graph* graph, const std::string& id, v1::DeviceKind kind) {
  v1::Device* const device = graph->add_device();
  device->set_id(id);
  device->set_kind(kind);
}

void AddCable(v1::Graph* graph, const std::string& a, const std::string& b, double bandwidth, std::int64_t count = 1) {
  v1::Cable* const cable = graph->add_cable();
  cable->set_a(a);
  cable->set_b(b);
  cable->set_count(count);
  cable->mutable_link()->set_bandwidth(bandwidth);
  cable->mutable_link()->set_efficiency(0.5);
  cable->mutable_link()->set_message_efficiency(0.25);
  cable->mutable_link()->set_latency(1e-6);
}

// A CPU with GPUs behind PCIe of 10 and a NIC of 4 GB/s at a switch.
void AddServer(v1::Graph* graph, const std::string& name, int gpus) {
  AddDevice(graph, name + "cpu", v1::CPU);
  AddDevice(graph, name + "nic", v1::NIC);
  AddCable(graph, name + "nic", name + "cpu", 8e9);
  AddCable(graph, name + "nic", "switch", 2e9, 2);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    AddDevice(graph, name + std::to_string(gpu), v1::GPU);
    AddCable(graph, name + std::to_string(gpu), name + "cpu", 10e9);
  }
}

v1::Cluster Bare() {
  v1::Cluster cluster;
  cluster.mutable_graph()->set_routing(v1::ADAPTIVE);
  AddDevice(cluster.mutable_graph(), "switch", v1::NETWORK_SWITCH);
  return cluster;
}

absl::StatusOr<NodeKinds> KindsOf(const v1::Cluster& cluster) {
  const absl::StatusOr<Topology> topology = Topology::Build(cluster);
  ORRERY_CHECK(topology.ok());
  return FindNodeKinds(cluster, *topology);
}

TEST(NodeKinds, Generated) {
  v1::Cluster cluster;
  ORRERY_CHECK(
      spec::LoadPreset("dgx-h100-ndr", {.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = {}}, &cluster).ok());
  cluster.set_nodes(2);
  v1::NodeGroup* const more = cluster.add_more_nodes();
  more->set_nodes(1);
  *more->mutable_node() = cluster.node();
  EXPECT_EQ(KindsOf(cluster)->kinds.size(), 1u);
  more->mutable_node()->set_gpus(4);
  more->mutable_node()->set_nics(4);
  more->mutable_node()->set_pcie_switches(4);
  const absl::StatusOr<NodeKinds> kinds = KindsOf(cluster);
  ASSERT_TRUE(kinds.ok()) << kinds.status();
  EXPECT_THAT(kinds->kind_of, ElementsAre(0, 0, 1));
  EXPECT_EQ(kinds->kinds[1].gpus(), 4);
  EXPECT_THAT(kinds->gpus[2], ElementsAre(16, 17, 18, 19));
}

// Three GPUs joined in pairs, and one alone. The GPU, and the link, that has least counts.
TEST(NodeKinds, Pairs) {
  v1::Cluster cluster = Bare();
  v1::Graph* const graph = cluster.mutable_graph();
  AddServer(graph, "a", 3);
  AddServer(graph, "b", 1);
  AddCable(graph, "a0", "a1", 25e9, 2);
  AddCable(graph, "a1", "a2", 25e9);
  AddCable(graph, "a2", "a0", 25e9);
  const absl::StatusOr<NodeKinds> kinds = KindsOf(cluster);
  ASSERT_TRUE(kinds.ok()) << kinds.status();
  ASSERT_EQ(kinds->kinds.size(), 2u);
  EXPECT_THAT(kinds->gpus, ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3)));
  const v1::Node& node = kinds->kinds[0];
  EXPECT_EQ(node.gpus(), 3);
  EXPECT_EQ(node.nvswitches(), 0);
  ASSERT_EQ(node.nvlink_pair_size(), 3);
  EXPECT_EQ(node.nvlink_pair(0).links(), 2);
  EXPECT_EQ(node.nvlinks(), 2);  // of GPU 2
  EXPECT_EQ(node.nvlink().bandwidth(), 50e9);
  EXPECT_EQ(node.nvlink().efficiency(), 0.5);
  EXPECT_EQ(node.nvlink().latency(), 1e-6);
  EXPECT_EQ(node.nics(), 1);
  EXPECT_EQ(node.nic().bandwidth(), 4e9);  // two cables
  EXPECT_EQ(node.nic().message_efficiency(), 0.25);
  // The one NIC has 8 GB/s of PCIe, less than a GPU.
  EXPECT_EQ(node.pcie().bandwidth(), 8e9);
  EXPECT_EQ(node.cpu_vendor(), v1::INTEL);
  EXPECT_EQ(kinds->kinds[1].nvlinks(), 0);
}

TEST(NodeKinds, NvSwitches) {
  v1::Cluster cluster = Bare();
  v1::Graph* const graph = cluster.mutable_graph();
  AddServer(graph, "a", 2);
  AddDevice(graph, "nvs0", v1::NVSWITCH);
  AddDevice(graph, "nvs1", v1::NVSWITCH);
  AddCable(graph, "a0", "nvs0", 25e9, 3);
  // Two switches apart, a GPU on each: no way from one to the other over NVLink.
  v1::Cluster apart = cluster;
  AddCable(apart.mutable_graph(), "a1", "nvs1", 25e9, 4);
  EXPECT_EQ(KindsOf(apart)->kinds[0].nvswitches(), 0);
  AddCable(apart.mutable_graph(), "nvs0", "nvs1", 25e9, 4);
  const absl::StatusOr<NodeKinds> kinds = KindsOf(apart);
  EXPECT_EQ(kinds->kinds[0].nvswitches(), 1);
  EXPECT_EQ(kinds->kinds[0].nvlink().bandwidth(), 75e9);  // of a0
  EXPECT_EQ(kinds->kinds[0].nvlink().latency(), 2e-6);    // up and down
  // One on a switch, the other on none.
  AddCable(graph, "nvs1", "nvs0", 25e9);
  EXPECT_THAT(KindsOf(cluster).status().message(), HasSubstr("\"a1\" hangs on no NVSwitch, \"a0\" of the same node"));
}

}  // namespace
}  // namespace orrery::topology
