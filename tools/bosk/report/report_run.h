// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `bosk run --report`: stays beside the program, and writes what its library has told when it has ended.
#pragma once

#include <string>
#include <vector>

#include "bosk/learn/learn_run.h"

namespace bosk::tools {

/// Can it be written there? Throws OptionError if not. `where`: "-" (standard error), "full" (there, with details), or a file's name with %p,
/// %r, %h in it.
void check_report_place(const std::string& where);

/// Runs the program, whose variables are set, to its end. Signals that a user sends to the tool go to the program. Returns its exit
/// status; ends as the program did if that was killed by a signal. Throws ProgramError if it cannot be executed.
/// `learning`: watches it meanwhile, and JSON says what was learnt; null: nobody does. `why_none` has been said of the program, if it is not empty: then it is not said again that there is no report.
int run_with_report(const std::string& where, const std::string& program,
                    const std::vector<std::string>& command, const std::string& why_none,
                    LearnRun* learning);

}  // namespace bosk::tools
