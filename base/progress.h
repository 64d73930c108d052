// How a long computation tells its caller how far it is, without knowing whether anyone looks. The command line shows a
// bar on a terminal; libraries and tests pass NoProgress.
#ifndef ORRERY_BASE_PROGRESS_H_
#define ORRERY_BASE_PROGRESS_H_

#include <cstdint>
#include <string_view>

namespace orrery {

// Called from one thread. Start begins a task of `total` steps (0: unknown); each Advance does `steps` of them.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void Start(std::string_view what, std::int64_t total) = 0;
  virtual void Advance(std::int64_t steps) = 0;
};

class NoProgress final : public Progress {
 public:
  void Start(std::string_view /*what*/, std::int64_t /*total*/) override {}
  void Advance(std::int64_t /*steps*/) override {}
};

}  // namespace orrery

#endif  // ORRERY_BASE_PROGRESS_H_
