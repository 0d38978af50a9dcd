// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the word after --kernel to a kernel.
#include "bosk/lab/kernel.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "bosk/lab/built_kernel.h"
#include "bosk/lab/cache.h"
#include "bosk/lab/command.h"
#include "bosk/lab/debian_kernel.h"
#include "bosk/lab/error.h"
#include "bosk/lab/kernel_package.h"

namespace bosk::tools::lab {
namespace {

namespace fs = std::filesystem;

Kernel in_cache(const fs::path& folder) {
  return {image_in(folder), folder / "modules", folder.filename().string()};
}

Kernel debian(const DebianKernel& kernel) { return in_cache(fetch_kernel(kernel)); }

/// /boot/vmlinuz-RELEASE → the modules that belong to it: beside /boot, or in a build's own tree.
fs::path modules_of(const fs::path& image) {
  const std::string name = image.filename().string();
  const size_t dash = name.find('-');
  if (dash == std::string::npos) return {};
  const fs::path below = fs::path("lib") / "modules" / name.substr(dash + 1);
  for (const fs::path& root : {image.parent_path().parent_path(), fs::path("/")}) {
    if (fs::is_directory(root / below)) return root / below;
  }
  return {};
}

bool starts_with(const fs::path& path, const std::string& start, std::streamoff at = 0) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(at);
  std::string text(start.size(), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return file.good() && text == start;
}

bool is_kernel(const fs::path& path) {
  return starts_with(path, "\177ELF") || starts_with(path, "HdrS", 0x202);
}

Kernel from_file(const std::string& path) {
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  if (error) {
    throw LabError(
        kUsage, fmt::format("--kernel {}: {}; it is a file, or one of auto, debian, newer, built",
                            path, error.message()));
  }
  const bool package = starts_with(file, "!<arch>\n");
  if (!package && !is_kernel(file)) {
    throw LabError(
        kUsage,
        fmt::format("--kernel {}: neither a kernel (vmlinux, bzImage) nor a package", path));
  }
  const fs::path modules = package ? fs::path() : modules_of(file);
  if (!package && modules.empty() && starts_with(file, "\177ELF")) return {file, {}, path};
  const std::string sum = sha256_of(file);
  if (sum.empty()) throw LabError(kUsage, fmt::format("--kernel {}: it cannot be read", path));
  constexpr size_t kEnough = 16;
  const std::string entry = "file-" + sum.substr(0, kEnough);
  Kernel kernel = in_cache(cached(entry, [&](const fs::path& folder) {
    if (package) {
      unpack_kernel_package(file, folder);
    } else {
      unpack_kernel_image(file, folder);
      if (!modules.empty()) collect_modules(modules, folder);
    }
    return entry;
  }));
  // A kernel without modules is expected to have all it needs built in.
  if (!fs::is_directory(kernel.modules)) kernel.modules.clear();
  kernel.name = path;
  return kernel;
}

}  // namespace

Kernel find_kernel(const std::string& name) {
  if (name == "debian" || name == "auto") return debian(kStableKernel);
  if (name == "built") return {image_in(build_kernel()), {}, "built"};
  if (name == "newer") return debian(kNewerKernel);
  return from_file(name);
}

}  // namespace bosk::tools::lab
