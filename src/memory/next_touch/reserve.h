// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pages whose data have gone to another node are kept for data that come to theirs. Where nodes exchange data, as when
// teams change places, the kernel then neither allocates nor frees: contents are copied into a page that is
// there, and that page is moved to its place.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::memory {

/// Fills the empty, watched places from `to` with what lies at `from`, in pages of `node`: as many of `pages` as there
/// are, from the first on. Returns how many. The places must be readable and writable, and not executable.
uint32_t fill_from_reserve(int userfault, uintptr_t to, uintptr_t from, uint32_t pages,
                           uint32_t node);

/// Takes `pages` pages at `from`, which lie on `node` and are needed no more. Returns how many it has taken, from the first
/// on: those are empty now.
uint32_t put_into_reserve(int userfault, uintptr_t from, uint32_t pages, uint32_t node);

/// Gives all of it back to the kernel. Any thread, all signals blocked.
void empty_reserve();

/// In a forked child, which does not have it.
void forget_reserve();

/// Pages in it.
uint64_t pages_in_reserve();

}  // namespace bosk::memory
