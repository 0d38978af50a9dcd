// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The guest's kernel: found, or fetched, or built, and kept in the cache. docs/lab.md
#pragma once

#include <filesystem>
#include <string>

namespace bosk::tools::lab {

/// A kernel that can be started.
struct Kernel {
  std::filesystem::path image;  // vmlinux with a PVH entry, or a bzImage
  std::filesystem::path
      modules;       // a folder with a file LIST: the modules in loading order; or empty
  std::string name;  // "Debian's 6.1.192-2"
};

/// The kernel that --kernel names: auto, debian, newer, built, or a path. Prepares it when it is used
/// first, and says so on standard error. Throws LabError.
Kernel find_kernel(const std::string& name);

}  // namespace bosk::tools::lab
