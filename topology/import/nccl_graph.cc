#include "topology/import/nccl_graph.h"

#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "topology/import/text.h"

namespace orrery::topology {
namespace {

constexpr std::int64_t kMostNumber = 1'000'000;

// By id, as NCCL numbers its algorithms (src/include/nccl_common.h: tree 0 there; a graph file has the ring first).
constexpr std::array kAlgorithms = {"ring", "tree", "collnet chain", "nvls", "collnet direct"};
// By pattern (src/include/graph.h).
constexpr std::array kPatterns = {"", "balanced tree", "split tree", "tree", "ring", "nvls", "collnet direct"};

template <std::size_t n>
std::string NameOf(const std::array<const char*, n>& names, std::int64_t number) {
  const std::string name = static_cast<std::size_t>(number) < n ? names[static_cast<std::size_t>(number)] : "";
  return name.empty() ? absl::StrCat(number) : name;
}

absl::StatusOr<std::int64_t> Integer(const std::string& file, const XmlElement& element, const char* attribute) {
  const std::string* text = element.Find(attribute);
  const std::optional<std::int64_t> value = text == nullptr ? 0 : ParseCount(*text, kMostNumber);
  if (value.has_value()) return *value;
  return XmlError(file, element,
                  absl::StrCat(attribute, " = ", Quote(*text), "; allowed: an integer from 0 to ", kMostNumber));
}

absl::StatusOr<double> Speed(const std::string& file, const XmlElement& element, const char* attribute) {
  const std::string* text = element.Find(attribute);
  double speed = 0;
  if (text == nullptr || (absl::SimpleAtod(*text, &speed) && std::isfinite(speed) && speed >= 0)) return speed;
  return XmlError(file, element, absl::StrCat(attribute, " = ", Quote(*text), "; allowed: a number of GB/s"));
}

absl::StatusOr<NcclChannel> ReadChannel(const std::string& file, const XmlElement& element) {
  NcclChannel channel;
  for (const XmlElement& child : element.children) {
    if (child.name != "gpu" && child.name != "net") continue;
    ABSL_ASSIGN_OR_RETURN(const std::int64_t dev, Integer(file, child, "dev"));
    (child.name == "gpu" ? channel.gpus : channel.nets).push_back(dev);
  }
  return channel;
}

absl::StatusOr<NcclGraph> ReadGraph(const std::string& file, const XmlElement& element) {
  NcclGraph graph;
  ABSL_ASSIGN_OR_RETURN(graph.id, Integer(file, element, "id"));
  ABSL_ASSIGN_OR_RETURN(graph.pattern, Integer(file, element, "pattern"));
  ABSL_ASSIGN_OR_RETURN(graph.stated_channels, Integer(file, element, "nchannels"));
  ABSL_ASSIGN_OR_RETURN(graph.speed_intra, Speed(file, element, "speedintra"));
  ABSL_ASSIGN_OR_RETURN(graph.speed_inter, Speed(file, element, "speedinter"));
  graph.algorithm = NameOf(kAlgorithms, graph.id);
  graph.pattern_name = NameOf(kPatterns, graph.pattern);
  if (const std::string* type = element.Find("typeintra"); type != nullptr) graph.type_intra = Printable(*type);
  if (const std::string* type = element.Find("typeinter"); type != nullptr) graph.type_inter = Printable(*type);
  for (const XmlElement& child : element.children) {
    if (child.name != "channel") continue;
    ABSL_ASSIGN_OR_RETURN(NcclChannel channel, ReadChannel(file, child));
    graph.channels.push_back(std::move(channel));
  }
  return graph;
}

}  // namespace

absl::StatusOr<std::vector<NcclGraph>> ReadNcclGraphs(const XmlElement& root, const std::string& file) {
  if (root.name != "graphs") return XmlError(file, root, "not a graph file of NCCL; allowed: <graphs>");
  std::vector<NcclGraph> graphs;
  for (const XmlElement& element : root.children) {
    if (element.name != "graph") continue;
    ABSL_ASSIGN_OR_RETURN(NcclGraph graph, ReadGraph(file, element));
    graphs.push_back(std::move(graph));
  }
  if (graphs.empty()) return XmlError(file, root, "no <graph>");
  return graphs;
}

std::string Describe(const NcclGraph& graph) {
  return absl::StrCat(graph.algorithm, ": ", graph.channels.size(), " channels of ", FormatDouble(graph.speed_intra),
                      " GB/s over ", graph.type_intra.empty() ? "?" : graph.type_intra, " (pattern ",
                      graph.pattern_name, "), ", FormatDouble(graph.speed_inter), " GB/s between servers over ",
                      graph.type_inter.empty() ? "?" : graph.type_inter);
}

}  // namespace orrery::topology
