// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files in memory by memfd_create(2).
#include "memory_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace bosk::tools {

MemoryFile::MemoryFile() : descriptor_(memfd_create("bosk-compare", MFD_CLOEXEC)) {
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "a file in memory");
}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

uint64_t MemoryFile::size() const {
  struct stat status;
  return fstat(descriptor_, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

std::string MemoryFile::text_at(uint64_t offset, size_t size) const {
  std::string text(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t count =
        pread(descriptor_, text.data() + done, size - done, static_cast<off_t>(offset + done));
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  text.resize(done);
  return text;
}

}  // namespace bosk::tools
