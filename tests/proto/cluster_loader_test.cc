// Clusters by themselves, and the free-form graph in runs.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proto/spec_fixture.h"

namespace orrery::spec {
namespace {

using ::testing::HasSubstr;

const char kHeader[] = "# proto-file: orrery/v1/cluster.proto\n# proto-message: orrery.v1.Cluster\n";

// `inside`: more of the graph.
std::string Graph(const std::string& inside = "") {
  return std::string(kHeader) +
         "graph { device { id: \"g\" kind: GPU } device { id: \"n\" kind: NIC }\n"
         "  cable { a: \"g\" b: \"n\" link { bandwidth: 1e9 efficiency: 0.5 latency: 0 } } " +
         inside + " }\n";
}

absl::StatusOr<v1::Cluster> LoadText(const std::string& text, std::vector<std::string> overrides = {},
                                     std::vector<SpecError>* errors = nullptr) {
  const TemporaryFolder folder;
  return LoadCluster(folder.Write("mine.txtpb", text), FixtureOptions(std::move(overrides)), nullptr, errors);
}

TEST(ClusterLoaderTest, PresetsWithOverridesAndDefaults) {
  const absl::StatusOr<v1::Cluster> cluster = LoadCluster("pod", FixtureOptions({"node.gpus=4", "nodes=3"}));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->name(), "pod");
  EXPECT_EQ(cluster->nodes(), 3);
  EXPECT_EQ(cluster->node().gpus(), 4);
  EXPECT_EQ(cluster->node().nvswitches(), 1);
  EXPECT_EQ(cluster->fabric().switch_ports(), 64);
  EXPECT_THAT(std::string(LoadCluster("pot", FixtureOptions()).status().message()),
              HasSubstr("is no file and no preset; allowed: a file, or one of"));
}

TEST(ClusterLoaderTest, FilesThatStartFromPresets) {
  const absl::StatusOr<v1::Cluster> cluster = LoadText(std::string(kHeader) + "preset: \"pod\" nodes: 5\n");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->nodes(), 5);
  EXPECT_EQ(cluster->node().gpus(), 8);
}

TEST(ClusterLoaderTest, GraphsNeedNothingBesideThem) {
  const absl::StatusOr<v1::Cluster> cluster = LoadText(Graph());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->graph().routing(), v1::ADAPTIVE);
  EXPECT_EQ(cluster->graph().cable(0).count(), 1);
  EXPECT_FALSE(cluster->has_node());
}

// Line and column of what is wrong; every error at once.
TEST(ClusterLoaderTest, ErrorsHavePlaces) {
  std::vector<SpecError> errors;
  EXPECT_FALSE(LoadText(std::string(kHeader) + "preset: \"pod\"\nnodes: 0\nfabric { planes: 99 }\n", {}, &errors).ok());
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].line, 4);
  EXPECT_EQ(errors[0].field, "nodes");
  EXPECT_EQ(errors[1].line, 5);
  EXPECT_EQ(errors[1].field, "fabric.planes");
  EXPECT_FALSE(LoadText(Graph(), {"graph.cable[0].link.bandwidth=0"}, &errors).ok());
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].field, "graph.cable[0].link.bandwidth");
  EXPECT_FALSE(LoadCluster("/no/such/file.txtpb", FixtureOptions()).ok());
  EXPECT_FALSE(LoadText(std::string(kHeader) + "preset: \"nobody\"\n", {}, &errors).ok());
  EXPECT_EQ(errors.size(), 1u);
}

TEST(ClusterLoaderTest, ChecksOfLayersAbove) {
  const ClusterCheck check = [](const v1::Cluster&) { return std::vector<FieldProblem>{{{"node.gpus"}, "too many"}}; };
  std::vector<SpecError> errors;
  EXPECT_FALSE(LoadCluster("pod", FixtureOptions({"node.gpus=4"}), check, &errors).ok());
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].file, "--set node.gpus=4");
}

// A server without NVLink: GPUs exchange data over PCIe, which has what the NICs have.
TEST(ClusterLoaderTest, WithoutNvlinkPcieStandsIn) {
  const absl::StatusOr<v1::Cluster> cluster =
      LoadText(std::string(kHeader) +
               "accelerator { preset: \"gpu\" } nodes: 2 node { gpus: 4 nvswitches: 0 nics: 1 nic { bandwidth: 25e9 "
               "efficiency: 0.9 "
               "latency: 1e-6 } } fabric { nodes_per_leaf: 2 oversubscription: 1 hop_latency: 0 }\n");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_DOUBLE_EQ(cluster->node().nvlink().bandwidth(), 25e9);
  EXPECT_EQ(cluster->node().nvlinks(), 0);
}

// One GPU, one NIC, beside what a cluster says of nodes and fabric.
std::string Beside(const std::string& fabric = "", const std::string& graph = "") {
  return Graph(graph) + "preset: \"pod\" nodes: 1 node { gpus: 1 nics: 1 }\nfabric { " + fabric + " }\n";
}

TEST(ClusterLoaderTest, AGraphHasTheGpusOfItsNodes) {
  std::vector<SpecError> errors;
  EXPECT_TRUE(LoadText(Beside()).ok()) << LoadText(Beside()).status();
  EXPECT_FALSE(LoadText(Beside(), {"nodes=3"}, &errors).ok());
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].ToString(),
            "--set nodes=3: nodes: nodes x node.gpus = 3 x 1 = 3 GPUs, of which graph has 1; allowed: up to 1");
  EXPECT_FALSE(LoadText(Beside(), {"node.gpus=2"}, &errors).ok());
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].field, "node.gpus");
}

// The fabric's routing and switches are not those of the graph: set, they are refused; of a file, passed
// over.
TEST(ClusterLoaderTest, WhatAGraphStandsInPlaceOf) {
  std::vector<SpecError> errors;
  for (const char* field : {"routing=HASHED", "hash_seed=2", "switch_ports=32", "planes=2"}) {
    EXPECT_FALSE(LoadText(Beside(), {std::string("fabric.") + field}, &errors).ok()) << field;
    ASSERT_EQ(errors.size(), 1u) << field;
    EXPECT_THAT(errors[0].message, HasSubstr("plays no part beside a graph; allowed: graph.")) << field;
  }
  EXPECT_FALSE(LoadText(Beside(), {"fabric={routing: HASHED}"}, &errors).ok());
  EXPECT_TRUE(LoadText(Beside(), {"graph.routing=HASHED"}).ok());
  EXPECT_TRUE(LoadText(Beside(), {"fabric.oversubscription=2"}).ok());  // prices read it
  EXPECT_TRUE(LoadText(Beside("routing: HASHED", "routing: HASHED")).ok());
  EXPECT_TRUE(LoadText(Beside("routing: ADAPTIVE"), {"graph.routing=HASHED"}).ok());  // as a resolved file has it
}

// What follows from a wrong field by default is not wrong once more.
TEST(ClusterLoaderTest, DefaultsOfWrongFieldsAreNotJudged) {
  std::vector<SpecError> errors;
  EXPECT_FALSE(LoadCluster("pod", FixtureOptions({"node.nic.efficiency=0"}), nullptr, &errors).ok());
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].field, "node.nic.efficiency");
  EXPECT_FALSE(LoadCluster("pod", FixtureOptions({"node.pcie={bandwidth: 1 latency: -1}"}), nullptr, &errors).ok());
  EXPECT_EQ(errors.size(), 2u);
  EXPECT_FALSE(LoadText(Graph("cable { a: \"g\" b: \"n\" }"), {}, &errors).ok());
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].field, "graph.cable[1].link");
}

// Runs, and every run of a sweep.
TEST(ClusterLoaderTest, GraphsOfRuns) {
  std::string text = GoodText();
  const std::size_t at = text.find("cluster {");
  ASSERT_NE(at, std::string::npos) << text;
  text.insert(at + 9,
              " graph { device { id: \"g\" kind: GPU } device { id: \"n\" kind: NIC } cable { a: \"g\" b: \"n\" link { "
              "bandwidth: 1e9 efficiency: 1 latency: 0 } } }");
  EXPECT_THAT(ErrorOf(text),
              HasSubstr("cluster.nodes x cluster.node.gpus = 16 x 8 = 128 GPUs, of which cluster.graph has 1"));
  const absl::StatusOr<BaseRun> base = BaseRun::FromText(text, "run.txtpb", FixtureOptions());
  ASSERT_TRUE(base.ok()) << base.status();
  const std::string error(base->Resolve({"cluster.fabric.routing=HASHED"}).status().message());
  EXPECT_THAT(error,
              HasSubstr("--set cluster.fabric.routing=HASHED: cluster.fabric.routing: plays no part beside a graph; "
                        "allowed: cluster.graph.routing"));
}

// A run with nothing but a graph has one error, at the graph.
TEST(ClusterLoaderTest, RunsNeedNodes) {
  std::string text = GoodText();
  const std::size_t at = text.find("cluster {");
  ASSERT_NE(at, std::string::npos) << text;
  const std::size_t end = text.find('\n', at);
  text.replace(at, end - at, "cluster { accelerator { preset: \"gpu\" } graph { device { id: \"g\" kind: GPU } } }");
  const std::string message = ErrorOf(text);
  EXPECT_THAT(message, HasSubstr("cluster.graph: stands alone"));
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

}  // namespace
}  // namespace orrery::spec
