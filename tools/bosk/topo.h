// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sub-command `bosk topo`: shows the machine as text, JSON or SVG.
#pragma once

#include <CLI/CLI.hpp>

namespace bosk::tools {

/// Adds `topo` to the tool. Its work is done in the sub-command's callback, during app.parse().
/// Status: the callback returns normally for 0 and throws CLI::RuntimeError(status) otherwise, after it
/// has written one line "bosk: …" to standard error; main() takes the status from get_exit_code(), as
/// app.exit(error) does, and prints nothing more. 1: the machine cannot be read or the output not
/// written; 2: options that contradict each other.
void add_topo_command(CLI::App& app);

}  // namespace bosk::tools
