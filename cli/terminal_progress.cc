#include "cli/terminal_progress.h"

#include <cstdio>

#include "cli/environment.h"

namespace orrery::cli {
namespace {

constexpr std::chrono::seconds kQuiet{1};          // no bar on shorter work
constexpr std::chrono::milliseconds kRedraw{100};  // at most ten times a second

}  // namespace

TerminalProgress::TerminalProgress() : enabled_(StandardErrorIsTerminal()) {}

TerminalProgress::~TerminalProgress() { Clear(); }

void TerminalProgress::Start(std::string_view what, std::int64_t total) {
  Clear();
  what_ = what;
  total_ = total;
  done_ = 0;
  started_ = drawn_ = std::chrono::steady_clock::now();
}

void TerminalProgress::Advance(std::int64_t steps) {
  done_ += steps;
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - started_ < kQuiet || now - drawn_ < kRedraw) return;
  drawn_ = now;
  shown_ = true;
  if (total_ > 0) {
    std::fprintf(stderr, "\r%s: %lld of %lld", what_.c_str(), static_cast<long long>(done_),
                 static_cast<long long>(total_));
  } else {
    std::fprintf(stderr, "\r%s: %lld", what_.c_str(), static_cast<long long>(done_));
  }
  std::fflush(stderr);
}

void TerminalProgress::Clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  shown_ = false;
}

}  // namespace orrery::cli
