// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PAGEMAP_SCAN of this process: which pages of a range are of a kind, as runs. Linux 6.7 and newer.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::memory {

/// Categories, as in <linux/fs.h> since 6.7.
constexpr uint64_t kPagePresent = 1 << 3;
constexpr uint64_t kPageSwapped = 1 << 4;
/// Mapped as one: a transparent huge page whose mapping was not split, or a reserved one.
constexpr uint64_t kPageHuge = 1 << 6;

/// As in <linux/fs.h> since 6.7.
struct ScannedPages {
  uint64_t begin;
  uint64_t end;
  uint64_t categories;
};

/// What is scanned, not to be kept over a fork: it stays the parent's. Negative: errno.
int open_pagemap();
void close_pagemap(int file);

/// Fills in runs of pages of [begin, end) that are of one of the categories, at most `room`, up to *walked_to. Returns how
/// many; negative: the kernel cannot.
long scan_pagemap(int file, uintptr_t begin, uintptr_t end, uint64_t categories,
                  ScannedPages* found, size_t room, uintptr_t* walked_to);

}  // namespace bosk::memory
