// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A file in memory, for what a program reads or writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bosk::tools {

/// Without a name in any folder; gone with its last user. Throws std::system_error.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;

  int descriptor() const { return descriptor_; }
  uint64_t size() const;
  /// As many bytes as are there, up to `size`.
  std::string text_at(uint64_t offset, size_t size) const;

 private:
  int descriptor_;
};

}  // namespace bosk::tools
