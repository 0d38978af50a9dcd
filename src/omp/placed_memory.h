// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole pages that are placed and locked as an allocator's traits ask.
#pragma once

#include <stddef.h>

#include "omp/memory_nodes.h"

namespace bosk::omp {

size_t page_size();

/// Zeroed pages, placed by `plan`, locked into memory if `pinned`. `bytes` is a multiple of
/// page_size(), `alignment` a power of two; `offset` (a multiple of neither) is where in them the
/// alignment must hold. Null: there is no memory, or the kernel refuses what is asked: nothing is left
/// behind.
void* map_placed(size_t bytes, size_t alignment, size_t offset, const MemoryPlan& plan,
                 bool pinned);

}  // namespace bosk::omp
