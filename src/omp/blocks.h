// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks of memory with a header before them, from malloc or from an allocator's own pages. No pools, no
// fallbacks: omp/allocator.h.
#pragma once

#include "omp/allocator_object.h"

namespace bosk::omp {

/// Lies right before the user's bytes.
struct alignas(kNaturalAlignment) BlockHeader {
  void* base;                 ///< where the memory begins that was got for it
  size_t size;                ///< that the user asked for
  AllocatorHandle allocator;  ///< that it was charged to
  uintptr_t source;           ///< see blocks.cpp
};

inline BlockHeader* header_of(void* block) { return static_cast<BlockHeader*>(block) - 1; }

/// A block as the allocator's traits have it (null: of a predefined one, whose handle it will bear), at
/// least aligned to kNaturalAlignment. Null: there is no memory, or it cannot be placed or pinned.
void* make_block(Allocator* allocator, AllocatorHandle handle, size_t size, size_t alignment,
                 bool zeroed);

void free_block(const BlockHeader& header);

/// The bytes of the block elsewhere or in place, with the same allocator. Null: no memory; the block is
/// as it was.
void* resize_block(Allocator* allocator, void* block, size_t size, size_t alignment);

}  // namespace bosk::omp
