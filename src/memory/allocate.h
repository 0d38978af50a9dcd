// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// malloc and friends: small blocks from heaps, large ones as pages.
#pragma once

#include "memory/area_table.h"

namespace bosk::memory {

/// Null: there is no memory. Near the caller; `bytes` may be 0. `alignment`: a power of two, or 0.
void* allocate(AreaTable& areas, size_t bytes, size_t alignment, bool zeroed);
/// On the node, which is usable.
void* allocate_on(AreaTable& areas, NodeIndex node, size_t bytes);
/// As realloc(), on the node that the block is on. Null: *error says why, and the block is as it was.
void* reallocate(AreaTable& areas, void* block, size_t bytes, int* error);
/// BOSK_ENOAREA: it is no block, or none any more.
int release(AreaTable& areas, void* block);
/// Bytes that it was asked for (of pages, rounded up). The same code.
int size_of(AreaTable& areas, const void* block, size_t* bytes);

}  // namespace bosk::memory
