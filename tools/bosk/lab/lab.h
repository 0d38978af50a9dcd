// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sub-command `bosk lab`: runs a command on a virtual NUMA machine. docs/lab.md
#pragma once

#include <CLI/CLI.hpp>

namespace bosk::tools {

/// Adds `lab`. Its callback throws CLI::RuntimeError with the status that the tool exits with: the
/// command's own, or after one line on standard error 2 (options), 124 (time is up), 125 (the lab), 126
/// and 127 (the command cannot be run, is not there).
void add_lab_command(CLI::App& app);

}  // namespace bosk::tools
