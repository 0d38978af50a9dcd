// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where many pages are set aside: a mapping of its own for each region, to which mremap(2) moves the entries of the page table.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace bosk::memory {

/// What system calls say that answer with an address.
inline bool failed(long address) { return address < 0 && address > -4096; }

/// The pages of one range go to another; the old mapping stays, empty. `to` 0: the kernel chooses.
/// The new address, or negative errno.
long move_mapping(uintptr_t from, size_t bytes, uintptr_t to);

/// The same of pages that `userfault` watches, in a mapping with that protection; nobody watches where they arrive.
long move_aside(int userfault, int prot, uintptr_t from, size_t bytes, uintptr_t to);

/// Addresses for a shadow that lie in their 2 MiB as the originals do, so that huge pages stay whole.
/// 0: no room.
uintptr_t reserve_shadow(uintptr_t like, size_t bytes);

}  // namespace bosk::memory
