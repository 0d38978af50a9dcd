// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small files of the kernel's, without errno and without stdio.
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/syscalls.h"

namespace bosk::base {

/// False: the file cannot be read, or is empty. The text is cut at the buffer's end.
template <size_t size>
bool read_text(const char* path, char (&text)[size]) {
  const long fd = raw_syscall(SYS_openat, AT_FDCWD, address_of(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const long n = raw_syscall(SYS_read, fd, address_of(text), static_cast<long>(size - 1));
  raw_syscall(SYS_close, fd);
  text[n > 0 ? n : 0] = '\0';
  return n > 0;
}

/// Of a line "NAME   123 kB", in bytes; `unknown`: there is no such line.
inline uint64_t amount_of(const char* text, const char* name, uint64_t unknown) {
  const char* at = strstr(text, name);
  return at != nullptr ? strtoull(at + strlen(name), nullptr, 10) << 10 : unknown;
}

}  // namespace bosk::base
