// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a few pages are set aside: a range of addresses that is watched once and for good, so that UFFDIO_MOVE takes it as a
// destination. For that many, moving pages there and back takes half of what mremap(2) to a new mapping and unmapping it take.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::memory {

/// Fewer than the reserve begins with: whoever fills from that reads the shadow by himself, and in a slot the kernel may have
/// dropped a page (MADV_FREE) by then, which would be a fault in the handler.
constexpr uint32_t kSlotPages = 7;

/// Of a kernel's release, "6.18.3-amd64" say: does it interrupt the CPUs of all other threads once for a run of pages that it moves? Up
/// to 6.17 it does for each page, so that of more than two mremap(2), which does once, costs less.
bool moves_runs(const char* release);
/// How many pages at most are better in a slot, on this kernel.
uint32_t most_slot_pages();

// The gate is held alone, here and below.

/// Empty addresses for so many pages (kSlotPages at most), watched by this userfaultfd; 0: there are none.
uintptr_t take_slot(int userfault, uint32_t pages);
/// What is still there is given back to the kernel: old copies, and pages whose place has gone. Also a part of a slot.
void give_slot_back(uintptr_t at, uint32_t pages);
/// In a forked child. `in_use`: some could not be emptied before; they stay as they are, and there will be no others.
void forget_slots(bool in_use);

}  // namespace bosk::memory
