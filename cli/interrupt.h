// Ctrl-C and SIGTERM, for commands that keep what is done.
#ifndef ORRERY_CLI_INTERRUPT_H_
#define ORRERY_CLI_INTERRUPT_H_

namespace orrery::cli {

// From now on the first SIGINT or SIGTERM is only noted, with what follows within half a second: `timeout` and a
// scheduler send theirs to a process and to its group. A later one ends the process as usual.
void CatchInterrupts();

// The signal that came, or 0.
int Interrupted();

// The exit code of a process that a signal ended, as a shell reports it.
int InterruptedCode();

}  // namespace orrery::cli

#endif  // ORRERY_CLI_INTERRUPT_H_
