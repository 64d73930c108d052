// `orrery topology show | route | import`, as a shell sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.h"

namespace orrery::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TopologyCliTest : public CliTest {
 protected:
  // Two GPUs with a NIC each, as nvidia-smi topo -m prints them.
  std::string Matrix() const {
    return File("topo.txt",
                "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\n"
                "GPU0\tX\tNV12\tPIX\tSYS\t0-15\n"
                "GPU1\tNV12\tX\tSYS\tPIX\t16-31\n");
  }
  // Two hosts of two HCAs on one switch.
  std::string Fabric() const {
    return File("fabric.txt",
                "Switch 40 \"S-1\" # \"s\" base port 0 lid 1 lmc 0\n"
                "[1] \"H-1\"[1] # \"a mlx5_0\" lid 2 4xHDR\n[2] \"H-2\"[1] # \"a mlx5_1\" lid 3 4xHDR\n"
                "[3] \"H-3\"[1] # \"b mlx5_0\" lid 4 4xHDR\n[4] \"H-4\"[1] # \"b mlx5_1\" lid 5 4xHDR\n");
  }
};

// 32 nodes of 8 GPUs and 8 NICs, 8 leaves, 4 spines of 64 ports, 256 cables at either level (NVIDIA's table has one
// node less, for UFM).
TEST_F(TopologyCliTest, ShowInEveryFormat) {
  const std::string show = "topology show dgx-h100-ndr --nodes 32";
  const Outcome text = Orrery(show);
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(text.err, "");
  EXPECT_THAT(text.out,
              AllOf(StartsWith("dgx-h100-ndr: 256 GPUs in 32 nodes, routing adaptive\n"),
                    HasSubstr("\nleaf switch       8\n"), HasSubstr("100.0 % of what the NICs of one half can send"),
                    HasSubstr("[spine0] [spine1] [spine2] [spine3]")));
  const auto json = nlohmann::json::parse(Orrery(show + " --json").out);
  EXPECT_EQ(json["gpus"], 256);
  EXPECT_EQ(json["devices"]["leaf"], 8);
  EXPECT_EQ(json["devices"]["spine"], 4);
  EXPECT_EQ(json["levels"][0]["oversubscription"], 1.0);
  EXPECT_EQ(json["slower_cables"].size(), 0);
  EXPECT_EQ(Orrery(show + " --format json").out, Orrery(show + " --json").out);
  EXPECT_THAT(Orrery(show + " --format dot").out,
              AllOf(HasSubstr("graph \"dgx-h100-ndr\" {"), HasSubstr("label=\"leaf7\"")));
  const Outcome svg = Orrery(show + " --format svg -o " + Path("picture.svg").string());
  EXPECT_EQ(svg.code, 0);
  EXPECT_EQ(svg.out, "");
  EXPECT_THAT(Contents(Path("picture.svg")), AllOf(StartsWith("<?xml"), HasSubstr(">node31</text>")));
  const auto halved = nlohmann::json::parse(Orrery(show + " --json --set fabric.oversubscription=2").out);
  EXPECT_EQ(halved["levels"][0]["oversubscription"], 2.0);
}

// GPU 3 of the first node and GPU 4 of another, under other leaves: with PXN over GPU 4 of the first node.
TEST_F(TopologyCliTest, Route) {
  const std::string route = "topology route --cluster dgx-h100-ndr --nodes 128 --from gpu:3 --to node112/gpu4";
  const Outcome text = Orrery(route);
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out,
              AllOf(StartsWith("dgx-h100-ndr: node0/gpu3 to node112/gpu4, flow 0\n"),
                    HasSubstr("PXN        node0/gpu4 forwards"), HasSubstr("NICs       node0/nic4, node112/nic4")));
  const auto json = nlohmann::json::parse(Orrery(route + " --json").out);
  EXPECT_EQ(json["network_hops"], 4);
  EXPECT_EQ(json["forwarder"], "node0/gpu4");
  EXPECT_EQ(json["bandwidth"], 47500000000);
  EXPECT_GT(json["ways"], 1);
  const auto direct = nlohmann::json::parse(Orrery(route + " --json --no-pxn").out);
  EXPECT_EQ(direct["from_nic"], "node0/nic3");
  EXPECT_EQ(direct.contains("forwarder"), false);
  // A flow by itself keeps to one way where it is hashed.
  const auto hashed = nlohmann::json::parse(Orrery(route + " --json --flow 1 --set fabric.routing=HASHED").out);
  EXPECT_EQ(hashed["flow"], 1);
  for (const auto& link : hashed["links"]) {
    if (link["kind"] == "leaf - spine") {
      EXPECT_EQ(link["share"], 1.0);
    }
  }
}

// Adaptive routes use every spine alike: one row a level. Twelve links one after another, so twelve rows.
TEST_F(TopologyCliTest, RouteOfTheDefaultCluster) {
  const Outcome text = Orrery("topology route --from gpu:3 --to gpu:9001");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(StartsWith("megascale-clos: node0/gpu3 to node1125/gpu1, flow 0\n"),
                              ContainsRegex("leaf1 +spine0 to spine31 +leaf - spine +32 +1 .* 3.1 %\n"),
                              HasSubstr("links      12 one after another")));
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '%'), 12);
  // Without one of the spines a range does not hold all of its devices.
  EXPECT_THAT(Orrery("topology route --from gpu:3 --to gpu:9001 --without spine5").out,
              ContainsRegex("leaf1 +31 of spine0 to spine31 +leaf - spine +31 +1 .* 3.2 %\n"));
}

// Two nodes, NIC i of both on leaf i. A GPU without its NIC, or without the cable from it to its leaf, has NIC 0 as the
// nearest that is left, and goes over a spine from leaf 0 to leaf 3. Where rail 3 is lost, NIC 0 serves both ends.
TEST_F(TopologyCliTest, RouteAroundDeadLinks) {
  const std::string route =
      "topology route --cluster dgx-h100-ndr --nodes 2 --from node0/gpu3 --to node1/gpu3 --no-pxn";
  const auto without = [&](const std::string& dead) {
    return nlohmann::json::parse(Orrery(route + " --json" + dead).out);
  };
  const auto ends = [&](const std::string& dead) {
    const auto json = without(dead);
    return std::string(json["from_nic"]) + " " + std::string(json["to_nic"]) + " " + json["network_hops"].dump();
  };
  EXPECT_EQ(ends(""), "node0/nic3 node1/nic3 2");
  EXPECT_EQ(ends(" --without node0/nic3"), "node0/nic0 node1/nic3 4");
  EXPECT_EQ(ends(" --without leaf3,node0/nic3"), "node0/nic0 node1/nic3 4");
  EXPECT_EQ(ends(" --without rail3"), "node0/nic0 node1/nic0 2");
  EXPECT_EQ(without(" --without node1/nic5 --without node0/nic5"), without(""));
  // A GPU that nothing joins to anything.
  const Outcome apart = Orrery(route + " --without gpu:1");
  EXPECT_EQ(apart.code, 2);
  EXPECT_EQ(apart.out, "");
  EXPECT_THAT(apart.err,
              AllOf(HasSubstr("--without: GPU "), HasSubstr("(node0/gpu1)"), HasSubstr("cannot reach each other")));
}

TEST_F(TopologyCliTest, WhatIsImportedCanBeShown) {
  const std::string cluster = Path("cluster.txtpb").string();
  const Outcome imported = Orrery("topology import --nvidia-smi " + Matrix() + " --ibnetdiscover " + Fabric() +
                                  " --accelerator a100-sxm-80gb -o " + cluster);
  EXPECT_EQ(imported.code, 0) << imported.err;
  EXPECT_EQ(imported.out, "");
  EXPECT_THAT(Contents(cluster), AllOf(StartsWith("# proto-file: orrery/v1/cluster.proto\n"), HasSubstr("# Assumed:\n"),
                                       HasSubstr("# * a b\n")));
  const auto json = nlohmann::json::parse(Orrery("topology show " + cluster + " --json").out);
  EXPECT_EQ(json["gpus"], 4);
  EXPECT_EQ(json["nodes"], 2);
  EXPECT_EQ(json["devices"]["nic"], 4);
  EXPECT_EQ(Orrery("topology route --cluster " + cluster + " --from gpu:0 --to gpu:3").code, 0);
  const auto report = nlohmann::json::parse(
      Orrery("topology import --json --nvidia-smi " + Matrix() + " --accelerator a100-sxm-80gb --nodes 4").out);
  EXPECT_EQ(report["nodes"], 4);
  EXPECT_EQ(report["regular"], true);
  EXPECT_THAT(std::string(report["cluster"]), HasSubstr("nodes: 4\n"));
}

// The accelerator of the user's own preset has a name that no accelerator preset has.
TEST_F(TopologyCliTest, NothingIsWrittenThatCannotBeRead) {
  std::filesystem::create_directories(Path("mine/clusters"));
  File("mine/clusters/renamed.txtpb",
       "# proto-file: orrery/v1/cluster.proto\n# proto-message: orrery.v1.Cluster\n"
       "preset: \"selene\"\naccelerator { preset: \"a100-sxm-80gb\" name: \"nobody\" }\n");
  const std::string cluster = Path("cluster.txtpb").string();
  const Outcome imported = Orrery("topology import --nvidia-smi " + Matrix() + " --like renamed --spec-path " +
                                  Path("mine").string() + " -o " + cluster);
  EXPECT_EQ(imported.code, 2);
  EXPECT_EQ(imported.out, "");
  EXPECT_THAT(imported.err, AllOf(HasSubstr("the imported cluster cannot be read, so it is not written: "),
                                  HasSubstr("accelerator.preset"), HasSubstr("nobody")));
  EXPECT_FALSE(std::filesystem::exists(cluster));
}

// Two GPUs on two hosts, beside which a file says four nodes of one.
TEST_F(TopologyCliTest, AGraphHasTheGpusOfItsNodes) {
  std::string text =
      "# proto-file: orrery/v1/cluster.proto\n# proto-message: orrery.v1.Cluster\n"
      "preset: \"dgx-h100-ndr\"\nnodes: 2\nnode { gpus: 1 nics: 1 }\ngraph {\n";
  for (const std::string i : {"0", "1"}) {
    const std::string link = " link { bandwidth: 25e9 efficiency: 0.9 latency: 1e-6 } }\n";
    text += "device { id: \"g" + i + "\" kind: GPU } device { id: \"n" + i + "\" kind: NIC }\n";
    text += "cable { a: \"g" + i + "\" b: \"n" + i + "\"" + link + "cable { a: \"n" + i + "\" b: \"s\"" + link;
  }
  const std::string cluster = File("two.txtpb", text + "device { id: \"s\" kind: NETWORK_SWITCH }\n}\n");
  const std::string collective = "collective all_reduce --sizes 1M --network=flow --cluster " + cluster;
  EXPECT_EQ(Orrery(collective + " --nodes 2").code, 0);
  const std::string counts = "nodes x node.gpus = 4 x 1 = 4 GPUs, of which graph has 2; allowed: up to 2";
  for (const std::string& command : {collective + " --nodes 4 --set nodes=4", collective + " --set node.gpus=2",
                                     "topology show --set nodes=4 " + cluster}) {
    const Outcome outcome = Orrery(command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_EQ(outcome.out, "") << command;
    EXPECT_THAT(outcome.err, AllOf(StartsWith("error: --set node"), HasSubstr("= 4 GPUs, of which graph has 2")));
  }
  EXPECT_THAT(Orrery(collective + " --set nodes=4").err, HasSubstr(counts));
  const Outcome routed = Orrery(collective + " --nodes 2 --set fabric.routing=HASHED");
  EXPECT_EQ(routed.code, 2);
  EXPECT_THAT(routed.err,
              HasSubstr("fabric.routing: plays no part beside a graph; allowed: graph.routing in its place"));
  EXPECT_EQ(Orrery(collective + " --nodes 2 --set graph.routing=HASHED").code, 0);
}

TEST_F(TopologyCliTest, BadInput) {
  const std::string broken = File("broken.xml", "<system>\n<cpu>\n</system>\n");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"show no-such", "no-such"},
      {"show dgx-h100-ndr --format png", "--format png: no such format; allowed: text, json, dot, svg"},
      {"show dgx-h100-ndr --json --format svg", "--json with --format svg"},
      {"show dgx-h100-ndr --set node.nics=3", "node.nics"},
      {"show dgx-h100-ndr --nodes 0", "error: --nodes"},
      {"show dgx-h100-ndr --nodes 1.5", "error: --nodes: "},
      {"show ''", "error: cluster: must not be empty"},
      {"show two-servers-graph --nodes 3", "--nodes: the cluster is given device by device"},
      {"show two-servers-graph --set nodes=3", "--set nodes=3: the cluster is given device by device"},
      {"show two-servers-graph --set fabric.routing=HASHED",
       "fabric.routing: plays no part beside a graph; allowed: graph.routing"},
      {"show dgx-h100-ndr -o /no/such/folder/x", "/no/such/folder/x"},
      {"route --cluster dgx-h100-ndr --from gpu:0 --to gpu:99999999", "--to"},
      {"route --cluster dgx-h100-ndr --from gpu:0 --to leaf0", "--to leaf0: a leaf switch; allowed: a GPU"},
      {"route --cluster dgx-h100-ndr --from gpu:0", "--to"},
      {"route --cluster dgx-h100-ndr --from gpu:0 --to gpu:9 --without nic:x",
       "--without: no device \"nic:x\"; allowed"},
      {"route --cluster dgx-h100-ndr --from gpu:0 --to gpu:9 --without rail8", "--without: found rail8; allowed: "},
      {"route --cluster dgx-h100-ndr --from gpu:0 --to gpu:9 --without gpu:0,leaf0",
       "--without: found no link between gpu:0 and leaf0; allowed: neighbours"},
      {"import", "nothing to import"},
      {"import --nccl-xml /no/such.xml", "/no/such.xml"},
      {"import --nccl-xml " + broken, "broken.xml:3: not well-formed XML: mismatched tag"},
      {"import --nvidia-smi " + broken + " --accelerator h100-sxm-80gb", "broken.xml: no matrix of nvidia-smi topo -m"},
      {"import --nvidia-smi " + Matrix() + " --ibnetdiscover " + Fabric() +
           " --accelerator a100-sxm-80gb --gpu-hosts ''",
       "--gpu-hosts: must not be empty"},
      {"import --nvidia-smi " + Matrix(), "does not name the GPU; give --accelerator"},
      {"import --nvidia-smi " + Matrix() + " --accelerator a100-sxm-80gb -o " + Path("topo.txt").string(),
       "is read by this command"}};
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = Orrery("topology " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
  }
}

}  // namespace
}  // namespace orrery::cli
