// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mremap(2), and a mend for what it does to watched places.
#include "memory/next_touch/shadow.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/syscalls.h"
#include "memory/next_touch/state.h"
#include "memory/next_touch/userfault.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace bosk::memory {
namespace {

/// Gives the mapping that holds `at` an anon_vma, the kernel's record of pages: who is to fill a watched place gets one first.
long have_record(int userfault, int prot, uintptr_t at) {
  size_t done;  // a hole is moved by leaving all as it is, but only to what may be written
  if (prot == (PROT_READ | PROT_WRITE))
    return userfault_move_hole(userfault, at, untouched_page(), base::kPage);
  return userfault_copy(userfault, at, unreadable_page(), base::kPage, &done);
}

}  // namespace

long move_mapping(uintptr_t from, size_t bytes, uintptr_t to) {
  return base::raw_syscall(
      SYS_mremap, static_cast<long>(from), static_cast<long>(bytes), static_cast<long>(bytes),
      MREMAP_MAYMOVE | MREMAP_DONTUNMAP | (to != 0 ? MREMAP_FIXED : 0), static_cast<long>(to));
}

// The kernel ends the watch of what has arrived; but if it has joined that to another watched place before, also of that (up
// to 6.18 at least). It joins nothing where both have records of their own: who has never been touched has none, nor has one
// from where all has been moved away.
long move_aside(int userfault, int prot, uintptr_t from, size_t bytes, uintptr_t to) {
  if (have_record(userfault, prot, from) == -ENOMEM) return -ENOMEM;
  const long at = move_mapping(from, bytes, to);
  if (!failed(at)) have_record(userfault, prot, from);
  return at;
}

uintptr_t reserve_shadow(uintptr_t like, size_t bytes) {
  const size_t room = bytes + kChunkBytes;
  const long at = base::raw_syscall(SYS_mmap, 0, static_cast<long>(room), PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (failed(at)) return 0;
  const auto low = static_cast<uintptr_t>(at);
  const uintptr_t shadow = low + ((like - low) & (kChunkBytes - 1));
  const auto unmap = [](uintptr_t from, uintptr_t to) {
    if (from != to)
      base::raw_syscall(SYS_munmap, static_cast<long>(from), static_cast<long>(to - from));
  };
  unmap(low, shadow);
  unmap(shadow + bytes, low + room);
  return shadow;
}

}  // namespace bosk::memory
