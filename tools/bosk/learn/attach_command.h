// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `bosk attach`: observes processes that run already.
#pragma once

#include <CLI/CLI.hpp>

namespace bosk::tools {

void add_attach_command(CLI::App& app);

}  // namespace bosk::tools
