// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of our environment the guest's program gets.
#pragma once

#include <string>
#include <vector>

namespace bosk::tools::lab {

/// NAME=value: the usual ones, those of parallel run-times, and `asked`: NAME or NAME=value. Throws
/// LabError.
std::vector<std::string> guest_environment(const std::vector<std::string>& asked);

}  // namespace bosk::tools::lab
