// A topology as a picture: rows of boxes joined by lines. Some dozens of nodes are drawn one by one; of more, one group
// of nodes that share their leaf switches, with the rest as boxes that say how many there are.
#ifndef ORRERY_REPORTS_TOPOLOGY_PICTURE_H_
#define ORRERY_REPORTS_TOPOLOGY_PICTURE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "topology/topology.h"

namespace orrery::reports {

struct PictureBox {
  std::string label;     // "leaf3", "node0", "120 nodes"
  std::string detail;    // "8 GPUs"; may be empty
  bool is_many = false;  // stands for several
};

struct PictureRow {
  std::string title;      // "leaf switches"
  std::string css_class;  // "leaf"
  std::vector<std::size_t> boxes;
};

struct PictureLine {
  std::size_t a = 0;  // boxes
  std::size_t b = 0;
  std::int64_t cables = 0;
  std::int64_t capacity = 0;  // bytes/s, achieved, together
  bool is_slow = false;       // holds a cable slower than others of its kind
};

struct Picture {
  std::string title;
  std::vector<PictureBox> boxes;
  std::vector<PictureRow> rows;  // top first, none empty
  std::vector<PictureLine> lines;
};

// Core, spine and leaf switches, and nodes.
Picture FabricPicture(const std::string& name, const topology::Topology& topology);
// NVSwitches, GPUs, PCIe switches, CPUs and NICs of the first node.
Picture NodePicture(const topology::Topology& topology);

// Graphviz: `dot -Tsvg`. Both pictures.
std::string TopologyDot(const std::string& name, const topology::Topology& topology);
// Both pictures, one below the other.
std::string TopologySvg(const std::string& name, const topology::Topology& topology);
// The rows of the first picture for a terminal: a line each, with the cables between them.
std::string TopologySketch(const topology::Topology& topology);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_TOPOLOGY_PICTURE_H_
