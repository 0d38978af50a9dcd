// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Our handlers of SIGBUS and SIGSEGV, and the program's own behind them.
#pragma once

#include <signal.h>

namespace bosk::memory {

/// Is our handler of the signal in front? Also where none is needed. Any thread, no lock.
bool has_handler(int signal_number);

/// Sees to it that it is, before marks that need it. A handler that the program has installed since is kept behind ours,
/// which calls it for what is not ours. All signals are blocked, and the gate is held alone. False: refused, or the
/// program has installed too many different ones.
bool keep_handler(int signal_number);

/// No thread is in the middle of looking up what is behind ours. All signals are blocked, and the gate is held alone.
void lock_handlers_for_fork();
void unlock_handlers_after_fork();

}  // namespace bosk::memory
