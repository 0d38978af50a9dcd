// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sub-command `bosk learn`: what recordings of bosk run --learn --record tell.
#pragma once

#include <CLI/CLI.hpp>

namespace bosk::tools {

void add_learn_command(CLI::App& app);

}  // namespace bosk::tools
