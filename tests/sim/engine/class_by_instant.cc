#include "tests/sim/engine/class_by_instant.h"

#include <algorithm>
#include <cstddef>

namespace orrery::engine::testing {
namespace {

class Oracle {
 public:
  Oracle(const World& world, const LongestPath& path, std::int32_t unit)
      : world_(world),
        path_(path),
        unit_(static_cast<std::size_t>(unit)),
        program_(world.programs[static_cast<std::size_t>(world.units[unit_].program)]) {}

  // What `stream` does or is blocked on during [t, t + 1).
  TimeClass At(std::uint8_t stream, Time t) const {
    Time previous_end;
    for (std::size_t k = 0; k < path_.ops.size(); ++k) {
      for (std::size_t i = 0; i < program_.ops.size(); ++i) {
        if (program_.ops[i].stream != stream) continue;
        const Time end = path_.ops[k][unit_][i].end;
        if (previous_end <= t && t < end) return During(k, i, previous_end, t);
        previous_end = end;
      }
    }
    return TimeClass::kBubble;  // nothing left
  }

 private:
  TimeClass During(std::size_t k, std::size_t i, Time at, Time t) const {
    const Op& op = program_.ops[i];
    const OpTimes& times = path_.ops[k][unit_][i];
    const Time host = path_.host_starts[k][unit_][static_cast<std::size_t>(op.host_op)];
    const Time offset =
        op.num_segments > 0 ? program_.segments[static_cast<std::size_t>(op.first_segment)].issue : op.issue;
    if (t < host + offset) return t < host ? HostAt(t) : TimeClass::kHost;
    at = std::max(at, host + offset);
    for (std::int32_t event : op.waits) {
      if (event == kNoEvent) break;
      for (std::size_t j = 0; j < program_.ops.size(); ++j) {
        if (program_.ops[j].records == event && t < path_.ops[k][unit_][j].end) return At(program_.ops[j].stream, t);
      }
    }
    switch (op.kind) {
      case OpKind::kLocal:
        if (t < times.start) return IsUnderWay(k, i, t) ? op.transfer_class : op.missing_class;
        return InSegments(k, i, times.start, host, t);
      case OpKind::kCollective:
        return t < times.start ? op.missing_class : op.transfer_class;
      case OpKind::kExchange:
        return IsUnderWay(k, i, t) ? op.transfer_class : op.missing_class;
    }
    return TimeClass::kBubble;
  }

  TimeClass InSegments(std::size_t k, std::size_t i, Time at, Time host, Time t) const {
    const Op& op = program_.ops[i];
    for (std::int32_t s = op.first_segment; s < op.first_segment + op.num_segments; ++s) {
      const Segment& segment = program_.segments[static_cast<std::size_t>(s)];
      at = std::max(at, host + segment.issue);
      if (t < at) return TimeClass::kHost;
      at = path_.segment_ends.empty() ? at + segment.duration
                                      : path_.segment_ends[k][unit_][i][static_cast<std::size_t>(s - op.first_segment)];
      if (t < at) return segment.time_class;
    }
    return TimeClass::kHost;
  }

  // Whether some message that the operation takes part in is being transferred.
  bool IsUnderWay(std::size_t k, std::size_t i, Time t) const {
    const Op& op = program_.ops[i];
    for (std::int32_t p = op.first_part; p < op.first_part + op.num_parts; ++p) {
      const Part& part = program_.parts[static_cast<std::size_t>(p)];
      if (op.kind == OpKind::kLocal && part.is_send) continue;
      const OpTimes& peer = PeerTimes(k, part);
      const Time begin = op.kind == OpKind::kLocal ? peer.end : std::max(peer.ready, path_.ops[k][unit_][i].ready);
      const Time end =
          path_.part_ends.empty() ? begin + part.duration : path_.part_ends[k][unit_][static_cast<std::size_t>(p)];
      if (begin <= t && t < end) return true;
    }
    return false;
  }

  const OpTimes& PeerTimes(std::size_t k, const Part& part) const {
    const Peer& peer = world_.units[unit_].peers[static_cast<std::size_t>(part.channel)];
    const auto other_unit = static_cast<std::size_t>(peer.unit);
    const Program& other = world_.programs[static_cast<std::size_t>(world_.units[other_unit].program)];
    std::size_t found = 0;
    for (std::size_t j = 0; j < other.ops.size(); ++j) {
      for (std::int32_t p = other.ops[j].first_part; p < other.ops[j].first_part + other.ops[j].num_parts; ++p) {
        const Part& theirs = other.parts[static_cast<std::size_t>(p)];
        if (theirs.channel == peer.channel && theirs.is_send != part.is_send && theirs.sequence == part.sequence)
          found = j;
      }
    }
    return path_.ops[k][other_unit][found];
  }

  TimeClass HostAt(Time t) const {
    Time previous_end;
    for (std::size_t k = 0; k < path_.host_starts.size(); ++k) {
      for (std::size_t h = 0; h < program_.host_ops.size(); ++h) {
        const Time start = path_.host_starts[k][unit_][h];
        if (previous_end <= t && t < start) {
          for (const Op& op : program_.ops) {
            if (op.records == program_.host_ops[h].waits) return At(op.stream, t);
          }
        }
        previous_end = start + program_.host_ops[h].duration;
      }
    }
    return TimeClass::kHost;
  }

  const World& world_;
  const LongestPath& path_;
  const std::size_t unit_;
  const Program& program_;
};

}  // namespace

TimeByClass ClassesByInstant(const World& world, const LongestPath& path, std::int32_t unit, Time begin, Time end) {
  const Oracle oracle(world, path, unit);
  TimeByClass classes{};
  for (Time t = begin; t < end; t += Time(1))
    classes[static_cast<std::size_t>(oracle.At(kComputeStream, t))] += Time(1);
  return classes;
}

Time PipelineBusyByInstant(const World& world, const LongestPath& path, std::int32_t unit) {
  const auto u = static_cast<std::size_t>(unit);
  const Program& program = world.programs[static_cast<std::size_t>(world.units[u].program)];
  const auto& times = path.ops[static_cast<std::size_t>(path.iterations)][u];
  bool any = false;
  Time begin;
  Time end;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    if (!program.ops[i].pipeline || program.ops[i].stream != kComputeStream) continue;
    if (!any) begin = times[i].start;
    any = true;
    end = times[i].end;
  }
  const TimeByClass classes = ClassesByInstant(world, path, unit, begin, end);
  Time busy;
  for (TimeClass c : {TimeClass::kCompute, TimeClass::kOptimizer, TimeClass::kExposedTp, TimeClass::kExposedCp,
                      TimeClass::kExposedEp, TimeClass::kExposedDp, TimeClass::kData}) {
    busy += classes[static_cast<std::size_t>(c)];
  }
  return busy;
}

}  // namespace orrery::engine::testing
