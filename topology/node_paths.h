// Shortest paths inside a node: over NVLink, and over PCIe and CPUs. Computed for one node of each shape.
#ifndef ORRERY_TOPOLOGY_NODE_PATHS_H_
#define ORRERY_TOPOLOGY_NODE_PATHS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "topology/path_cost.h"
#include "topology/topology_impl.h"

namespace orrery::topology {

enum class Medium { kNvlink, kPcie };

// Threads may share one. Devices are named by their place in the node, from 0.
class NodePaths {
 public:
  explicit NodePaths(const Topology::Impl& impl);

  // From any device of the node, over links of one medium and no GPU or NIC on the way, to a GPU or NIC. By place.
  const std::vector<LocalCost>& To(std::int32_t shape, Medium medium, std::int32_t target) const;

  // NICs at a network, in order.
  const std::vector<std::int32_t>& Nics(std::int32_t shape) const { return shapes_[Index(shape)].nics; }
  // Those that a GPU uses: see routes.h.
  const std::vector<std::int32_t>& NicsOf(std::int32_t shape, std::int32_t gpu) const {
    return shapes_[Index(shape)].nics_of_gpu[Index(gpu)];
  }
  // GPUs that use a NIC, in order.
  const std::vector<std::int32_t>& UsersOf(std::int32_t shape, std::int32_t nic) const {
    return shapes_[Index(shape)].users_of_nic[Index(nic)];
  }
  // The NIC at a network on a rail; -1: none.
  std::int32_t NicOnRail(std::int32_t shape, std::int32_t rail) const;

 private:
  struct Fields {
    std::once_flag once;
    std::vector<LocalCost> costs;
  };
  struct Shape {
    NodeSpan span;  // of its first node
    std::vector<std::int32_t> nics;
    std::vector<std::int32_t> nic_of_rail;
    std::vector<std::vector<std::int32_t>> nics_of_gpu;   // by place
    std::vector<std::vector<std::int32_t>> users_of_nic;  // by place
    std::unique_ptr<Fields[]> nvlink;                     // by target
    std::unique_ptr<Fields[]> pcie;
  };
  static std::size_t Index(std::int64_t i) { return static_cast<std::size_t>(i); }

  void FindNics(Shape* shape) const;
  void ShareNics(std::int32_t number);
  std::vector<LocalCost> CostsTo(const Shape& shape, Medium medium, std::int32_t target) const;

  const Topology::Impl& impl_;
  std::vector<Shape> shapes_;
};

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_NODE_PATHS_H_
