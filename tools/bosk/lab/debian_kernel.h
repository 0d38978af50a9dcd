// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Debian's kernels, from Debian's archive through apt: nothing is installed.
#pragma once

#include <filesystem>
#include <string>

namespace bosk::tools::lab {

/// A kernel that is known to work, and where its successors come from when the archive has dropped it.
struct DebianKernel {
  const char* label;    // "debian"
  const char* package;  // linux-image-6.1.0-56-amd64
  const char* version;  // 6.1.192-2
  const char* sha256;   // of the package
  const char* suites;   // of Debian's archive, with spaces between them
  unsigned megabytes;   // to download
};

extern const DebianKernel kStableKernel;
extern const DebianKernel kNewerKernel;

/// The folder with its vmlinux and modules; fetches it when it is used first. Throws LabError.
std::filesystem::path fetch_kernel(const DebianKernel& kernel);

/// Downloads a package of the archive's `suites` into FOLDER: the one that is asked for, checked against
/// its sum, or the newest that `fallback` depends on or is. Returns the file, and sets `version`.
struct ArchivePackage {
  std::string name;
  std::string version;
  std::string sha256;    // of this version
  std::string fallback;  // a package that is, or depends on, the newest of the series
  std::string suites;
};
struct Downloaded {
  std::filesystem::path file;
  std::string version;
};
Downloaded download_package(const ArchivePackage& package, const std::filesystem::path& folder,
                            unsigned megabytes);

}  // namespace bosk::tools::lab
