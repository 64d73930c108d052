#include "sim/collectives/message_flows.h"

#include <cstddef>

namespace orrery::collectives {
namespace {

std::vector<std::int64_t> AllOf(const RanksByNode& nodes) {
  std::vector<std::int64_t> ranks;
  for (const std::vector<std::int64_t>& of_node : nodes) ranks.insert(ranks.end(), of_node.begin(), of_node.end());
  return ranks;
}

void AddPairs(const std::vector<std::int64_t>& ranks, std::vector<Flow>* flows) {
  for (const std::int64_t from : ranks) {
    for (const std::int64_t to : ranks) {
      if (from == to) continue;
      flows->push_back(
          {.from = from, .to = to, .numerator = 1, .denominator = static_cast<std::int64_t>(ranks.size())});
    }
  }
}

}  // namespace

std::vector<Flow> AllToAllFlows(const RanksByNode& nodes) {
  std::vector<Flow> flows;
  AddPairs(AllOf(nodes), &flows);
  return flows;
}

std::vector<Flow> SendRecvFlows(const RanksByNode& nodes) {
  const std::vector<std::int64_t> ranks = AllOf(nodes);
  std::vector<Flow> flows;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    flows.push_back({.from = ranks[r], .to = ranks[(r + 1) % ranks.size()]});
  return flows;
}

std::vector<Flow> InsideNodesFlows(const RanksByNode& nodes) {
  std::vector<Flow> flows;
  for (const std::vector<std::int64_t>& ranks : nodes) AddPairs(ranks, &flows);
  return flows;
}

std::vector<Flow> OnRailsFlows(const RanksByNode& nodes) {
  std::vector<Flow> flows;
  for (std::size_t place = 0; place < nodes.front().size(); ++place) {
    std::vector<std::int64_t> rail;
    for (const std::vector<std::int64_t>& ranks : nodes) rail.push_back(ranks[place]);
    AddPairs(rail, &flows);
  }
  return flows;
}

}  // namespace orrery::collectives
