// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A command as a shell would read it: `bosk run --dry-run`.
#pragma once

#include <string>
#include <vector>

#include "run_environment.h"

namespace bosk::tools {

/// Prints the variables, `program` in place of the first word of `command`, and the other words.
void show_command(const Variables& variables, const std::string& program,
                  const std::vector<std::string>& command);

}  // namespace bosk::tools
