// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files that stay open for long get high numbers: programs expect the low ones, and some close the first
// few dozen.
#pragma once

#include <fcntl.h>

#include "base/syscalls.h"

namespace bosk::memory {

/// The same file under a high number, where the limit allows one; negative as it was.
inline int to_high_file(int file) {
  constexpr long kHigh = 800;
  if (file < 0) return file;
  for (long from = kHigh; from >= 100; from /= 2) {
    const long high = base::raw_syscall(SYS_fcntl, file, F_DUPFD_CLOEXEC, from);
    if (high < 0) continue;
    base::raw_syscall(SYS_close, file);
    return static_cast<int>(high);
  }
  return file;
}

}  // namespace bosk::memory
