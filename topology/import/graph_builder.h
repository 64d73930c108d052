// Servers and a fabric as a v1::Graph, device by device.
#ifndef ORRERY_TOPOLOGY_IMPORT_GRAPH_BUILDER_H_
#define ORRERY_TOPOLOGY_IMPORT_GRAPH_BUILDER_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "orrery/v1/cluster.pb.h"
#include "topology/import/ib_fabric.h"
#include "topology/import/placement.h"
#include "topology/import/server.h"

namespace orrery::topology {

// Links of the kinds that v1::Node has, resolved; a bandwidth that a file gives goes before theirs. Latencies as in the
// generated topologies: half of NVLink's to a switch, half of the NIC's and of a hop's on the cable of a NIC.
struct LinkKinds {
  v1::Link nvlink;  // one of them
  v1::Link pcie;
  v1::Link cpu_link;
  v1::Link nic;
  double hop_latency = 0;
};

class GraphBuilder {
 public:
  GraphBuilder(const LinkKinds& kinds, v1::Graph* graph) : kinds_(kinds), graph_(*graph) {}

  // Returns the ids of its NICs.
  std::vector<std::string> AddServer(const std::string& name, const Server& server);
  // Of a host of which no more is known. Returns their ids.
  std::vector<std::string> AddNics(const std::string& name, std::size_t nics);
  // All switches, the cables between them, and those of the placed NICs. `nics`: ids by server.
  void AddFabric(const IbFabric& fabric, const std::vector<PlacedServer>& servers,
                 const std::vector<std::vector<std::string>>& nics);

 private:
  std::string AddDevice(std::string id, v1::DeviceKind kind, const std::string& host);
  void AddCable(const std::string& a, const std::string& b, const v1::Link& like, double bandwidth, double latency,
                std::int64_t count);
  void AddPcie(const std::string& id, const PcieDevice& device, const std::vector<std::string>& switches,
               const std::vector<std::string>& cpus);
  std::vector<std::string> SwitchIds(const IbFabric& fabric);

  const LinkKinds& kinds_;
  v1::Graph& graph_;
  std::set<std::string> ids_;
};

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_GRAPH_BUILDER_H_
