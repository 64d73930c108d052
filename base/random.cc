#include "base/random.h"

#include "base/math.h"

namespace orrery {

double StandardNormal(std::uint64_t seed, std::uint64_t index) {
  return NormalQuantile(UniformFromBits(HashCombine(seed, index)));
}

}  // namespace orrery
