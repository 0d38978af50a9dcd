// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sub-command `bosk run`: runs a program on bosk's library. docs/run.md
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace bosk::tools {

/// Adds `run`. Its callback replaces the process by the program; it returns only for --dry-run, ends by
/// CLI::RuntimeError(status) for --compare, and by the same after one line on standard error if it cannot: 2 for options that
/// cannot be meant, 125 for the tool's own failure, 126 for a program that cannot be run on bosk, 127
/// for one that is not there.
void add_run_command(CLI::App& app);

/// CLI11 gives `--` a meaning of its own and loses it; the program may want to see it. To be called
/// with the words before they are parsed.
void hide_separators(std::vector<std::string>* words);

/// The program and its arguments: what CLI11 left over, with the separators again, but for one before
/// the program.
std::vector<std::string> program_words(std::vector<std::string> remaining);

}  // namespace bosk::tools
