// ibnetdiscover, ibsim, and which HCAs are in one host.
#include "topology/import/ib_fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/topology/import/samples.h"
#include "topology/import/hosts.h"

namespace orrery::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

absl::StatusOr<IbFabric> Read(const std::string& text, Findings* findings) {
  return ReadIbFabric(text, "fabric.txt", findings);
}

TEST(IbFabricTest, EveryCableOnce) {
  Findings findings;
  const absl::StatusOr<IbFabric> fabric = Read(Discovered({}), &findings);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  // 4 leaves, 2 spines, 16 HCAs; 16 cables to HCAs, 4 x 2 x 2 between switches.
  EXPECT_EQ(fabric->devices.size(), 22);
  EXPECT_EQ(fabric->cables.size(), 32);
  for (const IbCable& cable : fabric->cables) EXPECT_EQ(cable.bandwidth, 50e9);
  EXPECT_THAT(findings.Warnings(), IsEmpty());
  const std::vector<Host> hosts = GroupHosts(*fabric, &findings);
  ASSERT_EQ(hosts.size(), 8);
  EXPECT_EQ(hosts[7].name, "node7");
  ASSERT_EQ(hosts[7].ports.size(), 2);
  EXPECT_EQ(hosts[7].ports[1].device, "mlx5_1");
}

TEST(IbFabricTest, Rates) {
  // Four lanes of 5e9 bits/s less 8b/10b; of 25.78125e9 less 64b/66b.
  EXPECT_EQ(IbBandwidth("4xDDR"), 2e9);
  EXPECT_EQ(IbBandwidth("4xEDR"), 12.5e9);
  EXPECT_NEAR(IbBandwidth("4xFDR"), 6.818e9, 0.001e9);
  EXPECT_EQ(IbBandwidth("2xNDR"), 25e9);
  EXPECT_EQ(IbBandwidth("4xXDR"), 100e9);
  EXPECT_EQ(IbBandwidth("4xWDR"), 0);
  EXPECT_EQ(IbBandwidth("EDR"), 0);
}

TEST(IbFabricTest, ADegradedCableIsReportedWithItsEnds) {
  FatTree tree;
  tree.first_uplink = "4xQDR";
  Findings findings;
  const absl::StatusOr<IbFabric> fabric = Read(Discovered(tree), &findings);
  ASSERT_TRUE(fabric.ok());
  int degraded = 0;
  for (const IbCable& cable : fabric->cables) {
    degraded += cable.is_degraded ? 1 : 0;
    EXPECT_EQ(cable.bandwidth, cable.is_degraded ? 4e9 : 50e9);
  }
  EXPECT_EQ(degraded, 1);
  EXPECT_THAT(findings.Warnings(),
              ElementsAre(HasSubstr(
                  "degraded cable: S-0000000000000000 port 33 - S-0000000000010000 port 1 runs at 4xQDR, 4 GB/s, where "
                  "both ends reach 50")));
}

// One HCA at half width among many at full: it has no other port to compare with. Where half of them are split, none is
// degraded.
TEST(IbFabricTest, HcasAreComparedWithTheOthers) {
  const std::string one =
      Replaced(Replaced(Discovered({}), "\"node0 mlx5_0\" lid 9 4xNDR", "\"node0 mlx5_0\" lid 9 2xNDR"),
               "leaf0:QM/U1\" lid 8 4xNDR\n\nvendid", "leaf0:QM/U1\" lid 8 4xNDR\n\nvendid");
  Findings findings;
  const absl::StatusOr<IbFabric> fabric = Read(one, &findings);
  ASSERT_TRUE(fabric.ok());
  EXPECT_THAT(findings.Warnings(), Contains(HasSubstr("runs at 2xNDR, 25 GB/s, where most HCAs have 50")));
  FatTree split;
  split.rate = "2xNDR";
  Findings none;
  ASSERT_TRUE(Read(Discovered(split), &none).ok());
  EXPECT_THAT(none.Warnings(), IsEmpty());
}

TEST(IbFabricTest, RecordsInAllTheirForms) {
  const std::string text =
      "Switch\t129 \"S-01\"\t\t# \"MF0;s1:MQM9700/U1\" enhanced port 0 lid 1 lmc 0\r\n"
      "[1]\t\"H-02\"[1](2)  \t\t# \"tj01-4090-node005 mlx5_2\" lid 4 2xNDR\r\n"
      "[2][ext 1/1/1]\t\"S-03\"[7][ext 4]\t\t# \"s2\" lid 5 4xNDR(100.000)\n"
      "[129]   \"H-04\"[1](4)  # \"Mellanox Technologies Aggregation Node\" lid 6 4xNDR\n"
      "[200] \"H-05\"[1](5)\n"
      "\nvendid=0x2c9\ncaguid=0x2\nCa\t1 \"H-02\"\t\t# \"tj01-4090-node005 mlx5_2\"\n"
      "[1](2) \t\"S-01\"[1]\t\t# lid 4 lmc 0 \"MF0;s1:MQM9700/U1\" lid 1 2xNDR\n";
  Findings findings;
  const absl::StatusOr<IbFabric> fabric = Read(text, &findings);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  ASSERT_EQ(fabric->cables.size(), 4);
  EXPECT_EQ(fabric->cables[0].rate, "2xNDR");
  EXPECT_EQ(fabric->cables[1].bandwidth, 50e9);
  EXPECT_EQ(fabric->cables[3].bandwidth, 50e9);  // without a rate: what its switch can
  EXPECT_THAT(findings.Warnings(), ElementsAre(HasSubstr("fabric.txt:5: port 200 of a device with 129 ports"),
                                               HasSubstr("fabric.txt:3: switch S-03 is named but has no record"),
                                               HasSubstr("2xNDR, 25 GB/s, where most HCAs have 50")));
  const std::vector<Host> hosts = GroupHosts(*fabric, &findings);
  ASSERT_EQ(hosts.size(), 2);
  EXPECT_EQ(hosts[0].name, "H-05");
  EXPECT_EQ(hosts[1].name, "tj01-4090-node005");
}

TEST(IbFabricTest, IbsimHasNoSpeeds) {
  Findings findings;
  const absl::StatusOr<IbFabric> fabric = Read(Simulated(), &findings);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_EQ(fabric->cables.size(), 2);
  EXPECT_EQ(fabric->cables[0].bandwidth, 0);
  EXPECT_THAT(findings.Warnings(), IsEmpty());
  EXPECT_EQ(GroupHosts(*fabric, &findings)[1].name, "HcaB");
}

TEST(IbFabricTest, EndsThatDisagree) {
  // The Ca's own record has it at another port of the switch, and slower.
  const std::string text =
      "Switch 4 \"S-1\"\n[1] \"H-2\"[1] # \"a mlx5_0\" lid 1 4xHDR\n[2] \"H-3\"[1] # \"b mlx5_0\" lid 1 4xHDR\n"
      "Ca 1 \"H-2\"\n[1] \"S-1\"[3] # lid 2 lmc 0 \"\" lid 2 4xHDR\nCa 1 \"H-3\"\n[1] \"S-1\"[2] # lid 2 lmc 0 \"\" "
      "lid 2 4xFDR10\n"
      "Switch 4 \"S-4\"\n[1] \"S-4\"[2]\n";
  Findings findings;
  const absl::StatusOr<IbFabric> fabric = Read(text, &findings);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_EQ(fabric->cables.size(), 2);
  EXPECT_EQ(fabric->cables[1].bandwidth, 5e9);
  EXPECT_THAT(findings.Warnings(),
              Contains(HasSubstr("fabric.txt:5: a port of this cable is that of the cable in line 2 too")));
  EXPECT_THAT(findings.Warnings(),
              Contains(HasSubstr("fabric.txt:7: 4xFDR10 here, 4xHDR in line 3; taken: the slower")));
  EXPECT_THAT(findings.Warnings(), Contains(HasSubstr("fabric.txt:9: a cable of S-4 to itself")));
}

TEST(IbFabricTest, Refusals) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "fabric.txt: no record of a switch or HCA"},
      {"# only a comment\n", "no record"},
      {"[1] \"S-1\"[2]\n", "fabric.txt:1: a port before any Switch or Ca record"},
      {"Switch 36\n", "fabric.txt:1: no name in double quotes"},
      {"Switch many \"S-1\"\n", "no number of ports from 0 to 65535"},
      {"Switch 99999999999 \"S-1\"\n", "no number of ports from 0 to 65535"},
      {"Switch 36 \"S-1\"\n[x] \"S-2\"[1]\n", "fabric.txt:2: no port number"},
      {"Switch 36 \"S-1\"\n[1] S-2[1]\n", "fabric.txt:2: no name of the other end"},
      {"Switch 36 \"S-1\"\n[1] \"S-2\"\n", "behind the name of the other end"},
      {"Switch 36 \"S-1\"\nSwitch 36 \"S-1\"\n", "fabric.txt:2: \"S-1\" has a record in line 1 too"},
      {"Switch 36 \"S-1\"\n[1] \"S-2\"[1]\n[1] \"S-3\"[1]\n", "fabric.txt:3: port 1 of S-1 stands in line 2 too"},
      {"SW 2 19 0x0002c903 4x EDR - CA 1\n", "neither a record, a port nor a comment"}};
  for (const auto& [text, message] : cases) {
    Findings findings;
    EXPECT_THAT(Read(text, &findings).status().message(), HasSubstr(message)) << text;
  }
}

TEST(HostsTest, DescriptionsNameHostsInDifferentWays) {
  EXPECT_THAT(SplitDescription("node018 HCA-1"), Pair("node018", "HCA-1"));
  EXPECT_THAT(SplitDescription("tj01-4090-node005 mlx5_2"), Pair("tj01-4090-node005", "mlx5_2"));
  EXPECT_THAT(SplitDescription("'rack 3 gpu7' mlx5_bond_0"), Pair("rack 3 gpu7", "mlx5_bond_0"));
  EXPECT_THAT(SplitDescription("host ibp12s0"), Pair("host", "ibp12s0"));
  EXPECT_THAT(SplitDescription("MT23108 InfiniHost Mellanox Technologies"), Pair("", ""));
  EXPECT_THAT(SplitDescription("mlx5_0"), Pair("", ""));
}

}  // namespace
}  // namespace orrery::topology
