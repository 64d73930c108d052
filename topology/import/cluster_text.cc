// The file of an imported cluster.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/utf8.h"
#include "google/protobuf/text_format.h"
#include "proto/cluster_loader.h"
#include "topology/import/import.h"
#include "topology/problems.h"
#include "topology/topology.h"

namespace orrery::topology {
namespace {

constexpr std::size_t kWidth = 116;  // of a comment

// As comment lines, words kept whole; lines after the first are indented.
void AppendComment(std::string_view text, std::string* out) {
  const std::string printable = Printable(text);
  std::string line = "#";
  for (std::size_t begin = 0; begin < printable.size();) {
    const std::size_t end = std::min(printable.find(' ', begin), printable.size());
    const std::string word = printable.substr(begin, end - begin);
    if (line.size() + 1 + word.size() > kWidth && line.size() > 3) {
      absl::StrAppend(out, line, "\n");
      line = "#  ";
    }
    absl::StrAppend(&line, " ", word);
    begin = end + 1;
  }
  absl::StrAppend(out, line, "\n");
}

void AppendList(const char* title, const std::vector<std::string>& items, std::string* out) {
  if (items.empty()) return;
  absl::StrAppend(out, "#\n# ", title, "\n");
  for (const std::string& item : items) AppendComment(absl::StrCat("* ", item), out);
}

}  // namespace

std::string ImportedText(const ImportOptions& options, const ImportResult& result) {
  std::string text = "# proto-file: orrery/v1/cluster.proto\n# proto-message: orrery.v1.Cluster\n#\n";
  AppendComment(options.command, &text);
  absl::StrAppend(&text, "#\n");
  AppendComment(result.irregularity.empty()
                    ? std::string("Regular: node and fabric say the whole.")
                    : absl::StrCat("A graph, device by device, because of: ", result.irregularity,
                                   ". nodes, node and fabric come near it; the topology is the graph."),
                &text);
  AppendList("Assumed:", result.findings.assumptions(), &text);
  AppendList("Warnings:", result.findings.Warnings(), &text);
  AppendList("Notes:", result.findings.notes(), &text);
  AppendList("What NCCL's search found:", result.graphs, &text);
  if (!result.hosts.empty()) AppendList("Hosts, in the order of the nodes:", {absl::StrJoin(result.hosts, " ")}, &text);
  if (!result.other_hosts.empty())
    AppendList(result.irregularity.empty() ? "Hosts without GPUs, left out:"
                                           : "Hosts without GPUs, of which the graph has the NICs:",
               {absl::StrJoin(result.other_hosts, " ")}, &text);
  std::string body;
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  ORRERY_CHECK(printer.PrintToString(result.cluster, &body));
  return absl::StrCat(text, body);
}

absl::Status CheckLoads(const ImportOptions& options, const std::string& text, const std::string& file) {
  const auto problems = [](const v1::Cluster& cluster) { return ProblemsOf(Topology::Build(cluster).status()); };
  std::vector<spec::SpecError> errors;
  const absl::Status loaded = spec::LoadClusterFromText(text, file, options.load, problems, &errors).status();
  if (loaded.ok()) return absl::OkStatus();
  const std::string first = errors.empty() ? std::string(loaded.message()) : errors.front().ToString();
  const std::string more = errors.size() > 1 ? absl::StrCat(" (and ", errors.size() - 1, " more)") : "";
  return absl::InvalidArgumentError(
      absl::StrCat("the imported cluster cannot be read, so it is not written: ", Printable(first), more));
}

}  // namespace orrery::topology
