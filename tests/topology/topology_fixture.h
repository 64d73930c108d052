// Clusters for tests of the topology: what a resolved spec has, without the accelerator.
#ifndef ORRERY_TESTS_TOPOLOGY_TOPOLOGY_FIXTURE_H_
#define ORRERY_TESTS_TOPOLOGY_TOPOLOGY_FIXTURE_H_

#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "topology/topology.h"

namespace orrery::topology {

inline v1::Cluster ParseCluster(const std::string& text) {
  v1::Cluster cluster;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &cluster)) << text;
  return cluster;
}

// `nodes` of 8 GPUs with 8 NICs of 50 GB/s, 18 NVLinks of 25 GB/s over four NVSwitches, a PCIe switch for each GPU and
// NIC, two sockets; all efficiencies 1. Rail-optimised: 32 nodes to a leaf, 64 ports, no oversubscription. NVLink 0.6
// us, NIC 1.5 us, hop 0.5 us. `fabric` overrides.
inline v1::Cluster HgxCluster(std::int64_t nodes, const std::string& fabric = "", const std::string& node = "") {
  v1::Cluster cluster = ParseCluster(R"(
    node { gpus: 8 nvlink { bandwidth: 450e9 efficiency: 1 latency: 0.6e-6 } nvswitches: 4 nvlinks: 18
           nics: 8 nic { bandwidth: 50e9 efficiency: 1 latency: 1.5e-6 }
           pcie { bandwidth: 64e9 efficiency: 1 latency: 0 } pcie_switches: 8
           cpus: 2 cpu_link { bandwidth: 64e9 efficiency: 1 latency: 0 } hosts: 1 }
    fabric { nodes_per_leaf: 32 oversubscription: 1 hop_latency: 0.5e-6 rail_optimised: true separate_rails: false planes: 1
             uplink_bandwidth: 50e9 switch_ports: 64 nodes_per_pod: 0 pod_oversubscription: 1 routing: ADAPTIVE hash_seed: 1 })");
  cluster.set_nodes(nodes);
  cluster.MergeFrom(ParseCluster("fabric { " + fabric + " } node { " + node + " }"));
  return cluster;
}

inline Topology BuildTopology(const v1::Cluster& cluster) {
  absl::StatusOr<Topology> topology = Topology::Build(cluster);
  EXPECT_TRUE(topology.ok()) << topology.status();
  return *std::move(topology);
}

inline std::string BuildError(const v1::Cluster& cluster) {
  return std::string(Topology::Build(cluster).status().message());
}

}  // namespace orrery::topology

#endif  // ORRERY_TESTS_TOPOLOGY_TOPOLOGY_FIXTURE_H_
