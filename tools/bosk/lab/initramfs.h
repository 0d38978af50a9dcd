// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The guest's first file system: its first process and the modules that this needs.
#pragma once

#include <filesystem>
#include <string>

namespace bosk::tools::lab {

/// A cpio archive, as the kernel unpacks it. `init`: the program that becomes /init; `modules`: a folder
/// with a LIST, or empty. Throws LabError.
std::string make_initramfs(const std::filesystem::path& init, const std::filesystem::path& modules);

}  // namespace bosk::tools::lab
