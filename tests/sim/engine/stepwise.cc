#include "tests/sim/engine/stepwise.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace orrery::engine::testing {
namespace {

constexpr Time kUnknown(-1);
constexpr Time kNothing(std::numeric_limits<std::int64_t>::max());

// One operation of one unit and iteration.
struct Instance {
  Time ready = kUnknown;
  Time start = kUnknown;
  Time end = kUnknown;
  // kLocal: the segment that runs, or waits for its issue, and its work that is left.
  std::int32_t segment = 0;
  Int128 left = 0;
  std::vector<Time> segment_ends = {};
};

// What moves between units, from `begin` on.
struct Transfer {
  Time begin = kUnknown;
  Int128 left = 0;
  std::vector<std::pair<std::size_t, std::int32_t>> loads = {};  // unit, load
  Time end = kUnknown;
};

class Stepper {
 public:
  Stepper(const World& world, int iterations) : world_(world), iterations_(iterations) {
    const int last = 2 * iterations + 1;
    for (int k = 0; k <= last; ++k) {
      ops_.emplace_back();
      hosts_.emplace_back();
      for (std::size_t u = 0; u < world.units.size(); ++u) {
        ops_.back().emplace_back(ProgramOf(u).ops.size());
        hosts_.back().emplace_back(ProgramOf(u).host_ops.size(), kUnknown);
      }
    }
    for (std::size_t u = 0; u < world.units.size(); ++u) NoteParts(u);
  }

  LongestPath Run() {
    while (true) {
      while (BeginAndEnd()) {
      }
      const Time next = NearestInstant();
      if (next == kNothing) break;
      Advance(next);
    }
    return Collect();
  }

 private:
  using PartKey = std::tuple<int, std::size_t, std::int32_t>;  // iteration, unit, part of a send

  const Program& ProgramOf(std::size_t u) const {
    return world_.programs[static_cast<std::size_t>(world_.units[u].program)];
  }
  const Op& OpOf(std::size_t u, std::size_t i) const { return ProgramOf(u).ops[i]; }
  Instance& At(int k, std::size_t u, std::size_t i) { return ops_[static_cast<std::size_t>(k)][u][i]; }

  // For every part: where the other end of its message is.
  void NoteParts(std::size_t u) {
    const Program& program = ProgramOf(u);
    auto& owners = owner_of_part_.emplace_back(program.parts.size());
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      const Op& op = program.ops[i];
      if (op.kind == OpKind::kCollective) continue;
      for (std::int32_t p = op.first_part; p < op.first_part + op.num_parts; ++p) {
        const Part& part = program.parts[static_cast<std::size_t>(p)];
        owners[static_cast<std::size_t>(p)] = i;
        part_at_[{u, part.channel, part.is_send, part.sequence}] = p;
      }
    }
  }
  struct End {
    std::size_t unit;
    std::int32_t part;
  };
  End OtherEnd(std::size_t u, const Part& part) const {
    const Peer& peer = world_.units[u].peers[static_cast<std::size_t>(part.channel)];
    const auto unit = static_cast<std::size_t>(peer.unit);
    return {unit, part_at_.at({unit, peer.channel, !part.is_send, part.sequence})};
  }
  // The message that a part is an end of, by its send.
  PartKey MessageOf(int k, std::size_t u, std::int32_t p) const {
    const Part& part = ProgramOf(u).parts[static_cast<std::size_t>(p)];
    if (part.is_send) return {k, u, p};
    const End other = OtherEnd(u, part);
    return {k, other.unit, other.part};
  }
  void BeginMessage(int k, std::size_t u, std::int32_t p) {
    const PartKey key = MessageOf(k, u, p);
    const Program& program = ProgramOf(std::get<1>(key));
    const Part& part = program.parts[static_cast<std::size_t>(std::get<2>(key))];
    const End other = OtherEnd(std::get<1>(key), part);
    messages_[key] = {.begin = now_,
                      .left = Int128{part.duration.count()} * kWholeRate,
                      .loads = {{std::get<1>(key), LoadOfPart(program, std::get<2>(key))},
                                {other.unit, LoadOfPart(ProgramOf(other.unit), other.part)}}};
  }

  // --- One instant.

  bool BeginAndEnd() {
    bool changed = false;
    for (auto& [key, transfer] : messages_) changed |= EndTransfer(transfer);
    for (auto& [key, transfer] : meetings_) changed |= EndTransfer(transfer);
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      changed |= StepHost(u);
      for (std::uint8_t s = 0; s < ProgramOf(u).num_streams; ++s) changed |= StepStream(u, s);
    }
    return changed;
  }

  bool EndTransfer(Transfer& transfer) const {
    if (transfer.end != kUnknown || transfer.begin == kUnknown || transfer.begin > now_ || transfer.left > 0)
      return false;
    transfer.end = now_;
    return true;
  }

  bool EventHasEnded(int k, std::size_t u, std::int32_t event) {
    for (std::size_t i = 0; i < ProgramOf(u).ops.size(); ++i) {
      if (OpOf(u, i).records == event) return At(k, u, i).end != kUnknown;
    }
    return false;
  }

  // The host op that comes next, and when the one before has ended; none: the host is done.
  struct HostPlace {
    int k;
    std::size_t h;
    Time free;
  };
  std::optional<HostPlace> HostOf(std::size_t u) const {
    Time free;
    for (std::size_t k = 0; k < hosts_.size(); ++k) {
      for (std::size_t h = 0; h < hosts_[k][u].size(); ++h) {
        if (hosts_[k][u][h] == kUnknown) return HostPlace{static_cast<int>(k), h, free};
        free = hosts_[k][u][h] + ProgramOf(u).host_ops[h].duration;
      }
    }
    return std::nullopt;
  }
  bool StepHost(std::size_t u) {
    const std::optional<HostPlace> place = HostOf(u);
    if (!place || place->free > now_) return false;
    const HostOp& op = ProgramOf(u).host_ops[place->h];
    if (op.waits != kNoEvent && !EventHasEnded(place->k, u, op.waits)) return false;
    hosts_[static_cast<std::size_t>(place->k)][u][place->h] = now_;
    return true;
  }

  // The operation of the stream that has not ended.
  std::optional<std::pair<int, std::size_t>> CurrentOf(std::size_t u, std::uint8_t s) const {
    for (std::size_t k = 0; k < ops_.size(); ++k) {
      for (std::size_t i = 0; i < ProgramOf(u).ops.size(); ++i) {
        if (OpOf(u, i).stream == s && ops_[k][u][i].end == kUnknown) return std::pair(static_cast<int>(k), i);
      }
    }
    return std::nullopt;
  }
  Time HostStart(int k, std::size_t u, const Op& op) const {
    return hosts_[static_cast<std::size_t>(k)][u][static_cast<std::size_t>(op.host_op)];
  }
  Time IssueOf(std::size_t u, const Op& op, std::int32_t segment) const {
    return op.num_segments > 0 ? ProgramOf(u).segments[static_cast<std::size_t>(op.first_segment + segment)].issue
                               : op.issue;
  }

  bool StepStream(std::size_t u, std::uint8_t s) {
    const auto current = CurrentOf(u, s);
    if (!current) return false;
    const auto [k, i] = *current;
    const Op& op = OpOf(u, i);
    Instance& at = At(k, u, i);
    if (at.ready == kUnknown) return BecomeReady(k, u, op, at);
    switch (op.kind) {
      case OpKind::kLocal:
        return StepLocal(k, u, op, at);
      case OpKind::kCollective:
        return StepCollective(k, u, op, at);
      case OpKind::kExchange:
        return StepExchange(k, u, op, at);
    }
    return false;
  }

  bool BecomeReady(int k, std::size_t u, const Op& op, Instance& at) {
    const Time host = HostStart(k, u, op);
    if (host == kUnknown || host + IssueOf(u, op, 0) > now_) return false;
    for (const std::int32_t event : op.waits) {
      if (event != kNoEvent && !EventHasEnded(k, u, event)) return false;
    }
    at.ready = now_;
    return true;
  }

  bool StepLocal(int k, std::size_t u, const Op& op, Instance& at) {
    const Program& program = ProgramOf(u);
    if (at.start == kUnknown) {
      for (std::int32_t p = op.first_part; p < op.first_part + op.num_parts; ++p) {
        if (program.parts[static_cast<std::size_t>(p)].is_send) continue;
        const auto message = messages_.find(MessageOf(k, u, p));
        if (message == messages_.end() || message->second.end == kUnknown) return false;
      }
      at.start = now_;
      Enter(u, op, at);
      return true;
    }
    if (at.segment < op.num_segments) {
      if (at.left > 0 || HostStart(k, u, op) + IssueOf(u, op, at.segment) > now_) return false;
      at.segment_ends.push_back(now_);
      ++at.segment;
      Enter(u, op, at);
      return true;
    }
    at.end = now_;
    for (std::int32_t p = op.first_part; p < op.first_part + op.num_parts; ++p) {
      if (program.parts[static_cast<std::size_t>(p)].is_send) BeginMessage(k, u, p);
    }
    return true;
  }
  void Enter(std::size_t u, const Op& op, Instance& at) const {
    if (at.segment == op.num_segments) return;
    const Segment& segment = ProgramOf(u).segments[static_cast<std::size_t>(op.first_segment + at.segment)];
    at.left = Int128{segment.duration.count()} * kWholeRate;
  }

  bool StepCollective(int k, std::size_t u, const Op& op, Instance& at) {
    const std::int32_t group = world_.units[u].groups[static_cast<std::size_t>(op.group)];
    Transfer& meeting = meetings_[{k, group, op.use}];
    if (meeting.begin == kUnknown) {
      std::vector<Instance*> members;
      meeting.loads.clear();
      for (std::size_t v = 0; v < world_.units.size(); ++v) {
        for (std::size_t i = 0; i < ProgramOf(v).ops.size(); ++i) {
          const Op& other = OpOf(v, i);
          if (other.kind != OpKind::kCollective || other.use != op.use ||
              world_.units[v].groups[static_cast<std::size_t>(other.group)] != group) {
            continue;
          }
          if (At(k, v, i).ready == kUnknown) return false;
          members.push_back(&At(k, v, i));
          meeting.loads.emplace_back(v, LoadOfOp(ProgramOf(v), static_cast<std::int32_t>(i)));
        }
      }
      meeting.begin = now_ + op.lead;
      meeting.left = Int128{op.duration.count()} * kWholeRate;
      for (Instance* member : members) member->start = meeting.begin;
      return true;
    }
    if (meeting.end == kUnknown) return false;
    at.end = now_;
    return true;
  }

  bool StepExchange(int k, std::size_t u, const Op& op, Instance& at) {
    bool all = true;
    bool began = false;
    for (std::int32_t p = op.first_part; p < op.first_part + op.num_parts; ++p) {
      const auto message = messages_.find(MessageOf(k, u, p));
      if (message != messages_.end()) {
        if (at.start == kUnknown) {
          at.start = now_;
          began = true;
        }
        all &= message->second.end != kUnknown;
        continue;
      }
      all = false;
      const End other = OtherEnd(u, ProgramOf(u).parts[static_cast<std::size_t>(p)]);
      const std::size_t i = owner_of_part_[other.unit][static_cast<std::size_t>(other.part)];
      if (At(k, other.unit, i).ready == kUnknown) continue;
      BeginMessage(k, u, p);
      began = true;
    }
    if (began || !all) return began;
    if (at.start == kUnknown) at.start = now_;
    at.end = now_;
    return true;
  }

  // --- Between two instants.

  // The running segment of the compute stream, and its kind; 0 where none runs.
  std::pair<Instance*, std::uint8_t> Computing(std::size_t u) {
    const auto current = CurrentOf(u, kComputeStream);
    if (!current) return {nullptr, 0};
    const Op& op = OpOf(u, current->second);
    Instance& at = At(current->first, u, current->second);
    if (op.kind != OpKind::kLocal || at.start == kUnknown || at.segment == op.num_segments || at.left == 0 ||
        HostStart(current->first, u, op) + IssueOf(u, op, at.segment) > now_) {
      return {nullptr, 0};
    }
    const std::vector<std::uint8_t>& kinds = ProgramOf(u).segment_kinds;
    return {&at, kinds.empty() ? std::uint8_t{0} : kinds[static_cast<std::size_t>(op.first_segment + at.segment)]};
  }

  bool IsUnderWay(const Transfer& transfer) const {
    return transfer.begin != kUnknown && transfer.begin <= now_ && transfer.end == kUnknown;
  }
  template <typename Visitor>
  void ForEachUnderWay(Visitor&& visit) {
    for (auto& [key, transfer] : messages_) {
      if (IsUnderWay(transfer)) visit(transfer);
    }
    for (auto& [key, transfer] : meetings_) {
      if (IsUnderWay(transfer)) visit(transfer);
    }
  }

  const Load& LoadAt(std::size_t u, std::int32_t load) const {
    return ProgramOf(u).loads[static_cast<std::size_t>(load)];
  }

  std::int64_t RateOfCompute(std::size_t u, std::uint8_t kind) {
    Int128 taken = 0;
    std::int64_t at_least = 0;
    ForEachUnderWay([&](const Transfer& transfer) {
      for (const auto& [unit, load] : transfer.loads) {
        if (unit != u || load < 0) continue;
        taken += LoadAt(u, load).takes[kind];
        at_least = std::max(at_least, LoadAt(u, load).at_least[kind]);
      }
    });
    return std::max(kLeastRate, static_cast<std::int64_t>(std::max<Int128>(0, kWholeRate - taken - at_least)));
  }
  std::int64_t RateOfTransfer(const Transfer& transfer) {
    std::int64_t rate = kWholeRate;
    for (const auto& [unit, load] : transfer.loads) {
      if (load < 0) continue;
      rate = std::min(rate, kWholeRate - LoadAt(unit, load).slows[Computing(unit).second]);
    }
    return std::max(rate, kLeastRate);
  }

  // Work that is under way, with its rate; and instants at which something is issued, free or over.
  template <typename OnWork, typename OnInstant>
  void Look(OnWork&& on_work, OnInstant&& on_instant) {
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      if (const auto place = HostOf(u)) on_instant(place->free);
      for (std::uint8_t s = 0; s < ProgramOf(u).num_streams; ++s) {
        const auto current = CurrentOf(u, s);
        if (!current) continue;
        const Op& op = OpOf(u, current->second);
        Instance& at = At(current->first, u, current->second);
        const Time host = HostStart(current->first, u, op);
        if (host == kUnknown) continue;
        const bool between = op.kind == OpKind::kLocal && at.start != kUnknown;
        if (between && at.segment == op.num_segments) continue;
        const Time issued = host + IssueOf(u, op, between ? at.segment : 0);
        on_instant(issued);
        if (!between || issued > now_ || at.left == 0) continue;
        on_work(at.left, s == kComputeStream ? RateOfCompute(u, Computing(u).second) : kWholeRate);
      }
    }
    for (auto& [key, transfer] : meetings_) {
      if (transfer.begin != kUnknown) on_instant(transfer.begin);
    }
    ForEachUnderWay([&](Transfer& transfer) { on_work(transfer.left, RateOfTransfer(transfer)); });
  }

  Time NearestInstant() {
    Time nearest = kNothing;
    Look(
        [&](Int128 left, std::int64_t rate) {
          nearest = std::min(nearest, now_ + Time(static_cast<std::int64_t>((left + rate - 1) / rate)));
        },
        [&](Time instant) {
          if (instant > now_) nearest = std::min(nearest, instant);
        });
    return nearest;
  }

  // All rates are those at the beginning: they are collected before anything moves.
  void Advance(Time next) {
    std::vector<std::pair<Int128*, std::int64_t>> work;
    Look([&](Int128& left, std::int64_t rate) { work.emplace_back(&left, rate); }, [](Time) {});
    for (const auto& [left, rate] : work) *left = std::max<Int128>(0, *left - Int128{rate} * (next - now_).count());
    now_ = next;
  }

  LongestPath Collect() {
    LongestPath path;
    path.iterations = iterations_;
    path.host_starts = hosts_;
    for (std::size_t k = 0; k < ops_.size(); ++k) {
      path.ops.emplace_back(world_.units.size());
      path.segment_ends.emplace_back(world_.units.size());
      path.part_ends.emplace_back(world_.units.size());
      for (std::size_t u = 0; u < world_.units.size(); ++u) {
        for (std::size_t i = 0; i < ops_[k][u].size(); ++i) {
          const Instance& at = ops_[k][u][i];
          ORRERY_CHECK(at.end != kUnknown);
          path.ops[k][u].push_back({at.ready, at.start, at.end});
          path.segment_ends[k][u].push_back(at.segment_ends);
        }
        for (std::size_t p = 0; p < ProgramOf(u).parts.size(); ++p) {
          path.part_ends[k][u].push_back(
              messages_.at(MessageOf(static_cast<int>(k), u, static_cast<std::int32_t>(p))).end);
        }
      }
    }
    AddEndsAndHashes(world_, &path);
    return path;
  }

  const World& world_;
  const int iterations_;
  Time now_;
  std::vector<std::vector<std::vector<Instance>>> ops_;  // [iteration][unit][op]
  std::vector<std::vector<std::vector<Time>>> hosts_;    // [iteration][unit][host op]: start
  std::vector<std::vector<std::size_t>> owner_of_part_;  // [unit][part]: op
  std::map<std::tuple<std::size_t, std::int32_t, bool, std::int32_t>, std::int32_t> part_at_;
  std::map<PartKey, Transfer> messages_;
  std::map<std::tuple<int, std::int32_t, std::int32_t>, Transfer> meetings_;  // iteration, group, use
};

}  // namespace

LongestPath AdvanceStepwise(const World& world, int iterations) { return Stepper(world, iterations).Run(); }

}  // namespace orrery::engine::testing
