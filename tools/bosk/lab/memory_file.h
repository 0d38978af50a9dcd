// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A file that is in memory only: QEMU reads it by /proc/self/fd/N, and it goes with the last process.
#pragma once

#include <string>

namespace bosk::tools::lab {

class MemoryFile {
 public:
  /// Throws LabError.
  MemoryFile(const std::string& name, const std::string& content);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// The path by which a child that inherits the descriptor opens it.
  std::string path() const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace bosk::tools::lab
