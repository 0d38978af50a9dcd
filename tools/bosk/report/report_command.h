// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sub-command `bosk report`: looks at reports that were written as JSON. docs/report.md
#pragma once

#include <CLI/CLI.hpp>

namespace bosk::tools {

/// Its callbacks print; they end by CLI::RuntimeError(2) after one line on standard error if a file is no report.
void add_report_command(CLI::App& app);

}  // namespace bosk::tools
