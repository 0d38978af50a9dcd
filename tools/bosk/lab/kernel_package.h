// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a linux-image package, or a kernel file, to what the lab starts.
#pragma once

#include <filesystem>

namespace bosk::tools::lab {

/// Unpacks a linux-image package: FOLDER/vmlinux (or FOLDER/vmlinuz) and FOLDER/modules with its LIST.
/// Throws LabError.
void unpack_kernel_package(const std::filesystem::path& package,
                           const std::filesystem::path& folder);

/// Takes the kernel out of a bzImage, which QEMU would let the guest unpack for seconds: FOLDER/vmlinux;
/// if that cannot be, a copy FOLDER/vmlinuz. Throws LabError.
void unpack_kernel_image(const std::filesystem::path& image, const std::filesystem::path& folder);

/// Copies the modules that the guest needs, and those that they need, from below `tree`
/// (lib/modules/RELEASE) to FOLDER/modules, and writes LIST. What the kernel has built in is left out.
/// Throws LabError.
void collect_modules(const std::filesystem::path& tree, const std::filesystem::path& folder);

/// Folder with the kernel in it that the above made → the kernel's file.
std::filesystem::path image_in(const std::filesystem::path& folder);

}  // namespace bosk::tools::lab
