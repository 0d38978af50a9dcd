// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel's interface for asynchronous write-protection (Linux 6.7), which the headers of our build machines do not have yet.
#pragma once

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include <cstdint>

namespace bosk::affinity {

constexpr uint64_t kUffdWpUnpopulated = uint64_t{1} << 13;
constexpr uint64_t kUffdWpAsync = uint64_t{1} << 15;

struct PageRegion {
  uint64_t begin;
  uint64_t end;
  uint64_t categories;
};

struct PagemapScanArgument {
  uint64_t size;
  uint64_t flags;
  uint64_t begin;
  uint64_t end;
  uint64_t walk_end;  ///< written by the kernel: up to where it has come
  uint64_t regions;
  uint64_t n_regions;
  uint64_t most_pages;
  uint64_t category_inverted;
  uint64_t category_all;
  uint64_t category_any;
  uint64_t category_returned;
};
static_assert(sizeof(PageRegion) == 24 && sizeof(PagemapScanArgument) == 96);

constexpr unsigned long kPagemapScan = _IOWR('f', 16, PagemapScanArgument);

/// Asks a fresh userfaultfd for it. False: `errno` is EINVAL if this kernel has none.
inline bool ask_for_async_protection(int userfaultfd) {
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = kUffdWpAsync | kUffdWpUnpopulated;
  return ioctl(userfaultfd, UFFDIO_API, &api) == 0;
}

// Flags.
constexpr uint64_t kScanProtects = 1;   ///< what matches is write-protected
constexpr uint64_t kScanOnlyAsync = 2;  ///< EPERM if memory is not registered for it

// Categories.
constexpr uint64_t kPageWritten = 1 << 1;  ///< since it was protected, or never protected
constexpr uint64_t kPagePresent = 1 << 3;
constexpr uint64_t kPageHuge = 1 << 6;  ///< mapped by a huge entry

}  // namespace bosk::affinity
