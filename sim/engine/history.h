// What a stream did, or was blocked on, at every instant of its recent past.
#ifndef ORRERY_SIM_ENGINE_HISTORY_H_
#define ORRERY_SIM_ENGINE_HISTORY_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "sim/engine/program.h"

namespace orrery::engine {

// A stretch of time of one class.
struct Piece {
  TimeClass time_class = TimeClass::kCompute;
  Time begin;
  Time end;
};

// Invariant: the pieces kept follow each other without gaps, so that only ends are stored.
class History {
 public:
  // `piece` must begin where the last one ended.
  void Append(const Piece& piece) {
    if (piece.begin == piece.end) return;
    if (!pieces_.empty() && pieces_.back().time_class == piece.time_class) {
      pieces_.back().end = piece.end;
    } else {
      pieces_.push_back({piece.time_class, piece.end});
    }
  }

  // Calls `sink(Piece)` for what lies in [begin, end), in order.
  template <typename Sink>
  void Visit(Time begin, Time end, Sink&& sink) const {
    auto it = PieceAt(begin);
    ORRERY_CHECK(begin >= forgotten_);
    while (begin < end) {
      ORRERY_CHECK(it != pieces_.end());
      const Time until = std::min(end, it->end);
      sink(Piece{it->time_class, begin, until});
      begin = until;
      ++it;
    }
  }

  // The same for all that lies behind `begin`.
  template <typename Sink>
  void VisitFrom(Time begin, Sink&& sink) const {
    if (!pieces_.empty()) Visit(begin, pieces_.back().end, sink);
  }

  // Forgets what ended before `time`.
  void Forget(Time time) {
    const auto it = PieceAt(time);
    if (it != pieces_.begin()) forgotten_ = std::prev(it)->end;
    pieces_.erase(pieces_.begin(), it);
  }

 private:
  struct Entry {
    TimeClass time_class;
    Time end;
  };

  // The piece that `time` lies in.
  std::vector<Entry>::const_iterator PieceAt(Time time) const {
    return std::upper_bound(pieces_.begin(), pieces_.end(), time,
                            [](Time at, const Entry& entry) { return at < entry.end; });
  }

  std::vector<Entry> pieces_;
  Time forgotten_;
};

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_HISTORY_H_
