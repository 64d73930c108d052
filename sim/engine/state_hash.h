// The hash by which a replay recognises a state that it has been in, some time ago.
#ifndef ORRERY_SIM_ENGINE_STATE_HASH_H_
#define ORRERY_SIM_ENGINE_STATE_HASH_H_

#include <cstdint>
#include <limits>

#include "base/units.h"
#include "sim/engine/timeline_hash.h"

namespace orrery::engine {

// Of a sequence of numbers and instants; instants count from `now`. Of a set, add the sum of its members' values.
class StateHash {
 public:
  explicit StateHash(Time now) : now_(now) {}

  void Add(std::uint64_t value) { value_ = Mixed(value_ ^ value) + kOddConstant; }
  void Add(std::int64_t value) { Add(static_cast<std::uint64_t>(value)); }
  void Add(std::int32_t value) { Add(std::int64_t{value}); }
  void Add(Int128 value) {
    Add(static_cast<std::uint64_t>(value));
    Add(static_cast<std::uint64_t>(value >> 64));
  }
  void AddInstant(Time time) { Add((time - now_).count()); }
  // Of something that may not have happened, which `none` stands for.
  void AddInstant(Time time, Time none) {
    Add(time == none ? std::numeric_limits<std::int64_t>::min() : (time - now_).count());
  }

  std::uint64_t value() const { return value_; }

 private:
  Time now_;
  std::uint64_t value_ = 0;
};

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_STATE_HASH_H_
