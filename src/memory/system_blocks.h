// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small blocks where there are no heaps: from malloc, with a header that tells them from strangers.
#pragma once

#include <stddef.h>

namespace bosk::memory {

/// Null: no memory, or the caller is malloc itself (a program's own, that asks us). `alignment` as for malloc.
void* system_allocate(size_t bytes, bool zeroed);
/// False: it is none of these.
bool system_free(void* block);
bool system_size(const void* block, size_t* bytes);

}  // namespace bosk::memory
