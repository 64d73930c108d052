// Figures and pictures of topologies, on clusters small enough to count by hand.
#include "reports/topology_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

#include "google/protobuf/text_format.h"
#include "proto/loader.h"
#include "reports/topology_picture.h"
#include "topology/routes.h"
#include "topology/summary.h"
#include "topology/topology.h"

namespace orrery::reports {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using topology::Topology;

// A preset with fields overridden.
Topology Make(const std::string& preset, const std::vector<std::string>& overrides) {
  spec::LoadOptions options;
  options.spec_path = {ORRERY_SOURCE_DIR "/specs"};
  options.overrides = overrides;
  const absl::StatusOr<v1::Cluster> cluster = spec::LoadCluster(preset, options);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  absl::StatusOr<Topology> topology = Topology::Build(*cluster);
  EXPECT_TRUE(topology.ok()) << topology.status();
  return *std::move(topology);
}

// Two hosts of one GPU and one NIC on a switch each; two parallel cables between the switches, one of them at a tenth
// of the other.
Topology SlowCable() {
  v1::Cluster cluster;
  v1::Graph* graph = cluster.mutable_graph();
  graph->set_routing(v1::ADAPTIVE);
  graph->set_hash_seed(1);
  const auto device = [&](const std::string& id, v1::DeviceKind kind, const std::string& host) {
    v1::Device* added = graph->add_device();
    added->set_id(id);
    added->set_kind(kind);
    if (!host.empty()) added->set_host(host);
  };
  const auto cable = [&](const std::string& a, const std::string& b, double bandwidth) {
    v1::Cable* added = graph->add_cable();
    added->set_a(a);
    added->set_b(b);
    added->set_count(1);
    v1::Link* link = added->mutable_link();
    link->set_bandwidth(bandwidth);
    link->set_efficiency(1);
    link->set_message_efficiency(1);
    link->set_latency(1e-6);
  };
  for (const std::string i : {"0", "1"}) {
    device("g" + i, v1::GPU, "h" + i);
    device("n" + i, v1::NIC, "h" + i);
    device("s" + i, v1::NETWORK_SWITCH, "");
    cable("g" + i, "n" + i, 20e9);
    cable("n" + i, "s" + i, 10e9);
  }
  device("t", v1::NETWORK_SWITCH, "");
  cable("s0", "t", 10e9);
  cable("s1", "t", 1e9);
  absl::StatusOr<Topology> topology = Topology::Build(cluster);
  EXPECT_TRUE(topology.ok()) << topology.status();
  return *std::move(topology);
}

TEST(TopologyReportTest, ASlowerCableIsNamed) {
  const Topology topology = SlowCable();
  const topology::Summary summary = topology::Summarise(topology);
  const std::string text = TopologyText("two", topology, summary);
  EXPECT_THAT(text,
              AllOf(HasSubstr("two: 2 GPUs in 2 nodes, given device by device"), HasSubstr("1.00 GB/s to 10.00 GB/s"),
                    HasSubstr("slower than others of their kind:\n  s1 - t  1 cable, 1.00 GB/s of 10.00 GB/s\n"),
                    // The flow across is that of the slow cable, a tenth of a NIC's.
                    HasSubstr("bisection  1.00 GB/s in one direction, 10.0 %")));
  const auto json = nlohmann::json::parse(TopologyJson("two", topology, summary));
  EXPECT_EQ(json["slower_cables"][0]["a"], "s1");
  EXPECT_EQ(json["slower_cables"][0]["capacity"], 1000000000);
  EXPECT_EQ(json["bisection"], 1000000000);
  // Below the leaves 2 x 10, above them 10 + 1 GB/s.
  EXPECT_NEAR(json["levels"][0]["oversubscription"], 20.0 / 11, 1e-9);
  EXPECT_THAT(TopologySvg("two", topology), HasSubstr("<line class=\"slow\""));
  EXPECT_THAT(TopologyDot("two", topology), HasSubstr("label=\"1 x 1.0\", color=red"));
}

// Three parallel cables of 10, 10 and 1 GB/s are one link of 21.
TEST(TopologyReportTest, TheSlowestOfParallelCables) {
  v1::Cluster cluster;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "graph { routing: ADAPTIVE hash_seed: 1"
      " device { id: \"g0\" kind: GPU } device { id: \"n0\" kind: NIC } device { id: \"g1\" kind: GPU }"
      " device { id: \"n1\" kind: NIC } device { id: \"s\" kind: NETWORK_SWITCH }"
      " cable { a: \"g0\" b: \"n0\" count: 1 link { bandwidth: 40e9 efficiency: 1 latency: 0 } }"
      " cable { a: \"g1\" b: \"n1\" count: 1 link { bandwidth: 40e9 efficiency: 1 latency: 0 } }"
      " cable { a: \"n0\" b: \"s\" count: 2 link { bandwidth: 10e9 efficiency: 1 latency: 0 } }"
      " cable { a: \"s\" b: \"n0\" count: 1 link { bandwidth: 1e9 efficiency: 1 latency: 0 } }"
      " cable { a: \"n1\" b: \"s\" count: 3 link { bandwidth: 10e9 efficiency: 1 latency: 0 } } }",
      &cluster));
  const absl::StatusOr<Topology> topology = Topology::Build(cluster);
  ASSERT_TRUE(topology.ok()) << topology.status();
  const topology::Summary summary = topology::Summarise(*topology);
  EXPECT_THAT(TopologyText("t", *topology, summary),
              AllOf(HasSubstr("1.00 GB/s to 10.00 GB/s"),
                    HasSubstr("  n0 - s  3 cables, 21.00 GB/s of 30.00 GB/s, the slowest 1.00 GB/s\n")));
  const auto json = nlohmann::json::parse(TopologyJson("t", *topology, summary));
  ASSERT_EQ(json["slower_cables"].size(), 1u);
  EXPECT_EQ(json["slower_cables"][0]["slowest_cable"], 1000000000);
}

TEST(TopologyReportTest, Route) {
  const Topology topology = SlowCable();
  const absl::StatusOr<topology::Routes> routes = topology::Routes::Build(topology);
  ASSERT_TRUE(routes.ok());
  const auto json = nlohmann::json::parse(RouteJson(*routes, {.cluster = "c", .from = 0, .to = 1, .flow = 0}));
  EXPECT_EQ(json["hops"], 6);
  EXPECT_EQ(json["network_hops"], 4);
  EXPECT_EQ(json["bandwidth"], 1000000000);
  EXPECT_EQ(json["ways"], 1);
  EXPECT_NEAR(json["latency_s"], 6e-6, 1e-15);
  EXPECT_EQ(json["links"][2]["from"], "s0");
  EXPECT_EQ(json["links"][2]["to"], "t");
  EXPECT_THAT(
      RouteText(*routes, {.cluster = "c", .from = 0, .to = 1, .flow = 0}),
      AllOf(HasSubstr("c: g0 to g1, flow 0"), HasSubstr("links      6 one after another, 4 of them in the network"),
            HasSubstr("latency    6.0 us"), HasSubstr("ways       1\n")));
  EXPECT_THAT(RouteText(*routes, {.cluster = "c", .from = 1, .to = 1, .flow = 0}), HasSubstr("one GPU: no link"));
}

TEST(TopologyPictureTest, SomeDozensOfNodesAreDrawnOneByOne) {
  const Topology topology = Make("dgx-h100-ndr", {"nodes=40"});
  const Picture picture = FabricPicture("c", topology);
  ASSERT_EQ(picture.rows.size(), 3);  // spines, leaves, nodes
  EXPECT_EQ(picture.rows[1].boxes.size(), 16);
  EXPECT_EQ(picture.rows[2].boxes.size(), 40);
  // Each node to the 8 leaves of its group, each leaf to each spine.
  EXPECT_EQ(picture.lines.size(), std::size_t{40} * 8 + 16 * picture.rows[0].boxes.size());
}

// 128 nodes in four groups of 32: three nodes and a box for 29 more, one for 96 others; the 8 leaves of the group and
// one box for 24 others; one box for all spines. No cable is lost.
TEST(TopologyPictureTest, OfMoreNodesOneGroupIsDrawn) {
  const Topology topology = Make("dgx-h100-ndr", {"nodes=128"});
  const Picture picture = FabricPicture("c", topology);
  ASSERT_EQ(picture.rows.size(), 3);
  EXPECT_EQ(picture.rows[0].boxes.size(), 1);
  EXPECT_EQ(picture.rows[1].boxes.size(), 9);
  ASSERT_EQ(picture.rows[2].boxes.size(), 5);
  EXPECT_EQ(picture.boxes[picture.rows[2].boxes[3]].label, "29 more nodes");
  EXPECT_EQ(picture.boxes[picture.rows[2].boxes[4]].label, "96 nodes of other groups");
  EXPECT_EQ(picture.boxes[picture.rows[2].boxes[4]].detail, "768 GPUs");
  std::int64_t cables = 0;
  for (const PictureLine& line : picture.lines) cables += line.cables;
  EXPECT_EQ(cables, 2 * 1024);
  EXPECT_THAT(TopologySketch(topology), HasSubstr("|  1,024 cables, 48.64 TB/s"));
}

TEST(TopologyPictureTest, InsideANode) {
  const Topology topology = Make("dgx-h100-ndr", {"nodes=2"});
  const Picture picture = NodePicture(topology);
  std::int64_t nvlinks = 0;
  for (const PictureLine& line : picture.lines) {
    if (picture.boxes[line.a].label.starts_with("nvswitch")) nvlinks += line.cables;
  }
  EXPECT_EQ(nvlinks, 8 * 18);
  const std::string svg = TopologySvg("a & b", topology);
  EXPECT_THAT(svg, AllOf(HasSubstr("a &amp; b"), HasSubstr(">gpu7</text>"), HasSubstr(">node1</text>"),
                         Not(HasSubstr("gpu8"))));
}

}  // namespace
}  // namespace orrery::reports
