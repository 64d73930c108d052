#include "topology/reachability.h"

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "topology/topology_impl.h"

namespace orrery::topology {
namespace {

using Set = std::vector<std::int32_t>;  // ascending

std::size_t At(std::int64_t i) { return static_cast<std::size_t>(i); }

void MakeSet(Set* set) {
  std::sort(set->begin(), set->end());
  set->erase(std::unique(set->begin(), set->end()), set->end());
}

bool Share(const Set& a, const Set& b) {
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() && right != b.end()) {
    if (*left == *right) return true;
    *left < *right ? ++left : ++right;
  }
  return false;
}

// Components by device: of network links alone, or of inner ones, GPUs and NICs never being on the way.
Set Components(const Topology::Impl& impl, bool network) {
  boost::disjoint_sets_with_storage<> sets(impl.parts.devices.size());
  const auto is_end = [&](DeviceId id) {
    const DeviceKind kind = impl.parts.devices[At(id)].kind;
    return kind == DeviceKind::kGpu || kind == DeviceKind::kNic;
  };
  for (const Cable& cable : impl.parts.cables) {
    if (!cable.dead && IsNetwork(cable.kind) == network && !is_end(cable.a) && !is_end(cable.b)) {
      sets.union_set(At(cable.a), At(cable.b));
    }
  }
  Set component(impl.parts.devices.size());
  for (std::size_t i = 0; i < component.size(); ++i) component[i] = static_cast<std::int32_t>(sets.find_set(i));
  return component;
}

// Where a GPU can go first.
struct Reach {
  Set islands;    // of its node
  Set networks;   // that the NICs of those hang on
  Set forwarded;  // these, and those of GPUs that NVLink joins with it and that may forward
};

class Checker {
 public:
  explicit Checker(const Topology& topology)
      : topology_(topology),
        impl_(topology.impl()),
        island_(Components(impl_, false)),
        network_(Components(impl_, true)) {}

  absl::Status Check() {
    FindNetworksOfIslands();
    for (std::int64_t gpu = 0; gpu < topology_.gpus(); ++gpu) reach_.push_back(ReachOf(topology_.gpu(gpu)));
    FindForwarders();
    // GPUs by the networks that they reach.
    std::map<std::pair<Set, Set>, std::vector<std::int64_t>> classes;
    for (std::int64_t gpu = 0; gpu < topology_.gpus(); ++gpu) {
      classes[{reach_[At(gpu)].networks, reach_[At(gpu)].forwarded}].push_back(gpu);
    }
    for (auto one = classes.begin(); one != classes.end(); ++one) {
      for (auto other = one; other != classes.end(); ++other) {
        const bool both_ways =
            Share(one->first.second, other->first.first) && Share(other->first.second, one->first.first);
        if (!both_ways) ABSL_RETURN_IF_ERROR(CheckWithoutNetwork(one->second, other->second));
      }
    }
    return absl::OkStatus();
  }

 private:
  void FindNetworksOfIslands() {
    networks_of_island_.resize(island_.size());
    for (DeviceId id = 0; id < impl_.parts.first_switch; ++id) {
      if (impl_.parts.devices[At(id)].kind != DeviceKind::kNic) continue;
      const Set networks = NetworksOf(id);
      const auto add = [&](DeviceId at) {
        Set& all = networks_of_island_[At(island_[At(at)])];
        all.insert(all.end(), networks.begin(), networks.end());
      };
      add(id);
      for (const LinkId link : impl_.LinksFrom(id)) {
        if (!IsNetwork(impl_.CableOf(link).kind)) add(impl_.To(link));
      }
    }
    for (Set& networks : networks_of_island_) MakeSet(&networks);
  }

  // Of a NIC: those of its switches, and each cable to another NIC.
  Set NetworksOf(DeviceId nic) const {
    Set networks;
    for (const LinkId link : impl_.LinksFrom(nic)) {
      if (!IsNetwork(impl_.CableOf(link).kind)) continue;
      const DeviceId to = impl_.To(link);
      const bool is_switch = to >= impl_.parts.first_switch;
      networks.push_back(is_switch ? network_[At(to)] : topology_.devices() + link / 2);
    }
    return networks;
  }

  Reach ReachOf(DeviceId gpu) const {
    Reach reach;
    for (const LinkId link : impl_.LinksFrom(gpu)) {
      const DeviceId to = impl_.To(link);
      if (impl_.parts.devices[At(to)].kind == DeviceKind::kGpu) continue;
      const std::int32_t island = island_[At(to)];
      if (!reach.islands.empty() && reach.islands.back() == island) continue;
      reach.islands.push_back(island);
      const Set& networks = networks_of_island_[At(island)];
      reach.networks.insert(reach.networks.end(), networks.begin(), networks.end());
    }
    MakeSet(&reach.islands);
    MakeSet(&reach.networks);
    return reach;
  }

  // Calls visit(place) for what NVLink joins a GPU with: another GPU's number, or the gpus of the cluster + an island.
  template <typename Visit>
  void ForNvlinks(std::int64_t gpu, const Visit& visit) const {
    for (const LinkId link : impl_.LinksFrom(topology_.gpu(gpu))) {
      if (impl_.CableOf(link).kind != LinkKind::kNvlink) continue;
      const DeviceId to = impl_.To(link);
      const bool is_gpu = impl_.parts.devices[At(to)].kind == DeviceKind::kGpu;
      visit(is_gpu ? topology_.GpuNumber(to) : topology_.gpus() + island_[At(to)]);
    }
  }

  void FindForwarders() {
    const auto add = [](const Set& more, Set* to) { to->insert(to->end(), more.begin(), more.end()); };
    std::map<std::int64_t, Set> of_island;
    for (std::int64_t gpu = 0; gpu < topology_.gpus(); ++gpu) {
      std::int64_t last = -1;
      ForNvlinks(gpu, [&](std::int64_t place) {
        if (place >= topology_.gpus() && place != last) add(reach_[At(gpu)].networks, &of_island[place]);
        last = place;
      });
    }
    for (auto& [place, networks] : of_island) MakeSet(&networks);
    for (std::int64_t gpu = 0; gpu < topology_.gpus(); ++gpu) {
      Reach& reach = reach_[At(gpu)];
      reach.forwarded = reach.networks;
      std::int64_t last = -1;
      ForNvlinks(gpu, [&](std::int64_t place) {
        if (place != last)
          add(place < topology_.gpus() ? reach_[At(place)].networks : of_island[place], &reach.forwarded);
        last = place;
      });
      MakeSet(&reach.forwarded);
    }
  }

  bool Joined(DeviceId a, DeviceId b) const {
    const std::span<const LinkId> links = impl_.LinksFrom(a);
    return std::any_of(links.begin(), links.end(), [&](LinkId link) { return impl_.To(link) == b; });
  }

  // Every pair that is not on one island must be joined directly; there are no more such pairs than cables.
  absl::Status CheckWithoutNetwork(const std::vector<std::int64_t>& some,
                                   const std::vector<std::int64_t>& others) const {
    std::map<Set, std::vector<std::int64_t>> by_islands;
    for (const std::int64_t gpu : others) by_islands[reach_[At(gpu)].islands].push_back(gpu);
    for (const std::int64_t a : some) {
      for (const auto& [islands, gpus] : by_islands) {
        if (Share(reach_[At(a)].islands, islands)) continue;
        for (const std::int64_t b : gpus) {
          if (a != b && !Joined(topology_.gpu(a), topology_.gpu(b))) return Apart(std::min(a, b), std::max(a, b));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Apart(std::int64_t a, std::int64_t b) const {
    return absl::InvalidArgumentError(
        absl::StrCat(topology_.is_free_form() ? "cluster.graph" : "cluster", ": GPU ", a, " (",
                     topology_.NameOf(topology_.gpu(a)), ") and GPU ", b, " (", topology_.NameOf(topology_.gpu(b)),
                     ") cannot reach each other; allowed: a way over NVLink, PCIe or the network"));
  }

  const Topology& topology_;
  const Topology::Impl& impl_;
  const Set island_;
  const Set network_;
  std::vector<Set> networks_of_island_;
  std::vector<Reach> reach_;
};

}  // namespace

absl::Status CheckReachability(const Topology& topology) { return Checker(topology).Check(); }

}  // namespace orrery::topology
