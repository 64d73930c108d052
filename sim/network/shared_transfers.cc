#include "sim/network/shared_transfers.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "sim/engine/state_hash.h"

namespace orrery::network {

namespace {

std::uint64_t Key(std::int32_t unit, std::int32_t op) {
  return static_cast<std::uint64_t>(unit) << 32 | static_cast<std::uint32_t>(op);
}

// Whenever it was booked.
Work LeftAt(Time now, const Progress& progress) {
  return progress.left - std::min(progress.left, WorkAt(progress.rate, now - progress.since));
}

}  // namespace

SharedTransfers::SharedTransfers(const engine::World& world, std::optional<AlikeClasses> alike)
    : world_(&world),
      alike_(std::move(alike)),
      network_({.attribute_delays = alike_.has_value()}),
      begun_(world.routes.size()) {}

// Of links that bind alike the network names the first: those of one class come one after another.
absl::Status SharedTransfers::AddLinks() {
  std::vector<std::int32_t> order(world_->link_capacities.size());
  std::iota(order.begin(), order.end(), 0);
  if (alike_.has_value()) {
    std::sort(order.begin(), order.end(), [this](std::int32_t a, std::int32_t b) {
      return std::pair(alike_->of_link[static_cast<std::size_t>(a)], a) <
             std::pair(alike_->of_link[static_cast<std::size_t>(b)], b);
    });
  }
  link_of_.resize(order.size());
  for (const std::int32_t link : order) {
    const BytesPerSecondInteger capacity(world_->link_capacities[static_cast<std::size_t>(link)]);
    ABSL_ASSIGN_OR_RETURN(link_of_[static_cast<std::size_t>(link)], network_.AddLink(capacity));
  }
  return absl::OkStatus();
}

// A collective is named after its member of the first class.
void SharedTransfers::NameCollectives() {
  keys_.resize(world_->groups.size());
  for (std::size_t g = 0; g < world_->groups.size(); ++g) {
    const std::vector<std::int32_t>& members = world_->groups[g];
    if (members.empty()) continue;
    const auto class_of = [this](std::int32_t unit) { return alike_->of_unit[static_cast<std::size_t>(unit)]; };
    const std::int32_t first = *std::min_element(
        members.begin(), members.end(),
        [&class_of](std::int32_t a, std::int32_t b) { return std::pair(class_of(a), a) < std::pair(class_of(b), b); });
    const engine::Unit& unit = world_->units[static_cast<std::size_t>(first)];
    const std::vector<engine::Op>& ops = world_->programs[static_cast<std::size_t>(unit.program)].ops;
    for (std::size_t op = 0; op < ops.size(); ++op) {
      if (ops[op].kind != engine::OpKind::kCollective) continue;
      if (unit.groups[static_cast<std::size_t>(ops[op].group)] != static_cast<std::int32_t>(g)) continue;
      const auto use = static_cast<std::size_t>(ops[op].use);
      if (use >= keys_[g].size()) keys_[g].resize(use + 1);
      keys_[g][use] = Key(class_of(first), static_cast<std::int32_t>(op));
    }
  }
}

std::uint64_t SharedTransfers::KeyOf(const engine::SharedTransfer& transfer) const {
  if (!alike_.has_value()) return Key(transfer.unit, transfer.op);
  const engine::Unit& unit = world_->units[static_cast<std::size_t>(transfer.unit)];
  const engine::Program& program = world_->programs[static_cast<std::size_t>(unit.program)];
  const engine::Op& op = program.ops[static_cast<std::size_t>(transfer.op)];
  if (op.kind != engine::OpKind::kCollective)
    return Key(alike_->of_unit[static_cast<std::size_t>(transfer.unit)], transfer.op);
  const std::int32_t group = unit.groups[static_cast<std::size_t>(op.group)];
  return keys_[static_cast<std::size_t>(group)][static_cast<std::size_t>(op.use)];
}

absl::StatusOr<SharedTransfers> SharedTransfers::Make(const engine::World& world, std::optional<AlikeClasses> alike) {
  SharedTransfers transfers(world, std::move(alike));
  ABSL_RETURN_IF_ERROR(transfers.AddLinks());
  if (transfers.alike_.has_value()) transfers.NameCollectives();
  for (std::size_t r = 0; r < world.routes.size(); ++r) {
    const engine::Route& route = world.routes[r];
    if (route.rate < 1 || route.rate > kMaxCapacity.count()) {
      return absl::InvalidArgumentError(absl::StrCat("route ", r, " has a rate of ", route.rate, " bytes/s"));
    }
    std::vector<LinkLoad>& loads = transfers.loads_.emplace_back();
    for (const engine::LinkLoad& load : route.loads) {
      if (load.link < 0 || static_cast<std::size_t>(load.link) >= world.link_capacities.size() || load.bytes < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("route ", r, " puts ", load.bytes, " bytes on link ", load.link));
      }
      loads.push_back({transfers.link_of_[static_cast<std::size_t>(load.link)], load.bytes});
    }
  }
  return transfers;
}

absl::Status SharedTransfers::Begin(Time now, const engine::SharedTransfer& transfer) {
  const auto route = static_cast<std::size_t>(transfer.route);
  const Rate rate(world_->routes[route].rate * kRatePerUnit);
  Activity activity;
  activity.loads = loads_[route];
  activity.alike = world_->routes[route].alike;
  activity.of_one = world_->routes[route].of_one;
  activity.work = Work(Int128{rate.count()} * transfer.alone.count());
  activity.rate_cap = rate;
  activity.min_duration = transfer.alone;
  activity.key = KeyOf(transfer);
  const absl::StatusOr<Handle> handle = network_.Start(now, activity);
  if (!handle.ok()) return absl::ResourceExhaustedError(absl::StrCat("transfer: ", handle.status().message()));
  const auto slot = static_cast<std::size_t>(handle->slot);
  if (slot >= under_way_.size()) under_way_.resize(slot + 1);
  under_way_[slot] = {transfer.id, route};
  begun_[route] += activity.work;
  return absl::OkStatus();
}

Time SharedTransfers::NextEnd() { return network_.NextEvent(); }

void SharedTransfers::End(Time now, std::vector<std::int64_t>* ids) {
  const auto completions = network_.AdvanceTo(now);
  ORRERY_CHECK(completions.ok());
  for (const Completion& completion : *completions) {
    ids->push_back(under_way_[static_cast<std::size_t>(completion.activity.slot)].id);
  }
}

std::vector<engine::TransferProgress> SharedTransfers::Progress(Time now) {
  std::vector<engine::TransferProgress> all;
  for (const network::Progress& progress : network_.UnderWay()) {
    engine::StateHash hash(now);
    hash.AddInstant(progress.start);
    hash.Add(LeftAt(now, progress).count());
    hash.Add(progress.rate.count());
    hash.Add(progress.bottleneck);
    all.push_back({under_way_[static_cast<std::size_t>(progress.activity.slot)].id, hash.value()});
  }
  return all;
}

std::vector<Work> SharedTransfers::UnitsByRoute() {
  std::vector<Work> units = begun_;
  for (const network::Progress& progress : network_.UnderWay()) {
    units[under_way_[static_cast<std::size_t>(progress.activity.slot)].route] -= LeftAt(network_.now(), progress);
  }
  return units;
}

}  // namespace orrery::network
