#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace orrery {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "CHECK failed: %s at %s:%d (please report this bug)\n", condition, file, line);
  std::fflush(nullptr);
  // No destructors and no atexit handlers: the state that they would touch is the one just found broken.
  std::_Exit(kExitCodeOurBug);
}

}  // namespace orrery
