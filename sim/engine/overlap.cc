#include "sim/engine/overlap.h"

#include <algorithm>

namespace orrery::engine {
namespace {

bool AnyOf(const Load::Shares& shares) {
  return std::any_of(shares.begin(), shares.end(), [](std::int64_t share) { return share > 0; });
}

bool HasEffect(const Load& load) { return AnyOf(load.takes) || AnyOf(load.at_least) || AnyOf(load.slows); }

template <typename Predicate>
bool SomeLoad(const World& world, Predicate&& predicate) {
  return std::any_of(world.programs.begin(), world.programs.end(), [&](const Program& program) {
    return std::any_of(program.loads.begin(), program.loads.end(), predicate);
  });
}

}  // namespace

bool HasLoads(const World& world) { return SomeLoad(world, HasEffect); }

bool SlowsTransfers(const World& world) {
  return SomeLoad(world, [](const Load& load) { return AnyOf(load.slows); });
}

Overlap::Overlap(const World& world, const WorldLayout& layout) : layout_(layout) {
  if (!HasLoads(world)) return;
  for (const Program& program : world.programs) {
    std::vector<bool>& has_effect = has_effect_.emplace_back();
    for (const Load& load : program.loads) has_effect.push_back(HasEffect(load));
  }
  paces_.resize(world.units.size());
  slowable_.resize(world.units.size());
  is_marked_.resize(world.units.size());
  for (std::size_t u = 0; u < world.units.size(); ++u) {
    const Program& program = *layout.units[u].program;
    program_of_.push_back(world.units[u].program);
    if (std::any_of(program.loads.begin(), program.loads.end(), HasEffect)) paces_[u].emplace(program);
  }
}

bool Overlap::HasEffectAt(std::int32_t unit, std::int32_t load) const {
  if (load < 0 || has_effect_.empty()) return false;
  return has_effect_[static_cast<std::size_t>(program_of_[static_cast<std::size_t>(unit)])]
                    [static_cast<std::size_t>(load)];
}

const Load& Overlap::LoadAt(const End& end) const {
  return layout_.units[static_cast<std::size_t>(end.unit)].program->loads[static_cast<std::size_t>(end.load)];
}

void Overlap::Mark(std::int32_t unit) {
  if (is_marked_[static_cast<std::size_t>(unit)]) return;
  is_marked_[static_cast<std::size_t>(unit)] = true;
  marked_.push_back(unit);
}

void Overlap::BeginTransfer(std::int32_t id, std::span<const End> ends, Time duration, Time now) {
  if (static_cast<std::size_t>(id) >= transfers_.size()) transfers_.resize(static_cast<std::size_t>(id) + 1);
  Transfer& transfer = transfers_[static_cast<std::size_t>(id)];
  transfer.ends.assign(ends.begin(), ends.end());
  transfer.since = now;
  transfer.left = Int128{duration.count()} * kWholeRate;
  transfer.rate = kWholeRate;
  for (const End& end : ends) {
    PaceOf(end.unit).Count(end.load, 1);
    Mark(end.unit);
    if (AnyOf(LoadAt(end).slows)) slowable_[static_cast<std::size_t>(end.unit)].push_back(id);
  }
}

void Overlap::EndTransfer(std::int32_t id) {
  if (static_cast<std::size_t>(id) >= transfers_.size()) return;
  Transfer& transfer = transfers_[static_cast<std::size_t>(id)];
  for (const End& end : transfer.ends) {
    PaceOf(end.unit).Count(end.load, -1);
    Mark(end.unit);
    std::erase(slowable_[static_cast<std::size_t>(end.unit)], id);
  }
  transfer.ends.clear();
}

std::optional<Time> Overlap::BeginCompute(std::int32_t unit, const Op& op, Time host_start, Time now) {
  PaceOf(unit).Begin(op, host_start, now);
  if (!slowable_[static_cast<std::size_t>(unit)].empty()) Mark(unit);
  if (is_marked_[static_cast<std::size_t>(unit)]) return std::nullopt;
  return PaceOf(unit).End();
}

std::span<const Time> Overlap::EndCompute(std::int32_t unit) {
  if (!slowable_[static_cast<std::size_t>(unit)].empty()) Mark(unit);
  return PaceOf(unit).Finish();
}

std::span<const Overlap::Change> Overlap::Settle(Time now) {
  changes_.clear();
  // Kinds of all first: a transfer asks at several units.
  for (const std::int32_t unit : marked_) PaceOf(unit).Settle(now);
  for (const std::int32_t unit : marked_) {
    is_marked_[static_cast<std::size_t>(unit)] = false;
    const ComputePace& pace = PaceOf(unit);
    if (pace.is_running()) changes_.push_back({What::kComputeEnds, unit, pace.End()});
    for (const std::int32_t id : slowable_[static_cast<std::size_t>(unit)]) SettleTransfer(id, now);
    if (slowable_[static_cast<std::size_t>(unit)].empty() || !pace.is_running()) continue;
    const Time change = pace.KindChange();
    if (change != kNever) changes_.push_back({What::kComputeChanges, unit, change});
  }
  marked_.clear();
  return changes_;
}

// Twice at one instant changes nothing.
void Overlap::SettleTransfer(std::int32_t id, Time now) {
  Transfer& transfer = transfers_[static_cast<std::size_t>(id)];
  transfer.left -= Int128{transfer.rate} * (now - transfer.since).count();
  if (transfer.left < 0) transfer.left = 0;
  transfer.since = now;
  std::int64_t slowed = 0;
  for (const End& end : transfer.ends) slowed = std::max(slowed, LoadAt(end).slows[PaceOf(end.unit).kind()]);
  transfer.rate = std::max(kLeastRate, kWholeRate - slowed);
  changes_.push_back({What::kTransferEnds, id, now + TimeOfWork(transfer.left, transfer.rate)});
}

void Overlap::AddUnit(std::int32_t unit, StateHash& hash) const {
  if (!Paces(unit)) return;
  hash.Add(std::int32_t{is_marked_[static_cast<std::size_t>(unit)]});
  paces_[static_cast<std::size_t>(unit)]->AddTo(hash);
}

void Overlap::AddTransfer(std::int32_t id, StateHash& hash) const {
  if (static_cast<std::size_t>(id) >= transfers_.size()) return;
  const Transfer& transfer = transfers_[static_cast<std::size_t>(id)];
  if (transfer.ends.empty()) return;
  hash.AddInstant(transfer.since);
  hash.Add(transfer.left);
  hash.Add(transfer.rate);
}

}  // namespace orrery::engine
