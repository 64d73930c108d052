// Counter-based random numbers: a draw is a pure function of a seed and an index, so that any rank's draw can be had
// alone, in any order, on any thread, with one answer. Nothing here keeps state.
#ifndef ORRERY_BASE_RANDOM_H_
#define ORRERY_BASE_RANDOM_H_

#include <cstdint>

namespace orrery {

// A bijection of 64-bit words that sends near words far apart. Source: G. L. Steele, D. Lea and C. H. Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014, the finaliser called mix64 variant 13 by D. Stafford.
constexpr std::uint64_t Mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

// The word of `value` under `seed`. Chain it to name a draw by several coordinates; the order of the chain matters.
// For one seed it is a bijection of `value`, and HashCombine(0, 1), HashCombine(0, 2), ... is SplitMix64 seeded with 0.
constexpr std::uint64_t HashCombine(std::uint64_t seed, std::uint64_t value) {
  return Mix(Mix(seed) + value * 0x9e3779b97f4a7c15u);
}

// The middle of one of 2^52 equal cells of (0, 1): never 0 and never 1.
constexpr double UniformFromBits(std::uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52; }

// The standard normal draw `index` of `seed`.
double StandardNormal(std::uint64_t seed, std::uint64_t index);

}  // namespace orrery

#endif  // ORRERY_BASE_RANDOM_H_
