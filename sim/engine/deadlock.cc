// Explains a deadlock: follows, from a stream that cannot go on, what it waits for, until a stream comes up a second
// time.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sim/engine/engine.h"

namespace orrery::engine {
namespace {

constexpr std::int32_t kHostStream = kMaxStreams;

// A stream, or the host, of a unit.
struct Place {
  std::int32_t unit = 0;
  std::int32_t stream = 0;

  friend auto operator<=>(const Place&, const Place&) = default;
};

// Why a place cannot go on, and the place that has to go on first.
struct Cause {
  std::string why;
  Place next;
};

class Explainer {
 public:
  Explainer(const World& world, const std::vector<ProgramIndex>& indices, const Progress& progress)
      : world_(world), indices_(indices), progress_(progress) {}

  std::string Explain() const {
    Place place = FirstStuck();
    std::vector<std::string> steps;
    std::map<Place, std::size_t> seen;
    while (seen.emplace(place, steps.size()).second) {
      const std::optional<Cause> cause = CauseOf(place);
      // Cannot happen while the engines are right: whatever waits for nothing goes on.
      if (!cause) return absl::StrCat(Name(place), " stopped without waiting for anything");
      steps.push_back(absl::StrCat(Name(place), " waits for ", cause->why));
      place = cause->next;
    }
    steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(seen[place]));
    return absl::StrJoin(steps, "; ");
  }

 private:
  const Program& ProgramOf(std::int32_t unit) const {
    return world_.programs[static_cast<std::size_t>(world_.units[static_cast<std::size_t>(unit)].program)];
  }
  const ProgramIndex& IndexOf(std::int32_t unit) const {
    return indices_[static_cast<std::size_t>(world_.units[static_cast<std::size_t>(unit)].program)];
  }
  const Op& OpOf(std::int32_t unit, std::int32_t op) const { return ProgramOf(unit).ops[static_cast<std::size_t>(op)]; }

  Place FirstStuck() const {
    for (std::int32_t u = 0; u < static_cast<std::int32_t>(world_.units.size()); ++u) {
      const auto& stream_ops = IndexOf(u).stream_ops;
      for (std::int32_t s = 0; s < static_cast<std::int32_t>(stream_ops.size()); ++s) {
        if (progress_.finished(u, s) < static_cast<std::int32_t>(stream_ops[static_cast<std::size_t>(s)].size()))
          return {u, s};
      }
    }
    return {0, kHostStream};
  }

  std::string Rank(std::int32_t unit) const {
    return absl::StrCat("rank ", world_.units[static_cast<std::size_t>(unit)].first_rank);
  }
  std::string Name(const Place& place) const {
    if (place.stream == kHostStream) return absl::StrCat(Rank(place.unit), " host");
    const auto op = HeadOf(place);
    return absl::StrCat(Rank(place.unit), " stream ", place.stream, " op ", op);
  }

  // The first operation of a stream that has not finished, or -1.
  std::int32_t HeadOf(const Place& place) const {
    const auto& ops = IndexOf(place.unit).stream_ops[static_cast<std::size_t>(place.stream)];
    const auto finished = static_cast<std::size_t>(progress_.finished(place.unit, place.stream));
    return finished < ops.size() ? ops[finished] : -1;
  }
  bool IsFinished(std::int32_t unit, std::int32_t op) const {
    return IndexOf(unit).position[static_cast<std::size_t>(op)] < progress_.finished(unit, OpOf(unit, op).stream);
  }
  Place PlaceOf(std::int32_t unit, std::int32_t op) const { return {unit, OpOf(unit, op).stream}; }

  std::optional<Cause> EventCause(std::int32_t unit, std::int32_t event) const {
    const std::int32_t recorder = IndexOf(unit).recorder[static_cast<std::size_t>(event)];
    if (IsFinished(unit, recorder)) return std::nullopt;
    const Place next = PlaceOf(unit, recorder);
    return Cause{absl::StrCat("op ", recorder, " of its stream ", next.stream), next};
  }

  // What keeps an operation at the head of its stream from being ready.
  std::optional<Cause> ReadyCause(std::int32_t unit, std::int32_t op_index) const {
    const Op& op = OpOf(unit, op_index);
    if (progress_.host_ops_begun(unit) <= op.host_op) {
      return Cause{absl::StrCat("host op ", op.host_op), {unit, kHostStream}};
    }
    for (std::int32_t event : op.waits) {
      if (event == kNoEvent) break;
      if (auto cause = EventCause(unit, event)) return cause;
    }
    return std::nullopt;
  }

  // Whether an operation has come to its rendezvous.
  bool HasCome(std::int32_t unit, std::int32_t op) const {
    if (IsFinished(unit, op)) return true;
    return HeadOf(PlaceOf(unit, op)) == op && !ReadyCause(unit, op);
  }

  std::optional<Cause> CauseOf(const Place& place) const {
    if (place.stream == kHostStream) {
      const auto& host_ops = ProgramOf(place.unit).host_ops;
      const auto begun = static_cast<std::size_t>(progress_.host_ops_begun(place.unit));
      if (begun >= host_ops.size() || host_ops[begun].waits == kNoEvent) return std::nullopt;
      return EventCause(place.unit, host_ops[begun].waits);
    }
    const std::int32_t op = HeadOf(place);
    if (op < 0) return std::nullopt;
    if (auto cause = ReadyCause(place.unit, op)) return cause;
    return OpOf(place.unit, op).kind == OpKind::kCollective ? GroupCause(place.unit, op) : MessageCause(place.unit, op);
  }

  std::optional<Cause> MessageCause(std::int32_t unit, std::int32_t op_index) const {
    const Op& op = OpOf(unit, op_index);
    for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
      const Part& part = ProgramOf(unit).parts[static_cast<std::size_t>(i)];
      if (op.kind == OpKind::kLocal && part.is_send) continue;
      const Peer& peer = world_.units[static_cast<std::size_t>(unit)].peers[static_cast<std::size_t>(part.channel)];
      const auto link = static_cast<std::size_t>(LinkOf(peer.channel, !part.is_send));
      const std::int32_t other = IndexOf(peer.unit).messages[link][static_cast<std::size_t>(part.sequence)].op;
      if (op.kind == OpKind::kLocal ? IsFinished(peer.unit, other) : HasCome(peer.unit, other)) continue;
      return Cause{absl::StrCat(part.is_send ? "receive " : "send ", part.sequence, " of ", Rank(peer.unit),
                                " in its op ", other),
                   PlaceOf(peer.unit, other)};
    }
    return std::nullopt;
  }

  std::optional<Cause> GroupCause(std::int32_t unit, std::int32_t op_index) const {
    const Op& op = OpOf(unit, op_index);
    const std::int32_t group = world_.units[static_cast<std::size_t>(unit)].groups[static_cast<std::size_t>(op.group)];
    for (std::int32_t member : world_.groups[static_cast<std::size_t>(group)]) {
      const auto& groups = world_.units[static_cast<std::size_t>(member)].groups;
      for (std::size_t slot = 0; slot < groups.size(); ++slot) {
        const auto& uses = IndexOf(member).uses[slot];
        if (groups[slot] != group || uses.empty()) continue;
        const std::int32_t other = uses[static_cast<std::size_t>(op.use)];
        if (HasCome(member, other)) continue;
        return Cause{absl::StrCat(Rank(member), " in use ", op.use, " of group ", group), PlaceOf(member, other)};
      }
    }
    return std::nullopt;
  }

  const World& world_;
  const std::vector<ProgramIndex>& indices_;
  const Progress& progress_;
};

}  // namespace

absl::Status ExplainDeadlock(const World& world, const std::vector<ProgramIndex>& indices, const Progress& progress) {
  return absl::FailedPreconditionError(absl::StrCat("deadlock: ", Explainer(world, indices, progress).Explain()));
}

}  // namespace orrery::engine
