// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `bosk run --compare`: a program on libgomp and on bosk, in turn. docs/run.md
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "bosk/run_environment.h"

namespace bosk::tools {

/// As given on the command line; "": not given.
struct CompareOptions {
  std::string what;
  std::string runs;
};

/// Adds --compare and -n to `bosk run`.
void add_compare_options(CLI::App* command, CompareOptions* options);

/// What to say of a number that was given by -n without --compare, as other launchers have it for threads.
std::string runs_without_comparison(const CompareOptions& options,
                                    const std::vector<std::string>& command);

/// Runs `command` and prints the comparison. Returns the status to end with. Throws OptionError, ProgramError and
/// std::system_error.
int compare(const RunOptions& options, const CompareOptions& comparison, const std::string& library,
            const std::vector<std::string>& command);

}  // namespace bosk::tools
