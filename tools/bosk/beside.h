// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a program and stays beside it, unseen: signals, exit status, input and output are the program's own.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace bosk::tools {

/// Who else has to do with the program. Both may be empty.
struct Companion {
  std::function<void(pid_t process)> before;  ///< the process is there, the program has not begun
  std::function<void()> after;                ///< it has ended, or could not be executed
};

/// Runs the program, whose variables are set, to its end. Signals that a user sends to the tool go to the program. Returns its wait
/// status. Throws ProgramError if it cannot be executed.
int run_beside(const std::string& program, const std::vector<std::string>& command,
               const Companion& companion);

/// As a program that was killed by a signal ended, so do we: whoever waits for us sees the same.
[[noreturn]] void end_by(int signal);

}  // namespace bosk::tools
