// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Our handlers of SIGBUS and SIGSEGV, and the program's own behind them.
#pragma once

#include <signal.h>

namespace bosk::memory {

/// Sees to it that our handler of the signal is installed, before marks that need it. A handler that the
/// program has installed since is kept as the one behind ours. The gate is held alone. False: refused.
bool keep_handler(int signal_number);

/// For whoever wraps sigaction(2): if ours is installed for the signal, does what the program asks to the
/// one behind it and returns true; false: not our business, call the kernel. Any thread.
bool sigaction_behind_ours(int signal_number, const struct sigaction* wanted,
                           struct sigaction* before);

}  // namespace bosk::memory
