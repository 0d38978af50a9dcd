// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The structure of the call, which the headers of older systems do not have.
#include "memory/pagemap.h"

#include <fcntl.h>
#include <linux/ioctl.h>

#include "base/syscalls.h"

namespace bosk::memory {
namespace {

/// As in <linux/fs.h> since 6.7.
struct ScanRequest {
  uint64_t size;
  uint64_t flags;
  uint64_t begin;
  uint64_t end;
  uint64_t walked_to;
  uint64_t found;
  uint64_t room;
  uint64_t most_pages;
  uint64_t inverted;
  uint64_t all_of;
  uint64_t any_of;
  uint64_t told;
};
static_assert(sizeof(ScanRequest) == 96);
constexpr unsigned long kScan = _IOWR('f', 16, ScanRequest);

}  // namespace

int open_pagemap() {
  return static_cast<int>(base::raw_syscall(
      SYS_openat, AT_FDCWD, base::address_of("/proc/self/pagemap"), O_RDONLY | O_CLOEXEC));
}

void close_pagemap(int file) {
  if (file >= 0) base::raw_syscall(SYS_close, file);
}

long scan_pagemap(int file, uintptr_t begin, uintptr_t end, uint64_t categories,
                  ScannedPages* found, size_t room, uintptr_t* walked_to) {
  ScanRequest request = {};
  request.size = sizeof request;
  request.begin = begin;
  request.end = end;
  request.found = reinterpret_cast<uintptr_t>(found);
  request.room = room;
  request.any_of = request.told = categories;
  const long runs =
      base::raw_syscall(SYS_ioctl, file, static_cast<long>(kScan), base::address_of(&request));
  *walked_to = request.walked_to;
  return runs;
}

}  // namespace bosk::memory
