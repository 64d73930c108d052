// `orrery collective`, and `orrery calibrate import` of collectives, as a shell sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.h"

namespace orrery::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

class CollectiveCliTest : public CliTest {
 protected:
  Json AsJson(const std::string& arguments) const {
    const Outcome outcome = Orrery(arguments + " --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? Json::parse(outcome.out) : Json();
  }

  void ExpectRefused(const std::vector<std::pair<std::string, std::string>>& cases) const {
    for (const auto& [arguments, message] : cases) {
      const Outcome outcome = Orrery(arguments);
      EXPECT_EQ(outcome.code, 2) << arguments;
      EXPECT_EQ(outcome.out, "") << arguments;
      EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
    }
  }
};

// nccl-tests' columns: algbw = size / time, busbw = 2 (n - 1) / n algbw; from 8 bytes to 16 GiB by factors of 2, 32
// rows.
TEST_F(CollectiveCliTest, Columns) {
  const std::string command = "collective all_reduce --cluster dgx-h100-ndr --nodes 2";
  const Outcome text = Orrery(command + " --sizes 8:16G:2");
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(text.err, "");
  EXPECT_EQ(text.out, Orrery(command).out);  // the default
  EXPECT_THAT(text.out,
              AllOf(StartsWith("# all_reduce, 16 GPUs on 2 nodes of dgx-h100-ndr, NCCL 2.21, times sm90\n#"),
                    HasSubstr("size          count      type   redop        time     algbw     busbw  algorithm"),
                    HasSubstr("\n             8              2     float     sum")));
  const Json json = AsJson(command);
  EXPECT_EQ(json["gpus"], 16);
  EXPECT_EQ(json["nccl_version"], "2.21");
  EXPECT_EQ(json.contains("assumptions"), false);
  ASSERT_EQ(json["rows"].size(), 32u);
  EXPECT_EQ(json["rows"][31]["bytes"], std::int64_t{16} << 30);
  for (const Json& row : json["rows"]) {
    const double algbw = double{row["bytes"]} / double{row["time_s"]} / 1e9;
    EXPECT_NEAR(double{row["algbw"]}, algbw, 1e-9 * algbw);
    EXPECT_NEAR(double{row["busbw"]}, algbw * 30 / 16, 1e-9 * algbw);
    for (const char* key : {"fixed_s", "algorithm", "protocol", "channels", "nvlink_bytes_per_gpu", "nic_bytes_per_gpu",
                            "uplink_bytes_per_gpu"}) {
      EXPECT_TRUE(row.contains(key)) << key;
    }
  }
  // What NCCL chooses: low latency for little, the switches' trees for much; measured 467 GB/s.
  EXPECT_EQ(json["rows"][0]["protocol"], "LL");
  EXPECT_EQ(json["rows"][31]["algorithm"], "NVLSTree");
  EXPECT_NEAR(double{json["rows"][31]["busbw"]}, 467, 25);
}

TEST_F(CollectiveCliTest, RangesAndForcedChoices) {
  const std::string command = "collective all_gather --cluster dgx-h100-ndr --sizes ";
  EXPECT_EQ(AsJson(command + "1M:3M:+1M")["rows"].size(), 3u);
  EXPECT_EQ(AsJson(command + "1K:1M:4")["rows"].size(), 6u);
  EXPECT_EQ(AsJson(command + "5,7M")["rows"][1]["bytes"], 7 << 20);
  const Json forced = AsJson(command + "1M --algorithm ring --protocol ll128 --channels 4");
  EXPECT_EQ(forced["rows"][0]["algorithm"], "Ring");
  EXPECT_EQ(forced["rows"][0]["protocol"], "LL128");
  EXPECT_EQ(forced["rows"][0]["channels"], 4);
  // Where the tables choose badly, a larger size may take less: it is said.
  const Outcome text = Orrery("collective all_reduce --cluster dgx-h100-ndr --nodes 4 --sizes 8:1G:+8M");
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(text.out.find('*') != std::string::npos,
            text.out.find("# * a larger size takes less") != std::string::npos);
}

TEST_F(CollectiveCliTest, Versions) {
  const std::string command = "collective all_reduce --cluster dgx-h100-ndr --sizes 1M --nccl-version ";
  const Outcome newer = Orrery(command + "2.99");
  EXPECT_EQ(newer.code, 0);
  EXPECT_THAT(newer.err,
              StartsWith("warning: NCCL 2.99 is newer than all that are listed: the tables of 2.30 are used"));
  EXPECT_THAT(newer.out, HasSubstr("\n# NCCL 2.99 is newer"));
  EXPECT_EQ(AsJson(command + "2.4")["assumptions"][0],
            "NCCL 2.4 is older than all that are listed: the tables of 2.18 are used");
  EXPECT_EQ(Orrery(command + "2.22").err, "");
  EXPECT_EQ(AsJson(command + "2.22")["assumptions"].size(), 1u);
}

// The constants are those of the cluster's accelerator, however they got there, and so is the version.
TEST_F(CollectiveCliTest, ConstantsOfTheCluster) {
  const std::string command = "collective alltoall --nodes 2 --sizes 1G --cluster ";
  const auto time = [&](const std::string& arguments) {
    return double{AsJson(command + arguments)["rows"][0]["time_s"]};
  };
  const double shipped = time("dgx-h100-ndr");
  // 8 channels of 1 GB/s move 15/16 GiB.
  const std::string set = " --channels 8 --set accelerator.nccl_times.channel_bandwidth.value=1e9";
  EXPECT_NEAR(time("dgx-h100-ndr" + set), (1 << 30) * 15.0 / 16 / 8e9, 1e-3);
  EXPECT_EQ(time("dgx-h100-ndr" + set + " --network flow"), time("dgx-h100-ndr" + set));
  // A preset of another name, by --set and in a file of a cluster.
  fs::create_directories(Path("mine/nccl_times"));
  std::string own = Contents(ORRERY_SOURCE_DIR "/specs/nccl_times/sm90.txtpb");
  for (const auto& [from, to] : {std::pair("name: \"sm90\"", "name: \"own90\""),
                                 {"channel_bandwidth { value: 2.63e+10", "channel_bandwidth { value: 1e+09"},
                                 {"nccl_version: \"2.21\"", "nccl_version: \"2.18\""}}) {
    const std::size_t at = own.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    own.replace(at, std::string(from).size(), to);
  }
  File("mine/nccl_times/own90.txtpb", own);
  const std::string path = " --spec-path " + Path("mine").string();
  EXPECT_EQ(time("dgx-h100-ndr" + path), shipped);
  const std::string by_set = path + " --set 'accelerator.nccl_times={preset: \"own90\"}'";
  const std::string in_file = File("own.txtpb",
                                   "# proto-file: orrery/v1/cluster.proto\n# proto-message: orrery.v1.Cluster\n"
                                   "preset: \"dgx-h100-ndr\"\naccelerator { nccl_times { preset: \"own90\" } }\n");
  EXPECT_GT(time("dgx-h100-ndr" + by_set), 2 * shipped);
  EXPECT_EQ(time(in_file + path), time("dgx-h100-ndr" + by_set));
  const Json json = AsJson(command + in_file + path);
  EXPECT_EQ(json["times"], "own90");
  EXPECT_EQ(json["nccl_version"], "2.18");
  const std::string experts =
      "collective expert_dispatch --nodes 2 --tokens 4096 --hidden 7168 --top-k 8 --experts 256 --cluster ";
  EXPECT_GT(double{AsJson(experts + in_file + path)["rows"][0]["time_s"]},
            2 * double{AsJson(experts + "dgx-h100-ndr")["rows"][0]["time_s"]});
}

// Two phases: 7/8 S over NVLink, then 7/8 S over the rail. In one, NICs carry as much and NVLink as much in all.
TEST_F(CollectiveCliTest, HierarchicalAllToAll) {
  const std::string command = "collective alltoall --cluster dgx-h100-ndr --nodes 8 --sizes 64K,1G";
  const Json direct = AsJson(command);
  const Json phases = AsJson(command + " --algorithm hierarchical");
  EXPECT_EQ(phases["rows"][0]["algorithm"], "Hierarchical");
  const double size = 1 << 30;
  for (const Json& json : {direct, phases}) {
    EXPECT_NEAR(double{json["rows"][1]["nic_bytes_per_gpu"]}, size * 7 / 8, 1);
    EXPECT_NEAR(double{json["rows"][1]["nvlink_bytes_per_gpu"]}, size * 7 / 8, 1);
  }
  // Fewer messages: better for little; one phase behind the other: worse for much.
  EXPECT_LT(double{phases["rows"][0]["time_s"]}, double{direct["rows"][0]["time_s"]});
  EXPECT_GT(double{phases["rows"][1]["time_s"]}, double{direct["rows"][1]["time_s"]});
}

TEST_F(CollectiveCliTest, OnTheLinksOfTheCluster) {
  const std::string command = "collective alltoall --cluster dgx-h100-ndr --nodes 4 --sizes 64M";
  const Json analytic = AsJson(command);
  const Json alone = AsJson(command + " --network flow");
  EXPECT_EQ(alone["network"], "flow");
  EXPECT_EQ(alone["rows"][0]["time_s"], analytic["rows"][0]["time_s"]);
  EXPECT_EQ(alone["rows"][0]["alone_s"], analytic["rows"][0]["time_s"]);
  // The NICs are full: two groups take twice the progress part.
  const Json two = AsJson(command + " --network flow --concurrent-groups 2");
  const double fixed = analytic["rows"][0]["fixed_s"], time = analytic["rows"][0]["time_s"];
  EXPECT_NEAR(double{two["rows"][0]["time_s"]}, fixed + 2 * (time - fixed), 1e-4 * time);
  EXPECT_GT(double{two["rows"][0]["busiest_link"]["utilisation"]}, 0.95);
  // What a fabric has above its leaves.
  const std::string narrow = " --set fabric.oversubscription=4 --nodes 64 --gpus 64 --sizes 64M";
  const std::string across = "collective alltoall --cluster dgx-h100-ndr" + narrow;
  const Json of_one = AsJson(across + " --network flow");
  EXPECT_NEAR(double{of_one["rows"][0]["time_s"]}, double{AsJson(across)["rows"][0]["time_s"]},
              1e-4 * double{AsJson(across)["rows"][0]["time_s"]});
  EXPECT_EQ(of_one["rows"][0]["alone_s"], of_one["rows"][0]["time_s"]);
  EXPECT_EQ(AsJson(across + " --network flow --concurrent-groups 9")["rows"][0]["alone_s"],
            of_one["rows"][0]["time_s"]);
  const std::string rings =
      "collective all_reduce --cluster dgx-h100-ndr --nodes 4 --gpus 4 --node-stride 32 --concurrent-groups 256 "
      "--network flow --sizes 1G --algorithm Ring";
  const Json spread = AsJson(rings), hashed = AsJson(rings + " --set fabric.routing=HASHED");
  EXPECT_EQ(spread["rows"][0]["time_s"], spread["rows"][0]["alone_s"]);
  EXPECT_GT(double{hashed["rows"][0]["time_s"]}, 1.5 * double{hashed["rows"][0]["alone_s"]});
  EXPECT_THAT(Orrery(command + " --network flow").out, HasSubstr("of link"));
}

// Two GPUs behind one NIC of 23.5 GB/s on either side: of a ring of four, 3/2 S leave each. On the graph it takes the
// same: the prices of a graph are held against its links.
TEST_F(CollectiveCliTest, DeviceByDevice) {
  const std::string command = "collective all_reduce --cluster two-servers-graph --sizes 1G";
  const Json one = AsJson(command);
  EXPECT_EQ(one["gpus"], 2);
  // Four links of 22.75 GB/s; S over them either way.
  EXPECT_GE(double{one["rows"][0]["time_s"]}, (1 << 30) / 91e9);
  const Json two = AsJson(command + " --nodes 2 --algorithm Ring");
  EXPECT_EQ(two["gpus"], 4);
  EXPECT_EQ(two["assumptions"][0], "CPUs are Intel's: a graph does not say");
  const double nic = 1.5 * (1 << 30) / 23.5e9;
  EXPECT_GE(double{two["rows"][0]["time_s"]}, nic);
  EXPECT_LE(double{two["rows"][0]["time_s"]}, 1.5 * nic);
  EXPECT_EQ(AsJson(command + " --nodes 2 --algorithm Ring --network flow")["rows"][0]["time_s"],
            two["rows"][0]["time_s"]);
  EXPECT_EQ(AsJson("collective alltoall --cluster two-servers-graph --nodes 2 --sizes 1G --network flow")["gpus"], 4);
}

// 4 + 6 GPUs: in rings 18/10 S leave either node over four NICs of 47.5 GB/s. Two kinds that are equal are one.
TEST_F(CollectiveCliTest, MixedAndUnevenNodes) {
  const std::string head = "# proto-file: orrery/v1/cluster.proto\n# proto-message: orrery.v1.Cluster\n";
  const std::string links =
      "nvlink { bandwidth: 450e9 efficiency: 0.88 latency: 6e-7 } nic { bandwidth: 50e9 efficiency: 0.95 latency: "
      "1.5e-6 } "
      "nvswitches: 4 nvlinks: 18 pcie { bandwidth: 63e9 efficiency: .88 latency: 0 } ";
  const std::string mixed = File("mixed.txtpb", head + "preset: 'dgx-h100-ndr' nodes: 1 node { gpus: 4 nics: 4 " +
                                                    "pcie_switches: 4 } more_nodes { nodes: 1 node { gpus: 6 nics: 6 " +
                                                    "pcie_switches: 6 cpus: 2 " + links + "} }");
  const std::string command = "collective all_reduce --gpus 10 --nodes 2 --sizes 1G --cluster ";
  const Json rings = AsJson(command + mixed + " --algorithm Ring --protocol Simple");
  const double nics = 1.8 * (1 << 30) / (4 * 47.5e9);
  EXPECT_GE(double{rings["rows"][0]["time_s"]}, nics);
  EXPECT_LE(double{rings["rows"][0]["time_s"]}, 1.5 * nics);
  EXPECT_EQ(AsJson(command + mixed + " --algorithm Ring --protocol Simple --network flow")["rows"][0]["time_s"],
            rings["rows"][0]["time_s"]);
  EXPECT_EQ(AsJson("collective all_reduce --nodes 2 --sizes 1M --cluster " + mixed)["gpus"], 10);
  ExpectRefused({{command + mixed + " --network flow --concurrent-groups 2",
                  "has more_nodes; allowed: on clusters of one kind of node"}});
  // 10 GPUs on two nodes of 8, and 11.
  for (const char* gpus : {"10", "11"}) {
    const std::string uneven =
        "collective all_reduce --cluster dgx_h100 --nodes 2 --sizes 1M --gpus " + std::string(gpus);
    EXPECT_EQ(AsJson(uneven + " --network flow")["rows"][0]["time_s"], AsJson(uneven)["rows"][0]["time_s"]);
  }
  const std::string twice = File("twice.txtpb", head + "preset: 'dgx-h100-ndr' nodes: 1 more_nodes { nodes: 3 node { " +
                                                    "gpus: 8 nics: 8 pcie_switches: 8 cpus: 2 " + links + "} }");
  for (const char* collective : {"all_reduce", "alltoall"}) {
    const std::string four = std::string("collective ") + collective + " --nodes 4 --sizes 8:1G:32 --cluster ";
    EXPECT_EQ(AsJson(four + twice)["rows"], AsJson(four + "dgx-h100-ndr")["rows"]);
  }
}

// DeepEP's table at 4,096 tokens: EP 64, 51 GB/s; low latency at 128 tokens: EP 8, 77 us, EP 256, 194 us.
TEST_F(CollectiveCliTest, Experts) {
  const std::string layer = " --hidden 7168 --top-k 8 --experts 256 --dtype fp8 --cluster deepseek-h800 ";
  const std::string dispatch = "collective expert_dispatch" + layer;
  const Json normal = AsJson(dispatch + "--nodes 8 --tokens 4096 --max-nodes 4 --transport deepep-v1");
  EXPECT_EQ(normal["gpus"], 64);
  EXPECT_EQ(normal["transport"], "deepep-v1");
  EXPECT_EQ(normal["one_copy_per_rank"], true);
  EXPECT_NEAR(double{normal["rows"][0]["logical_bandwidth"]} / 1e9, 51, 0.15 * 51);
  for (const auto& [nodes, published] : {std::pair(1, 77e-6), {32, 194e-6}}) {
    const Json low =
        AsJson(dispatch + "--tokens 128 --transport deepep-v1 --low-latency --nodes " + std::to_string(nodes));
    EXPECT_NEAR(double{low["rows"][0]["time_s"]}, published, 0.2 * published);
  }
  // All-to-all of NCCL: 8 copies of 128 x 7168 x 1.03125 bytes, 7/8 of them to other nodes; as alltoall has it.
  const std::string small = dispatch + "--nodes 8 --tokens 128";
  const Json nccl = AsJson(small);
  const double copies = 8.0 * 128 * 7168 * 1.03125;
  EXPECT_NEAR(double{nccl["rows"][0]["nic_bytes_per_gpu"]}, copies * 7 / 8, 1);
  const std::string alltoall = "collective alltoall --cluster deepseek-h800 --nodes 8 --sizes 7569408";
  EXPECT_EQ(copies, 7569408);
  EXPECT_EQ(nccl["rows"][0]["time_s"], AsJson(alltoall)["rows"][0]["time_s"]);
  EXPECT_EQ(AsJson(small + " --transport hierarchical")["rows"][0]["time_s"],
            AsJson(alltoall + " --algorithm Hierarchical")["rows"][0]["time_s"]);
  // The most loaded rank decides.
  EXPECT_GT(double{AsJson(small + " --imbalance 2")["rows"][0]["time_s"]}, double{nccl["rows"][0]["time_s"]});
  EXPECT_THAT(Orrery("collective expert_combine --nodes 2 --tokens 1K:4K" + layer).out,
              AllOf(StartsWith("# expert_combine, 16 GPUs on 2 nodes of deepseek-h800, nccl, NCCL 2.21\n"),
                    HasSubstr("fp8 (1.03125 bytes per element)"), HasSubstr("\n  4096  ")));
}

// Two of eight nodes under each leaf: 3/4 of the k copies go to others, over an eighth of 47.5 GB/s per GPU.
TEST_F(CollectiveCliTest, ExpertsAcrossNarrowUplinks) {
  const std::string command =
      "collective expert_dispatch --cluster dgx-h100-ndr --nodes 8 --tokens 4096 --hidden 7168 --top-k 8 --experts 256 "
      "--set nodes=8 --set fabric.nodes_per_pod=0 --set fabric.nodes_per_leaf=2 --set fabric.oversubscription=8 ";
  const double leaving = 8.0 * 4096 * 7168 * 2 * 3 / 4;
  for (const char* transport :
       {"--transport deepep-v1 --low-latency", "--transport nccl", "--transport hierarchical"}) {
    const Json json = AsJson(command + transport);
    EXPECT_DOUBLE_EQ(double{json["rows"][0]["uplink_bytes_per_gpu"]}, leaving) << transport;
    EXPECT_NEAR(double{json["rows"][0]["time_s"]}, leaving / 47.5e9 * 8, 2e-3) << transport;
  }
  // A copy for each of the 8 (1 - miss) nodes that a token reaches on average.
  const Json json = AsJson(command + "--transport deepep-v1");
  const double nodes = json["rows"][0]["nodes_per_token"];
  EXPECT_NEAR(double{json["rows"][0]["time_s"]}, leaving / 8 * nodes / 47.5e9 * 8, 2e-4);
  // One GPU sends nothing.
  const Json one = AsJson(
      "collective expert_dispatch --cluster dgx-h100-ndr --gpus 1 --tokens 8 --hidden 64 --top-k 2 "
      "--experts 64");
  EXPECT_EQ(one["rows"][0]["time_s"], 0.0);
  EXPECT_EQ(one["rows"][0]["logical_bandwidth"], 0.0);
}

// Two sockets: 4 x 4 pairs of an all-to-all with 1/8 GiB each cross from one to the other, over 33.28 GB/s.
TEST_F(CollectiveCliTest, NodesWithoutSwitches) {
  for (const std::string algorithm : {"", " --algorithm Hierarchical"}) {
    const std::string command = "collective alltoall --cluster pcie-server --nodes 1 --sizes 1G" + algorithm;
    const Json row = AsJson(command)["rows"][0];
    EXPECT_NEAR(double{row["time_s"]} - double{row["fixed_s"]}, 2.0 * (1 << 30) / 33.28e9, 1e-9);
    EXPECT_EQ(row["time_s"], AsJson(command + " --network flow")["rows"][0]["time_s"]);
  }
  // 2^17 tokens of 4,096 bytes, two copies.
  const Json experts = AsJson(
      "collective expert_dispatch --cluster pcie-server --nodes 1 --tokens 128K --hidden 2048 --top-k 2 --experts 64");
  EXPECT_EQ(experts["rows"][0]["time_s"],
            AsJson("collective alltoall --cluster pcie-server --nodes 1 --sizes 1G")["rows"][0]["time_s"]);
}

TEST_F(CollectiveCliTest, BadInput) {
  const std::string on = " --cluster dgx-h100-ndr ";
  const std::string experts = "collective expert_dispatch --tokens 8 --hidden 64 --top-k 2 --experts 64" + on;
  ExpectRefused({
      {"collective all_redduce" + on, "did you mean 'all_reduce'"},
      {"collective all_reduce", "--cluster"},
      {"collective all_reduce --cluster ''", "must not be empty"},
      {"collective all_reduce --cluster no-such", "no-such"},
      {"collective all_reduce --sizes 8:4" + on, "--sizes: \"8:4\"; allowed: 8:16G:2"},
      {"collective all_reduce --sizes 0" + on, "--sizes: \"0\""},
      {"collective all_reduce --sizes 8:16G:1.5" + on,
       "factor from 2 on), 8:1M:+8K (step) or 1M,4M, in whole numbers with K, M, G or T behind them"},
      {"collective nosuch" + on, "alltoall, sendrecv, expert_dispatch, expert_combine"},
      {"collective expert_dispach" + on, "did you mean 'expert_dispatch'"},
      {"collective all_reduce --set accelerator.compute_capability=70" + on,
       "compute_capability: found 70; allowed: from 90 on, which nccl_times sm90 serve"},
      {"collective all_reduce --sizes 1:1M:+1" + on, "up to 4096"},
      {"collective all_reduce --sizes 2000T" + on, "--sizes"},
      {"collective all_reduce --sizes ''" + on, "must not be empty"},
      {"collective all_reduce --algorithm ''" + on, "must not be empty"},
      {"collective all_reduce --algorithm Rung" + on, "did you mean 'Ring'"},
      {"collective all_reduce --protocol LL256" + on, "protocol \"LL256\"; allowed: LL, LL128, Simple"},
      {"collective all_reduce --algorithm PAT" + on,
       "all_reduce: PAT cannot carry it out on 8 ranks on 1 node of this kind; it needs all_gather or reduce_scatter, "
       "several nodes of one rank each, and NCCL from 2.23 on; allowed: Tree LL, Tree LL128, Tree Simple, Ring LL, "
       "Ring LL128, Ring Simple, NVLS Simple\n"},
      {"collective all_reduce --protocol LL128 --cluster pcie-server", "LL128 cannot carry it out"},
      {"collective all_reduce --algorithm hierarchical" + on, "allowed for alltoall"},
      {"collective all_reduce --nccl-version new" + on, "NCCL version \"new\"; allowed: a number such as 2.18"},
      {"collective all_reduce --nccl-version 2.21.x" + on, "allowed: a number such as"},
      {"collective all_reduce --nodes 9999999" + on, "--nodes: 9999999 nodes; allowed: up to the"},
      {"collective all_reduce --nodes 2 --gpus 17" + on, "17 ranks on 2 nodes of 8 GPUs"},
      {"collective all_reduce --cluster two-servers-graph --nodes 3", "--nodes: 3 nodes; allowed: up to the 2 of"},
      {"collective all_reduce --cluster two-servers-graph --gpus 3 --nodes 1", "3 ranks on 1 nodes of 2 GPUs"},
      {"collective all_reduce --cluster two-servers-graph --network flow --concurrent-groups 2",
       "two-servers-graph is given device by device; allowed: on clusters of one kind of node"},
      {"collective all_reduce --cluster two-servers-graph --nodes 2 --sharp --algorithm CollNetChain",
       "reductions in network switches"},
      {"collective alltoall --cluster two-servers-graph --nodes 2 --gpus 3 --algorithm Hierarchical",
       "3 ranks on 2 nodes; allowed: as many on every node"},
      {"collective all_reduce --network fluid" + on, "--network"},
      {"collective all_reduce --concurrent-groups 2" + on, "allowed with --network=flow"},
      {"collective all_reduce --network flow --concurrent-groups 2 --gpus 3 --nodes 1" + on, "divisors of 8"},
      {"collective all_reduce --network flow --sharp --algorithm CollNetDirect --nodes 4 --sizes 1G" + on,
       "--sharp, --network=flow: reductions in network switches are not modelled on shared links"},
      {"collective all_reduce --tokens 8 --top-k 2" + on, "--tokens, --top-k: of expert_dispatch"},
      {"collective expert_dispatch" + on, "required: --tokens, --hidden, --top-k, --experts"},
      {"collective expert_dispatch --tokens 8 --hidden 64 --top-k 2 --experts 64 --transport deepep-v1 --cluster "
       "pcie-server",
       "which pcie-server does not have between all of them; allowed: nccl, hierarchical"},
      {experts + "--sizes 8", "--sizes: does not apply to expert_dispatch"},
      {experts + "--network flow", "--network: does not apply"},
      {experts + "--dtype fp9", "--dtype fp9; allowed: bf16, fp8, fp16, fp32"},
      {experts + "--transport deepep", "--transport deepep; allowed: deepep-v1, nccl, hierarchical"},
      {experts + "--low-latency", "nccl has no such kernels"},
      {experts + "--transport deepep-v1 --nccl-version 2.21", "does not use NCCL's kernels"},
      {experts + "--nodes 16", "found 64 experts; allowed: a multiple of 128"},
      {experts + "--imbalance 0.5", "--imbalance"},
      {experts + "--imbalance nan", "--imbalance: found nan; allowed: 1 to 1e6"},
  });
  // As `topology show` has it.
  for (const char* broken : {"node.nics=3", "fabric.oversubscription=0", "node.gpus=7"}) {
    const std::string set = std::string(" --set ") + broken;
    EXPECT_EQ(Orrery("collective all_reduce" + on + set).err, Orrery("topology show dgx-h100-ndr" + set).err) << broken;
    EXPECT_NE(Orrery("topology show dgx-h100-ndr" + set).err, "") << broken;
  }
}

// A log in nccl-tests' format of what a slower machine would take: the prediction's own times, and a fixed 3 us more.
class ImportCliTest : public CollectiveCliTest {
 protected:
  std::string Log(double slower = kSlower) const {
    const Json json =
        AsJson("collective all_reduce --cluster dgx-h100-ndr --nccl-version 2.21 --sizes 1M:8G:2 --algorithm NVLS");
    std::string log = "# nThread 1 nGpus 1 minBytes 1 maxBytes 2\n# ./all_reduce_perf\nNCCL version 2.21.5+cuda12.4\n";
    for (int rank = 0; rank < 8; ++rank) {
      log += "#  Rank  " + std::to_string(rank) + " Group 0 Pid 7 on host-a device  0 [0x19] H100\n";
    }
    for (const Json& row : json["rows"]) {
      const double time = double{row["time_s"]} * 1e6 * slower;
      const double algbw = double{row["bytes"]} / time / 1e3;
      char line[200];
      std::snprintf(line, sizeof line, "%lld 1 float sum -1 %.2f %.2f %.2f 0 %.2f %.2f %.2f 0\n",
                    static_cast<long long>(row["bytes"]), time, algbw, 1.75 * algbw, time, algbw, 1.75 * algbw);
      log += line;
    }
    return log;
  }
  static constexpr double kSlower = 1.25;
  const std::string import_ = "calibrate import --base sm90 ";
};

TEST_F(ImportCliTest, FitsWhatALogSays) {
  const std::string log = File("log.txt", Log());
  std::filesystem::create_directories(Path("mine/nccl_times"));
  const std::string profile = Path("mine/nccl_times/sm90.txtpb").string();
  const std::string command = import_ + "--cluster dgx-h100-ndr --nccl-tests " + log;
  const Outcome text = Orrery(command + " -o " + profile);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("fitted: "), HasSubstr("held out: "), HasSubstr("log: good, 14 rows used")));
  const Json json = AsJson(command);
  EXPECT_EQ(json["log"]["grade"], "good");
  EXPECT_EQ(json["log"]["damaged"], 0);
  EXPECT_EQ(int{json["fitted"]["rows"]} + int{json["held_out"]["rows"]}, 14);
  EXPECT_LT(double{json["fitted"]["median_abs_error"]}, 0.05);
  EXPECT_THAT(Contents(profile), HasSubstr("# Regenerated by\n#   orrery calibrate import --nccl-tests log.txt"));
  // What one node says nothing about is the base's, and so is the head that its source speaks of.
  EXPECT_THAT(Contents(profile), AllOf(HasSubstr("name: \"sm90\""), HasSubstr("net_step { value: 1.43e-05"),
                                       HasSubstr("measured collectives: see preset sm90, from which it is kept"),
                                       Not(HasSubstr("106 measured collectives: see the head"))));
  // It is read again, and predicts the log's own rows better than the base, which is a fifth off.
  const std::string predict = "collective all_reduce --cluster dgx-h100-ndr --nccl-version 2.21 --sizes 1M:8G:2";
  const Json before = AsJson(predict), after = AsJson(predict + " --spec-path " + Path("mine").string());
  double base = 0, fitted = 0;
  const Json truth = AsJson(predict + " --algorithm NVLS");
  for (std::size_t i = 0; i < truth["rows"].size(); ++i) {
    const double measured = double{truth["rows"][i]["time_s"]} * kSlower;
    base += std::fabs(double{before["rows"][i]["time_s"]} / measured - 1);
    fitted += std::fabs(double{after["rows"][i]["time_s"]} / measured - 1);
  }
  EXPECT_LT(fitted, 0.5 * base);
}

// A hundred times what the hardware could take at worst: no constants within their bounds say that.
TEST_F(ImportCliTest, ABadFitIsSaidAndExitsWith1) {
  const std::string log = File("log.txt", Log(100));
  const std::string profile = Path("mine.txtpb").string();
  const Outcome text = Orrery(import_ + "--cluster dgx-h100-ndr --nccl-tests " + log + " -o " + profile);
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.err, AllOf(HasSubstr("warning: collectives: median error of the fitted rows "),
                              HasSubstr(" %; allowed: up to 30.0 %. ")));
  EXPECT_THAT(text.out, HasSubstr("log: good"));
  EXPECT_THAT(Contents(profile), HasSubstr("name: \"mine\""));
}

TEST_F(ImportCliTest, DamageIsReported) {
  const std::string sound = Log();
  const std::string log =
      File("log.txt", sound + "1048576 262144 float sum -1 nan\n9 2 float sum -1 1 9 9 7 1 9 9 7\n");
  const Outcome text = Orrery(import_ + "--cluster dgx-h100-ndr --nccl-tests " + log);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("log: poor, 14 rows used, 2 damaged"), HasSubstr("left out: line 26: cut off"),
                              HasSubstr("left out: line 27: #wrong is 7")));
  EXPECT_THAT(text.err, HasSubstr("2 rows are damaged and left out; the first: line 26"));
  // The same table twice teaches nothing more.
  const std::string twice = File("twice.txt", sound + sound);
  const Json json = AsJson(import_ + "--cluster dgx-h100-ndr --nccl-tests " + twice);
  EXPECT_EQ(json["log"]["damaged"], 14);
  EXPECT_EQ(json["rows"], 14);
}

TEST_F(ImportCliTest, BadInput) {
  const std::string log = File("log.txt", Log());
  const std::string table = File("table.csv",
                                 "hardware,nodes,gpus,collective,bytes,time_us,use,concurrent_groups\n"
                                 "8xH100 SXM,1,8,all_reduce,1048576,30,fit,1\n"
                                 "8xH100 SXM,1,8,all_reduce,2097152,40,fti,1\n");
  const std::string groups = File("groups.csv",
                                  "hardware,nodes,gpus,collective,bytes,time_us,concurrent_groups\n"
                                  "8xH100 SXM,1,8,all_reduce,1048576,30,none\n");
  std::string without = Log();
  without.erase(without.find("#  Rank  3"), without.find("#  Rank  4") - without.find("#  Rank  3"));
  const std::string gap = File("gap.txt", without);
  const std::string of_log = import_ + "--nccl-tests " + log;
  const std::string on = of_log + " --cluster dgx-h100-ndr ";
  ExpectRefused({
      {of_log, "required: --cluster PRESET"},
      {on + "--gpu H100", "--gpu: does not apply to --nccl-tests"},
      {on + "--keep x --accelerator h100-sxm-80gb", "--accelerator, --keep: does not apply to --nccl-tests"},
      {on + "--accelerator ''", "--accelerator: must not be empty"},
      {on + "--collective ''", "--collective: must not be empty"},
      {on + "--collective all_gather", "log.txt says all_reduce; allowed: without it"},
      {on + "--nccl-version 2.27", "log.txt says 2.21.5; allowed: without it"},
      {on + "-o " + log, "is read by this command"},
      {import_ + "--cluster dgx-h100-ndr --nccl-tests " + gap, "gap.txt: ranks up to 7 are listed, and rank 3 is not"},
      {import_ + "--collectives-csv " + table + " --cluster dgx-h100-ndr",
       "--cluster: does not apply to --collectives-csv"},
      {import_ + "--collectives-csv " + table, "table.csv:3: use: \"fti\"; allowed: fit, check, shape"},
      {import_ + "--collectives-csv " + groups, "groups.csv:2: concurrent_groups"},
      {import_ + "--gemm-csv " + table + " --nccl-version 2.21", "--nccl-version: does not apply to --gemm-csv"},
      {"calibrate show ''", "must not be empty"},
      {"topology import --like '' --nvidia-smi x", "--like: must not be empty"},
      {"topology import --accelerator '' --nvidia-smi x", "--accelerator: must not be empty"},
  });
  // busbw gives the operation away.
  std::string unnamed = Log();
  unnamed.erase(unnamed.find("# ./all_reduce_perf\n"), 20);
  const std::string other =
      import_ + "--collective all_gather --cluster dgx-h100-ndr --nccl-tests " + File("u.txt", unnamed);
  ExpectRefused({{other, "busbw is 1.750 of algbw; allowed: 0.875, as of all_gather among 8 ranks"}});
  // Groups that share GPUs are refused by row, and counted.
  const std::string several = File("several.csv",
                                   "hardware,nodes,gpus,collective,bytes,time_us,concurrent_groups\n"
                                   "8xH100 SXM,1,8,all_reduce,1048576,30,1\n8xH100 SXM,1,4,all_reduce,1048576,30,3\n");
  EXPECT_EQ(AsJson(import_ + "--collectives-csv " + several)["refused"]["several groups on the same GPUs"], 1);
}

}  // namespace
}  // namespace orrery::cli
