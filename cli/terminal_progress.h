// A progress bar on standard error, for work longer than a second on a terminal.
#ifndef ORRERY_CLI_TERMINAL_PROGRESS_H_
#define ORRERY_CLI_TERMINAL_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "base/progress.h"

namespace orrery::cli {

class TerminalProgress final : public Progress {
 public:
  TerminalProgress();
  ~TerminalProgress() override;

  void Start(std::string_view what, std::int64_t total) override;
  void Advance(std::int64_t steps) override;

 private:
  void Clear();

  const bool enabled_;
  bool shown_ = false;
  std::string what_;
  std::int64_t total_ = 0;
  std::int64_t done_ = 0;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace orrery::cli

#endif  // ORRERY_CLI_TERMINAL_PROGRESS_H_
