#include "tests/sim/engine/random_world.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "base/random.h"
#include "sim/engine/program.h"

namespace orrery::engine::testing {
namespace {

// A link between two base units: in copy r, channel a.channel of a leads to b in copy (r + shift) mod copies.
struct Link {
  std::int32_t a = 0;
  std::int32_t a_channel = 0;
  std::int32_t b = 0;
  std::int32_t b_channel = 0;
  std::int32_t shift = 0;
};

// A group of base units; one per copy, or one over all copies.
struct Group {
  std::vector<std::int32_t> units;
  std::vector<std::int32_t> slots;  // by member
  bool over_copies = false;
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15u + 1) {}

  World Generate() {
    num_units_ = Below(5) + 1;
    copies_ = Below(3) + 1;
    host_costs_ = Chance(50);
    programs_.resize(static_cast<std::size_t>(num_units_));
    for (Program& program : programs_) {
      program.num_streams = Below(4) + 1;
      program.host_ops.push_back({kNoEvent, host_costs_ ? Short() : Time()});
    }
    MakeLinks();
    MakeGroups();
    const int steps = num_units_ * (Below(10) + 3);
    for (int i = 0; i < steps; ++i) Step();
    for (Program& program : programs_) {
      Shuffle(program);
      Number(program);
      AddUpdate(program);
    }
    for (const auto& [unit, part] : crossed_) {
      std::vector<Part>& parts = ProgramOf(unit).parts;
      std::swap(parts[part].sequence, parts[part + 1].sequence);
    }
    return Replicate();
  }

 private:
  std::int32_t Below(std::int32_t n) { return static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(n)); }
  bool Chance(std::int32_t percent) { return Below(100) < percent; }
  Time Short() { return Time(Chance(25) ? 0 : Below(9)); }
  TimeClass AnyClass() { return static_cast<TimeClass>(Below(kTimeClasses)); }
  Program& ProgramOf(std::int32_t unit) { return programs_[static_cast<std::size_t>(unit)]; }

  void MakeLinks() {
    const std::int32_t count = Below(5);
    for (std::int32_t i = 0; i < count; ++i) {
      Link link;
      link.a = Below(num_units_);
      link.b = Below(num_units_);
      link.shift = Below(copies_);
      link.a_channel = ProgramOf(link.a).num_channels++;
      link.b_channel = ProgramOf(link.b).num_channels++;
      links_.push_back(link);
    }
  }

  void MakeGroups() {
    const std::int32_t count = Below(3);
    for (std::int32_t i = 0; i < count; ++i) {
      Group group;
      group.over_copies = Chance(50);
      for (std::int32_t u = 0; u < num_units_; ++u) {
        if (!Chance(60)) continue;
        group.units.push_back(u);
        group.slots.push_back(ProgramOf(u).num_groups++);
      }
      if (!group.units.empty()) groups_.push_back(group);
    }
  }

  // A new operation at the end of a unit's list, with host op, waits and record.
  Op NewOp(std::int32_t unit, OpKind kind) {
    Program& program = ProgramOf(unit);
    if (Chance(15)) {
      program.host_ops.push_back({program.num_events > 0 && Chance(50) ? Below(program.num_events) : kNoEvent,
                                  host_costs_ ? Short() : Time()});
    }
    Op op;
    op.kind = kind;
    op.stream = static_cast<std::uint8_t>(Chance(50) ? 0 : Below(program.num_streams));
    op.transfer_class = AnyClass();
    op.missing_class = AnyClass();
    op.pipeline = Chance(40);
    op.host_op = static_cast<std::int32_t>(program.host_ops.size()) - 1;
    op.issue = host_costs_ && Chance(50) ? Short() : Time();
    std::size_t waits = 0;
    while (program.num_events > 0 && waits < kMaxWaits && Chance(30)) op.waits[waits++] = Below(program.num_events);
    return op;
  }

  void Append(std::int32_t unit, Op op) {
    Program& program = ProgramOf(unit);
    if (Chance(40)) op.records = program.num_events++;
    program.ops.push_back(op);
  }

  void AddSegments(Program& program, Op& op) {
    op.first_segment = static_cast<std::int32_t>(program.segments.size());
    op.num_segments = Below(4);
    for (std::int32_t i = 0; i < op.num_segments; ++i) {
      program.segments.push_back({AnyClass(), Short(), host_costs_ ? Short() * 2 : Time(), -1});
    }
  }

  void AddPart(Program& program, Op& op, std::int32_t channel, bool is_send, Time duration) {
    if (op.num_parts == 0) op.first_part = static_cast<std::int32_t>(program.parts.size());
    program.parts.push_back({channel, is_send, 0, duration});
    ++op.num_parts;
  }

  void Step() {
    const std::int32_t choice = Below(100);
    if (choice < 25 && !groups_.empty()) {
      AddCollective();
    } else if (choice < 40 && !links_.empty()) {
      AddEager();
    } else if (choice < 45 && !links_.empty()) {
      AddCrossed();
    } else if (choice < 65 && !links_.empty()) {
      AddExchange();
    } else {
      const std::int32_t unit = Below(num_units_);
      Op op = NewOp(unit, OpKind::kLocal);
      AddSegments(ProgramOf(unit), op);
      Append(unit, op);
    }
  }

  void AddCollective() {
    const Group& group = groups_[static_cast<std::size_t>(Below(static_cast<std::int32_t>(groups_.size())))];
    const Time lead = Short();
    const Time duration = Short();
    for (std::size_t i = 0; i < group.units.size(); ++i) {
      Op op = NewOp(group.units[i], OpKind::kCollective);
      op.group = group.slots[i];
      op.lead = lead;
      op.duration = duration;
      Append(group.units[i], op);
    }
  }

  // A link in either direction.
  struct Direction {
    std::int32_t from = 0;
    std::int32_t from_channel = 0;
    std::int32_t to = 0;
    std::int32_t to_channel = 0;
  };
  Direction AnyDirection() {
    const Link& link = links_[static_cast<std::size_t>(Below(static_cast<std::int32_t>(links_.size())))];
    if (Chance(50)) return {link.a, link.a_channel, link.b, link.b_channel};
    return {link.b, link.b_channel, link.a, link.a_channel};
  }

  // A kLocal that sends, or receives, messages of these durations.
  void AddEnd(std::int32_t unit, std::int32_t channel, bool is_send, const std::vector<Time>& durations) {
    Op op = NewOp(unit, OpKind::kLocal);
    AddSegments(ProgramOf(unit), op);
    for (Time duration : durations) AddPart(ProgramOf(unit), op, channel, is_send, duration);
    Append(unit, op);
  }

  // One to two messages between operations of two units; the receiver's comes later in the global order.
  void AddEager() {
    const Direction direction = AnyDirection();
    std::vector<Time> durations;
    for (std::int32_t i = Below(2) + 1; i > 0; --i) durations.push_back(Short());
    AddEnd(direction.from, direction.from_channel, true, durations);
    AddEnd(direction.to, direction.to_channel, false, durations);
  }

  // Two messages of two operations, received by two others the other way round.
  void AddCrossed() {
    const Direction direction = AnyDirection();
    const Time first = Short();
    const Time second = Short();
    AddEnd(direction.from, direction.from_channel, true, {first});
    AddEnd(direction.from, direction.from_channel, true, {second});
    const std::size_t part = ProgramOf(direction.to).parts.size();
    AddEnd(direction.to, direction.to_channel, false, {second});
    AddEnd(direction.to, direction.to_channel, false, {first});
    crossed_.push_back({direction.to, part});
  }

  // One exchange per unit with one to three messages between them, over any of their links.
  void AddExchange() {
    std::vector<std::int32_t> units;
    std::vector<Op> ops;
    struct Pending {
      std::size_t at;
      Part part;
    };
    std::vector<Pending> pending;
    const auto op_of = [&](std::int32_t unit) {
      const auto it = std::find(units.begin(), units.end(), unit);
      if (it != units.end()) return static_cast<std::size_t>(it - units.begin());
      units.push_back(unit);
      ops.push_back(NewOp(unit, OpKind::kExchange));
      return units.size() - 1;
    };
    const std::int32_t count = Below(3) + 1;
    for (std::int32_t i = 0; i < count; ++i) {
      const Link& link = links_[static_cast<std::size_t>(Below(static_cast<std::int32_t>(links_.size())))];
      const bool forward = Chance(50);
      const Time duration = Short();
      const std::size_t a = op_of(link.a);
      const std::size_t b = op_of(link.b);
      pending.push_back({a, {link.a_channel, forward, 0, duration}});
      pending.push_back({b, {link.b_channel, !forward, 0, duration}});
    }
    for (std::size_t i = 0; i < units.size(); ++i) {
      for (const Pending& p : pending) {
        if (p.at == i) AddPart(ProgramOf(units[i]), ops[i], p.part.channel, p.part.is_send, p.part.duration);
      }
      Append(units[i], ops[i]);
    }
  }

  // Lists operations in another order than drawn where nothing but the list changes, so that some wait for later-listed
  // ones.
  void Shuffle(Program& program) {
    for (std::size_t i = 0; i + 1 < program.ops.size(); ++i) {
      Op& first = program.ops[i];
      Op& second = program.ops[i + 1];
      const auto is_plain = [](const Op& op) { return op.kind == OpKind::kLocal && op.num_parts == 0; };
      if (first.stream != second.stream && first.host_op == second.host_op && (is_plain(first) || is_plain(second)) &&
          Chance(40)) {
        std::swap(first, second);
      }
    }
  }

  // Sequences and uses, in list order.
  static void Number(Program& program) {
    std::vector<std::int32_t> sequences(2 * static_cast<std::size_t>(program.num_channels), 0);
    std::vector<std::int32_t> uses(static_cast<std::size_t>(program.num_groups), 0);
    for (Op& op : program.ops) {
      if (op.kind == OpKind::kCollective) op.use = uses[static_cast<std::size_t>(op.group)]++;
      for (std::int32_t p = op.first_part; p < op.first_part + op.num_parts; ++p) {
        Part& part = program.parts[static_cast<std::size_t>(p)];
        part.sequence = sequences[2 * static_cast<std::size_t>(part.channel) + (part.is_send ? 1 : 0)]++;
      }
    }
  }

  // The update, sometimes with operations of the compute stream after it.
  void AddUpdate(Program& program) {
    Op op;
    op.host_op = static_cast<std::int32_t>(program.host_ops.size()) - 1;
    AddSegments(program, op);
    if (program.num_events > 0 && Chance(50)) op.waits[0] = Below(program.num_events);
    program.update_op = static_cast<std::int32_t>(program.ops.size());
    program.ops.push_back(op);
    for (std::int32_t i = Below(3); i > 0; --i) {
      if (program.num_events > 0 && Chance(70)) op.waits[0] = Below(program.num_events);
      AddSegments(program, op);
      program.ops.push_back(op);
    }
  }

  World Replicate() {
    World world;
    world.programs = programs_;
    for (std::int32_t r = 0; r < copies_; ++r) {
      for (std::int32_t u = 0; u < num_units_; ++u) {
        Unit unit;
        unit.program = u;
        unit.multiplicity = Below(3) + 1;
        unit.first_rank = r * num_units_ + u;
        unit.peers.resize(static_cast<std::size_t>(ProgramOf(u).num_channels));
        unit.groups.resize(static_cast<std::size_t>(ProgramOf(u).num_groups), -1);
        world.units.push_back(unit);
      }
    }
    const auto unit_at = [&](std::int32_t copy, std::int32_t unit) { return copy % copies_ * num_units_ + unit; };
    for (const Link& link : links_) {
      for (std::int32_t r = 0; r < copies_; ++r) {
        const std::int32_t a = unit_at(r, link.a);
        const std::int32_t b = unit_at(r + link.shift, link.b);
        world.units[static_cast<std::size_t>(a)].peers[static_cast<std::size_t>(link.a_channel)] = {b, link.b_channel};
        world.units[static_cast<std::size_t>(b)].peers[static_cast<std::size_t>(link.b_channel)] = {a, link.a_channel};
      }
    }
    for (const Group& group : groups_) {
      for (std::int32_t r = 0; r < copies_; ++r) {
        if (r == 0 || !group.over_copies) world.groups.emplace_back();
        const auto id = static_cast<std::int32_t>(world.groups.size()) - 1;
        for (std::size_t i = 0; i < group.units.size(); ++i) {
          const std::int32_t u = unit_at(r, group.units[i]);
          world.groups.back().push_back(u);
          world.units[static_cast<std::size_t>(u)].groups[static_cast<std::size_t>(group.slots[i])] = id;
        }
      }
    }
    for (auto& members : world.groups) std::sort(members.begin(), members.end());
    if (Chance(30)) MakeOneDifferent(world);
    return world;
  }

  // One unit of one copy runs a segment a picosecond longer.
  void MakeOneDifferent(World& world) {
    Unit& unit = world.units[static_cast<std::size_t>(Below(static_cast<std::int32_t>(world.units.size())))];
    Program program = world.programs[static_cast<std::size_t>(unit.program)];
    if (program.segments.empty()) return;
    program.segments[static_cast<std::size_t>(Below(static_cast<std::int32_t>(program.segments.size())))].duration +=
        Time(1);
    unit.program = static_cast<std::int32_t>(world.programs.size());
    world.programs.push_back(program);
  }

  std::mt19937_64 random_;
  std::int32_t num_units_ = 1;
  std::int32_t copies_ = 1;
  bool host_costs_ = false;
  std::vector<Program> programs_;  // [base unit]
  std::vector<Link> links_;
  std::vector<Group> groups_;
  std::vector<std::pair<std::int32_t, std::size_t>> crossed_;  // unit, first of two parts that swap sequences
};

}  // namespace

World RandomWorld(std::uint64_t seed) { return Generator(seed).Generate(); }

void ShareLinks(std::uint64_t seed, std::int64_t capacity_factor, World* world) {
  constexpr std::int64_t kBytePerPicosecond = 1'000'000'000'000;
  const Folding folding = Fold(*world);
  const auto class_of = [&](std::int32_t unit) {
    return static_cast<std::uint64_t>(folding.class_of[static_cast<std::size_t>(unit)]);
  };
  // A number from 0 to `count` - 1 for what has these two names.
  const auto draw = [seed](std::uint64_t a, std::uint64_t b, std::uint64_t count) {
    return static_cast<std::int64_t>(HashCombine(HashCombine(HashCombine(seed, a), b), count) % count);
  };
  const auto route_named = [&](std::uint64_t a, std::uint64_t b) {
    return Route{.rate = (1 + draw(a, b, 4)) * kBytePerPicosecond / 4};
  };
  for (Program& program : world->programs) {
    for (const Op& op : program.ops) program.op_progress.push_back(op.duration - op.duration / 3);
    for (const Part& part : program.parts) program.part_progress.push_back(part.duration - part.duration / 3);
  }
  // Link 0 joins all; behind it every unit's way out, and then every unit's way in.
  const auto units = static_cast<std::int32_t>(world->units.size());
  world->link_capacities = {(2 + draw(0, 0, 5)) * capacity_factor * kBytePerPicosecond};
  for (std::uint64_t way = 0; way < 2; ++way) {
    for (std::int32_t u = 0; u < units; ++u) {
      world->link_capacities.push_back((1 + draw(class_of(u), way, 3)) * capacity_factor * kBytePerPicosecond / 2);
    }
  }
  for (std::size_t g = 0; g < world->groups.size(); ++g) {
    std::uint64_t name = 1000;
    for (const std::int32_t member : world->groups[g]) name = std::min(name, class_of(member));
    Route route = route_named(name, world->groups[g].size());
    if (draw(name, 7, 2) == 0) route.loads.push_back({0, 1 + draw(name, 8, 3)});
    for (const std::int32_t member : world->groups[g]) route.loads.push_back({1 + member, 1 + draw(name, 9, 2)});
    world->group_routes.push_back({static_cast<std::int32_t>(world->routes.size())});
    world->routes.push_back(std::move(route));
  }
  for (std::int32_t u = 0; u < units; ++u) {
    Unit& unit = world->units[static_cast<std::size_t>(u)];
    for (std::size_t channel = 0; channel < unit.peers.size(); ++channel) {
      const std::uint64_t name = 100 + class_of(u);
      unit.routes.push_back(-1);
      if (unit.peers[channel].unit < 0 || draw(name, channel, 4) == 0) continue;
      Route route = route_named(name, channel);
      if (draw(name, 50 + channel, 3) == 0) route.loads.push_back({0, 1});
      route.loads.push_back({1 + u, 1 + draw(name, 60 + channel, 3)});
      route.loads.push_back({1 + units + unit.peers[channel].unit, 1});
      unit.routes.back() = static_cast<std::int32_t>(world->routes.size());
      world->routes.push_back(std::move(route));
    }
  }
}

void AddLoads(std::uint64_t seed, std::int32_t most_twelfths, bool slows_transfers, World* world) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15u + 3);
  const auto below = [&](std::int32_t n) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
  };
  const auto some_shares = [&] {
    Load::Shares shares{};
    for (std::size_t kind = 1; kind < shares.size(); ++kind) {
      if (below(2) == 0) shares[kind] = kWholeRate / 12 * below(most_twelfths + 1);
    }
    return shares;
  };
  for (Program& program : world->programs) {
    const std::int32_t count = 1 + below(3);
    for (std::int32_t i = 0; i < count; ++i) {
      Load& load = program.loads.emplace_back();
      load.takes = some_shares();
      if (below(2) == 0) load.at_least = some_shares();
      if (slows_transfers) load.slows = some_shares();
    }
    const auto some_load = [&](bool any) { return static_cast<std::int16_t>(any ? below(count + 1) - 1 : -1); };
    for (const Op& op : program.ops) program.op_loads.push_back(some_load(op.kind == OpKind::kCollective));
    for (std::size_t i = 0; i < program.parts.size(); ++i) program.part_loads.push_back(some_load(true));
    for (std::size_t i = 0; i < program.segments.size(); ++i) {
      program.segment_kinds.push_back(static_cast<std::uint8_t>(below(kKernelKinds)));
    }
  }
}

}  // namespace orrery::engine::testing
