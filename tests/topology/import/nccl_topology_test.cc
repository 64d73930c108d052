// NCCL's topology and graph files.
#include "topology/import/nccl_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/topology/import/samples.h"
#include "topology/import/nccl_graph.h"
#include "topology/import/xml.h"

namespace orrery::topology {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Server> Read(const std::string& xml, Findings* findings) {
  const absl::StatusOr<XmlElement> root = ParseXml(xml, "topo.xml");
  if (!root.ok()) return root.status();
  return ReadNcclTopology(*root, "topo.xml", findings);
}

std::string Error(const std::string& xml) {
  Findings ignored;
  return std::string(Read(xml, &ignored).status().message());
}

std::vector<std::string> Names(const std::vector<Nic>& nics) {
  std::vector<std::string> names;
  for (const Nic& nic : nics) names.push_back(nic.name);
  return names;
}

TEST(NcclTopologyTest, ADump) {
  Findings findings;
  const absl::StatusOr<Server> server = Read(DumpedNode(), &findings);
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_EQ(server->gpus.size(), 4);
  EXPECT_EQ(server->cpus.size(), 2);
  EXPECT_EQ(server->cpu_vendor, v1::AMD);
  EXPECT_EQ(server->compute_capability, 80);
  EXPECT_EQ(server->pcie_switches.size(), 4);
  // PCIe 4.0 x16: 16e9 transfers/s x 16 lanes x 128/130 / 8.
  EXPECT_NEAR(server->gpus[0].bandwidth, 31.508e9, 0.001e9);
  EXPECT_EQ(server->nvswitches(), 2);
  EXPECT_EQ(server->nvlinks(), 5);
  EXPECT_EQ(server->pairs.size(), 0);
  // 200,000 Mb/s. NIC 3 is GPU 0's, so it comes first.
  EXPECT_EQ(server->nics[0].port_bandwidth, 25e9);
  EXPECT_THAT(Names(server->nics), ElementsAre("mlx5_3", "mlx5_2", "mlx5_1", "mlx5_0"));
  EXPECT_EQ(Irregularity(*server), "");
  EXPECT_THAT(findings.Warnings(), ElementsAre(HasSubstr("the number of a NIC is not that of its rail")));
}

TEST(NcclTopologyTest, AFileWrittenByHandHasNoNvlinksAndNumbersGpusByBusId) {
  Findings findings;
  const absl::StatusOr<Server> server = Read(WrittenNode(), &findings);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_FALSE(server->nvlink_known);
  EXPECT_EQ(server->compute_capability, 0);
  EXPECT_EQ(server->gpus[0].name, "0000:00:00.0");
  EXPECT_EQ(server->nics[3].name, "0103:00:00.0");
  EXPECT_EQ(server->nics[3].port_bandwidth, 0);
  EXPECT_EQ(server->gpus[3].pcie_switch, server->nics[3].pcie_switch);
  EXPECT_EQ(Irregularity(*server), "");
  EXPECT_THAT(findings.assumptions(), ElementsAre(HasSubstr("order of their bus ids")));
}

TEST(NcclTopologyTest, ValuesThatVirtualMachinesMakeUp) {
  std::string xml = DumpedNode();
  // The first bridge claims one lane of PCIe 1.0, the GPU below it no width at all.
  xml = Replaced(xml, "16.0 GT/s PCIe\" link_width=\"16\"", "2.5 GT/s PCIe\" link_width=\"1\"");
  xml = Replaced(xml, "class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"",
                 "class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"0\"");
  Findings findings;
  const absl::StatusOr<Server> server = Read(xml, &findings);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_NEAR(server->gpus[0].bandwidth, 31.508e9, 0.001e9);
  EXPECT_EQ(server->pcie_switches[0].bandwidth, server->gpus[0].bandwidth);
  EXPECT_THAT(findings.Warnings(), AllOf(Contains(AllOf(HasSubstr("topo.xml:3: bridge 0000:00:00.0 claims 0.25 GB/s"))),
                                         Contains(HasSubstr("link_width 0 of 1 PCI devices; taken as 16 lanes")),
                                         Contains(HasSubstr("may be made up too"))));
}

TEST(NcclTopologyTest, DirectNvlinks) {
  // Two GPUs, four links, of which one direction has three.
  const std::string xml =
      "<system version=\"1\"><cpu numaid=\"0\">"
      "<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"8 GT/s\" link_width=\"16\"><gpu dev=\"1\" sm=\"70\">"
      "<nvlink target=\"0000:02:00.0\" count=\"4\" tclass=\"0x030200\"/></gpu></pci>"
      "<pci busid=\"0000:02:00.0\" class=\"0x030200\" link_speed=\"8 GT/s\" link_width=\"16\"><gpu dev=\"0\" sm=\"70\">"
      "<nvlink target=\"0000:01:00.0\" count=\"3\" tclass=\"0x030200\"/>"
      "<nvlink target=\"0000:99:00.0\" count=\"1\" tclass=\"0x030200\"/></gpu></pci></cpu></system>";
  Findings findings;
  const absl::StatusOr<Server> server = Read(xml, &findings);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->gpus[0].name, "0000:02:00.0");
  ASSERT_EQ(server->pairs.size(), 1);
  EXPECT_EQ(server->pairs[0].links(), 3);
  EXPECT_EQ(server->nvswitches(), 0);
  EXPECT_THAT(findings.Warnings(), ElementsAre(HasSubstr("which is no other GPU of the file"), HasSubstr("taken: 3")));
  EXPECT_THAT(Irregularity(*server), HasSubstr("no NIC"));
}

TEST(NcclTopologyTest, RefusalsNameFileLineAndWhatIsAllowed) {
  const std::string dump = DumpedNode();
  EXPECT_EQ(Error("<system version=\"1\"/>"), "topo.xml:1: <system>: no GPU below any <cpu>");
  EXPECT_THAT(Error(Channels()), HasSubstr("topo.xml:1: <graphs>: a graph file"));
  EXPECT_THAT(Error("<svg/>"), HasSubstr("not a topology file of NCCL"));
  EXPECT_THAT(Error(""), HasSubstr("topo.xml:1: not well-formed XML: no element found"));
  EXPECT_THAT(Error(dump.substr(0, dump.size() / 2)), HasSubstr("not well-formed XML"));
  EXPECT_THAT(Error(Replaced(dump, "count=\"3\"", "count=\"99999999999999999999\"")),
              HasSubstr("count = \"99999999999999999999\"; allowed: an integer from 0 to 1024"));
  EXPECT_THAT(Error(Replaced(dump, "0000:01:00.0", "0000:11:00.0")),
              HasSubstr("topo.xml:15: <pci>: busid \"0000:11:00.0\" stands in line 4 too"));
  EXPECT_THAT(Error(Replaced(dump, "dev=\"0\" sm", "dev=\"1\" sm")), HasSubstr("dev 1 is that of another GPU too"));
  EXPECT_THAT(Error(Replaced(dump, "host_hash=\"0x1\" numaid=\"1\"", "host_hash=\"0x2\" numaid=\"1\"")),
              HasSubstr("several hosts; allowed: the file of one host"));
  EXPECT_THAT(Error("<!DOCTYPE x [<!ENTITY a \"aa\"><!ENTITY b \"&a;&a;\">]><system/>"), HasSubstr("a document type"));
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<pci>";
  EXPECT_THAT(Error(deep), HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(Error("<system version=\"1\"><cpu numaid=\"\xff\"/></system>"),
              HasSubstr("topo.xml:1: not well-formed XML"));
}

TEST(NcclTopologyTest, PcieGenerations) {
  // 2.5e9 x 16 lanes x 8b/10b; 64e9 x 16 x 242/256.
  EXPECT_DOUBLE_EQ(PcieBandwidth("2.5 GT/s PCIe", 16), 4e9);
  EXPECT_DOUBLE_EQ(PcieBandwidth("5", 8), 4e9);
  EXPECT_NEAR(PcieBandwidth("32.0 GT/s PCIe", 16), 63.015e9, 0.001e9);
  EXPECT_DOUBLE_EQ(PcieBandwidth("64 GT/s", 16), 121e9);
  EXPECT_EQ(PcieBandwidth("Unknown speed", 16), 0);
  EXPECT_EQ(PcieBandwidth("7 GT/s", 16), 0);
}

TEST(NcclGraphTest, ReadsChannels) {
  const absl::StatusOr<XmlElement> root = ParseXml(Channels(), "graph.xml");
  ASSERT_TRUE(root.ok());
  const absl::StatusOr<std::vector<NcclGraph>> graphs = ReadNcclGraphs(*root, "graph.xml");
  ASSERT_TRUE(graphs.ok()) << graphs.status();
  ASSERT_EQ(graphs->size(), 1);
  EXPECT_THAT(graphs->front().channels.front().gpus, ElementsAre(1, 0));
  EXPECT_THAT(graphs->front().channels.front().nets, ElementsAre(0, 0));
  EXPECT_EQ(Describe(graphs->front()),
            "ring: 1 channels of 20 GB/s over NVL (pattern ring), 10 GB/s between servers over PIX");
  const absl::StatusOr<XmlElement> wrong =
      ParseXml(Replaced(Channels(), "speedintra=\"20\"", "speedintra=\"nan\""), "graph.xml");
  ASSERT_TRUE(wrong.ok());
  EXPECT_EQ(ReadNcclGraphs(*wrong, "graph.xml").status().message(),
            "graph.xml:2: <graph>: speedintra = \"nan\"; allowed: a number of GB/s");
}

}  // namespace
}  // namespace orrery::topology
