// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Our own kernel: kernel/config and kernel/patches on the source of Debian's.
#pragma once

#include <filesystem>

namespace bosk::tools::lab {

/// The folder with its vmlinux; builds it when it is used first, or when configuration or patches have
/// changed. Throws LabError.
std::filesystem::path build_kernel();

}  // namespace bosk::tools::lab
