#include "cli/interrupt.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace orrery::cli {
namespace {

// A handler has nothing else to write to.
std::atomic<int> interrupted = 0;
std::atomic<int64_t> interrupted_at_ms = 0;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

// `timeout` sends its signal to the process and to its group: twice for one wish.
constexpr int64_t kOneWishMs = 500;

int64_t NowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // one of the few calls that a handler may make
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

extern "C" void NoteSignal(int signal) {
  if (interrupted.load() == 0) {
    interrupted_at_ms.store(NowMs());
    interrupted.store(signal);
  } else if (NowMs() - interrupted_at_ms.load() > kOneWishMs) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // delivered as the handler returns
  }
}

}  // namespace

void CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = NoteSignal;
  action.sa_flags = SA_RESTART;  // writes go on behind it
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

int Interrupted() { return interrupted.load(); }

int InterruptedCode() {
  constexpr int kSignalled = 128;
  return kSignalled + Interrupted();
}

}  // namespace orrery::cli
