#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace orrery::cli {
namespace {

// A handler has nothing else to write to.
std::atomic<int> interrupted = 0;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void NoteSignal(int signal) { interrupted.store(signal); }

}  // namespace

void CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = NoteSignal;
  // Writes go on behind it.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

int Interrupted() { return interrupted.load(); }

int InterruptedCode() {
  constexpr int kSignalled = 128;
  return kSignalled + Interrupted();
}

}  // namespace orrery::cli
