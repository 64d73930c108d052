#include "topology/problems.h"

#include <string>
#include <string_view>
#include <utility>

namespace orrery::topology {

std::vector<spec::FieldProblem> ProblemsOf(const absl::Status& status, std::string_view parent) {
  if (status.ok()) return {};
  // "cluster.node.nics: found ...", "cluster.graph.cable[2] ("a" - "b"): ...", "cluster: ...".
  constexpr std::string_view kCluster = "cluster";
  std::string field = "nodes";
  std::string message(status.message());
  const std::size_t end = message.find_first_of(" :");
  if (message.starts_with(kCluster) && end != std::string::npos) {
    if (end > kCluster.size()) field = message.substr(kCluster.size() + 1, end - kCluster.size() - 1);
    message.erase(0, message[end] == ':' ? end + 2 : end + 1);
  }
  if (!parent.empty()) field.insert(0, std::string(parent) + ".");
  return {{{std::move(field)}, std::move(message)}};
}

}  // namespace orrery::topology
