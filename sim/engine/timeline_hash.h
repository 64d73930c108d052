// The hash by which timelines are compared to the picosecond.
//
// Multiplications by odd constants and xor-shifts (as in splitmix64, Steele et al. 2014) spread every bit of the input
// over the result.
#ifndef ORRERY_SIM_ENGINE_TIMELINE_HASH_H_
#define ORRERY_SIM_ENGINE_TIMELINE_HASH_H_

#include <cstdint>

#include "base/units.h"

namespace orrery::engine {

inline constexpr std::uint64_t kOddConstant = 0x9e3779b97f4a7c15u;

inline constexpr std::uint64_t Mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// One operation's contribution; contributions are added modulo 2^64, so that the order of evaluation does not show.
inline std::uint64_t TimelineHash(std::int32_t iteration, std::int32_t stream, std::int32_t op, Time start, Time end) {
  std::uint64_t x = (static_cast<std::uint64_t>(iteration) << 40) ^ (static_cast<std::uint64_t>(stream) << 32) ^
                    static_cast<std::uint64_t>(op);
  x = x * kOddConstant + static_cast<std::uint64_t>(start.count());
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u + static_cast<std::uint64_t>(end.count());
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_TIMELINE_HASH_H_
