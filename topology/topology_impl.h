// What a Topology holds. For the .cc files of this folder: it includes Boost.Graph (six seconds of compile time).
#ifndef ORRERY_TOPOLOGY_TOPOLOGY_IMPL_H_
#define ORRERY_TOPOLOGY_TOPOLOGY_IMPL_H_

#include <array>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "topology/parts.h"
#include "topology/topology.h"

namespace orrery::topology {

// Vertices are devices; the edges of a vertex are its directed links, by the device that they lead to, then number.
using DirectedGraph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                                         boost::no_property, std::uint32_t, std::uint32_t>;

struct Topology::Impl {
  Parts parts;
  DirectedGraph graph;
  std::vector<LinkId> link_of_edge;
  std::array<std::int64_t, kDeviceKinds> counts{};
  std::array<std::int64_t, kLinkKinds> cables{};
  v1::Routing routing = v1::ADAPTIVE;
  std::uint64_t hash_seed = 1;
  bool is_free_form = false;
  std::vector<std::int32_t> number_of_gpu;            // by device; -1: no GPU
  std::unordered_map<std::string, DeviceId> by_name;  // of a free-form graph

  std::span<const LinkId> LinksFrom(DeviceId id) const {
    const auto [first, last] = boost::out_edges(static_cast<std::uint32_t>(id), graph);
    if (first == last) return {};
    return {link_of_edge.data() + boost::get(boost::edge_index, graph, *first),
            boost::out_degree(static_cast<std::uint32_t>(id), graph)};
  }
  DeviceId To(LinkId link) const {
    const Cable& cable = parts.cables[static_cast<std::size_t>(link >> 1)];
    return (link & 1) == 0 ? cable.b : cable.a;
  }
  const Cable& CableOf(LinkId link) const { return parts.cables[static_cast<std::size_t>(link >> 1)]; }
};

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_TOPOLOGY_IMPL_H_
