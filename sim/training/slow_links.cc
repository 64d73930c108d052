#include "sim/training/slow_links.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "topology/named_links.h"
#include "topology/problems.h"

namespace orrery::training {
namespace {

bool IsWithinNode(const topology::Topology& topology, topology::LinkId id) {
  const topology::Link link = topology.link(id);
  const auto is_nic = [&](topology::DeviceId end) { return topology.device(end).kind == topology::DeviceKind::kNic; };
  return !topology::IsNetwork(link.kind) && !is_nic(link.from) && !is_nic(link.to);
}

}  // namespace

std::optional<PerturbedCluster> Perturb(const v1::Run& run, std::vector<spec::FieldProblem>* problems) {
  absl::StatusOr<topology::Topology> topology = topology::Topology::Build(run.cluster());
  for (spec::FieldProblem& problem : topology::ProblemsOf(topology.status(), "cluster")) {
    problems->push_back(std::move(problem));
  }
  if (!topology.ok()) return std::nullopt;
  SlowedLinks slowed;
  std::vector<topology::LinkId> dead;
  std::vector<std::string> fields_of_dead;
  bool known = true;
  bool within_nodes = false;
  for (int i = 0; i < run.perturbation().link_size(); ++i) {
    const v1::SlowLink& slow = run.perturbation().link(i);
    const std::string path = absl::StrCat("perturbation.link[", i, "]");
    absl::StatusOr<std::vector<topology::LinkId>> links = topology::LinksNamed(*topology, slow.device(), slow.to());
    slowed.emplace_back();
    if (!links.ok()) {
      const bool wrong_end = !slow.to().empty() && topology->Find(slow.device()).ok();
      problems->push_back({{path + (wrong_end ? ".to" : ".device")}, std::string(links.status().message())});
      known = false;
      continue;
    }
    within_nodes |=
        std::any_of(links->begin(), links->end(), [&](topology::LinkId link) { return IsWithinNode(*topology, link); });
    if (slow.capacity() == 0) {
      dead.insert(dead.end(), links->begin(), links->end());
      fields_of_dead.push_back(path + ".capacity");
    } else {
      slowed.back() = *std::move(links);
    }
  }
  if (!known) return std::nullopt;
  if (dead.empty()) return PerturbedCluster{*std::move(topology), std::move(slowed), within_nodes};
  absl::StatusOr<topology::Topology> left = topology->Without(dead);
  if (left.ok()) return PerturbedCluster{*std::move(left), std::move(slowed), within_nodes};
  const std::string reason = topology::ProblemsOf(left.status()).front().message;
  problems->push_back({std::move(fields_of_dead), absl::StrCat("without the dead links ", reason)});
  return std::nullopt;
}

std::vector<spec::FieldProblem> LinkProblems(const v1::Run& run) {
  std::vector<spec::FieldProblem> problems;
  if (run.simulation().network() == v1::FLOW) Perturb(run, &problems);
  return problems;
}

}  // namespace orrery::training
