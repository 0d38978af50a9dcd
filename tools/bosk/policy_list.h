// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `bosk run --policy list`: the policies that there are.
#pragma once

namespace bosk::tools {

/// Prints the table to standard output.
void list_policies();

}  // namespace bosk::tools
