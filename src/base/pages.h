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

constexpr size_t kHugePage = size_t{2} << 20;

/// The same, aligned to huge pages (a multiple of their size on x86-64 and most of AArch64), that the kernel is asked to use
/// if it may: for tables of which a program reads at random, where each access would miss the TLB.
inline void* map_huge_pages(size_t bytes) {
  auto* at = static_cast<char*>(map_pages(bytes + kHugePage));
  if (at == nullptr) return nullptr;
  const size_t before = -reinterpret_cast<uintptr_t>(at) % kHugePage;
  if (before != 0) unmap_pages(at, before);
  unmap_pages(at + before + bytes, kHugePage - before);
  at += before;
#if !defined(BOSK_TSAN)
  raw_syscall(SYS_madvise, address_of(at), static_cast<long>(bytes), MADV_HUGEPAGE);
#endif
  return at;
}

/// For tables that grow: how much to map next, of which as much is there already, and no less than `least`; small ones stay
/// small, large ones consist of huge pages.
inline void* map_more(size_t there, size_t least, size_t* bytes) {
  constexpr size_t kFirst = size_t{64} << 10;
  *bytes = kFirst;
  while (*bytes < least || (*bytes < there && *bytes < kHugePage)) *bytes *= 2;
  return *bytes < kHugePage ? map_pages(*bytes) : map_huge_pages(*bytes);
}

}  // namespace bosk::base
