// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory straight from the kernel, for where malloc may not be called.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/sanitizers.h"
#include "base/syscalls.h"

namespace bosk::base {

constexpr size_t kPage = 4096;

/// Zeroed memory in whole pages, or null. Does not touch errno.
inline void* map_pages(size_t bytes) {
#if defined(BOSK_TSAN)
  // It has to see this: else it takes what was at the address before for accesses to the new memory.
  const int error = errno;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = error;
  return memory == MAP_FAILED ? nullptr : memory;
#else
  const long at = raw_syscall(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at < 0 && at > -static_cast<long>(kPage) ? nullptr : reinterpret_cast<void*>(at);
#endif
}

inline void unmap_pages(void* at, size_t bytes) {
  if (at == nullptr) return;
#if defined(BOSK_TSAN)
  const int error = errno;
  munmap(at, bytes);
  errno = error;
#else
  raw_syscall(SYS_munmap, address_of(at), static_cast<long>(bytes));
#endif
}

}  // namespace bosk::base
