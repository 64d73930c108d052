// What the event queue's events are, and the order of those of one instant.
#ifndef ORRERY_SIM_ENGINE_EVENT_KEY_H_
#define ORRERY_SIM_ENGINE_EVENT_KEY_H_

#include <cstdint>

namespace orrery::engine {

enum class EventKind : std::uint8_t {
  kHostFree,    // the host has issued everything of an operation
  kStreamFree,  // the stream may begin
  kIssued,      // the host has issued the stream's next operation
  kLoads,       // the lead of a transfer is over; `item` is its id
  kShares,      // the fixed part of a transfer is over; `item` is its id
  kArrival,     // a message has arrived; `item` is its id
  kFinish,      // the stream's operation ends
  kChanges,     // the unit's compute stream comes to another kind of kernel
};

// Packs (kind, unit, stream, item) so that one comparison orders them.
inline constexpr int kItemBits = 28;
inline constexpr int kStreamBits = 5;
inline constexpr int kUnitBits = 28;
static_assert(kItemBits + kStreamBits + kUnitBits + 3 == 64);

inline constexpr std::uint64_t EventKey(EventKind kind, std::int32_t unit, std::int32_t stream, std::int32_t item) {
  return ((static_cast<std::uint64_t>(kind) << kUnitBits | static_cast<std::uint64_t>(unit)) << kStreamBits |
          static_cast<std::uint64_t>(stream))
             << kItemBits |
         static_cast<std::uint64_t>(item);
}
inline constexpr EventKind KindOf(std::uint64_t key) {
  return static_cast<EventKind>(key >> (kItemBits + kStreamBits + kUnitBits));
}
inline constexpr std::int32_t UnitOf(std::uint64_t key) {
  return static_cast<std::int32_t>(key >> (kItemBits + kStreamBits) & ((std::uint64_t{1} << kUnitBits) - 1));
}
inline constexpr std::int32_t StreamOf(std::uint64_t key) {
  return static_cast<std::int32_t>(key >> kItemBits & ((std::uint64_t{1} << kStreamBits) - 1));
}
inline constexpr std::int32_t ItemOf(std::uint64_t key) {
  return static_cast<std::int32_t>(key & ((std::uint64_t{1} << kItemBits) - 1));
}

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_EVENT_KEY_H_
