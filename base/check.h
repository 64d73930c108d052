// CHECK for our own bugs: prints the condition and its place and ends the process with exit code 3, the command line's
// "our bug". Never for user input, which gets a Status.
#ifndef ORRERY_BASE_CHECK_H_
#define ORRERY_BASE_CHECK_H_

namespace orrery {

inline constexpr int kExitCodeOurBug = 3;

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace orrery

#define ORRERY_CHECK(condition)                                              \
  do {                                                                       \
    if (!(condition)) ::orrery::CheckFailed(#condition, __FILE__, __LINE__); \
  } while (false)

#endif  // ORRERY_BASE_CHECK_H_
