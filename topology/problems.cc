#include "topology/problems.h"

#include <string>
#include <string_view>
#include <utility>

namespace orrery::topology {

std::vector<spec::FieldProblem> ProblemsOf(const absl::Status& status) {
  if (status.ok()) return {};
  // "cluster.node.nics: found ...", "cluster.graph.cable[2] ("a" - "b"): ...", "cluster: ...".
  constexpr std::string_view kCluster = "cluster";
  std::string message(status.message());
  if (!message.starts_with(kCluster)) return {{{"nodes"}, message}};
  const std::size_t end = message.find_first_of(" :");
  if (end == std::string::npos) return {{{"nodes"}, message}};
  std::string field = end > kCluster.size() ? message.substr(kCluster.size() + 1, end - kCluster.size() - 1) : "nodes";
  message.erase(0, message[end] == ':' ? end + 2 : end + 1);
  return {{{std::move(field)}, std::move(message)}};
}

}  // namespace orrery::topology
