// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks of memory with a header before them, from malloc or from an allocator's own pages. No pools, no
// fallbacks: omp/allocator.h.
#pragma once

#include <stdlib.h>

#include "omp/allocator_object.h"

namespace bosk::omp {

/// Lies right before the user's bytes.
struct alignas(kNaturalAlignment) BlockHeader {
  void* base;                 ///< where the memory begins that was got for it
  size_t size;                ///< that the user asked for
  AllocatorHandle allocator;  ///< that it was charged to
  uintptr_t source;           ///< 0: malloc; others: see blocks.cpp
};

inline BlockHeader* header_of(void* block) { return static_cast<BlockHeader*>(block) - 1; }

constexpr size_t align_up(size_t value, size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

inline void* put_header(void* base, size_t alignment, size_t size, AllocatorHandle owner,
                        uintptr_t source) {
  const uintptr_t at = align_up(reinterpret_cast<uintptr_t>(base) + sizeof(BlockHeader), alignment);
  void* block = reinterpret_cast<void*>(at);
  *header_of(block) = {base, size, owner, source};
  return block;
}

/// Bytes with room for header and alignment, wherever they begin. False: the sum overflows.
inline bool total_of(size_t size, size_t alignment, size_t* total) {
  const size_t slack = alignment > kNaturalAlignment ? alignment : 0;
  return !__builtin_add_overflow(size, sizeof(BlockHeader) + slack, total);
}

/// Inline, like the way back: most blocks are these.
inline void* block_from_malloc(size_t size, size_t alignment, bool zeroed, AllocatorHandle owner) {
  size_t total;
  if (!total_of(size, alignment, &total)) return nullptr;
  void* base = zeroed ? calloc(1, total) : malloc(total);
  return base == nullptr ? nullptr : put_header(base, alignment, size, owner, 0);
}

/// A block as the allocator's traits have it (null: of a predefined one, whose handle it will bear), at
/// least aligned to kNaturalAlignment. Null: there is no memory, or it cannot be placed or pinned.
void* make_block(Allocator* allocator, AllocatorHandle handle, size_t size, size_t alignment,
                 bool zeroed);

void free_pages_of(const BlockHeader& header);

/// `header` may lie before the block.
inline void free_block(const BlockHeader& header) {
  if (header.source == 0) {
    free(header.base);
  } else {
    free_pages_of(header);
  }
}

/// The bytes of the block elsewhere or in place, with the same allocator. Null: no memory; the block is
/// as it was.
void* resize_block(Allocator* allocator, void* block, size_t size, size_t alignment);

}  // namespace bosk::omp
