// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small blocks where there are no heaps: from malloc, with a header that tells them from strangers. A program's own malloc
// may be made of ours: what it asks of us while we ask it comes from glibc's own.
#pragma once

#include <stddef.h>

namespace bosk::memory {

/// Null: no memory. `alignment`: a power of two.
void* system_allocate(size_t bytes, size_t alignment, bool zeroed);
/// False: it is none of these.
bool system_free(void* block);
bool system_size(const void* block, size_t* bytes);

}  // namespace bosk::memory
