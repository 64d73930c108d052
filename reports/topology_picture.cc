#include "reports/topology_picture.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "topology/device.h"
#include "topology/summary.h"

namespace orrery::reports {
namespace {

using topology::Device;
using topology::DeviceId;
using topology::DeviceKind;
using topology::Link;
using topology::LinkId;
using topology::Topology;

constexpr std::int64_t kMostBoxes = 48;    // of a row
constexpr std::int64_t kMostLines = 3000;  // of a picture
constexpr std::size_t kShownNodes = 3;     // of a group, where not all are drawn
constexpr std::size_t kShownLeaves = 16;
constexpr std::int64_t kMostInside = 18;  // devices of a kind in a node that are drawn one by one

constexpr std::array<const char*, topology::kDeviceKinds> kClasses = {"gpu", "nvswitch", "pcie",  "cpu",
                                                                      "nic", "leaf",     "spine", "core"};

std::string Plural(DeviceKind kind) {
  constexpr std::array<const char*, topology::kDeviceKinds> kNames = {
      "GPUs", "NVSwitches", "PCIe switches", "CPUs", "NICs", "leaf switches", "spine switches", "core switches"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string Counted(std::int64_t count, DeviceKind kind, const char* other = "") {
  return absl::StrCat(FormatCount(count), " ", other, count == 1 ? topology::NameOf(kind) : Plural(kind));
}

std::size_t At(std::int64_t i) { return static_cast<std::size_t>(i); }

// Adds up links between boxes. box_of: by device; -1: in no box.
void Join(const Topology& topology, const std::vector<int>& box_of, bool network, Picture* picture) {
  std::array<std::int64_t, topology::kLinkKinds> fastest{};
  for (LinkId id = 0; id < topology.links(); id += 2) {
    const Link link = topology.link(id);
    std::int64_t& most = fastest[At(static_cast<std::int64_t>(link.kind))];
    most = std::max(most, topology::SpeedsOf(topology, id).fastest);
  }
  std::map<std::pair<int, int>, PictureLine> lines;
  for (LinkId id = 0; id < topology.links(); id += 2) {
    const Link link = topology.link(id);
    const int a = box_of[At(link.from)];
    const int b = box_of[At(link.to)];
    if (a < 0 || b < 0 || a == b || topology::IsNetwork(link.kind) != network) continue;
    PictureLine& line = lines[{std::min(a, b), std::max(a, b)}];
    line.a = At(std::min(a, b));
    line.b = At(std::max(a, b));
    line.cables += link.cables;
    line.capacity += link.capacity;
    line.is_slow |=
        network && topology::SpeedsOf(topology, id).slowest + 1 < fastest[At(static_cast<std::int64_t>(link.kind))];
  }
  for (const auto& [ends, line] : lines) picture->lines.push_back(line);
}

// What the picture needs to know of a node.
struct NodeFacts {
  std::int64_t gpus = 0;
  std::set<DeviceId> leaves;
  std::string name;
};

class FabricDrawer {
 public:
  FabricDrawer(const std::string& name, const Topology& topology) : topology_(topology), nodes_(At(topology.nodes())) {
    picture_.title = name;
    box_of_.assign(At(topology.devices()), -1);
  }

  Picture Draw() {
    CollectNodes();
    whole_ = IsSmall();
    AddSwitches(DeviceKind::kCore, {});
    AddSwitches(DeviceKind::kSpine, {});
    AddSwitches(DeviceKind::kLeaf, whole_ ? std::set<DeviceId>() : FirstGroupLeaves());
    AddNodes();
    Join(topology_, box_of_, true, &picture_);
    return std::move(picture_);
  }

 private:
  void CollectNodes() {
    for (DeviceId id = 0; id < topology_.devices(); ++id) {
      const Device& device = topology_.device(id);
      if (device.node < 0) continue;
      NodeFacts& node = nodes_[At(device.node)];
      if (device.kind == DeviceKind::kGpu) ++node.gpus;
      if (node.name.empty()) NameNode(id, device.node, &node);
      if (device.kind != DeviceKind::kNic) continue;
      for (const LinkId link : topology_.LinksFrom(id)) {
        if (topology_.device(topology_.link(link).to).kind == DeviceKind::kLeaf)
          node.leaves.insert(topology_.link(link).to);
      }
    }
  }

  void NameNode(DeviceId id, std::int32_t number, NodeFacts* node) const {
    const std::string host = topology_.is_free_form() ? topology_.HostOf(id) : "";
    node->name = host.empty() ? absl::StrCat("node", number) : host;
  }

  bool IsSmall() const {
    std::int64_t network_links = 0;
    for (LinkId id = 0; id < topology_.links(); id += 2)
      network_links += topology::IsNetwork(topology_.link(id).kind) ? 1 : 0;
    bool small = topology_.nodes() <= kMostBoxes && network_links <= kMostLines;
    for (const DeviceKind kind : {DeviceKind::kLeaf, DeviceKind::kSpine, DeviceKind::kCore})
      small &= topology_.Count(kind) <= kMostBoxes;
    return small;
  }

  std::set<DeviceId> FirstGroupLeaves() const {
    const std::set<DeviceId>& leaves = nodes_.front().leaves;
    return leaves.size() <= kShownLeaves ? leaves : std::set<DeviceId>();
  }

  std::size_t AddBox(PictureBox box) {
    picture_.boxes.push_back(std::move(box));
    return picture_.boxes.size() - 1;
  }

  // All of them where the picture is whole; else those of `shown`, and one box for the others.
  void AddSwitches(DeviceKind kind, const std::set<DeviceId>& shown) {
    PictureRow row{.title = Plural(kind), .css_class = kClasses[At(static_cast<std::int64_t>(kind))], .boxes = {}};
    std::vector<DeviceId> others;
    for (DeviceId id = 0; id < topology_.devices(); ++id) {
      if (topology_.device(id).kind != kind) continue;
      if (!whole_ && !shown.contains(id)) {
        others.push_back(id);
        continue;
      }
      box_of_[At(id)] = static_cast<int>(AddBox({.label = topology_.NameOf(id), .detail = {}}));
      row.boxes.push_back(At(box_of_[At(id)]));
    }
    if (!others.empty()) {
      const std::size_t box =
          AddBox({.label = Counted(static_cast<std::int64_t>(others.size()), kind, shown.empty() ? "" : "other "),
                  .detail = {},
                  .is_many = true});
      for (const DeviceId id : others) box_of_[At(id)] = static_cast<int>(box);
      row.boxes.push_back(box);
    }
    if (!row.boxes.empty()) picture_.rows.push_back(std::move(row));
  }

  void AddNodes() {
    PictureRow row{.title = "nodes", .css_class = "node", .boxes = {}};
    std::vector<int> box_of_node(nodes_.size(), -1);
    std::vector<std::size_t> group;   // more nodes under the leaves of the first
    std::vector<std::size_t> others;  // all else
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const bool in_group = nodes_[i].leaves == nodes_.front().leaves;
      if (whole_ || (in_group && row.boxes.size() < kShownNodes)) {
        box_of_node[i] = static_cast<int>(AddBox({.label = nodes_[i].name, .detail = GpusOf(nodes_[i].gpus)}));
        row.boxes.push_back(At(box_of_node[i]));
      } else {
        (in_group ? group : others).push_back(i);
      }
    }
    for (const auto& [list, what] :
         {std::pair(&group, std::pair(" more node", " more nodes")),
          std::pair(&others, std::pair(" node of another group", " nodes of other groups"))}) {
      if (list->empty()) continue;
      std::int64_t gpus = 0;
      for (const std::size_t i : *list) gpus += nodes_[i].gpus;
      const std::size_t box = AddBox({.label = absl::StrCat(FormatCount(static_cast<std::int64_t>(list->size())),
                                                            list->size() == 1 ? what.first : what.second),
                                      .detail = GpusOf(gpus),
                                      .is_many = true});
      for (const std::size_t i : *list) box_of_node[i] = static_cast<int>(box);
      row.boxes.push_back(box);
    }
    for (DeviceId id = 0; id < topology_.devices(); ++id) {
      const std::int32_t node = topology_.device(id).node;
      if (node >= 0) box_of_[At(id)] = box_of_node[At(node)];
    }
    picture_.rows.push_back(std::move(row));
  }

  static std::string GpusOf(std::int64_t gpus) { return absl::StrCat(FormatCount(gpus), gpus == 1 ? " GPU" : " GPUs"); }

  const Topology& topology_;
  std::vector<NodeFacts> nodes_;
  std::vector<int> box_of_;
  Picture picture_;
  bool whole_ = true;
};

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

void AppendDot(const Picture& picture, const std::string& prefix, std::string* text) {
  absl::StrAppend(text, "  subgraph cluster_", prefix, " {\n    label=\"", Escaped(picture.title), "\";\n");
  for (const PictureRow& row : picture.rows) {
    absl::StrAppend(text, "    { rank=same;\n");
    for (const std::size_t box : row.boxes) {
      const PictureBox& b = picture.boxes[box];
      absl::StrAppend(text, "      ", prefix, box, " [label=\"", Escaped(b.label), b.detail.empty() ? "" : "\\n",
                      Escaped(b.detail), "\"", b.is_many ? ", peripheries=2" : "", "];\n");
    }
    absl::StrAppend(text, "    }\n");
  }
  for (const PictureLine& line : picture.lines) {
    absl::StrAppend(text, "    ", prefix, line.a, " -- ", prefix, line.b, " [label=\"", line.cables, " x ",
                    FormatFixed(static_cast<double>(line.capacity) / static_cast<double>(line.cables) / 1e9, 1), "\"",
                    line.is_slow ? ", color=red" : "", "];\n");
  }
  absl::StrAppend(text, "  }\n");
}

}  // namespace

Picture FabricPicture(const std::string& name, const Topology& topology) { return FabricDrawer(name, topology).Draw(); }

Picture NodePicture(const Topology& topology) {
  Picture picture;
  std::vector<int> box_of(At(topology.devices()), -1);
  for (const DeviceKind kind :
       {DeviceKind::kNvSwitch, DeviceKind::kGpu, DeviceKind::kPcieSwitch, DeviceKind::kCpu, DeviceKind::kNic}) {
    std::vector<DeviceId> devices;
    for (DeviceId id = 0; id < topology.devices(); ++id) {
      if (topology.device(id).kind == kind && topology.device(id).node == 0) devices.push_back(id);
    }
    if (devices.empty()) continue;
    PictureRow row{.title = Plural(kind), .css_class = kClasses[At(static_cast<std::int64_t>(kind))], .boxes = {}};
    const bool one_by_one = static_cast<std::int64_t>(devices.size()) <= kMostInside;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (one_by_one || i == 0) {
        std::string label = topology.NameOf(devices[i]);
        label = label.substr(label.rfind('/') + 1);
        if (!one_by_one) label = Counted(static_cast<std::int64_t>(devices.size()), kind);
        picture.boxes.push_back({.label = label, .detail = {}, .is_many = !one_by_one});
        row.boxes.push_back(picture.boxes.size() - 1);
      }
      box_of[At(devices[i])] = static_cast<int>(picture.boxes.size()) - 1;
    }
    picture.rows.push_back(std::move(row));
  }
  const std::string host = topology.HostOf(topology.gpu(0));
  picture.title = absl::StrCat("inside the first node", host.empty() ? "" : absl::StrCat(", ", host));
  Join(topology, box_of, false, &picture);
  return picture;
}

std::string TopologyDot(const std::string& name, const Topology& topology) {
  std::string text = absl::StrCat("// Labels of edges: cables x achieved GB/s of one.\ngraph \"", Escaped(name),
                                  "\" {\n  node [shape=box];\n");
  AppendDot(FabricPicture(name, topology), "f", &text);
  AppendDot(NodePicture(topology), "n", &text);
  return absl::StrCat(text, "}\n");
}

std::string TopologySketch(const Topology& topology) {
  const Picture picture = FabricPicture("", topology);
  std::map<std::pair<std::size_t, std::size_t>, std::pair<std::int64_t, std::int64_t>>
      between;  // cables and capacity by rows
  std::vector<std::size_t> row_of(picture.boxes.size(), 0);
  for (std::size_t row = 0; row < picture.rows.size(); ++row) {
    for (const std::size_t box : picture.rows[row].boxes) row_of[box] = row;
  }
  for (const PictureLine& line : picture.lines) {
    auto& [cables, capacity] = between[std::minmax(row_of[line.a], row_of[line.b])];
    cables += line.cables;
    capacity += line.capacity;
  }
  std::string text;
  for (std::size_t row = 0; row < picture.rows.size(); ++row) {
    std::string line = absl::StrCat("  ", picture.rows[row].title, ": ");
    for (std::size_t i = 0; i < picture.rows[row].boxes.size(); ++i) {
      const PictureBox& box = picture.boxes[picture.rows[row].boxes[i]];
      const std::string item = absl::StrCat("[", box.label, box.detail.empty() ? "" : ", ", box.detail, "]");
      if (line.size() + item.size() > 100) {
        absl::StrAppend(&line, "...");
        break;
      }
      absl::StrAppend(&line, i == 0 ? "" : " ", item);
    }
    absl::StrAppend(&text, line, "\n");
    const auto below = between.find({row, row + 1});
    if (below == between.end()) continue;
    absl::StrAppend(&text, "     |  ", FormatCount(below->second.first),
                    below->second.first == 1 ? " cable, " : " cables, ",
                    FormatFixed(static_cast<double>(below->second.second) / 1e12, 2), " TB/s\n");
  }
  return text;
}

}  // namespace orrery::reports
