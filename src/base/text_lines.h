// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A file of the kernel's, line by line, without errno and without stdio.
#pragma once

#include <fcntl.h>
#include <stddef.h>

#include "base/syscalls.h"

namespace bosk::base {

class TextLines {
 public:
  explicit TextLines(const char* path)
      : file_(raw_syscall(SYS_openat, AT_FDCWD, address_of(path), O_RDONLY | O_CLOEXEC)) {}
  ~TextLines() {
    if (file_ >= 0) raw_syscall(SYS_close, file_);
  }
  TextLines(const TextLines&) = delete;
  TextLines& operator=(const TextLines&) = delete;

  /// False: the end, or the file cannot be read. A line that is too long is cut.
  template <size_t size>
  bool next(char (&line)[size]) {
    size_t length = 0;
    for (;;) {
      if (at_ == filled_ && !fill()) return false;
      const char c = buffer_[at_++];
      if (c == '\n') break;
      if (length + 1 < size) line[length++] = c;
    }
    line[length] = '\0';
    return true;
  }

 private:
  bool fill() {
    const long n =
        file_ >= 0 ? raw_syscall(SYS_read, file_, address_of(buffer_), sizeof buffer_) : 0;
    at_ = 0;
    filled_ = n > 0 ? static_cast<size_t>(n) : 0;
    return n > 0;
  }

  long file_;
  size_t at_ = 0;
  size_t filled_ = 0;
  char buffer_[4096];
};

}  // namespace bosk::base
