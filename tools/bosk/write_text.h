// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where an option names a file for what a command has to say.
#pragma once

#include <string>

namespace bosk::tools {

/// Into the file (-: standard output; empty: nowhere). 0, or an errno.
int write_text(const std::string& name, const std::string& text);

}  // namespace bosk::tools
